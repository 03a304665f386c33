"""Decodes records of magic 2 to the buffers of Arrow arrays, without an object for each. Only in C: without a compiler,
and for anything that isn't as Kafka writes it, nothing is added."""

from typing import Any, NamedTuple

from kafkascope.codec.records import fast_records
from kafkascope.codec.records.budget import Budget
from kafkascope.codec.records.compression import unpack
from kafkascope.codec.records.record_types import COMPRESSIONS, LOG_APPEND_BIT, RecordBatch

_MAGIC = 2


class ColumnBuffers(NamedTuple):
    """In the order of the C module's enum. Times are in µs; validity has a bit per item; ends are int32 and begin
    with 0."""

    offsets: bytes
    times: bytes
    key_validity: bytes
    key_ends: bytes
    keys: bytes
    value_validity: bytes
    value_ends: bytes
    values: bytes
    header_ends: bytes
    name_ends: bytes
    names: bytes
    content_validity: bytes
    content_ends: bytes
    contents: bytes


class RecordColumns:
    """`add` batches, then `take` what their records are."""

    def __init__(self) -> None:
        kind = getattr(fast_records.native, "Columns", None)
        self._columns: Any = None if kind is None else kind()

    def add(self, batch: RecordBatch, first: int, last: int, budget: Budget, where: str) -> bool:
        """The records between these offsets of a batch with a payload; whether they are added. `DecodeError` if it
        can't be decompressed."""
        if self._columns is None or batch.magic != _MAGIC or batch.payload is None:
            return False
        payload, compression = batch.payload, COMPRESSIONS[batch.attributes & 7]
        if compression != "none" and batch.records_count:
            payload = unpack(compression, payload, _MAGIC, budget, where)
        stamp = batch.max_timestamp if batch.attributes & LOG_APPEND_BIT else None
        headers = self._columns.add(
            payload, 0, len(payload), batch.records_count, batch.base_offset, batch.base_timestamp, stamp, first, last,
            budget.items_left,
        )  # fmt: skip
        if headers is None:
            return False
        budget.take_items(batch.records_count + headers, where)
        return True

    def take(self) -> tuple[int, int, ColumnBuffers]:
        """Records, headers, and the buffers; it's empty afterwards."""
        rows, headers, buffers = self._columns.take()
        return rows, headers, ColumnBuffers(*buffers)
