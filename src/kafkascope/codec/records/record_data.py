"""Decodes and encodes record data as in Produce and Fetch: any magic, whole or cut off at the end.

>>> batch = new_batch([Record(7, 1700000000000, b"key", None)])
>>> [(r.offset, r.key, r.value) for r in decode_records(encode_records([batch])).batches[0].records]
[(7, b'key', None)]
"""

from collections.abc import Iterable
from struct import Struct

from kafkascope.codec.message import as_bytes
from kafkascope.codec.records.budget import Budget, note
from kafkascope.codec.records.control import ControlRecord, control_records
from kafkascope.codec.records.message_sets import LEAST_SIZES, decode_message, encode_message
from kafkascope.codec.records.record_batch import decode_batch, encode_batch
from kafkascope.codec.records.record_types import COMPRESSIONS, Record, RecordBatch, Records, new_batch
from kafkascope.codec.write import shown
from kafkascope.errors import DecodeError, EncodeError

__all__ = [
    "ControlRecord",
    "Record",
    "RecordBatch",
    "Records",
    "control_records",
    "decode_records",
    "encode_records",
    "new_batch",
]

# Offset and length come first in every magic, and the magic itself is at the same place.
_OVERHEAD_BYTES = 12
_MAGIC_AT = 16
_LENGTH = Struct(">i")
_HIGHEST_MAGIC = 2


def decode_records(data: bytes | bytearray | memoryview, *, unpack: bool = True) -> Records:
    """Every batch, with its records unless `unpack` is False. An incomplete last batch is counted, not read; a wrong
    checksum is a reason; what Kafka couldn't read raises `DecodeError`."""
    raw = data if type(data) is bytes else as_bytes(data, "record data")
    budget = Budget()
    batches: list[RecordBatch] = []
    reasons: list[str] = []
    position, end = 0, len(raw)
    while position < end:
        where = f"batch[{len(batches)}]"
        stop = _end_of_batch(raw, position, where)
        if stop is None or stop > end:
            whole = "its header needs 17" if stop is None else f"it has {stop - position}"
            note(reasons, f"{where}: {end - position} bytes are present, {whole} (offset {position})")
            break
        decode_one = decode_batch if raw[position + _MAGIC_AT] == _HIGHEST_MAGIC else decode_message
        budget.take_items(1, where)
        batch, inexact = decode_one(raw, position, stop, budget if unpack else None, where)
        batches.append(batch)
        for reason in inexact:
            note(reasons, reason)
        position = stop
    return Records(tuple(batches), end - position, tuple(reasons), not reasons)


def _end_of_batch(raw: bytes, start: int, where: str) -> int | None:
    """The end of the batch by its length, perhaps after the data; None if the length is cut off too."""
    left = len(raw) - start
    if left < _OVERHEAD_BYTES:
        return None
    length: int = _LENGTH.unpack_from(raw, start + 8)[0]
    if length < LEAST_SIZES[0]:
        raise DecodeError(f"{where}: length {length}, expected at least {LEAST_SIZES[0]} (offset {start + 8})")
    if left <= _MAGIC_AT:
        return None
    magic = raw[start + _MAGIC_AT]
    if magic > _HIGHEST_MAGIC:
        raise DecodeError(f"{where}: magic {magic}; known are 0-{_HIGHEST_MAGIC} (offset {start + _MAGIC_AT})")
    return start + _OVERHEAD_BYTES + length


def encode_records(batches: Iterable[RecordBatch]) -> bytes:
    """The batches one after another, with new lengths, counts and checksums. A batch as returned by `decode_records`
    gets its own bytes back; a compressed one whose records changed is compressed again, never to the bytes it had."""
    out = bytearray()
    for index, batch in enumerate(batches):
        where = f"batch[{index}]"
        if not isinstance(batch, RecordBatch):
            raise EncodeError(f"{where}: expected a RecordBatch, got {shown(batch)}")
        if not 0 <= batch.magic <= _HIGHEST_MAGIC:
            raise EncodeError(f"{where}.magic: {batch.magic}; known are 0-{_HIGHEST_MAGIC}")
        if batch.attributes & 7 >= len(COMPRESSIONS):
            most = len(COMPRESSIONS) - 1
            raise EncodeError(f"{where}.attributes: compression {batch.attributes & 7}; known are 0-{most}")
        out += encode_batch(batch, where) if batch.magic == _HIGHEST_MAGIC else encode_message(batch, where)
    return bytes(out)
