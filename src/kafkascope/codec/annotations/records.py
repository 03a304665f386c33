"""Annotates every byte of record data: each batch, and its records if they aren't compressed.

Record data that Kafka couldn't read raises `DecodeError`; an incomplete last batch is one piece.
"""

from collections.abc import Iterator
from struct import Struct

from kafkascope.codec.annotations.annotate import Annotation, value_text
from kafkascope.codec.records.record_data import decode_records
from kafkascope.codec.records.record_types import NONE, Record, RecordBatch
from kafkascope.codec.varint import read_zigzag
from kafkascope.times import iso, moment_of

_INT32 = Struct(">i")
# Name, type and bytes, in the order of the wire.
BATCH = (
    ("baseOffset", "int64", 8),
    ("batchLength", "int32", 4),
    ("partitionLeaderEpoch", "int32", 4),
    ("magic", "int8", 1),
    ("crc", "uint32", 4),
    ("attributes", "int16", 2),
    ("lastOffsetDelta", "int32", 4),
    ("baseTimestamp", "int64", 8),
    ("maxTimestamp", "int64", 8),
    ("producerId", "int64", 8),
    ("producerEpoch", "int16", 2),
    ("baseSequence", "int32", 4),
    ("recordsCount", "int32", 4),
)
MESSAGE_0 = (
    ("offset", "int64", 8),
    ("messageSize", "int32", 4),
    ("crc", "uint32", 4),
    ("magic", "int8", 1),
    ("attributes", "int8", 1),
)
MESSAGE_1 = (*MESSAGE_0, ("timestamp", "int64", 8))


def annotate_records(data: bytes, at: int = 0, path: str = "") -> list[Annotation]:
    """`at` is added to every place, `path` is put before every path, since record data is inside a message. A single
    batch has no name of its own."""
    decoded = decode_records(data)
    rows = [
        row
        for index, batch in enumerate(decoded.batches)
        for row in _batch(data, batch, f"{path}batch[{index}]." if path or len(decoded.batches) > 1 else "")
    ]
    if decoded.truncated_bytes:
        start = len(data) - decoded.truncated_bytes
        text = f"{decoded.truncated_bytes} bytes"
        rows.append(Annotation(start, len(data), f"{path}cut", 0, "an incomplete batch", False, "bytes", text, None))
    return [
        Annotation(
            row.start + at, row.end + at, row.path, row.depth, row.label, row.framing, row.type, row.value, row.remark
        )
        for row in rows
    ]


def _batch(data: bytes, batch: RecordBatch, path: str) -> Iterator[Annotation]:
    position = batch.start
    for name, type_, size in (MESSAGE_0, MESSAGE_1, BATCH)[batch.magic]:
        raw = data[position : position + size]
        number = int.from_bytes(raw, "big", signed=type_ != "uint32")
        text, remark = str(number), _remark(name, number, batch)
        yield Annotation(position, position + size, f"{path}{name}", 1, name, False, type_, text, remark)
        position += size
    if batch.magic < 2:
        yield from _key_and_value(data, batch, position, path)
    elif batch.compression != "none" and position < batch.end:
        size = batch.end - position
        remark = f"{batch.compression}, {len(batch.records or ())} records inside"
        yield Annotation(position, batch.end, f"{path}records", 1, "records", False, "bytes", f"{size} bytes", remark)
    else:
        for index, record in enumerate(batch.records or ()):
            walk = _PieceWriter(data, position, batch.end, f"{path}records[{index}]")
            yield from walk.record(record)
            position = walk.position


def _remark(name: str, number: int, batch: RecordBatch) -> str | None:
    if name == "attributes":
        return _attributes_text(batch)
    if name == "crc":
        return "right" if batch.crc_ok else "wrong: it doesn't match the bytes"
    if name == "baseTimestamp" and batch.has_delete_horizon:
        return f"delete horizon, {_time(number)}"
    if name.lower().endswith("timestamp") and number >= 0:
        return _time(number)
    if number == NONE and name not in ("baseOffset", "offset"):
        return "none"
    return None


def _attributes_text(batch: RecordBatch) -> str:
    """`zstd, create time, transactional`."""
    words = [batch.compression if batch.compression != "none" else "not compressed"]
    if batch.magic:
        words.append("log append time" if batch.timestamp_type == "LogAppendTime" else "create time")
    words += ["transactional"] if batch.is_transactional else []
    words += ["control"] if batch.is_control else []
    words += ["delete horizon"] if batch.has_delete_horizon else []
    return ", ".join(words)


def _time(milliseconds: int) -> str:
    moment = moment_of(1000 * milliseconds)
    return "outside the calendar" if moment is None else iso(moment, "milliseconds")


def _key_and_value(data: bytes, batch: RecordBatch, position: int, path: str) -> Iterator[Annotation]:
    """Fields of a message of magic 0 or 1; a compressed value contains a message set."""
    for name in ("key", "value"):
        length = _INT32.unpack_from(data, position)[0]
        remark = "null" if length < 0 else None
        end = position + 4
        yield Annotation(position, end, f"{path}{name}#length", 1, f"{name} length", True, "int32", str(length), remark)
        position = end
        if length < 0:
            continue
        packed = name == "value" and batch.compression != "none"
        remark = f"{batch.compression}, {len(batch.records or ())} messages inside" if packed else None
        raw = data[position : position + length]
        text = f"{length} bytes" if packed else _bytes_text(raw)
        yield Annotation(position, position + length, f"{path}{name}", 1, name, False, "bytes", text, remark)
        position += length
    if position < batch.end:
        text = f"{batch.end - position} bytes"
        yield Annotation(position, batch.end, f"{path}#trailing", 1, "bytes after the value", True, "bytes", text, None)


class _PieceWriter:
    """The pieces of one record of magic 2 that has been decoded once already."""

    def __init__(self, data: bytes, position: int, end: int, path: str) -> None:
        self.data = data
        self.position = position
        self.end = end
        self.path = path

    def record(self, record: Record) -> Iterator[Annotation]:
        yield self._varint("length", "length", framing=True)
        yield self._piece(self.position + 1, "attributes", "attributes", "int8", str(record.attributes), "not used")
        yield self._varint("timestampDelta", "timestampDelta", remark=_time(record.timestamp), long=True)
        yield self._varint("offsetDelta", "offsetDelta", remark=f"offset {record.offset}")
        yield from self._bytes("key", record.key)
        yield from self._bytes("value", record.value)
        yield self._varint("headers#count", "headers count", framing=True)
        for index, (key, value) in enumerate(record.headers):
            yield from self._bytes(f"headers[{index}].key", key.encode())
            yield from self._bytes(f"headers[{index}].value", value)

    def _bytes(self, name: str, value: bytes | None) -> Iterator[Annotation]:
        label = name.rpartition(".")[2]
        remark = "null" if value is None else None
        length = self._varint(f"{name}#length", f"{label} length", framing=True, remark=remark)
        yield length
        size = int(length.value)
        if size > 0:
            raw = self.data[self.position : self.position + size]
            yield self._piece(self.position + size, name, label, "bytes", _bytes_text(raw), None)

    def _varint(
        self, name: str, label: str, *, framing: bool = False, remark: str | None = None, long: bool = False
    ) -> Annotation:
        varint = read_zigzag(self.data, self.position, self.end, long=long)
        assert varint is not None, "the batch was read before"
        return self._piece(varint[1], name, label, "varlong" if long else "varint", str(varint[0]), remark, framing)

    def _piece(
        self, end: int, name: str, label: str, type_: str, text: str, remark: str | None, framing: bool = False
    ) -> Annotation:
        start, self.position = self.position, end
        return Annotation(start, end, f"{self.path}.{name}", 2, label, framing, type_, text, remark)


def _bytes_text(raw: bytes) -> str:
    """As text if it is text, otherwise its size."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return value_text(raw)
    return value_text(text) if text.isprintable() else value_text(raw)
