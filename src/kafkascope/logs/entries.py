"""Finds, for the kernels of `columnar.log`, which message a record's key and value are, by topic, type and version.
Entries are filled when a record asks for them: a topic has dozens of types, and a segment a few."""

import json
from collections.abc import Collection
from functools import cache

import numpy as np

from kafkascope.codec.records.control import TYPES
from kafkascope.columnar.log import job as jobs
from kafkascope.columnar.log.json_program import JsonProgram, json_program
from kafkascope.logs.typed_records import COORDINATOR, FRAMED_VALUES, Messages, messages_of, record_kind
from kafkascope.schema.catalog import index

_KINDS = {COORDINATOR: jobs.JOB_COORDINATOR, FRAMED_VALUES: jobs.JOB_FRAMED, None: jobs.JOB_CONTROL}
_MARKER = "EndTxnMarker"
# Its members are shown as what they hold.
_CAREFUL = ("GroupMetadataValue",)
# Places on a stack: no message nests deeper.
MOST_DEPTH = 32


class Entries:
    """Of the records of one topic, or of control batches. With `types` only of these."""

    MOST_TYPE_TEXT = 256

    def __init__(self, topic: str | None, types: Collection[str] = ()) -> None:
        self.kind = _KINDS[record_kind(topic)]
        self._topic, self._types = topic, types
        self._table = np.zeros((jobs.NUMBERS, jobs.VERSIONS, jobs.ENTRY_WORDS), np.int64)
        self._kept: list[object] = []
        self.address = int(self._table.ctypes.data)

    def fill(self, number: int, version: int) -> None:
        """`version` −1 is a tombstone."""
        entry = self._table[number, version + 1]
        known = self._known(number)
        if self._types and known is not None and known[0] not in self._types:
            entry[jobs.JOB_STATE] = jobs.UNWANTED
            return
        made = None if known is None else self._made(known, number, version)
        if made is None:
            entry[jobs.JOB_STATE] = jobs.JOB_CAREFUL
            return
        text, key, value, skip = made
        content = np.frombuffer(text.encode("ascii") + bytes(64), np.uint8).copy()
        self._kept += [content, key, value]
        entry[jobs.TYPE_TEXT], entry[jobs.TYPE_TEXT_SIZE] = content.ctypes.data, len(text)
        entry[jobs.KEY_CODE] = 0 if key is None else key.address
        entry[jobs.VALUE_CODE] = 0 if value is None else value.address
        entry[jobs.VALUE_SKIP] = skip
        entry[jobs.JOB_STATE] = jobs.WRITTEN

    def _known(self, number: int) -> Messages | None:
        if self.kind != jobs.JOB_CONTROL:
            return messages_of(self._topic, number)
        type_, message = TYPES.get(number, ("", None))
        return None if message is None else (type_, None, 0, message)

    def _made(
        self, known: Messages, number: int, version: int
    ) -> tuple[str, JsonProgram | None, JsonProgram | None, int] | None:
        """None where the careful path writes the record."""
        if version < 0 and self.kind != jobs.JOB_COORDINATOR:
            return None
        type_, key_name, key_version, value_name = known
        key = None if key_name is None else json_program(key_name, key_version)
        if key_name is not None and (key is None or key.depth > MOST_DEPTH):
            return None
        value = None
        if version >= 0:
            if value_name in _CAREFUL or version not in index()[value_name].versions:
                return None
            value = json_program(value_name, version)
            if value is None or value.depth > MOST_DEPTH:
                return None
        shown = json.dumps({"type": type_, "type_number": number, "version": None if version < 0 else version})
        text = f', {shown[1:-1]}, "key": {"null" if key is None else ""}'
        skip = 2 if self.kind == jobs.JOB_COORDINATOR or value_name == _MARKER else 0
        return (text, key, value, skip) if len(text) < self.MOST_TYPE_TEXT else None


@cache
def entries_of_topic(topic: str | None, types: tuple[str, ...] = ()) -> Entries:
    """Those of control batches for a topic of users."""
    return Entries(topic if record_kind(topic) is not None else None, types)
