"""Converts a decoded value to a row of the message's table, as the kernel would have written it."""

from typing import Any

from kafkascope.codec.records.record_data import decode_records
from kafkascope.codec.records.record_types import RecordBatch
from kafkascope.codec.varint import wrap_int64
from kafkascope.columnar.secrets import Care, is_metadata_log
from kafkascope.columnar.tables import Column
from kafkascope.errors import DecodeError
from kafkascope.schema.layouts.layout import LayoutField


def row_of(
    fields: tuple[LayoutField, ...], columns: tuple[Column, ...], value: dict[str, Any], *, contents: bool = False
) -> dict[str, Any]:
    """`contents` adds the contents of record batches, but never those of the metadata log."""
    row: dict[str, Any] = {}
    contents = contents and not is_metadata_log(value)
    for field in fields:
        column = next(column for column in columns if field.source.name in column.names)
        content = value[field.name]
        if content is not None and field.array:
            content = [_value(field, column, item, contents) for item in content]
        elif content is not None:
            content = _value(field, column, content, contents)
        row[column.name] = content
    return row


def _value(field: LayoutField, column: Column, content: Any, contents: bool) -> Any:
    match field.type:
        case "struct":
            return row_of(field.fields, column.children, content, contents=contents)
        case "uuid":
            return content.bytes
        case "records":
            return _records(content, contents and column.care is Care.OPEN)
        case "string" | "bytes" if column.care is Care.HIDDEN:
            return None
    return content


def _records(content: bytes, contents: bool) -> dict[str, Any]:
    """Batches by their headers; None if this isn't record data."""
    row: dict[str, Any] = {"size": len(content), "truncated_bytes": 0, "batches": None}
    try:
        decoded = decode_records(content, unpack=False)
    except DecodeError:
        return row
    row["truncated_bytes"] = decoded.truncated_bytes
    row["batches"] = [_batch(batch) for batch in decoded.batches]
    if contents:
        for batch_row, unpacked in zip(row["batches"], _unpacked(content), strict=False):
            batch_row["contents"] = unpacked
    return row


def _batch(batch: RecordBatch) -> dict[str, Any]:
    return {
        "base_offset": batch.base_offset,
        "last_offset": wrap_int64(batch.last_offset),
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


def _unpacked(content: bytes) -> list[list[dict[str, Any]]]:
    """The records of each batch; nothing at all if one of them can't be decompressed."""
    try:
        batches = decode_records(content).batches
    except DecodeError:
        return []
    return [
        [
            {
                "offset": wrap_int64(record.offset),
                "timestamp": record.timestamp,
                "key": record.key,
                "value": record.value,
                "headers": [{"key": key, "value": value} for key, value in record.headers],
            }
            for record in batch.records or ()
        ]
        for batch in batches
    ]
