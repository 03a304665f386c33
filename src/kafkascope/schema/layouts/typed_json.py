"""Formats a layout as typed JSON, to read and to copy: `{"GroupId": string?, "Topics": [{…}]}`; `?` means that it can
be null."""

from kafkascope.schema.layouts.layout import Layout, LayoutField


def typed_json(layout: Layout) -> str:
    return _struct(layout.fields, 0)


def _struct(fields: tuple[LayoutField, ...], depth: int) -> str:
    if not fields:
        return "{}"
    indent = "  " * (depth + 1)
    rows = [f'{indent}"{field.kafka_name}": {_type(field, depth + 1)}' for field in fields]
    return "{\n" + ",\n".join(rows) + "\n" + "  " * depth + "}"


def _type(field: LayoutField, depth: int) -> str:
    element = _struct(field.fields, depth) if field.type == "struct" else field.type
    null = "?" if field.nullable else ""
    return f"[{element}]{null}" if field.array else f"{element}{null}"
