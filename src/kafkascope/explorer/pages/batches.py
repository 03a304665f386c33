"""The page of record data formats: fields with positions, flags, compression, and examples byte by byte."""

from typing import Any

from kafkascope.codec.annotations.records import BATCH, MESSAGE_0, MESSAGE_1, annotate_records
from kafkascope.codec.records.control import TYPES
from kafkascope.codec.records.record_data import decode_records
from kafkascope.codec.records.record_types import COMPRESSIONS, RecordBatch
from kafkascope.codec.records.records_form import batch_json
from kafkascope.explorer.decode.pieces import pieces
from kafkascope.explorer.facts.batch_examples import EXAMPLES, BatchExample
from kafkascope.explorer.page import Kind, Page

_WORDS = {
    "baseOffset": "Offset of the first record. A producer writes 0, the broker sets it.",
    "batchLength": "Bytes after this field.",
    "partitionLeaderEpoch": "Epoch of the leader that appended the batch. A producer writes −1. Outside the checksum.",
    "magic": "The format, at the same place in all three.",
    "attributes": "Flags, see below.",
    "lastOffsetDelta": "Last offset minus base offset. Compaction keeps it, so a batch may have gaps.",
    "baseTimestamp": "Milliseconds. The timestamp of the first record, or the delete horizon if that flag is set.",
    "maxTimestamp": "The latest timestamp. With log append time, the timestamp of all records.",
    "producerId": "Id of an idempotent or transactional producer, else −1.",
    "producerEpoch": "Fences an older producer of the same transactional id; −1 without a producer id.",
    "baseSequence": "Sequence of the first record for this producer and partition; −1 without a producer id.",
    "recordsCount": "How many records follow.",
    "offset": "Offset of the message, or of the last message inside a compressed one.",
    "messageSize": "Bytes after this field.",
    "timestamp": "Milliseconds, create time or log append time; −1 means none.",
}
_CRC = (
    "CRC-32 over everything after it.",
    "CRC-32 over everything after it.",
    "CRC-32C over everything from the attributes on, so that a broker can set offset and epoch without recomputing it.",
)
_FLAGS = (
    (0b111, "0–2", "compression", "none, gzip, snappy, lz4, zstd", 0),
    (1 << 3, "3", "timestamp type", "0 create time, 1 log append time", 1),
    (1 << 4, "4", "transactional", "the batch is part of a transaction", 2),
    (1 << 5, "5", "control", "the records are markers that never reach the application", 2),
    (1 << 6, "6", "delete horizon", "the base timestamp is the time from which tombstones may be removed", 2),
)
_COMPRESSION_WORDS = {
    "none": ("0.8.2", "0, 1, 2", ""),
    "gzip": ("0.8.2", "0, 1, 2", ""),
    "snappy": ("0.8.2", "0, 1, 2", "Java writes xerial's framing, librdkafka raw blocks. Readers accept both."),
    "lz4": ("0.8.2", "0, 1, 2", "In magic 0 every writer writes a wrong frame header checksum (KIP-57)."),
    "zstd": ("2.1", "2", "Produce v7 and Fetch v10 or newer (KIP-110)."),
}
_RECORD_FIELDS = (
    ("length", "varint", "1–5", "Bytes of the record after this field."),
    ("attributes", "int8", "1", "Unused."),
    ("timestampDelta", "varlong", "1–10", "Relative to the base timestamp."),
    ("offsetDelta", "varint", "1–5", "Relative to the base offset."),
    ("key", "varint length, bytes", "1+", "Length −1 means null, 0 empty."),
    ("value", "varint length, bytes", "1+", "Null is a tombstone in a compacted topic."),
    (
        "headers",
        "varint count",
        "1+",
        "Each header is a key (UTF-8, never null) and a value (may be null), with varint lengths.",
    ),
)


def make() -> Page:
    facts = {
        "formats": [_format(2, BATCH), _format(1, MESSAGE_1), _format(0, MESSAGE_0)],
        "record": [
            {"name": name, "type": type_, "size": size, "about": about} for name, type_, size, about in _RECORD_FIELDS
        ],
        "flags": [
            {"bits": bits, "mask": mask, "name": name, "about": about, "sinceMagic": since}
            for mask, bits, name, about, since in _FLAGS
        ],
        "compressions": [
            {"number": number, "name": name, "since": _COMPRESSION_WORDS[name][0],
             "magics": _COMPRESSION_WORDS[name][1],
             "about": _COMPRESSION_WORDS[name][2]}
            for number, name in enumerate(COMPRESSIONS)
        ],
        "control": [{"type": number, "name": name, "value": value} for number, (name, value) in TYPES.items()],
        "examples": [_example(example) for example in EXAMPLES],
    }  # fmt: skip
    return Page("Record batches", facts, "Batches and message sets, magic 0, 1 and 2: every field, flag and byte.")


def _format(magic: int, fields: tuple[tuple[str, str, int], ...]) -> dict[str, Any]:
    rows = []
    at = 0
    for name, type_, size in fields:
        about = _CRC[magic] if name == "crc" else _WORDS[name]
        rows.append({"name": name, "type": type_, "at": str(at), "size": str(size), "about": about})
        at += size
    if magic < 2:
        rows += [
            {"name": name, "type": "int32 length, bytes", "at": place, "size": "4+", "about": about}
            for name, place, about in (
                ("key", str(at), "Length −1 means null."),
                ("value", "after the key", "Length −1 means null. In a compressed message, a compressed message set."),
            )
        ]
    else:
        about = "One after another; a single compressed block if the batch is compressed."
        rows.append({"name": "records", "type": "records", "at": str(at), "size": "0+", "about": about})
    return {
        "magic": magic,
        "title": ("Magic 0: message set", "Magic 1: message set with timestamps", "Magic 2: record batch")[magic],
        "since": ("0.8", "0.10.0", "0.11")[magic],
        "kips": ([], [31, 32], [98])[magic],
        "fields": rows,
    }


# One message of magic 0 or 1 is a batch of one record.
_IN_JSON = {"offset": "baseOffset", **{name: f"records[0].{name}" for name in ("timestamp", "key", "value")}}


def _json_path(path: str, batch: RecordBatch) -> str:
    """The path of a piece in the JSON beside it."""
    return _IN_JSON.get(path, path) if batch.magic < 2 and batch.compression == "none" else path


def _example(example: BatchExample) -> dict[str, Any]:
    data = example.data
    batch = decode_records(data).batches[0]
    return {
        "id": example.id,
        "title": example.title,
        "about": example.about,
        "magic": batch.magic,
        "hex": data.hex(),
        "json": batch_json(batch),
        "bytes": [piece | {"path": _json_path(piece["path"], batch)} for piece in pieces(annotate_records(data), data)],
    }


KIND = Kind("batches", "batches.html", "batches.html", make, lambda: ({},))
