"""One decoded value in, the same as a row of the message's table out: what the kernel would have written."""

from typing import Any

from kafkascope.codec.records import decode_records
from kafkascope.columnar.secrets import Care
from kafkascope.columnar.tables import Column
from kafkascope.errors import DecodeError
from kafkascope.schema.layout import LayoutField


def row_of(fields: tuple[LayoutField, ...], columns: tuple[Column, ...], value: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for field in fields:
        column = next(c for c in columns if field.source.name in c.names)
        content = value[field.name]
        if content is not None and field.array:
            content = [_one(field, column, item) for item in content]
        elif content is not None:
            content = _one(field, column, content)
        row[column.name] = content
    return row


def _one(field: LayoutField, column: Column, content: Any) -> Any:
    match field.type:
        case "struct":
            return row_of(field.fields, column.children, content)
        case "uuid":
            return content.bytes
        case "records":
            return _records(content)
        case "string" | "bytes" if column.care is Care.HIDDEN:
            return None
    return content


def _records(content: bytes) -> dict[str, Any]:
    """Batches by their headers alone; None where this is no record data."""
    row: dict[str, Any] = {"size": len(content), "truncated_bytes": 0, "batches": None}
    try:
        found = decode_records(content, unpack=False)
    except DecodeError:
        return row
    row["truncated_bytes"] = found.truncated_bytes
    row["batches"] = [
        {
            "base_offset": batch.base_offset,
            "last_offset": batch.last_offset,
            "size": batch.end - batch.start,
            "partition_leader_epoch": batch.partition_leader_epoch,
            "magic": batch.magic,
            "crc": batch.crc,
            "attributes": batch.attributes,
            "base_timestamp": batch.base_timestamp,
            "max_timestamp": batch.max_timestamp,
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "base_sequence": batch.base_sequence,
            "records": -1 if batch.records_count is None else batch.records_count,
        }
        for batch in found.batches
    ]
    return row
