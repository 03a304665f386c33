"""Lays out a message's parts on the wire: frame prefix, header and body, with the position of every cell."""

from typing import Any

from kafkascope.codec.frame import header_version
from kafkascope.schema.layouts.lanes import Lane, LaneCell, Position, end, lanes
from kafkascope.schema.layouts.layout import Layout, camel_case, layout

_FRAME = Position("frame", (), 0)
# The frame's length comes first, so header fields start after it.
_PREFIX_BYTES = 4


def wire_facts(body_layout: Layout) -> list[dict[str, Any]]:
    """Prefix, header and body of a request or response; a record is only a body."""
    if not body_layout.message.api:
        return [_part("body", "Body", "", lanes(body_layout, _FRAME), "frame")]
    request = body_layout.message.kind == "request"
    number = header_version(body_layout.message.name, body_layout.version)
    header = layout("RequestHeader" if request else "ResponseHeader", number)
    start = Position("frame", (), _PREFIX_BYTES)
    behind = end(header, start)
    title = f"{'Request' if request else 'Response'} header v{number}"
    return [
        {"part": "frame", "title": "Frame", "remark": "", "starts": "frame", "lane": _prefix()},
        _part("header", title, _header_remark(body_layout, number), lanes(header, start), "frame"),
        _part("body", "Body", "", lanes(body_layout, behind or Position("body", (), 0)), "frame" if behind else "body"),
    ]


def _header_remark(body_layout: Layout, number: int) -> str:
    if body_layout.message.kind == "request" and number >= 2:
        return "ClientId stays a classic string with an int16 length, whatever the header's version."
    if body_layout.message.kind == "request" and number == 0:
        return "It ends after the correlation id: there is no client id."
    if body_layout.message.api == "ApiVersions" and body_layout.message.kind == "response":
        return "Always v0, so that a client that doesn't know the broker's version can read the response (KIP-511)."
    return ""


def _prefix() -> dict[str, Any]:
    cell = {
        "cell": "field", "path": "message_size", "name": "message_size", "key": "message_size", "at": "0",
        "position": {"from": "frame", "path": "", "offset": 0}, "encoding": "int32, counts the bytes after it",
        "size": "4", "nullable": False, "tag": None,
    }  # fmt: skip
    return {"path": "", "struct": "", "repeats": "once", "items": [cell]}


def _part(part: str, title: str, remark: str, lane: Lane, starts: str) -> dict[str, Any]:
    prefix = "header/" if part == "header" else ""
    return {"part": part, "title": title, "remark": remark, "starts": starts, "lane": _lane(lane, prefix)}


def _lane(lane: Lane, prefix: str) -> dict[str, Any]:
    return {
        "path": ".".join(lane.path),
        "struct": lane.struct,
        "repeats": lane.repeats,
        "items": [_lane(item, prefix) if isinstance(item, Lane) else _cell(item, prefix) for item in lane.items],
    }


def _cell(cell: LaneCell, prefix: str) -> dict[str, Any]:
    at = cell.position
    name = cell.path[-1] if cell.path and cell.kind != "tags" else "tags"
    key = ".".join(camel_case(part) for part in cell.path)
    return {
        "cell": cell.kind,
        "path": ".".join(cell.path),
        "name": name,
        # The path of the example's bytes, without indices.
        "key": f"{prefix}{key}{'#tags' if cell.kind == 'tags' else ''}",
        "at": str(at),
        "position": {"from": at.base, "path": ".".join(at.path), "offset": at.offset},
        "encoding": cell.encoding,
        "size": cell.size,
        "nullable": bool(cell.field and cell.field.nullable),
        "tag": cell.field.tag if cell.field else None,
    }
