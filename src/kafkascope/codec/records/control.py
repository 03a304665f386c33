"""Decodes the records of control batches. Never raises: an unknown type is data."""

from dataclasses import dataclass
from typing import Any

from kafkascope.codec.message import decode
from kafkascope.codec.records.record_types import Record, RecordBatch
from kafkascope.errors import KafkascopeError

# Number, Kafka's name, and the message in the value.
TYPES = {
    0: ("ABORT", "EndTxnMarker"),
    1: ("COMMIT", "EndTxnMarker"),
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}
_UNKNOWN = ("UNKNOWN", None)


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """`type` is None if the key is too short to have it; `value` is None if it isn't a known message."""

    offset: int
    version: int | None
    type: int | None
    name: str
    value: dict[str, Any] | None


def control_records(batch: RecordBatch) -> tuple[ControlRecord, ...]:
    """One for each record of a control batch, none for any other batch."""
    return tuple(control_record(record) for record in batch.records or ()) if batch.is_control else ()


def control_record(record: Record) -> ControlRecord:
    key = record.key or b""
    if len(key) < 4:
        return ControlRecord(record.offset, None, None, _UNKNOWN[0], None)
    version, number = (int.from_bytes(key[at : at + 2], "big", signed=True) for at in (0, 2))
    name, message = TYPES.get(number, _UNKNOWN)
    return ControlRecord(record.offset, version, number, name, _value(message, record.value or b""))


def _value(message: str | None, data: bytes) -> dict[str, Any] | None:
    if message is None or len(data) < 2:
        return None
    version = int.from_bytes(data[:2], "big", signed=True)
    # The version precedes a transaction marker, and is the first field of the others.
    body = data[2:] if message == "EndTxnMarker" else data
    try:
        return decode(message, version, body).value
    except KafkascopeError:
        return None
