"""Counts the bytes of a body that stay bytes in a column, as records do. The other bytes become rows."""

import numpy as np

from kafkascope.capture.base.checked import writable
from kafkascope.capture.base.flow import Bytes
from kafkascope.capture.frames.body_scan import NAME_WIDTH, ScanResult, make_stack, scan
from kafkascope.capture.frames.scan_program import REQUEST, RESPONSE, Fact, ScanPrograms
from kafkascope.schema.catalog import message

_NO_NAMES = np.empty((0, NAME_WIDTH), np.int64)


def content_bytes(name: str, version: int, body: Bytes) -> int:
    """All bytes if the body isn't in the form that Kafka writes: the careful codec has its own bound."""
    key = message(name).key
    if key is None:
        return len(body)
    programs = ScanPrograms()
    programs.need(np.array([key]), np.array([version]))
    facts, seen = np.zeros(len(Fact), np.int64), np.zeros(len(Fact), np.uint8)
    entry = programs.entry[RESPONSE if name.endswith("Response") else REQUEST, key, version]
    result, _ = scan(
        programs.operations, programs.tags, entry, writable(body), np.int64(0), np.int64(0), np.int64(len(body)), facts,
        seen, np.int64(0), _NO_NAMES, np.int64(0), False, make_stack(),
    )  # fmt: skip
    return int(facts[Fact.CONTENT]) if result == ScanResult.READ else len(body)
