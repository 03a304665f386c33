"""Lists the buffers that a program writes to, once per program, and links them into it for each job."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.columnar.ipc_form import Form, form_of
from kafkascope.columnar.kernel import arguments as words_of
from kafkascope.columnar.kernel.pack import ABSENT_FIELD, BITS_FIELD, FIELD, STRUCT_FIELD, TEXT_FIELD, VALUES_FIELD
from kafkascope.columnar.kernel.scan import READ_SLACK
from kafkascope.columnar.operations import (
    COUNT,
    DATA,
    FIXED,
    LIST,
    STRUCT,
    TOP,
    UNKNOWN_GROUP,
    UNKNOWN_ROW,
    VALID,
    VALUES,
    Node,
    Program,
)
from kafkascope.columnar.tables import BATCH_TYPE, Column, full_schema, table_of

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A place is a buffer: three times its slot's number plus which of the three it is. Bytes of strings are groups
    too, after those of the program; the last group never has rows. `place`, `group`, `width` and `more` describe every
    buffer: the buffer's place and group, and that it has `width` bytes for each row of its group and for `more`
    rows."""

    program: Program
    words: Ints
    jumps: Ints
    targets: Ints
    links: Ints
    link_places: Ints
    least: Ints
    place: Ints
    group: Ints
    width: Ints
    more: Ints
    counts: Ints  # where the address of the number of unknown tags is
    extents: Ints  # group, place, group of the contents
    offsets: Ints
    data_group: dict[int, int]
    fields: Ints | None
    field_links: Ints
    field_places: Ints
    form: Form
    form_bytes: npt.NDArray[np.uint8]
    tail_size: int


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Words for the kernel, and the arrays that they point to."""

    address: int
    words: Ints
    counted: Ints
    packable: bool
    kept: tuple[Any, ...]


@lru_cache(maxsize=2048)
def plan_of(program: Program) -> Plan:
    jumps = np.array(program.jumps, dtype=np.int64).reshape(-1, 2)
    every = [(link.at, 3 * link.slot + link.buffer) for link in program.links if link.slot != COUNT]
    links = np.array(every, dtype=np.int64).reshape(-1, 2)
    least = list(program.least)
    least[TOP] = 1
    data_group: dict[int, int] = {}
    buffers: list[tuple[int, int, int, int]] = []
    extents: list[tuple[int, int, int]] = []
    for index, slot in enumerate(program.slots):
        values = 3 * index + VALUES
        if slot.kind == FIXED:
            buffers.append((values, slot.group, slot.width, 0))
        elif slot.kind != STRUCT:
            # n lists or strings have n + 1 offsets
            buffers.append((values, slot.group, 4, 1))
            if slot.kind == LIST:
                extents.append((slot.group, values, slot.child))
            elif slot.data:
                data_group[index] = len(least)
                extents.append((slot.group, values, len(least)))
                buffers.append((3 * index + DATA, len(least), 1, 0))
                least.append(1)
        if slot.nullable:
            buffers.append((3 * index + VALID, slot.group, 1, 0))
    table = np.array(buffers, dtype=np.int64).reshape(-1, 4)
    fields = _Fields(program, data_group, len(least)).all()
    template, field_links, field_places = _links_of(fields) if fields is not None else (None, _NONE, _NONE)
    form = _form(program.name)
    return Plan(
        program=program,
        words=np.array(program.words, dtype=np.int64),
        jumps=jumps[:, 0],
        targets=8 * jumps[:, 1],
        links=links[:, 0],
        link_places=links[:, 1],
        least=np.array(least, dtype=np.int64),
        place=table[:, 0],
        group=table[:, 1],
        width=table[:, 2],
        more=table[:, 3],
        counts=np.array([link.at for link in program.links if link.slot == COUNT], dtype=np.int64),
        extents=np.array(extents, dtype=np.int64).reshape(-1, 3),
        offsets=table[table[:, 3] == 1, 0],
        data_group=data_group,
        fields=template,
        field_links=field_links,
        field_places=field_places,
        form=form,
        form_bytes=np.frombuffer(form.data, dtype=np.uint8),
        tail_size=READ_SLACK + program.longest_run,
    )


_NONE = np.zeros(0, dtype=np.int64)


@cache
def _form(name: str) -> Form:
    return form_of(full_schema(name))


def link(plan: Plan, addresses: Ints, rooms: Ints) -> Job:
    """`addresses` are those of the buffers by place, `rooms` the number of rows that each group has room for."""
    code = plan.words.copy()
    at = _address(code)
    code[plan.jumps] = plan.targets + at
    code[plan.links] = addresses[plan.link_places]
    words = np.zeros(words_of.JOB_WORDS, dtype=np.int64)
    noted_at = _address(words) + 8 * words_of.NOTED_TAGS
    code[plan.counts] = noted_at
    group, place, child = plan.extents.T
    extents = np.stack([group, addresses[place], rooms[child], plan.least[child], child], axis=1)
    if plan.program.open_at:
        # As if a list had one row, which contains all unknown tags so far.
        least = plan.least[UNKNOWN_GROUP]
        unknown = [[len(plan.least), noted_at, rooms[UNKNOWN_GROUP], least, UNKNOWN_GROUP]]
        extents = np.concatenate([extents, np.array(unknown, dtype=np.int64)])
    counted = np.zeros(len(plan.least) + 1, dtype=np.int64)
    # One word more for the row of the frame.
    stack = np.zeros(plan.program.depth + 1, dtype=np.int64)
    tail = np.zeros(2 * plan.tail_size, dtype=np.uint8)
    first_offsets = addresses[plan.offsets]
    fields = _NONE
    if plan.fields is not None:
        fields = plan.fields.copy()
        fields[plan.field_links] = addresses[plan.field_places]
    words[words_of.CODE] = at
    words[words_of.OPEN_CODE] = at + 8 * plan.program.open_at
    words[words_of.STACK] = _address(stack)
    words[words_of.EXTENTS] = _address(extents)
    words[words_of.EXTENTS_COUNT] = len(extents)
    words[words_of.COUNTED] = _address(counted)
    words[words_of.NOTED_ROWS] = addresses[3 * UNKNOWN_ROW] if plan.program.open_at else 0
    words[words_of.FIRST_OFFSETS] = _address(first_offsets)
    words[words_of.OFFSETS_COUNT] = len(first_offsets)
    words[words_of.TAIL] = _address(tail)
    words[words_of.TAIL_SIZE] = plan.tail_size
    words[words_of.FIELDS] = _address(fields)
    words[words_of.FIELDS_COUNT] = len(fields) // FIELD
    words[words_of.FORM_DATA] = _address(plan.form_bytes)
    words[words_of.FORM_SIZE] = len(plan.form_bytes)
    words[words_of.NODES_AT] = plan.form.nodes_at
    words[words_of.BUFFERS_AT] = plan.form.buffers_at
    words[words_of.LENGTH_AT] = plan.form.length_at
    words[words_of.BODY_LENGTH_AT] = plan.form.body_length_at
    kept = code, extents, stack, tail, first_offsets, fields, plan
    return Job(_address(words), words, counted, plan.fields is not None, kept)


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.ctypes.data)


@dataclass(frozen=True, slots=True)
class _Place:
    """A word that is a buffer's address."""

    place: int


def _links_of(fields: list[Any]) -> tuple[Ints, Ints, Ints]:
    links = [(at, word.place) for at, word in enumerate(fields) if isinstance(word, _Place)]
    pairs = np.array(links, dtype=np.int64).reshape(-1, 2)
    plain = [0 if isinstance(word, _Place) else word for word in fields]
    return np.array(plain, dtype=np.int64), pairs[:, 0], pairs[:, 1]


class _NotPackable(Exception):
    """A column is wider than in this version on the wire."""


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of the whole table in Arrow's order, each a group of words; see `pack`."""

    program: Program
    data_group: dict[int, int]
    empty: int  # the group without rows

    def all(self) -> list[Any] | None:
        nodes = {node.column.name: node for node in self.program.nodes}
        words: list[Any] = []
        try:
            for column in table_of(self.program.name):
                words += self.column(column, nodes.get(column.name), TOP)
        except _NotPackable:
            return None
        for field in list(full_schema(self.program.name))[-2:]:
            words += self.absent(field.type, TOP)
        return words

    def column(self, column: Column, node: Node | None, group: int) -> Iterator[Any]:
        if node is None:
            yield from self.absent(column.arrow_type, group)
        elif node.element is not None:
            yield from self.field(VALUES_FIELD, node.slot, 4, 1)
            yield from self.element(column, node.element)
        else:
            yield from self.element(column, node)

    def element(self, column: Column, node: Node) -> Iterator[Any]:
        match column.type:
            case "struct":
                if node.slot < 0:
                    yield from (STRUCT_FIELD, node.group, 0, 0, 0, 0, 0, self.empty)
                else:
                    yield from self.field(STRUCT_FIELD, node.slot, 0, 0)
                children = {child.column.name: child for child in node.children}
                for child in column.children:
                    yield from self.column(child, children.get(child.name), node.group)
            case "records":
                yield from self.field(STRUCT_FIELD, node.slot, 0, 0)
                for slot in (node.slot + 1, node.slot + 2):
                    yield from self.field(VALUES_FIELD, slot, 4, 0)
                yield from self.field(VALUES_FIELD, node.slot + 3, 4, 1)
                batches = self.program.slots[node.slot + 3].child
                yield from (STRUCT_FIELD, batches, 0, 0, 0, 0, 0, self.empty)
                for index in range(BATCH_TYPE.num_fields):
                    slot = node.slot + 4 + index
                    yield from self.field(VALUES_FIELD, slot, self.program.slots[slot].width, 0)
            case "string" | "bytes":
                yield from self.field(TEXT_FIELD, node.slot, 4, 1)
            case "bool":
                yield from self.field(BITS_FIELD, node.slot, 0, 0)
            case _:
                width = self.program.slots[node.slot].width
                if column.element_type.bit_width != 8 * width:
                    raise _NotPackable
                yield from self.field(VALUES_FIELD, node.slot, width, 0)

    def field(self, kind: int, index: int, width: int, more: int) -> Iterator[Any]:
        slot = self.program.slots[index]
        yield from (kind, slot.group, width, more)
        yield _Place(3 * index + VALID) if slot.nullable else 0
        yield _Place(3 * index + VALUES) if kind != STRUCT_FIELD else 0
        yield _Place(3 * index + DATA) if slot.data else 0
        yield self.data_group.get(index, self.empty)

    def absent(self, type_: pa.DataType, group: int) -> Iterator[Any]:
        rest = 0, 0, 0, self.empty
        if pa.types.is_struct(type_):
            yield from (ABSENT_FIELD | STRUCT_FIELD, group, 0, 0, *rest)
            for child in type_:
                yield from self.absent(child.type, group)
        elif pa.types.is_list(type_):
            yield from (ABSENT_FIELD | VALUES_FIELD, group, 4, 1, *rest)
            yield from self.absent(type_.value_type, self.empty)
        elif pa.types.is_string(type_) or pa.types.is_binary(type_):
            yield from (ABSENT_FIELD | TEXT_FIELD, group, 4, 1, *rest)
        elif pa.types.is_boolean(type_):
            yield from (ABSENT_FIELD | BITS_FIELD, group, 0, 0, *rest)
        else:
            yield from (ABSENT_FIELD | VALUES_FIELD, group, type_.bit_width // 8, 0, *rest)
