"""Finds record data inside a decoded message and converts its batches to JSON-ready values."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from kafkascope.codec.records.record_data import decode_records
from kafkascope.codec.records.record_types import RecordBatch
from kafkascope.codec.result import Decoded
from kafkascope.errors import DecodeError
from kafkascope.schema.layouts.layout import LayoutField, layout


def record_fields(body: Decoded, release: str | None) -> Iterator[tuple[str, bytes]]:
    """(path, data) of every field with record data."""

    def visit(fields: tuple[LayoutField, ...], value: dict[str, Any], prefix: str) -> Iterator[tuple[str, bytes]]:
        for field in fields:
            content = value[field.name]
            if content is None:
                continue
            if field.type == "records":
                yield prefix + field.name, content
            elif field.type == "struct":
                for index, item in enumerate(content if field.array else [content]):
                    mark = f"[{index}]" if field.array else ""
                    yield from visit(field.fields, item, f"{prefix}{field.name}{mark}.")

    yield from visit(layout(body.name, body.version, release).fields, body.value, "")


def records_json(body: Decoded, release: str | None) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = []
    for path, data in record_fields(body, release):
        try:
            decoded = decode_records(data)
        except DecodeError as error:
            fields.append({"path": path, "error": str(error), "batches": [], "truncatedBytes": 0})
            continue
        batches = [batch_json(batch) for batch in decoded.batches]
        fields.append({"path": path, "error": None, "batches": batches, "truncatedBytes": decoded.truncated_bytes})
    return fields


def batch_json(batch: RecordBatch) -> dict[str, Any]:
    def data(value: bytes | None) -> str | None:
        return None if value is None else b64encode(value).decode()

    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "magic": batch.magic,
        "compression": batch.compression,
        "timestampType": batch.timestamp_type,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "crcOk": batch.crc_ok,
        "records": [
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": data(record.key),
                "value": data(record.value),
                "headers": [{"key": name, "value": data(value)} for name, value in record.headers],
            }
            for record in batch.records or ()
        ],
    }
