"""Lays out one version of a message as lanes of cells, in the order of the bytes, each cell with its true position.

A struct is a lane, a field a cell. A position is an offset as long as everything before has a fixed length; after a
string, an array or a tag section it counts from the end of that, and inside an array from the start of the element.
"""

from dataclasses import dataclass, replace

from kafkascope.schema.layouts.diagram import encoding, size
from kafkascope.schema.layouts.layout import Layout, LayoutField


@dataclass(frozen=True, slots=True)
class Position:
    """`offset` bytes from `base`: `frame`, `body`, `after` (the end of what is at `path`), `element` (the start of each
    element of the array at `path`) or `content` (of the tag at `path`)."""

    base: str
    path: tuple[str, ...]
    offset: int

    def __str__(self) -> str:
        """`12`, `body + 4`, `after GroupId`, `after GroupId + 4`, `element + 0`."""
        if self.base == "frame":
            return str(self.offset)
        if self.base == "after":
            return f"after {self.path[-1]} + {self.offset}" if self.offset else f"after {self.path[-1]}"
        return f"{self.base} + {self.offset}"


@dataclass(frozen=True, slots=True)
class LaneCell:
    """`kind`: field, count (of an array), present (of a nullable struct), tags (the count of a tag section), tag."""

    path: tuple[str, ...]
    kind: str
    position: Position
    encoding: str
    size: str
    field: LayoutField | None


@dataclass(frozen=True, slots=True)
class Lane:
    """A struct, or a tag section. `repeats`: `once`, `each` element of an array, `maybe` if it can be null, or
    `tags`."""

    path: tuple[str, ...]
    struct: str
    repeats: str
    items: tuple["LaneCell | Lane", ...]


def lanes(layout: Layout, start: Position) -> Lane:
    """`start` is the place of the first byte: `Position("frame", (), 8)`, or the body's own start after a header whose
    length varies."""
    items, _ = _struct(layout, layout.fields, (), start)
    return Lane((), layout.message.name, "once", items)


def end(layout: Layout, start: Position) -> Position | None:
    """Where a part ends, None if that varies."""
    _, last = _struct(layout, layout.fields, (), start)
    return last if last.base == start.base else None


def cells(lane: Lane) -> list[LaneCell]:
    """All cells of a lane and of the lanes in it, in the order of the bytes."""
    flat: list[LaneCell] = []
    for item in lane.items:
        flat += cells(item) if isinstance(item, Lane) else [item]
    return flat


def _struct(
    layout: Layout, fields: tuple[LayoutField, ...], path: tuple[str, ...], at: Position
) -> tuple[tuple[LaneCell | Lane, ...], Position]:
    """The items of a struct, and where it ends."""
    items: list[LaneCell | Lane] = []
    for field in fields:
        if field.tag is None:
            placed, at = _field(layout, field, (*path, field.kafka_name), at)
            items += placed
    if layout.flexible:
        items.append(LaneCell(path, "tags", at, "uvarint count of tagged fields", "1+", None))
        tagged = sorted((field for field in fields if field.tag is not None), key=lambda field: field.tag or 0)
        if tagged:
            items.append(Lane(path, "", "tags", tuple(_tags(layout, tagged, path))))
        at = Position("after", path, 0)
    return tuple(items), at


def _field(
    layout: Layout, field: LayoutField, path: tuple[str, ...], at: Position
) -> tuple[list[LaneCell | Lane], Position]:
    behind = Position("after", path, 0)
    if field.type != "struct":
        kind = "count" if field.array else "field"
        cell = LaneCell(path, kind, at, encoding(field), size(field), field)
        return [cell], behind if field.fixed_size is None else _moved(at, field.fixed_size)
    if field.array:
        cell = LaneCell(path, "count", at, encoding(field), "1+" if field.compact else "4", field)
        inner, _ = _struct(layout, field.fields, path, Position("element", path, 0))
        return [cell, Lane(path, field.source.type, "each", inner)], behind
    if field.nullable:
        cell = LaneCell(path, "present", at, encoding(field), "1", field)
        inner, _ = _struct(layout, field.fields, path, _moved(at, 1))
        return [cell, Lane(path, field.source.type, "maybe", inner)], behind
    inner, last = _struct(layout, field.fields, path, at)
    return [Lane(path, field.source.type, "once", inner)], last


def _tags(layout: Layout, tagged: list[LayoutField], path: tuple[str, ...]) -> list[LaneCell | Lane]:
    """Each is number, size, content; its place depends on which others are present."""
    items: list[LaneCell | Lane] = []
    for field in tagged:
        here = (*path, field.kafka_name)
        start = Position("content", here, 0)
        text = f"uvarint tag {field.tag}, uvarint size, then {encoding(field)}"
        items.append(LaneCell(here, "tag", start, text, size(field), field))
        if field.type == "struct":
            inside = Position("element", here, 0) if field.array else _moved(start, 1 if field.nullable else 0)
            inner, _ = _struct(layout, field.fields, here, inside)
            repeats = "each" if field.array else "maybe" if field.nullable else "once"
            items.append(Lane(here, field.source.type, repeats, inner))
    return items


def _moved(at: Position, by: int) -> Position:
    return replace(at, offset=at.offset + by)
