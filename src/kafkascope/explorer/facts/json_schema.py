"""Writes the JSON Schema of one version of a message, in the JSON form that Kafka's own converters use."""

from typing import Any

from kafkascope.schema.layouts.layout import Layout, LayoutField
from kafkascope.schema.prose import sentence

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_SIMPLE: dict[str, dict[str, Any]] = {
    "bool": {"type": "boolean"},
    "string": {"type": "string"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "records": {"type": "string", "contentEncoding": "base64"},
    # 22 characters of url-safe base64; kafkascope also reads dashed uuids.
    "uuid": {"type": "string", "pattern": "^[A-Za-z0-9_-]{22}$"},
    # JSON has no numbers for what isn't finite.
    "float64": {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]},
    "uint16": {"type": "integer", "minimum": 0, "maximum": (1 << 16) - 1},
    "uint32": {"type": "integer", "minimum": 0, "maximum": (1 << 32) - 1},
}


def json_schema(message_layout: Layout) -> dict[str, Any]:
    head = {"$schema": _DIALECT, "title": message_layout.title}
    return head | _struct(message_layout, message_layout.fields, ())


def _struct(message_layout: Layout, fields: tuple[LayoutField, ...], above: tuple[str, ...]) -> dict[str, Any]:
    """Kafka leaves out a tagged field at its default and writes all others."""
    properties = {field.name: _field(message_layout, field, above) for field in fields}
    if message_layout.flexible:
        tag = {"tag": {"type": "integer", "minimum": 0}, "data": _SIMPLE["bytes"]}
        item = {"type": "object", "properties": tag, "required": ["tag", "data"]}
        properties["_unknownTaggedFields"] = {"type": "array", "items": item}
    required = [field.name for field in fields if field.tag is None]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _field(message_layout: Layout, field: LayoutField, above: tuple[str, ...]) -> dict[str, Any]:
    place = (*above, field.source.name)
    about = sentence(message_layout.message, place)
    described = {"description": about.replace("`", "")} if about else {}
    if field.type == "struct":
        schema = _struct(message_layout, field.fields, place)
    elif field.type in _BITS:
        bits = _BITS[field.type] - 1
        schema = {"type": "integer", "minimum": -(1 << bits), "maximum": (1 << bits) - 1}
    else:
        schema = _SIMPLE[field.type]
    if field.array:
        schema = {"type": "array", "items": schema}
    return described | ({"anyOf": [schema, {"type": "null"}]} if field.nullable else schema)
