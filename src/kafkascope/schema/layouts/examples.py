"""Builds an example of any message: a complete value that `encode` and a broker accept.

All examples describe one small world, written in `data/examples.txt`: a line there has the value for every field of a
name, or for a field at one place, and the line with the longest matching place is used.
"""

from base64 import urlsafe_b64decode
from functools import cache
from json import loads
from typing import Any
from uuid import UUID

from kafkascope.schema.files import text
from kafkascope.schema.layouts.layout import LayoutField, layout
from kafkascope.schema.versions import parse_versions


def example(name: str, version: int, release: str | None = None) -> dict[str, Any]:
    """A new value each time, which you may change.

    >>> example("HeartbeatRequest", 0)["groupId"]
    'order-processors'
    """
    message_layout = layout(name, version, release)
    return _struct(message_layout.fields, {}, message_layout.message.name, version)


def _struct(fields: tuple[LayoutField, ...], values: dict[str, Any], place: str, version: int) -> dict[str, Any]:
    """`values` are what a line has for this struct; its other fields have lines of their own."""
    value = {}
    for field in fields:
        at = f"{place}.{field.source.name}"
        written = values.get(field.source.name, NOT_WRITTEN)
        if not fits(field, written):
            written = line_value(field, at, version)
        value[field.name] = (
            _default(field, at, version) if written is NOT_WRITTEN else _build(field, written, at, version)
        )
    return value


# JSON has no such value, so no line can contain it.
NOT_WRITTEN = object()


@cache
def written_lines() -> dict[str, list[tuple[str, str]]]:
    """By place, in the order of the file: (versions, JSON). The JSON is parsed on demand."""
    by_place: dict[str, list[tuple[str, str]]] = {}
    # An indented line continues the previous one.
    for line in text("examples.txt").replace("\n  ", " ").splitlines():
        if line and not line.startswith("#"):
            place, _, written = line.partition(" = ")
            place, _, versions = place.partition(" @")
            by_place.setdefault(place, []).append((versions or "0+", written))
    return by_place


def line_value(field: LayoutField, place: str, version: int) -> Any:
    """The value in the line of the longest matching place: `FetchResponse.Responses.Topic`, `Responses.Topic`,
    `Topic`."""
    by_place = written_lines()
    while True:
        for versions, written in by_place.get(place, ()):
            if version in parse_versions(versions):
                value = loads(written)
                if fits(field, value):
                    return value
        if "." not in place:
            return NOT_WRITTEN
        place = place.partition(".")[2]


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "struct": (dict,),
    "bool": (bool,),
    "float64": (int, float),
    **dict.fromkeys(("string", "bytes", "records", "uuid"), (str,)),
}


def fits(field: LayoutField, written: Any) -> bool:
    """One name can belong to fields of several types; a line applies to those that can have its value."""
    if written is None:
        return field.nullable
    if field.array != isinstance(written, list):
        return False
    types = _JSON_TYPES.get(field.type, (int,))
    return all(type(item) in types for item in (written if field.array else [written]))


def _default(field: LayoutField, place: str, version: int) -> Any:
    """Without a line: Kafka's default, except that an array of structs shows one of them."""
    if field.tag is not None or (field.default == "null" and field.nullable):
        return field.default_value()
    if field.type == "struct":
        return _build(field, [{}] if field.array else {}, place, version)
    return field.default_value()


def _build(field: LayoutField, written: Any, place: str, version: int) -> Any:
    if written is None:
        return None
    if field.array:
        return [_value(field, item, place, version) for item in written]
    return _value(field, written, place, version)


def _value(field: LayoutField, written: Any, place: str, version: int) -> Any:
    match field.type:
        case "struct":
            return _struct(field.fields, written, place, version)
        case "bytes" | "records":
            return bytes.fromhex(written)
        case "uuid":
            return UUID(bytes=urlsafe_b64decode(written + "=="))
        case "float64":
            return float(written)
    return written
