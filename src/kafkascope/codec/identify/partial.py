"""Decodes damaged bytes as far as possible: pieces and values, and where and why decoding stopped."""

import re
from dataclasses import dataclass
from typing import Any

from kafkascope.codec.annotations.annotate import Annotation, annotate, piece_value
from kafkascope.codec.frame import header_version, split_length
from kafkascope.codec.result import UNKNOWN_TAGS, Decoded, Span
from kafkascope.codec.walk import Walk
from kafkascope.errors import DecodeError, UsageError
from kafkascope.limits import MAX_FRAME_BYTES, MAX_SHOWN_PIECES
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import Layout, layout

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
# Length, API key, version, correlation id.
_LEAST_FRAME = 12
_UNKNOWN = re.compile(r"tag(\d+)")


@dataclass(frozen=True, slots=True)
class Partial:
    """`stopped` is the first byte that wasn't understood, `body_at` where the body begins. `value` lacks fields that
    weren't reached. `name` is None if not even the header could be read."""

    name: str | None
    version: int | None
    header: dict[str, Any]
    value: dict[str, Any]
    annotations: tuple[Annotation, ...]
    body_at: int
    stopped: int
    why: str


def read_partly(raw: bytes, target: tuple[str, int] | None, release: str | None) -> Partial:
    """`target` is a message and a version, None for a request, which names its own type. Returns the reading that gets
    furthest, with or without length and header."""
    tries = _tries(raw, target)
    readings = [_read(raw, start, header, body, release) for start, header, body in tries]
    return max(readings, key=lambda item: (item.name is not None, item.stopped))


def _tries(
    raw: bytes, target: tuple[str, int] | None
) -> list[tuple[int, tuple[str, int] | None, tuple[str, int] | None]]:
    """(where it starts, header, body); a request's body is None until its header is read."""
    start = split_length(raw)[1]
    starts = (start,) if start else (0, 4) if _is_cut(raw, target is not None) else (0,)
    if target is None:
        return [(at, ("RequestHeader", 1), None) for at in starts]
    definition = message(target[0])
    bare: tuple[int, tuple[str, int] | None, tuple[str, int] | None] = (0, None, target)
    if definition.api is None:
        return [bare]
    header = ("RequestHeader" if definition.kind == "request" else "ResponseHeader", header_version(*target))
    if definition.kind == "request":
        own = (definition.key or 0).to_bytes(2, "big") + target[1].to_bytes(2, "big")
        return [(at, header, target) for at in starts if raw[at : at + 4] == own] or [bare]
    return [(start, header, target)] if start else [bare, *((at, header, target) for at in starts)]


def _is_cut(raw: bytes, is_named: bool) -> bool:
    """If the first four bytes may be the length of a frame that was cut off or, without a named message, of the first
    of several: a correlation id is a small number too."""
    announced = int.from_bytes(raw[:4], "big", signed=True)
    if len(raw) < _LEAST_FRAME or not _LEAST_FRAME - 4 <= announced <= MAX_FRAME_BYTES:
        return False
    return not (is_named and announced < len(raw) - 4)


def _read(
    raw: bytes, start: int, header: tuple[str, int] | None, body: tuple[str, int] | None, release: str | None
) -> Partial:
    rows: list[Annotation] = []
    if start:
        announced, present = int.from_bytes(raw[:4], "big", signed=True), len(raw) - 4
        remark = None if announced == present else f"{present} are present"
        rows.append(Annotation(0, 4, "message_size", 0, "message_size", False, "int32", str(announced), remark))
    head: dict[str, Any] = {}
    position = start
    if header is not None:
        if body is None:
            header, body, why = _request(raw, start)
            if body is None:
                return Partial(None, None, {}, {}, tuple(rows), start, start, why)
        annotations, head, position, why = _walk(layout(*header), raw, start, whole=False)
        rows += annotations
        if why:
            return Partial(*body, head, {}, tuple(rows), position, position, why)
    assert body is not None
    more, value, stopped, why = _walk(layout(*body, release), raw, position, whole=True)
    return Partial(*body, head, value, (*rows, *more), position, stopped, why)


def _request(raw: bytes, start: int) -> tuple[tuple[str, int], tuple[str, int] | None, str]:
    """Header and body by API key and version."""
    key, version = (int.from_bytes(raw[start + at : start + at + 2], "big", signed=True) for at in (0, 2))
    api = apis().get(key)
    header = ("RequestHeader", 1)
    if len(raw) - start < 4 or api is None:
        return header, None, f"API key {key} isn't in the catalog (offset {start})"
    name = f"{api}Request"
    if not message(name).releases_of(version):
        return header, None, f"{name} v{version} isn't in the catalog (offset {start + 2})"
    return ("RequestHeader", header_version(name, version)), (name, version), ""


def _walk(
    message_layout: Layout, raw: bytes, position: int, *, whole: bool
) -> tuple[list[Annotation], dict[str, Any], int, str]:
    walk = Walk(message_layout, raw, position, spans=True)
    why = ""
    try:
        walk.message(whole=whole)
    except (DecodeError, UsageError) as error:
        why = str(error)
    end = walk.spans[-1].end if walk.spans else position
    spans = tuple(walk.spans[:MAX_SHOWN_PIECES])
    value = _rebuild(spans, raw)
    decoded = Decoded(message_layout.message.name, message_layout.version, value, False, (), spans)
    return annotate(message_layout, decoded, raw), value, end if why else walk.position, why


def _rebuild(spans: tuple[Span, ...], raw: bytes) -> dict[str, Any]:
    """The value as far as its pieces reach."""
    value: dict[str, Any] = {}
    for span in spans:
        path, _, kind = span.path.partition("#")
        content = raw[span.start : span.end]
        if kind in ("tags", "tag", "size", "trailing"):
            continue
        if kind == "count":
            _put(value, path, None if _is_null(content, span.type) else [])
        elif kind == "present":
            _put(value, path, None if _is_null(content, span.type) else {})
        elif kind == "length":
            if _is_null(content, span.type):
                _put(value, path, None)
        else:
            _put(value, path, piece_value(content, span.type))
    return value


def _is_null(content: bytes, type_: str) -> bool:
    return content == b"\x00" if type_ == "uvarint" else content[0] > 127


def _put(value: dict[str, Any], path: str, content: Any) -> None:
    """Sets a value at a path of names and indices, creating what is missing on the way."""
    steps = [int(index) if index else name for name, index in _STEP.findall(path)]
    holder: Any = value
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        last = following is None
        if isinstance(step, int):
            while len(holder) <= step:
                holder.append(content if last else [] if isinstance(following, int) else {})
            holder = holder[step]
        elif last:
            unknown = _UNKNOWN.fullmatch(step)
            if unknown and isinstance(content, bytes):
                holder.setdefault(UNKNOWN_TAGS, []).append({"tag": int(unknown[1]), "data": content})
            else:
                holder[step] = content
        else:
            holder = holder.setdefault(step, [] if isinstance(following, int) else {})
