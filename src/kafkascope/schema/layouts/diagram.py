"""Draws one version of a message as rows in the order of the bytes, each with its place, encoding and size.

Containers are shown with their counts, nested structs under their parent's path, tagged fields inside their tag
section.
"""

from dataclasses import dataclass

from kafkascope.schema.layouts.layout import FIXED_SIZES, Layout, LayoutField


@dataclass(frozen=True, slots=True)
class DiagramRow:
    """`offset` is from the start of its part, and exact while `floating` is False; after something of variable length
    it is the least possible. `kind`: field, count, struct, tags, tag."""

    path: tuple[str, ...]
    depth: int
    kind: str
    offset: int
    floating: bool
    encoding: str
    size: str
    field: LayoutField | None


def diagram(layout: Layout, offset: int = 0, floating: bool = False) -> list[DiagramRow]:
    """`offset` and `floating` are the start of the part: a body comes after a header whose client id varies."""
    return _DiagramBuilder(layout).struct(layout.fields, (), 0, offset, floating)[0]


def fixed_end(layout: Layout) -> tuple[int, bool]:
    """The least offset at which a part ends, and whether it varies."""
    _, offset, floating = _DiagramBuilder(layout).struct(layout.fields, (), 0, 0, False)
    return offset, floating


class _DiagramBuilder:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def struct(
        self, fields: tuple[LayoutField, ...], path: tuple[str, ...], depth: int, offset: int, floating: bool
    ) -> tuple[list[DiagramRow], int, bool]:
        rows: list[DiagramRow] = []
        for field in fields:
            if field.tag is None:
                inner, offset, floating = self.field(field, (*path, field.kafka_name), depth, offset, floating)
                rows += inner
        if self.layout.flexible:
            tagged = sorted((f for f in fields if f.tag is not None), key=lambda f: f.tag or 0)
            rows.append(DiagramRow(path, depth, "tags", offset, floating, "tag section: uvarint count", "1+", None))
            for field in tagged:
                # Each tag is number, size, content; its place depends on which others are present.
                here = (*path, field.kafka_name)
                text = f"tag {field.tag}: {encoding(field)}"
                rows.append(DiagramRow(here, depth + 1, "tag", offset + 1, True, text, size(field), field))
                rows += self.children(field, here, depth + 2, offset + 3, True)[0]
            offset, floating = offset + 1, True
        return rows, offset, floating

    def field(
        self, field: LayoutField, path: tuple[str, ...], depth: int, offset: int, floating: bool
    ) -> tuple[list[DiagramRow], int, bool]:
        kind = "count" if field.array else "struct" if field.type == "struct" else "field"
        rows = [DiagramRow(path, depth, kind, offset, floating, encoding(field), size(field), field)]
        if field.type != "struct":
            fixed = field.fixed_size
            return rows, offset + field.minimum, floating or fixed is None
        inner, end, inner_floating = self.children(field, path, depth + 1, offset, floating)
        if field.array or field.nullable:
            return rows + inner, offset + field.minimum, True
        return rows + inner, end, inner_floating

    def children(
        self, field: LayoutField, path: tuple[str, ...], depth: int, offset: int, floating: bool
    ) -> tuple[list[DiagramRow], int, bool]:
        if field.type != "struct":
            return [], offset, floating
        if field.array:
            prefix = 1 if field.compact else 4
            return self.struct(field.fields, path, depth, offset + prefix, floating or field.compact)
        if field.nullable:
            return self.struct(field.fields, path, depth, offset + 1, floating)
        return self.struct(field.fields, path, depth, offset, floating)


def encoding(field: LayoutField) -> str:
    """`compact string: uvarint length+1, UTF-8`, `array of Topic: int32 count`…"""
    if field.array:
        count = "uvarint count+1" if field.compact else "int32 count"
        null = f", null is {0 if field.compact else -1}" if field.nullable else ""
        of = field.source.type if field.type == "struct" else _element(field)
        return f"{'compact ' if field.compact else ''}array of {of}: {count}{null}"
    if field.type == "struct":
        if field.nullable:
            present = "uvarint 0 or 1" if field.tag is not None else "int8 -1 (null) or 1"
            return f"nullable struct {field.source.type}: {present} before it"
        return f"struct {field.source.type}"
    return _element(field, field.nullable)


def _element(field: LayoutField, nullable: bool = False) -> str:
    if field.type in FIXED_SIZES:
        return field.type
    classic = "int16" if field.type == "string" else "int32"
    length = "uvarint length+1" if field.compact else f"{classic} length"
    null = f", null is {0 if field.compact else -1}" if nullable else ""
    content = {"string": "UTF-8", "bytes": "bytes", "records": "record batches"}[field.type]
    return f"{'compact ' if field.compact else ''}{field.type}: {length}{null}, {content}"


def size(field: LayoutField) -> str:
    """`4`, or `1+` if it varies."""
    fixed = field.fixed_size
    if fixed is not None:
        return str(fixed)
    if field.array or field.type != "struct":
        least = field.minimum or (1 if field.compact else 2 if field.type == "string" and not field.array else 4)
        return f"{least}+"
    return f"{max(field.minimum, field.element_minimum)}+"
