"""The careful codec's reading of one frame as a row of the message's table, by a way that shares nothing with the
package's own rows: what `decode_columns` must say."""

import struct
from typing import Any

from kafkascope.codec.message import decode
from kafkascope.codec.records.record_data import decode_records
from kafkascope.columnar.secrets import Care, classified
from kafkascope.columnar.tables import snake_case
from kafkascope.errors import DecodeError
from kafkascope.schema.layouts.layout import LayoutField, layout
from tests.support.pairs import Place

Row = dict[str, Any]
INT64 = 1 << 64


def expected(place: Place, data: bytes) -> Row:
    """Only what is not null; an error is all that a row has."""
    name, version, release = place
    known = layout(name, version, release)
    try:
        decoded = decode(name, version, data, release)
    except DecodeError as error:
        return {"_error": str(error)}
    row = _struct(known.message.name, known.fields, (), decoded.value)
    if decoded.unknown_tags:
        row["_unknown_tags"] = [{"path": t.path, "tag": t.tag, "size": len(t.data)} for t in decoded.unknown_tags]
    return row


def without_nulls(value: Any) -> Any:
    """Fields that a version lacks and fields that are null look alike in a table. A float stands for its bits."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return struct.pack(">d", value) if isinstance(value, float) else value


def _struct(message: str, fields: tuple[LayoutField, ...], above: tuple[str, ...], value: Row) -> Row:
    return {
        snake_case(field.source.name): _field(message, field, (*above, field.source.name), value[field.name])
        for field in fields
    }


def _field(message: str, field: LayoutField, path: tuple[str, ...], content: Any) -> Any:
    if content is None:
        return None
    if field.array:
        return [_value(message, field, path, item) for item in content]
    return _value(message, field, path, content)


def _value(message: str, field: LayoutField, path: tuple[str, ...], content: Any) -> Any:
    if field.type == "struct":
        return _struct(message, field.fields, path, content)
    if field.type == "uuid":
        return content.bytes
    if field.type == "records":
        return _records(content)
    return None if classified().get(".".join((message, *path))) is Care.HIDDEN else content


def _records(content: bytes) -> Row:
    try:
        decoded = decode_records(content, unpack=False)
    except DecodeError:
        return {"size": len(content), "truncated_bytes": 0, "batches": None}
    batches = [
        {
            "base_offset": b.base_offset,
            "last_offset": (b.base_offset + b.last_offset_delta + INT64 // 2) % INT64 - INT64 // 2,
            "size": b.end - b.start,
            "partition_leader_epoch": b.partition_leader_epoch,
            "magic": b.magic,
            "crc": b.crc,
            "attributes": b.attributes,
            "base_timestamp": b.base_timestamp,
            "max_timestamp": b.max_timestamp,
            "producer_id": b.producer_id,
            "producer_epoch": b.producer_epoch,
            "base_sequence": b.base_sequence,
            "records": -1 if b.records_count is None else b.records_count,
        }
        for b in decoded.batches
    ]
    return {"size": len(content), "truncated_bytes": decoded.truncated_bytes, "batches": batches}
