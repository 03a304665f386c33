"""The memory that the kernel writes to: slots in, numpy buffers that grow, Arrow arrays out."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.columnar.program import FIXED, LIST, OFFSETS, Node, Program
from kafkascope.columnar.tables import BATCH_TYPE, RECORDS_TYPE, Column

_START = 1024


class Buffers:
    """`values` holds numbers, or the int32 offsets of lists and strings; `data` the bytes of strings."""

    def __init__(self, program: Program, rows: int, size: int) -> None:
        slots = program.slots
        number = len(slots)
        self.slots = slots
        self.kind = np.array([slot.kind for slot in slots], dtype=np.int64)
        self.width = np.array([slot.width for slot in slots], dtype=np.int64)
        self.default = np.array([slot.default for slot in slots], dtype=np.int64)
        self.null = np.array([slot.null_default for slot in slots], dtype=np.int64)
        self.count = np.zeros(number, dtype=np.int64)
        self.total = np.zeros(number, dtype=np.int64)
        self.room = np.full(number, max(rows, _START), dtype=np.int64)
        self.bytes_room = np.zeros(number, dtype=np.int64)
        self.saved = np.zeros((2, number), dtype=np.int64)
        self.held: list[dict[str, npt.NDArray[np.uint8]]] = [{} for _ in slots]
        self.address = {name: np.zeros(number, dtype=np.int64) for name in ("values", "valid", "data")}
        strings = max(1, sum(slot.kind == OFFSETS for slot in slots))
        for index, slot in enumerate(slots):
            if slot.kind == OFFSETS:
                self.bytes_room[index] = max(_START, size // strings)
            self._allocate(index)

    def _allocate(self, index: int) -> None:
        slot = self.slots[index]
        room = int(self.room[index])
        wide = slot.width if slot.kind == FIXED else 4
        # One entry more: n lists or strings have n + 1 offsets.
        self._hold(index, "values", (room + 1) * wide if slot.kind in (FIXED, OFFSETS, LIST) else 0)
        self._hold(index, "valid", room if slot.nullable else 0)
        self._hold(index, "data", int(self.bytes_room[index]))

    def _hold(self, index: int, name: str, size: int) -> None:
        if not size:
            return
        before = self.held[index].get(name)
        if before is not None and len(before) >= size:
            return
        made = np.empty(size, dtype=np.uint8)
        if before is not None:
            made[: len(before)] = before
        elif name == "values":
            made[:8] = 0  # the first offset
        self.held[index][name] = made
        self.address[name][index] = made.ctypes.data

    def grow(self, index: int) -> None:
        """Twice the room: entries, and bytes where those were what ran out."""
        self.room[index] = 2 * self.room[index]
        if self.slots[index].kind == OFFSETS:
            self.bytes_room[index] = 2 * self.bytes_room[index]
        self._allocate(index)
        for behind in range(index + 1, min(index + 13, len(self.slots))):
            # The columns of a record batch are written together, by the room of the first.
            if self.room[behind] < self.room[index]:
                self.room[behind] = self.room[index]
                self._allocate(behind)

    def _valid(self, index: int) -> pa.Buffer | None:
        held = self.held[index].get("valid")
        if held is None:
            return None
        bits = np.packbits(held[: self.count[index]], bitorder="little")
        return pa.py_buffer(bits)

    def _values(self, index: int) -> pa.Buffer:
        slot = self.slots[index]
        used = (int(self.count[index]) * slot.width) if slot.kind == FIXED else (int(self.count[index]) + 1) * 4
        return pa.py_buffer(self.held[index]["values"][:used])

    def array(self, node: Node) -> pa.Array:
        if node.element is not None:
            child = self.array(node.element)
            return self._list(node.slot, pa.list_(child.type), child)
        index, column = node.slot, node.column
        length = int(self.count[index])
        type_ = column.element_type()
        match column.type:
            case "struct":
                return self._struct(node, length)
            case "records":
                return self._records(index, length)
            case "string" | "bytes":
                data = pa.py_buffer(self.held[index]["data"][: self.total[index]])
                return pa.Array.from_buffers(type_, length, [self._valid(index), self._values(index), data])
            case "bool":
                bits = np.packbits(self.held[index]["values"][:length], bitorder="little")
                return pa.Array.from_buffers(type_, length, [None, pa.py_buffer(bits)])
        made = pa.Array.from_buffers(_own_type(column, self.slots[index].width), length, [None, self._values(index)])
        return made if made.type == type_ else made.cast(type_)

    def _struct(self, node: Node, length: int) -> pa.Array:
        present = {child.column.name: self.array(child) for child in node.children}
        # A struct that is always there has no entries of its own: its children tell.
        length = length if self.slots[node.slot].nullable else _length(present, self, node)
        arrays = [
            present[c.name] if c.name in present else pa.nulls(length, c.arrow_type()) for c in node.column.children
        ]
        type_ = node.column.element_type()
        return pa.Array.from_buffers(type_, length, [self._valid(node.slot)], children=arrays)

    def _list(self, index: int, type_: pa.DataType, child: pa.Array) -> pa.Array:
        length = int(self.count[index])
        return pa.Array.from_buffers(type_, length, [self._valid(index), self._values(index)], children=[child])

    def _records(self, index: int, length: int) -> pa.Array:
        size = pa.Array.from_buffers(pa.int32(), length, [None, self._values(index + 1)])
        truncated = pa.Array.from_buffers(pa.int32(), length, [None, self._values(index + 2)])
        number = int(self.count[index + 4])
        columns = [
            pa.Array.from_buffers(BATCH_TYPE.field(i).type, number, [None, self._values(index + 4 + i)])
            for i in range(BATCH_TYPE.num_fields)
        ]
        batch = pa.Array.from_buffers(BATCH_TYPE, number, [None], children=columns)
        batches = self._list(index + 3, pa.list_(BATCH_TYPE), batch)
        return pa.Array.from_buffers(RECORDS_TYPE, length, [self._valid(index)], children=[size, truncated, batches])


def _own_type(column: Column, width: int) -> pa.DataType:
    """A number as this version writes it, where the table's type is wider."""
    type_ = column.element_type()
    if column.type == "uuid" or type_.bit_width == 8 * width:
        return type_
    return {1: pa.int8(), 2: pa.uint16(), 4: pa.int32()}[width]


def _length(present: dict[str, Any], buffers: Buffers, node: Node) -> int:
    return len(next(iter(present.values()))) if present else int(buffers.count[node.slot])
