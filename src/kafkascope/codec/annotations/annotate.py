"""Annotates each span of a decoded message with its field, value and meaning."""

import json
import re
from dataclasses import dataclass
from struct import unpack
from typing import Any
from uuid import UUID

from kafkascope.codec.fast.fast_encode import CODES
from kafkascope.codec.json_form import uuid_text
from kafkascope.codec.result import Decoded
from kafkascope.schema.catalog import apis
from kafkascope.schema.errors.error_codes import error_name
from kafkascope.schema.errors.message_errors import is_error_field
from kafkascope.schema.layouts.layout import Layout, LayoutField
from kafkascope.schema.values import meaning, named_values

_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
# Fields whose number is an API key.
API_KEYS = {("RequestHeader", ("RequestApiKey",)), ("ApiVersionsResponse", ("ApiKeys", "ApiKey"))}
_FRAMING = {
    "#count": "count",
    "#length": "length",
    "#present": "present",
    "#tags": "tag count",
    "#tag": "tag",
    "#size": "tag size",
    "#trailing": "bytes after the message",
}


@dataclass(frozen=True, slots=True)
class Annotation:
    """`label` names the field or framing, `value` is its text, `remark` the meaning of a coded value."""

    start: int
    end: int
    path: str
    depth: int
    label: str
    framing: bool
    type: str
    value: str
    remark: str | None


def annotate(layout: Layout, decoded: Decoded, data: bytes) -> list[Annotation]:
    fields = _fields(layout.fields, (), (), {})
    rows = []
    for span in decoded.spans:
        path, mark, _ = span.path.partition("#")
        kind = span.path[len(path) :] if mark else ""
        start, end = span.start, span.end
        steps = [(name, int(index) if index else None) for name, index in _PART.findall(path)]
        depth = sum(1 for name, _ in steps if name) - (0 if kind in ("#tags", "#tag") else 1)
        if kind:
            label = f"{_last(path)} {_FRAMING[kind]}".strip()
            text, remark = _framing(kind, data[start:end], span.type)
            rows.append(Annotation(start, end, span.path, max(depth, 0), label, True, span.type, text, remark))
            continue
        content = piece_value(data[start:end], span.type)
        field_place = fields.get(tuple(name for name, _ in steps if name))
        remark = _remark(layout, field_place, content, _siblings(decoded.value, steps))
        rows.append(Annotation(start, end, path, depth, _last(path), False, span.type, value_text(content), remark))
    return rows


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _fields(
    fields: tuple[LayoutField, ...],
    names: tuple[str, ...],
    places: tuple[str, ...],
    by_path: dict[tuple[str, ...], tuple[LayoutField, tuple[str, ...]]],
) -> dict[tuple[str, ...], tuple[LayoutField, tuple[str, ...]]]:
    """JSON path without indices, to the field and its place in the catalog."""
    for field in fields:
        name, place = (*names, field.name), (*places, field.source.name)
        by_path[name] = (field, place)
        _fields(field.fields, name, place, by_path)
    return by_path


def piece_value(raw: bytes, type_: str) -> Any:
    """The value in the bytes of one span. The message's value may differ: for a repeated tag it has the last one's."""
    if type_ == "string":
        return raw.decode(errors="replace")
    if type_ == "bool":
        return raw != b"\x00"
    if type_ == "uuid":
        return UUID(bytes=raw)
    return unpack(f">{CODES[type_]}", raw)[0] if type_ in CODES else raw


def _siblings(value: Any, steps: list[tuple[str, int | None]]) -> dict[str, Any]:
    """The struct that contains a piece; empty if a repeated tag has none at its place."""
    siblings: dict[str, Any] = {}
    for name, index in steps:
        if index is not None:
            value = value[index] if isinstance(value, list) and index < len(value) else None
        elif isinstance(value, dict):
            siblings, value = value, value.get(name)
        else:
            return {}
    return siblings


def _framing(kind: str, raw: bytes, type_: str) -> tuple[str, str | None]:
    """The value of framing bytes; a compact length or count is stored as one more than it means."""
    if type_ == "bytes":
        return f"{len(raw)} bytes", None
    if type_ != "uvarint":
        number = int.from_bytes(raw, "big", signed=True)
        return str(number), "null" if number < 0 else None
    number = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(raw))
    if kind in ("#length", "#count"):
        return ("0", "null") if number == 0 else (str(number - 1), f"{number} is length+1".replace("length", kind[1:]))
    return str(number), None


def _remark(
    layout: Layout, field_place: tuple[LayoutField, tuple[str, ...]] | None, content: Any, siblings: dict[str, Any]
) -> str | None:
    if field_place is None:
        return "unknown tag"
    field, place = field_place
    if (layout.message.name, place) in API_KEYS and isinstance(content, int):
        return apis().get(content, "not in the catalog")
    if field.type == "int16" and is_error_field(field.name) and isinstance(content, int):
        return error_name(content)
    named = named_values(layout.message, place, layout.version)
    return meaning(named, content, siblings) if named else None


def value_text(value: Any) -> str:
    """One value on one line, JSON-like; for long bytes their size."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, UUID):
        return uuid_text(value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
