"""Decodes and encodes messages of magic 0 and 1 as `RecordBatch`. What Java can't read is a `DecodeError`.

An uncompressed message is a batch of one record; if compressed, it contains a message set, one level deep. All lengths
are
int32, in flexible versions of Fetch and Produce too (protocol note 36).
"""

import struct
from struct import Struct
from zlib import crc32

from kafkascope import limits
from kafkascope.codec.records.budget import Budget, note
from kafkascope.codec.records.compression import pack, unpack
from kafkascope.codec.records.record_batch import check_compression
from kafkascope.codec.records.record_types import (
    COMPRESSIONS,
    LOG_APPEND_BIT,
    NONE,
    Record,
    RecordBatch,
    check_record,
    make_record,
)
from kafkascope.codec.varint import wrap_int64
from kafkascope.errors import DecodeError, EncodeError

# offset, size, crc, magic, attributes; magic 1 has a timestamp after them
_START = Struct(">qiIbb")
_OVERHEAD_BYTES = 12
_CRC_START = 16
_INT32 = Struct(">i")
_INT64 = Struct(">q")
# crc, magic, attributes, timestamp, and two lengths
LEAST_SIZES = (14, 22)


def decode_message(
    data: bytes, start: int, end: int, budget: Budget | None, where: str
) -> tuple[RecordBatch, list[str]]:
    """One message of a set, without a budget left compressed; and why encoding it again would differ."""
    message = _SetMessage(data, start, end, where, "")
    reasons = message.reasons
    right = crc32(memoryview(data)[start + _CRC_START : end])
    crc_ok = right == message.crc
    compression = COMPRESSIONS[message.attributes & 7]
    first = message.offset
    records: tuple[Record, ...] | None = None
    count = 1 if compression == "none" else None
    if budget is not None:
        if compression == "none":
            budget.take_items(1, where)
            records = (message.record(message.offset, message.timestamp),)
        else:
            reasons.append(f"{where}: {compression}, and compressing it again makes different bytes")
            records = _inner(message, compression, budget, where)
            count = len(records)
            first = records[0].offset
    payload = data[message.body : end] if reasons or records is None else None
    if not crc_ok:
        reasons.insert(0, f"{where}: crc is {message.crc}, computed from the bytes it is {right} (offset {start + 12})")
    return RecordBatch(
        base_offset=first,
        batch_length=message.size,
        partition_leader_epoch=NONE,
        magic=message.magic,
        crc=message.crc,
        crc_ok=crc_ok,
        attributes=message.attributes,
        last_offset_delta=message.offset - first,
        base_timestamp=message.timestamp,
        max_timestamp=message.timestamp,
        producer_id=NONE,
        producer_epoch=NONE,
        base_sequence=NONE,
        records_count=count,
        start=start,
        end=end,
        payload=payload,
        records=records,
    ), reasons


class _SetMessage:
    """The fields of one message that is whole between `start` and `end`."""

    __slots__ = ("attributes", "body", "crc", "key", "magic", "offset", "reasons", "size", "timestamp", "value")

    def __init__(self, data: bytes, start: int, end: int, where: str, place: str) -> None:
        self.offset, self.size, self.crc, self.magic, self.attributes = _START.unpack_from(data, start)
        if not 0 <= self.magic <= 1:
            raise DecodeError(f"{where}: magic {self.magic}; a message set has 0 or 1 (offset {start + 16}{place})")
        if self.size < LEAST_SIZES[self.magic]:
            least = LEAST_SIZES[self.magic]
            raise DecodeError(f"{where}: size {self.size}, expected at least {least} (offset {start + 8}{place})")
        check_compression(self.attributes, start + 17, where)
        self.reasons: list[str] = []
        self.body = start + _START.size
        self.timestamp = NONE
        if self.magic == 1:
            self.timestamp = _INT64.unpack_from(data, self.body)[0]
            self.body += 8
        self.key, position = self._bytes(data, self.body, end, f"{where}.key", place)
        self.value, position = self._bytes(data, position, end, f"{where}.value", place)
        if position != end:
            self.reasons.append(f"{where}: {end - position} bytes after the value (offset {position}{place})")

    def _bytes(self, data: bytes, position: int, end: int, path: str, place: str) -> tuple[bytes | None, int]:
        start = position + 4
        if start > end:
            raise DecodeError(f"{path}: its length is cut off (offset {position}{place})")
        length = _INT32.unpack_from(data, position)[0]
        if length < 0:
            if length != -1:
                self.reasons.append(f"{path}: length {length}, written as -1 (offset {position}{place})")
            return None, start
        if length > end - start:
            raise DecodeError(f"{path}: {length} bytes, {end - start} left (offset {position}{place})")
        return data[start : start + length], start + length

    def record(self, offset: int, timestamp: int) -> Record:
        return make_record(offset, timestamp, self.key, self.value, (), self.attributes)


def _inner(wrapper: _SetMessage, compression: str, budget: Budget, where: str) -> tuple[Record, ...]:
    """The records of a compressed message; reasons why they wouldn't be written the same go to the wrapper's."""
    if compression == "zstd":
        raise DecodeError(f"{where}: zstd in magic {wrapper.magic}, which only magic 2 has")
    if wrapper.value is None:
        raise DecodeError(f"{where}: {compression} and a null value")
    data = unpack(compression, wrapper.value, wrapper.magic, budget, where)
    messages: list[_SetMessage] = []
    position = 0
    while len(data) - position >= _OVERHEAD_BYTES:
        path = f"{where}.records[{len(messages)}]"
        size = _INT32.unpack_from(data, position + 8)[0]
        if size < LEAST_SIZES[0]:
            least = LEAST_SIZES[0]
            raise DecodeError(
                f"{path}: size {size}, expected at least {least} (offset {position + 8} of the decompressed data)"
            )
        end = position + _OVERHEAD_BYTES + size
        if end > len(data):
            break
        budget.take_items(1, where)
        messages.append(_inner_message(wrapper, data, position, end, path))
        position = end
    if position != len(data):
        # Java silently stops here.
        cut = len(data) - position
        note(wrapper.reasons, f"{where}: {cut} bytes of a cut message (offset {position} of the decompressed data)")
    if not messages:
        raise DecodeError(f"{where}: {compression} and no message inside")
    base = _absolute_base(wrapper, messages[-1].offset, where)
    hidden = wrapper.attributes & LOG_APPEND_BIT
    return tuple(
        message.record(
            wrap_int64(base + message.offset), wrapper.timestamp if hidden and message.magic else message.timestamp
        )
        for message in messages
    )


def _inner_message(wrapper: _SetMessage, data: bytes, start: int, end: int, path: str) -> _SetMessage:
    message = _SetMessage(data, start, end, path, " of the decompressed data")
    if message.attributes & 7:
        most = limits.MAX_NESTED_MESSAGE_SETS
        raise DecodeError(f"{path}: compressed inside a compressed message, {most} level is read")
    if message.magic != wrapper.magic:
        note(wrapper.reasons, f"{path}: magic {message.magic} inside magic {wrapper.magic}")
    right = crc32(memoryview(data)[start + _CRC_START : end])
    if right != message.crc:
        mismatch = f"crc is {message.crc}, computed from the bytes it is {right}"
        note(wrapper.reasons, f"{path}: {mismatch} (offset {start + 12} of the decompressed data)")
    for reason in message.reasons:
        note(wrapper.reasons, reason)
    return message


def _absolute_base(wrapper: _SetMessage, last: int, where: str) -> int:
    """Magic 0 has absolute offsets inside. Magic 1 counts from 0 there, and the wrapper has the last one's (KIP-31); in
    a producer's wrapper it is 0."""
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0
    offset: int = wrapper.offset
    if offset < last:
        raise DecodeError(f"{where}: offset {offset}, below the {last} inside it")
    return offset - last


def encode_message(batch: RecordBatch, where: str) -> bytes:
    """The message with a new size and checksum."""
    if batch.records is None:
        if batch.payload is None:
            raise EncodeError(f"{where}: neither records nor payload")
        return _written(batch, batch.last_offset, batch.max_timestamp, batch.payload, where)
    if batch.payload is not None:
        kept = _written(batch, batch.last_offset, batch.max_timestamp, batch.payload, where)
        if _says_the_same(batch, kept):
            return kept
    for index, record in enumerate(batch.records):
        check_record(record, f"{where}.records[{index}]")
    if not batch.records or (batch.compression == "none" and len(batch.records) > 1):
        expected = "one record" if batch.compression == "none" else "a record"
        raise EncodeError(f"{where}: expected {expected} in a message of magic {batch.magic}, got {len(batch.records)}")
    if batch.compression == "none":
        record = batch.records[0]
        return _written(batch, record.offset, record.timestamp, _key_and_value(record, where), where)
    if batch.compression == "zstd":
        raise EncodeError(f"{where}: zstd in magic {batch.magic}, which only magic 2 has")
    base = batch.records[0].offset if batch.magic == 1 else 0
    inner = bytearray()
    for index, record in enumerate(batch.records):
        path = f"{where}.records[{index}]"
        inner += _message(
            batch.magic, record.attributes, record.offset - base, record.timestamp, _key_and_value(record, path), path
        )
    packed = pack(batch.compression, bytes(inner), batch.magic)
    payload = _INT32.pack(-1) + _INT32.pack(len(packed)) + packed
    return _written(batch, batch.records[-1].offset, batch.max_timestamp, payload, where)


def _says_the_same(batch: RecordBatch, message: bytes) -> bool:
    try:
        return decode_message(message, 0, len(message), Budget(), "")[0].records == batch.records
    except DecodeError:
        return False


def _written(batch: RecordBatch, offset: int, timestamp: int, payload: bytes, where: str) -> bytes:
    return _message(batch.magic, batch.attributes, offset, timestamp, payload, where)


def _message(magic: int, attributes: int, offset: int, timestamp: int, payload: bytes, where: str) -> bytes:
    try:
        body = Struct(">bb").pack(magic, attributes) + (_INT64.pack(timestamp) if magic else b"") + payload
        return _INT64.pack(offset) + Struct(">iI").pack(len(body) + 4, crc32(body)) + body
    except struct.error:
        raise EncodeError(
            f"{where}: offset {offset}, timestamp {timestamp} or attributes {attributes} don't fit"
        ) from None


def _key_and_value(record: Record, where: str) -> bytes:
    if record.headers:
        raise EncodeError(f"{where}.headers: got {len(record.headers)}, but only magic 2 has them")
    out = bytearray()
    for value in (record.key, record.value):
        out += _INT32.pack(-1) if value is None else _INT32.pack(len(value)) + value
    return bytes(out)
