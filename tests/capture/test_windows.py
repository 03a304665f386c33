"""Recorded captures cut into windows of time: an exchange that is whole in its window keeps its response."""

import struct
from collections import defaultdict
from io import BytesIO
from typing import Any

import pytest

from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.pairing import (
    PairStatus,
)
from kafkascope.capture.frames.headers import (
    Frame,
)
from kafkascope.capture.reader import Reading
from tests.captures import NAMES, capture

HEADER, RECORD = 24, 16
LEAST_PAIRED = 0.99


def answered(recorded: bytes) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Request to when it began, and when its response ended."""
    exchanges = {}
    for batch in Reading(BytesIO(recorded)).batches():
        for index in range(len(batch)):
            if batch.status[index] == PairStatus.ANSWERED:
                exchanges[_name(batch, index)] = (
                    int(batch.rows[batch.request[index], Frame.FIRST_NS]),
                    int(batch.rows[batch.response[index], Frame.LAST_NS]),
                )
    return exchanges


def _name(batch: ExchangeBatch, index: int) -> tuple[Any, ...]:
    row = batch.rows[batch.request[index]]
    ends = batch.ends[row[Frame.CONNECTION]]
    return (ends.client_address, ends.broker_address, *row[[Frame.API_KEY, Frame.CORRELATION, Frame.LAST_NS]].tolist())


def windows(recorded: bytes, width_ns: int) -> dict[tuple[int, int], bytes]:
    """(from, to) to the packets of that time."""
    (magic,) = struct.unpack_from("<I", recorded)
    unit = 1 if magic == 0xA1B23C4D else 1000
    windows_by_time: dict[tuple[int, int], bytes] = defaultdict(lambda: recorded[:HEADER])
    at, start = HEADER, None
    while at < len(recorded):
        seconds, rest, size = struct.unpack_from("<III", recorded, at)
        time = seconds * 1_000_000_000 + rest * unit
        start = time if start is None else start
        low = start + (time - start) // width_ns * width_ns
        windows_by_time[low, low + width_ns] += recorded[at : at + RECORD + size]
        at += RECORD + size
    return windows_by_time


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width_ms", [500, 1_000, 3_000])
def test_whole_exchanges_of_a_window_keep_their_responses(name: str, width_ms: int, record_property: Any) -> None:
    recorded = capture(name)
    every = answered(recorded)
    whole = paired = 0
    for (low, high), part in windows(recorded, width_ms * 1_000_000).items():
        names = {name_ for name_, (first, last) in every.items() if low <= first and last < high}
        whole += len(names)
        paired += len(names & answered(part).keys()) if names else 0
    record_property("measured", f"windows {name}, {width_ms} ms: {paired} of {whole} whole exchanges are paired")
    assert whole > 100
    assert paired >= LEAST_PAIRED * whole
