"""A layout and its table in, the flat integer program out that the kernel runs for every frame.

A row of the program is one operation: code, column, and what it needs. The buffers' columns are numbered depth first,
so that filling a struct that is not there means filling a run of them.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kafkascope.columnar.secrets import Care
from kafkascope.columnar.tables import Column, table_of
from kafkascope.schema.layout import FIXED_SIZES, Layout, LayoutField, layout

(
    END,
    NUMBER,  # column, width
    BOOL,  # column
    UUID,  # column
    BYTES,  # column, compact, nullable, is string, hidden, classic width
    ARRAY,  # column, compact, nullable, where it ends, least bytes an element
    NEXT,  # first operation of the element
    NUMBERS,  # column, compact, nullable, element's column, width
    PRESENT,  # column, where it ends, first fill, last fill, is tagged
    NO_TAGS,
    TAGS,  # first tag row, number of tags
    TAG_END,
    RECORDS,  # column, compact, nullable
) = range(13)
WIDTH = 8

# What a column's buffers hold; see `buffers`.
FIXED, OFFSETS, LIST, STRUCT = range(4)


@dataclass(slots=True)
class Slot:
    """One column of the buffers."""

    kind: int
    width: int  # bytes a value, for FIXED
    nullable: bool
    default: int = 0
    null_default: bool = False


@dataclass(slots=True)
class Program:
    """`tags` rows: tag number, first operation, first fill, last fill. `fills` are columns to fill with defaults."""

    operations: npt.NDArray[np.int64]
    tags: npt.NDArray[np.int64]
    fills: npt.NDArray[np.int64]
    slots: list[Slot]
    nodes: tuple["Node", ...]


@dataclass(slots=True)
class Node:
    """A column of the table that this version has, and the slots it is made of."""

    column: Column
    slot: int  # of the list, the offsets, the values or the struct
    element: "Node | None" = None
    children: tuple["Node", ...] = ()
    is_element: bool = False


@dataclass(slots=True)
class _Build:
    flexible: bool
    rows: list[list[int]] = field(default_factory=list)
    tags: list[list[int]] = field(default_factory=list)
    fills: list[int] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)

    def add(self, code: int, *rest: int) -> int:
        self.rows.append([code, *rest, *([0] * (WIDTH - 1 - len(rest)))])
        return len(self.rows) - 1

    def slot(self, kind: int, width: int = 0, nullable: bool = False) -> int:
        self.slots.append(Slot(kind, width, nullable))
        return len(self.slots) - 1

    def struct(self, fields: tuple[LayoutField, ...], columns: tuple[Column, ...]) -> tuple[Node, ...]:
        nodes = []
        tagged = []
        for one in fields:
            column = next(c for c in columns if one.source.name in c.names)
            if one.tag is None:
                nodes.append(self.field(one, column))
            else:
                tagged.append((one, column))
        if self.flexible:
            nodes += self.tag_section(tagged)
        return tuple(nodes)

    def tag_section(self, tagged: list[tuple[LayoutField, Column]]) -> list[Node]:
        if not tagged:
            self.add(NO_TAGS)
            return []
        operation = self.add(TAGS)
        nodes = []
        rows = []
        for one, column in tagged:
            first = len(self.rows)
            first_slot = len(self.slots)
            nodes.append(self.field(one, column))
            self.add(TAG_END)
            start = len(self.fills)
            self.default(one, nodes[-1])
            assert first_slot <= nodes[-1].slot
            rows.append([one.tag or 0, first, start, len(self.fills)])
        self.rows[operation][1:3] = [len(self.tags), len(rows)]
        self.tags += rows
        # What follows the section starts here; TAGS jumps to it when its tags are read.
        self.rows[operation][3] = len(self.rows)
        return nodes

    def default(self, one: LayoutField, node: Node) -> None:
        """The fills that stand for a tagged field which is not there."""
        for slot in own_slots(node):
            self.fills.append(slot)
        if one.default == "null":
            for slot in own_slots(node):
                self.slots[slot].null_default = True
            return
        if one.array:
            return
        if one.type == "struct":
            for child in one.fields:
                inner = next(n for n in node.children if child.source.name in n.column.names)
                self.set_default(child, inner)
        else:
            self.set_default(one, node)

    def set_default(self, one: LayoutField, node: Node) -> None:
        value = one.default_value()
        if value is None:
            self.slots[node.slot].null_default = True
        elif isinstance(value, (int, bool)):
            self.slots[node.slot].default = int(value)
        elif one.type == "struct" and not one.array:
            for child in one.fields:
                self.set_default(child, next(n for n in node.children if child.source.name in n.column.names))

    def field(self, one: LayoutField, column: Column) -> Node:
        if not one.array:
            return self.one(one, column, one.nullable)
        if one.type in FIXED_SIZES and one.type not in ("bool", "uuid"):
            listing = self.slot(LIST, nullable=one.nullable)
            width = FIXED_SIZES[one.type]
            values = self.slot(FIXED, width)
            self.add(NUMBERS, listing, one.compact, one.nullable, values, width)
            return Node(column, listing, Node(column, values, is_element=True))
        listing = self.slot(LIST, nullable=one.nullable)
        operation = self.add(ARRAY, listing, one.compact, one.nullable, 0, one.element_minimum)
        element = self.one(one, column, False)
        element.is_element = True
        self.add(NEXT, operation + 1)
        self.rows[operation][4] = len(self.rows)
        return Node(column, listing, element)

    def one(self, one: LayoutField, column: Column, nullable: bool) -> Node:
        if one.type == "struct":
            slot = self.slot(STRUCT, nullable=nullable)
            operation = self.add(PRESENT, slot) if nullable else -1
            node = Node(column, slot, children=self.struct(one.fields, column.children))
            if nullable:
                start = len(self.fills)
                self.fills += [inner for child in node.children for inner in own_slots(child)]
                self.rows[operation][2:6] = [len(self.rows), start, len(self.fills), int(one.tag is not None)]
            return node
        if one.type == "records":
            slot = self.slot(STRUCT, nullable=nullable)
            self.add(RECORDS, slot, one.compact, nullable)
            for width in (4, 4):
                self.slot(FIXED, width)
            self.slot(LIST)
            for width in RECORD_WIDTHS:
                self.slot(FIXED, width)
            return Node(column, slot)
        if one.type in ("string", "bytes"):
            hidden = column.care is Care.HIDDEN
            slot = self.slot(OFFSETS, nullable=nullable or hidden)
            string = one.type == "string"
            self.add(BYTES, slot, one.compact, nullable, string, hidden, 2 if string else 4)
            return Node(column, slot)
        slot = self.slot(FIXED, FIXED_SIZES[one.type])
        if one.type == "bool":
            self.add(BOOL, slot)
        elif one.type == "uuid":
            self.add(UUID, slot)
        else:
            self.add(NUMBER, slot, FIXED_SIZES[one.type])
        return Node(column, slot)


# The columns of one record batch behind size, truncated_bytes and the list; as BATCH_TYPE has them.
RECORD_WIDTHS = (8, 8, 4, 4, 1, 4, 2, 8, 8, 8, 2, 4, 4)


def own_slots(node: Node) -> list[int]:
    """The slots that get one entry for each entry of the struct around the node: those within lists do not."""
    if node.element is not None:
        return [node.slot]
    if node.column.type == "records":
        return [node.slot, node.slot + 1, node.slot + 2, node.slot + 3]
    return [node.slot, *(slot for child in node.children for slot in own_slots(child))]


def compile_program(name: str, version: int, release: str | None = None) -> Program:
    found: Layout = layout(name, version, release)
    build = _Build(found.flexible)
    nodes = build.struct(found.fields, table_of(found.message.name))
    build.add(END)
    return Program(
        np.array(build.rows, dtype=np.int64),
        np.array(build.tags or [[0, 0, 0, 0]], dtype=np.int64),
        np.array(build.fills or [0], dtype=np.int64),
        build.slots or [Slot(FIXED, 1, False)],
        nodes,
    )
