"""Compiles a layout and its table to the flat integer program that the kernel runs for every frame.

The program is a row of int64 words: operations, and after them the lists that they refer to. Words that are addresses
(of columns, of other places in the program) are listed in `links` and set when the buffers are known.

A layout with tags has two programs: for the first an empty tag section is one more byte among the fields of fixed size,
the second takes a tag anywhere. Both fill the same columns.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kafkascope.columnar.kernel.batches import ITEM_BYTES, LEAST_BYTES
from kafkascope.columnar.kernel.fixed_fields import AGAIN, BOOL, FILL, NO_TAG, ONLY_VALID
from kafkascope.columnar.operations import (
    ARRAY,
    ARRAY_DEPTH,
    BLOB,
    COUNT,
    DATA,
    END,
    FIXED,
    HIDDEN,
    INTS,
    LIST,
    NEXT,
    NOTHING,
    OFFSETS,
    PRESENT,
    RECORDS,
    RUN_AT,
    RUNS,
    SECTION_DEPTH,
    SMALL_INTS,
    STRUCT,
    TAG,
    TAG_END,
    TAGS,
    TEXT,
    TOP,
    TRY_RUNS,
    UNKNOWN_GROUP,
    UNKNOWN_INDEX,
    UNKNOWN_TAG,
    UUID,
    VALID,
    VALUES,
    Link,
    Node,
    Program,
    Slot,
)
from kafkascope.columnar.secrets import Care
from kafkascope.columnar.tables import Column, table_of
from kafkascope.limits import MAX_STRING_BYTES
from kafkascope.schema.layouts.layout import FIXED_SIZES, LayoutField, layout

# An unknown tag: a number and a size of one byte each.
_LEAST_TAG = 2


@lru_cache(maxsize=2048)
def compile_program(name: str, version: int, release: str | None = None) -> Program:
    known = layout(name, version, release)
    closed = _Build(known.flexible)
    nodes = closed.message(known.fields, table_of(known.message.name))
    words, links, jumps = closed.linked(0)
    open_at = 0
    if known.flexible:
        open_at = len(words)
        opened = _Build(True, is_open=True, places=closed.places)
        opened.message(known.fields, table_of(known.message.name))
        assert opened.slots == closed.slots
        more, more_links, more_jumps = opened.linked(open_at)
        words, links, jumps = words + more, links + more_links, jumps + more_jumps
        closed.depth = max(closed.depth, opened.depth)
    return Program(
        known.message.name, tuple(words), tuple(links), tuple(jumps), tuple(closed.slots), tuple(closed.least),
        closed.depth, nodes, open_at, tuple(closed.places), closed.longest_run, closed.has_records,
    )  # fmt: skip


def _deepest(fields: tuple[LayoutField, ...]) -> int:
    """How many arrays of structs are nested."""
    return max((field.array + _deepest(field.fields) for field in fields if field.type == "struct"), default=0)


@dataclass(slots=True)
class _Build:
    """Operations; a list is in the place of its address until `program` moves it after them."""

    flexible: bool
    is_open: bool = False
    places: list[tuple[str, ...]] = dataclasses.field(default_factory=list)
    group: int = TOP
    words: list[Any] = dataclasses.field(default_factory=list)
    slots: list[Slot] = dataclasses.field(default_factory=list)
    least: list[int] = dataclasses.field(default_factory=lambda: [0])
    pieces: list[tuple[int, int, int]] = dataclasses.field(default_factory=list)  # the run so far: kind, slot, offset
    run_bytes: int = 0
    longest_run: int = 0
    has_records: bool = False
    depth: int = 0
    # The place of the next operation: its path in pieces, the words on the stack, the arrays around it (words below,
    # list), if a tag is around it.
    path: tuple[str, ...] = ("",)
    below: int = 0
    arrays: tuple[tuple[int, int], ...] = ()
    in_tag: bool = False
    bare_end: "_Later" = dataclasses.field(default_factory=lambda: _Later())

    def message(self, fields: tuple[LayoutField, ...], columns: tuple[Column, ...]) -> tuple[Node, ...]:
        if self.flexible:
            self.least.append(_LEAST_TAG)
            self.group = UNKNOWN_GROUP
            for index in range(UNKNOWN_INDEX + _deepest(fields)):
                self.slot(FIXED, width=8 if index == UNKNOWN_TAG else 4)
            self.group = TOP
        nodes = self.struct(fields, columns)
        self.operation(END)
        self.bare_end.word = self.operation(TAG_END)
        return nodes

    def operation(self, code: int, *rest: Any) -> int:
        """Returns its place. Fields of fixed size before it become its run."""
        return self.write([code, *rest], self.take_run())

    def write(self, words: list[Any], run: list[tuple[int, int, int]]) -> int:
        at = len(self.words)
        self.words += [*words, *[0] * (RUN_AT - len(words))]
        self.words += [len(run), _end_of(run[-1]), _pieces(run)] if run else [0, 0, 0]
        self.longest_run = max(self.longest_run, self.words[at + RUN_AT + 1])
        return at

    def take_run(self) -> list[tuple[int, int, int]]:
        """The run up to the next operation. A uuid is an operation of its own."""
        run: list[tuple[int, int, int]] = []
        start = 0
        for kind, slot, offset in self.pieces:
            if kind == 16:
                self.write([UUID, _Slot(slot, VALUES)], run)
                run, start = [], offset + 16
            else:
                run.append((kind, slot, offset - start))
        self.pieces, self.run_bytes = [], 0
        return run

    def set(self, at: int, word: int, value: Any) -> None:
        self.words[at + word] = value

    def here(self) -> "_Place":
        """The place of the next operation."""
        run = self.take_run()
        if run:
            self.write([NOTHING], run)
        return _Place(len(self.words))

    def piece(self, kind: int, slot: int, size: int) -> None:
        self.pieces.append((kind, slot, self.run_bytes))
        self.run_bytes += size

    def slot(self, kind: int, **more: Any) -> int:
        self.slots.append(Slot(kind, self.group, **more))
        return len(self.slots) - 1

    def struct(self, fields: tuple[LayoutField, ...], columns: tuple[Column, ...]) -> tuple[Node, ...]:
        nodes = []
        tagged = []
        for field in fields:
            column = next(column for column in columns if field.source.name in column.names)
            if field.tag is None:
                nodes.append(self.field(field, column))
            else:
                tagged.append((field, column))
        if tagged or (self.flexible and self.is_open):
            nodes += self.tag_section(tagged)
        elif self.flexible:
            self.piece(NO_TAG, -1, 1)
        return tuple(nodes)

    def tag_section(self, tagged: list[tuple[LayoutField, Column]]) -> list[Node]:
        operation = self.operation(TAGS)
        place = self.place()
        self.depth += SECTION_DEPTH
        outer_tag, self.in_tag = self.in_tag, True
        self.below += SECTION_DEPTH
        nodes = []
        rows: list[Any] = []
        every: list[Any] = []
        for field, column in tagged:
            start, first = self.here(), len(self.slots)
            node = self.field(field, column)
            self.operation(TAG_END)
            _set_default(self.slots, field, node)
            fills = [word for fill in self.fills(first) for word in fill]
            rows += [field.tag, start, list(fills), len(fills) // FILL]
            every += fills
            nodes.append(node)
        behind = self.here()
        self.in_tag = outer_tag
        self.below -= SECTION_DEPTH
        fills, tags = [every, len(every) // FILL], [rows, len(rows) // TAG]
        self.words[operation + 1 : operation + 8] = [behind, *fills, *tags, place, self.bare_end]
        return nodes

    def place(self) -> Any:
        """What is needed to note an unknown tag of a section here; see `sections`. Within a known tag none is noted:
        the codec names those tags in an order other than that of the wire."""
        if self.in_tag:
            return 0
        if self.path not in self.places:
            self.places.append(self.path)
        columns = [_Slot(slot, VALUES) for slot in (COUNT, *range(UNKNOWN_INDEX + len(self.arrays)))]
        around = [word for below, slot in self.arrays for word in (8 * below, _Slot(slot, VALUES))]
        return [columns, 8 * self.below, self.places.index(self.path), len(self.arrays), *around]

    def fills(self, first: int) -> Iterator[tuple[Any, ...]]:
        """One row of defaults for each slot since `first` that has a row here; slots within lists don't."""
        for index in range(first, len(self.slots)):
            slot = self.slots[index]
            if slot.group != self.group:
                continue
            valid = _Slot(index, VALID) if slot.nullable else 0
            present = int(not slot.null_default)
            if slot.kind == STRUCT:
                yield ONLY_VALID, 0, valid, 0, present
            elif slot.kind == FIXED:
                yield slot.width, _Slot(index, VALUES), valid, slot.default, present
            else:
                yield AGAIN, _Slot(index, VALUES), valid, 0, present

    def field(self, field: LayoutField, column: Column) -> Node:
        if field.array:
            return self.array(field, column)
        path = self.path
        self.step_into(field.name)
        node = self.element(field, column, field.nullable)
        self.path = path
        return node

    def step_into(self, name: str) -> None:
        *before, last = self.path
        dot = "." if before or last else ""
        self.path = (*before, f"{last}{dot}{name}")

    def array(self, field: LayoutField, column: Column) -> Node:
        outer, inner = self.group, len(self.least)
        self.least.append(field.element_minimum)
        assert field.element_minimum > 0, f"{column.name}: elements of zero bytes would have no limit on their number"
        slot = self.slot(LIST, nullable=field.nullable, child=inner)
        valid = _Slot(slot, VALID) if field.nullable else 0
        size = 0 if field.compact else 4
        attempt = self.attempt(field, column, slot, inner) if self.is_open and field.type == "struct" else None
        operation = self.operation(ARRAY, _Slot(slot, VALUES), valid, size, int(field.nullable), field.element_minimum)
        body = self.here()
        self.group = inner
        around = self.path, self.below, self.arrays
        self.step_into(field.name)
        self.path = (*self.path[:-1], f"{self.path[-1]}[", "]")
        self.arrays = (*self.arrays, (self.below, slot))
        self.below += ARRAY_DEPTH
        element = self.element(field, column, False)
        self.path, self.below, self.arrays = around
        self.group = outer
        if self.pieces and len(self.words) == body.word:
            # Only a run: elements of one size, read column by column.
            assert self.run_bytes == field.element_minimum
            kinds, values = [kind for kind, _, _ in self.pieces], _Slot(self.pieces[0][1], VALUES)
            if kinds == [4]:
                self.words[operation] = INTS
                self.words[operation + 6] = values
            elif kinds == [1]:
                self.words[operation] = SMALL_INTS
                self.words[operation + 3 : operation + 6] = [values, size, int(field.nullable)]
            else:
                self.words[operation] = RUNS
                self.words[operation + 6 : operation + 8] = [_pieces(self.pieces), len(self.pieces)]
            self.pieces, self.run_bytes = [], 0
        else:
            tags = [kind for kind, _, _ in self.pieces] == [NO_TAG]
            if tags:
                self.pieces, self.run_bytes = [], 0
            self.here()
            self.operation(NEXT, body, int(tags))
            behind = self.here()
            self.set(operation, 6, behind)
            if attempt is not None:
                self.set(attempt, 2, behind)
            self.depth += ARRAY_DEPTH
        return Node(column, outer, slot, element)

    def attempt(self, field: LayoutField, column: Column, slot: int, inner: int) -> int | None:
        """An operation for elements that have one size if they have no tags."""
        trial = _Build(True, group=inner, slots=list(self.slots), least=list(self.least))
        trial.element(field, column, False)
        if trial.words or not trial.pieces:
            return None
        valid = _Slot(slot, VALID) if field.nullable else 0
        counts = 0 if field.compact else 4, valid, field.element_minimum
        return self.operation(
            TRY_RUNS, _Slot(slot, VALUES), 0, *counts, _pieces(trial.pieces), len(trial.pieces)
        )  # fmt: skip

    def element(self, field: LayoutField, column: Column, nullable: bool) -> Node:
        match field.type:
            case "struct":
                return self.maybe_struct(field, column, nullable)
            case "records":
                return self.records(field, column, nullable)
            case "string" | "bytes":
                return self.sized(field, column, nullable)
        width = FIXED_SIZES[field.type]
        slot = self.slot(FIXED, width=width)
        self.piece(BOOL if field.type == "bool" else width, slot, width)
        return Node(column, self.group, slot)

    def maybe_struct(self, field: LayoutField, column: Column, nullable: bool) -> Node:
        if not nullable:
            return Node(column, self.group, children=self.struct(field.fields, column.children))
        slot = self.slot(STRUCT, nullable=True)
        # After a tag presence is a varint of 0 or 1, elsewhere an int8 of -1 or 1.
        operation = self.operation(PRESENT, _Slot(slot, VALID), 0xFF if field.tag is None else 0)
        children = self.struct(field.fields, column.children)
        fills = [word for fill in self.fills(slot + 1) for word in fill]
        self.words[operation + 3 : operation + 6] = [self.here(), fills, len(fills) // FILL]
        return Node(column, self.group, slot, children=children)

    def sized(self, field: LayoutField, column: Column, nullable: bool) -> Node:
        hidden, string = column.care is Care.HIDDEN, field.type == "string"
        slot = self.slot(OFFSETS, nullable=nullable or hidden, data=not hidden)
        size = 0 if field.compact else 2 if string else 4
        valid = _Slot(slot, VALID) if nullable or hidden else 0
        if hidden:
            longest = MAX_STRING_BYTES if string else 0x7FFFFFFF
            self.operation(HIDDEN, _Slot(slot, VALUES), valid, longest, size, int(nullable))
        else:
            code = TEXT if string else BLOB
            self.operation(code, _Slot(slot, VALUES), valid, _Slot(slot, DATA), size, int(nullable))
        return Node(column, self.group, slot)

    def records(self, field: LayoutField, column: Column, nullable: bool) -> Node:
        """Slots: the struct, its size, its truncated bytes, its list of batches, and the columns of those."""
        self.has_records = True
        slot = self.slot(STRUCT, nullable=nullable)
        for _ in range(2):
            self.slot(FIXED)
        outer, inner = self.group, len(self.least)
        self.least.append(LEAST_BYTES)
        self.slot(LIST, nullable=True, child=inner)
        self.group = inner
        for width in ITEM_BYTES:
            self.slot(FIXED, width=width)
        self.group = outer
        columns: list[Any] = [_Slot(slot, VALID) if nullable else 0]
        columns += [_Slot(slot + 1, VALUES), _Slot(slot + 2, VALUES), _Slot(slot + 3, VALUES), _Slot(slot + 3, VALID)]
        columns += [_Slot(slot + 4 + index, VALUES) for index in range(len(ITEM_BYTES))]
        self.operation(RECORDS, columns, 0 if field.compact else 4, int(nullable))
        return Node(column, self.group, slot)

    def linked(self, base: int) -> tuple[list[int], list[Link], list[tuple[int, int]]]:
        """The words, and those that are addresses: of slots, of other words; for a program that begins at `base`."""
        words, links, jumps, places = list(self.words), [], [], []
        at = 0
        while at < len(words):
            match words[at]:
                case list(items):
                    jumps.append((base + at, base + len(words)))
                    words[at] = 0
                    words += items
                case _Place() as place:
                    places.append((at, place.word))
                    words[at] = 0
                case _Later() as later:
                    places.append((at, later.word))
                    words[at] = 0
                case _Slot(slot, buffer):
                    links.append(Link(base + at, slot, buffer))
                    words[at] = 0
            at += 1
        jumps += [(base + at, base + (len(words) if word == _NOWHERE.word else word)) for at, word in places]
        words.append(0)
        return words, links, jumps


@dataclass(slots=True, eq=False)
class _Later:
    """A place that is known once everything is built."""

    word: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """A word that is the address of another."""

    word: int


# The last word of the program: values without a column are written there.
_NOWHERE = _Place(-1)


@dataclass(frozen=True, slots=True)
class _Slot:
    """A word that is the address of a buffer."""

    slot: int
    buffer: int


def _end_of(piece: tuple[int, int, int]) -> int:
    kind, _, offset = piece
    return offset + (1 if kind in (BOOL, NO_TAG) else kind)


def _pieces(pieces: list[tuple[int, int, int]]) -> list[Any]:
    words: list[Any] = []
    for kind, slot, offset in pieces:
        width = {BOOL: 1, NO_TAG: 0}.get(kind, kind)
        values = _Slot(slot, VALUES) if slot >= 0 else _NOWHERE
        words += [kind, values, offset, 64 - 8 * max(1, min(width, 8)), width, ~0 if kind == NO_TAG else 0]
    return words


def _set_default(slots: list[Slot], field: LayoutField, node: Node) -> None:
    """Writes the value of a missing tagged field to its slots."""
    value = field.default_value()
    if value is None:
        slots[node.slot].null_default = True
    elif isinstance(value, dict):
        for child in field.fields:
            _set_default(slots, child, next(n for n in node.children if child.source.name in n.column.names))
    elif isinstance(value, int):
        slots[node.slot].default = int(value)
    else:
        # A slot has zero and empty by default.
        assert not value or value == bytes(16) or getattr(value, "int", 0) == 0, f"{field.name}: default {value!r}"
