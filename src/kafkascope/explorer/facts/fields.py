"""Builds the field tree of a layout: types, nullability, defaults, tags, prose, named values and KIPs."""

from typing import Any

from kafkascope.explorer.facts.field_places import field_name
from kafkascope.schema.api_facts import field_kips
from kafkascope.schema.errors.message_errors import is_error_field
from kafkascope.schema.export import values_json
from kafkascope.schema.layouts.layout import Layout, LayoutField
from kafkascope.schema.prose import sentence
from kafkascope.schema.values import named_values


def tree(layout: Layout) -> list[dict[str, Any]]:
    return [_field(layout, field, (), ()) for field in layout.fields]


def _field(layout: Layout, field: LayoutField, above: tuple[str, ...], places: tuple[str, ...]) -> dict[str, Any]:
    """`path` has the release's names, `place` the catalog's."""
    path, place = (*above, field.kafka_name), (*places, field.source.name)
    return {
        "name": field.kafka_name,
        "page": field_name(field.source.name),
        "path": ".".join(path),
        "type": _type_text(field),
        "nullable": field.nullable,
        "tag": field.tag,
        "default": field.default,
        "entity": field.source.entity,
        "mapKey": field.source.map_key,
        "ignorable": field.source.ignorable,
        "errorCode": field.type == "int16" and is_error_field(field.name),
        "versions": field.source.versions.text,
        "since": field.source.since,
        "aliases": [name for name, _ in field.source.was if name != field.kafka_name],
        "kips": field_kips(layout.message, place),
        "prose": sentence(layout.message, place),
        "values": [values_json(values) for values in named_values(layout.message, place, layout.version)],
        "fields": [_field(layout, child, path, place) for child in field.fields],
    }


def _type_text(field: LayoutField) -> str:
    """`[]Topic`, `string`, `int32`."""
    element = field.source.type if field.type == "struct" else field.type
    return f"[]{element}" if field.array else element
