"""Describes files, batches, records and index entries as rows: flat, named as the tables will be, ready for JSON."""

from base64 import b64encode
from dataclasses import asdict
from typing import Any

from kafkascope.codec.records.record_types import Record, RecordBatch
from kafkascope.logs.batches import Batch, Damage
from kafkascope.logs.check.finding import Finding
from kafkascope.logs.check.producers import last_sequence
from kafkascope.logs.directories import LogFile
from kafkascope.logs.typed_records import TypedRecord

Row = dict[str, Any]


def file_row(file: LogFile, content: Row | None) -> Row:
    return {
        "kind": "file",
        "path": file.path,
        "type": file.kind,
        "broker": file.broker,
        "topic": file.topic,
        "partition": file.partition,
        "base_offset": file.base_offset,
        "epoch": file.epoch,
        "size_bytes": file.size,
        "left_alone": file.left_alone,
        "content": content,
    }


def batch_row(file: LogFile, item: Batch) -> Row:
    batch = item.header
    return {
        "kind": "batch",
        "broker": file.broker,
        "topic": file.topic,
        "partition": file.partition,
        "file": file.path,
        "position": item.position,
        "size_bytes": item.size,
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "records_count": batch.records_count,
        "magic": batch.magic,
        "compression": batch.compression,
        "timestamp_type": batch.timestamp_type,
        "max_timestamp_ms": batch.max_timestamp,
        "delete_horizon_ms": batch.base_timestamp if batch.has_delete_horizon else None,
        "leader_epoch": batch.partition_leader_epoch,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "last_sequence": last_sequence(batch),
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "crc": batch.crc,
        "crc_ok": batch.crc_ok,
    }


def record_row(file: LogFile, batch: RecordBatch, record: Record, typed: TypedRecord | None) -> Row:
    """Without `typed` a record of a user's topic, with its key, value and headers as base64."""
    row: Row = {
        "kind": "record",
        "broker": file.broker,
        "topic": file.topic,
        "partition": file.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "leader_epoch": batch.partition_leader_epoch,
        "producer_id": batch.producer_id,
        "sequence": sequence_of(batch, record),
        "key_bytes": None if record.key is None else len(record.key),
        "value_bytes": None if record.value is None else len(record.value),
    }
    if typed is None:
        row["key"], row["value"] = _base64(record.key), _base64(record.value)
        row["headers"] = [{"key": name, "value": _base64(value)} for name, value in record.headers]
        return row
    row["type"], row["type_number"], row["version"] = typed.type, typed.type_number, typed.version
    row["key"], row["value"], row["problem"] = typed.key, typed.value, typed.problem
    return row


def damage_row(file: LogFile, damage: Damage) -> Row:
    return {
        "kind": "damage",
        "broker": file.broker,
        "topic": file.topic,
        "partition": file.partition,
        "file": file.path,
        "position": damage.position,
        "size_bytes": damage.length,
        "problem": damage.kind.value,
        "detail": damage.detail,
    }


def entry_row(file: LogFile, entry: Any) -> Row:
    """An entry of an index, or a producer of a snapshot."""
    return {"kind": "entry", "file": file.path, **(entry if isinstance(entry, dict) else asdict(entry))}


def finding_row(finding: Finding) -> Row:
    return {
        "kind": "finding",
        "check": finding.check,
        "severity": finding.severity.value,
        "file": finding.file,
        "position": finding.position,
        "offset": finding.offset,
        "detail": finding.detail,
    }


def sequence_of(batch: RecordBatch, record: Record) -> int:
    """−1 without a producer."""
    if batch.base_sequence < 0:
        return -1
    return (batch.base_sequence + record.offset - batch.base_offset) & 0x7FFF_FFFF


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()
