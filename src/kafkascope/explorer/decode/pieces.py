"""Converts byte annotations to page facts: the offset, hex, field, type, value and meaning of each piece."""

from collections.abc import Iterable
from typing import Any

from kafkascope.codec.annotations.annotate import Annotation
from kafkascope.explorer.decode.shorten import Room, short_text


def pieces(items: Iterable[Annotation], data: bytes, body_at: int = 0) -> list[dict[str, Any]]:
    """`body_at` is the start of the body: bytes between the frame's length and the body are the header's. `cut` is the
    number of bytes of a piece that aren't shown."""
    hexes, values = Room(), Room()
    return [_piece(item, data, body_at, hexes, values) for item in items]


def _piece(item: Annotation, data: bytes, body_at: int, hexes: Room, values: Room) -> dict[str, Any]:
    path, _, framing = item.path.partition("#")
    header = item.start < body_at and path != "message_size"
    size = item.end - item.start
    shown = hexes.take(size)
    return {
        "start": item.start,
        "end": item.end,
        "hex": data[item.start : item.start + shown].hex(" "),
        "cut": size - shown,
        "path": f"header/{path}" if header else path,
        "framing": framing,
        "label": item.label,
        "type": item.type,
        "value": short_text(item.value, values),
        "remark": item.remark,
    }
