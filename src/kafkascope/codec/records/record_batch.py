"""Decodes and encodes batches of magic 2 as `RecordBatch`. What Kafka's Java reader can't read is a `DecodeError`."""

import struct
from dataclasses import replace
from struct import Struct

from crc32c import crc32c

from kafkascope.codec.records.budget import Budget
from kafkascope.codec.records.compression import pack, unpack
from kafkascope.codec.records.fast_records import SURPRISES, fast_records
from kafkascope.codec.records.record_types import (
    COMPRESSIONS,
    LOG_APPEND_BIT,
    BatchStart,
    Record,
    RecordBatch,
    check_record,
    make_record,
)
from kafkascope.codec.records.record_walk import LEAST_RECORD_BYTES, RecordWalk
from kafkascope.codec.varint import wrap_int64, write_zigzag
from kafkascope.codec.write import number_text, shown
from kafkascope.errors import DecodeError, EncodeError

HEADER_BYTES = 61
_HEADER = Struct(">qiibIhiqqqhii")
# The checksum covers everything from the attributes on: a broker sets offset and leader epoch without changing it.
_CRC_START = 21
_CODES = {"b": "int8", "h": "int16", "i": "int32", "I": "uint32", "q": "int64"}
_FIELDS = (
    ("base_offset", "q"),
    ("batch_length", "i"),
    ("partition_leader_epoch", "i"),
    ("magic", "b"),
    ("crc", "I"),
    ("attributes", "h"),
    ("last_offset_delta", "i"),
    ("base_timestamp", "q"),
    ("max_timestamp", "q"),
    ("producer_id", "q"),
    ("producer_epoch", "h"),
    ("base_sequence", "i"),
    ("records_count", "i"),
)


def decode_batch(data: bytes, start: int, end: int, budget: Budget | None, where: str) -> tuple[RecordBatch, list[str]]:
    """The batch and why encoding it again would differ. Without a budget its records stay compressed."""
    body = start + HEADER_BYTES
    if end < body:
        raise DecodeError(
            f"{where}: length {end - start - 12}, expected at least {HEADER_BYTES - 12} (offset {start + 8})"
        )
    offset, length, epoch, magic, crc, attributes, *rest = _HEADER.unpack_from(data, start)
    last_delta, base_timestamp, max_timestamp, producer_id, producer_epoch, sequence, count = rest
    if count < 0:
        raise DecodeError(f"{where}: records count {count} (offset {start + 57})")
    check_compression(attributes, start + 21, where)
    right = crc32c(memoryview(data)[start + _CRC_START : end])
    reasons = (
        [] if crc == right else [f"{where}: crc is {crc}, computed from the bytes it is {right} (offset {start + 17})"]
    )
    records: tuple[Record, ...] | None = None
    payload: bytes | None = None
    if budget is None:
        payload = data[body:end]
    else:
        batch_start = BatchStart(offset, attributes, base_timestamp, max_timestamp, count)
        records, inexact = decode_payload(batch_start, data, body, end, budget, where)
        if inexact:
            payload = data[body:end]
            reasons += inexact
    return RecordBatch(
        offset,
        length,
        epoch,
        magic,
        crc,
        crc == right,
        attributes,
        last_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        sequence,
        count,
        start,
        end,
        payload,
        records,
    ), reasons


def check_compression(attributes: int, offset: int, where: str) -> None:
    if attributes & 7 >= len(COMPRESSIONS):
        most = len(COMPRESSIONS) - 1
        raise DecodeError(f"{where}: compression {attributes & 7}; known are 0-{most} (offset {offset})")


def decode_payload(
    batch: BatchStart, data: bytes, start: int, end: int, budget: Budget, where: str
) -> tuple[tuple[Record, ...], list[str]]:
    """The records after a header that has been read, and why encoding them again would differ."""
    count = batch.records_count
    if count == 0:
        # A compacted batch may have only its header; Java ignores what follows.
        return (), [f"{where}: {end - start} bytes and no record (offset {start})"] if end > start else []
    reasons: list[str] = []
    place = ""
    compression = COMPRESSIONS[batch.attributes & 7]
    if compression != "none":
        budget.take_items(count, where)
        reasons.append(f"{where}: {compression}, and compressing it again makes different bytes")
        data = unpack(compression, data[start:end], 2, budget, where)
        start, end = 0, len(data)
        place = " of the decompressed data"
    if count * LEAST_RECORD_BYTES > end - start:
        least = count * LEAST_RECORD_BYTES
        raise DecodeError(f"{where}: {count} records need {least} bytes, {end - start} left (offset {start}{place})")
    if compression == "none":
        budget.take_items(count, where)
    items = budget.items_left
    try:
        records = fast_records(batch, data, start, end, budget)
    except SURPRISES:
        budget.items_left = items
        records, inexact = RecordWalk(batch, data, start, end, budget, where, place).records()
        reasons += inexact
    stamp = batch.max_timestamp
    if batch.attributes & LOG_APPEND_BIT and any(record.timestamp != stamp for record in records):
        reasons.append(f"{where}: log append time hides the create times of its records")
        records = [make_record(r.offset, stamp, r.key, r.value, r.headers, r.attributes) for r in records]
    return tuple(records), reasons


def encode_batch(batch: RecordBatch, where: str) -> bytes:
    """The batch with a new length, checksum and, if it has its records, count."""
    payload = batch.payload
    count = batch.records_count
    if batch.records is not None:
        count = len(batch.records)
        if payload is None or not _says_the_same(batch, payload):
            payload = _written(batch, batch.records, where)
            if batch.compression != "none" and batch.records:
                payload = pack(batch.compression, payload, batch.magic)
    elif payload is None:
        raise EncodeError(f"{where}: neither records nor payload")
    changed = replace(batch, batch_length=HEADER_BYTES - 12 + len(payload), crc=0, records_count=count)
    header = bytearray(_packed_header(changed, where))
    header[17:21] = crc32c(payload, crc32c(header[_CRC_START:])).to_bytes(4, "big")
    return bytes(header + payload)


def _says_the_same(batch: RecordBatch, payload: bytes) -> bool:
    """If the kept payload, read with the batch's current header, has the batch's current records."""
    records = batch.records or ()
    start = BatchStart(batch.base_offset, batch.attributes, batch.base_timestamp, batch.max_timestamp, len(records))
    try:
        return decode_payload(start, payload, 0, len(payload), Budget(), "")[0] == records
    except DecodeError:
        return False


def _written(batch: RecordBatch, records: tuple[Record, ...], where: str) -> bytes:
    out = bytearray()
    for index, record in enumerate(records):
        path = f"{where}.records[{index}]"
        check_record(record, path)
        delta = record.offset - batch.base_offset
        if not -(1 << 31) <= delta < 1 << 31:
            raise EncodeError(f"{path}.offset: {record.offset} isn't within int32 of {batch.base_offset}")
        body = bytearray([record.attributes & 0xFF])
        write_zigzag(body, wrap_int64(record.timestamp - batch.base_timestamp))
        write_zigzag(body, delta)
        _write_bytes(body, record.key)
        _write_bytes(body, record.value)
        write_zigzag(body, len(record.headers))
        for key, value in record.headers:
            try:
                raw = key.encode()
            except UnicodeEncodeError:
                raise EncodeError(f"{path}.headers: a key can't be encoded as UTF-8") from None
            _write_bytes(body, raw)
            _write_bytes(body, value)
        write_zigzag(out, len(body))
        out += body
    return bytes(out)


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        write_zigzag(out, -1)
        return
    write_zigzag(out, len(value))
    out += value


def _packed_header(batch: RecordBatch, where: str) -> bytes:
    values = [getattr(batch, name) for name, _ in _FIELDS]
    try:
        return _HEADER.pack(*values)
    except struct.error:
        for (name, code), value in zip(_FIELDS, values, strict=True):
            try:
                Struct(f">{code}").pack(value)
            except struct.error:
                text = number_text(value) if isinstance(value, int) else shown(value)
                raise EncodeError(f"{where}.{name}: {text} doesn't fit {_CODES[code]}") from None
        raise
