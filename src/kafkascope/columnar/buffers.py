"""The memory that the kernel writes to: a program and frames in, columns filled by the kernel and cut to size out.

Room is made for what some frames can need at the most, then for what those that were read make likely; the kernel stops
before a frame that might not fit, and goes on when there is more.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.columnar.compiled import kernel
from kafkascope.columnar.program import DATA, FIXED, LIST, OFFSETS, STRUCT, TOP, VALID, VALUES, Program, Slot
from kafkascope.columnar.scan import SLACK

# The first frames are read into room for the worst that so many bytes can hold.
FIRST_BYTES = 128 * 1024
_EXTENT = 5


class Buffers:
    """`rows` has the number of rows of each group once the frames are read."""

    def __init__(self, program: Program, frames: int) -> None:
        self.program = program
        self.slots = program.slots
        self.lists = {index: slot for index, slot in enumerate(self.slots) if slot.kind == LIST}
        self.texts = [index for index, slot in enumerate(self.slots) if slot.data]
        self.room = [0] * len(program.least)
        self.room[TOP] = frames
        self.bytes_room = dict.fromkeys(self.texts, 0)
        self.rows = [0] * len(program.least)
        self.held: list[list[pa.Buffer | None]] = [[None, None, None] for _ in self.slots]
        self.stack = np.zeros(program.depth + 1, dtype=np.int64)
        self.counted = np.zeros(len(program.least) + 1, dtype=np.int64)

    def read(self, base: int, ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Every frame; which of them the careful codec must read is 1 in what comes back."""
        frames = len(ends) - 1
        status = np.zeros(frames, dtype=np.uint8)
        start, whole = int(ends[0]), int(ends[-1])
        frame = row = 0
        while True:
            done = int(ends[frame])
            largest = int(ends[frame + 1]) - done if frame < frames else 0
            self._make_room(done - start, whole - done, max(largest, min(FIRST_BYTES, whole - done)))
            code, extents = self._linked()
            frame, row = kernel()(
                code.ctypes.data, self.stack.ctypes.data, extents.ctypes.data, len(extents), self.counted.ctypes.data,
                base, ends.ctypes.data, frame, frames, row, status.ctypes.data,
            )  # fmt: skip
            self._count(row)
            if frame == frames:
                return status

    def _make_room(self, done: int, left: int, at_most: int) -> None:
        """For the worst of `at_most` bytes, and what `done` bytes make likely for those that are left."""
        likely = 1.1 * left / done if done else 0.0
        for slot in self.lists.values():
            now = self.rows[slot.child]
            self.room[slot.child] = now + int(now * likely) + at_most // self.program.least[slot.child] + 2
        for index in self.texts:
            now = self._bytes_used(index)
            self.bytes_room[index] = now + int(now * likely) + at_most + 2
        for index, slot in enumerate(self.slots):
            rows, room = self.rows[slot.group], self.room[slot.group]
            if slot.kind == FIXED:
                self._hold(index, VALUES, rows * slot.width, room * slot.width)
            elif slot.kind != STRUCT:
                # One more: n lists or strings have n + 1 offsets.
                self._hold(index, VALUES, (rows + 1) * 4, (room + 1) * 4)
            if slot.nullable:
                self._hold(index, VALID, rows, room)
            if slot.data:
                self._hold(index, DATA, self._bytes_used(index), self.bytes_room[index] + SLACK)

    def _hold(self, index: int, which: int, used: int, size: int) -> None:
        before = self.held[index][which]
        if before is not None and before.size >= size:
            return
        made = allocate(size)
        target = np.frombuffer(made, dtype=np.uint8)
        if before is not None:
            target[:used] = np.frombuffer(before, dtype=np.uint8)[:used]
        elif self.slots[index].kind in (OFFSETS, LIST) and which == VALUES:
            target[:4] = 0  # the first offset
        self.held[index][which] = made

    def _linked(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The program with its addresses, and for each list and string what room it has."""
        code = np.array(self.program.words, dtype=np.int64)
        here = code.ctypes.data
        for at, target in self.program.jumps:
            code[at] = here + 8 * target
        for link in self.program.links:
            code[link.at] = self._address(link.slot, link.buffer)
        extents = []
        for index, slot in enumerate(self.slots):
            if slot.kind == LIST:
                least = self.program.least[slot.child]
                extents.append((slot.group, self._address(index, VALUES), self.room[slot.child], least, slot.child))
            elif slot.data:
                # What lies behind a string is no group: its count goes to a place that nobody reads.
                nowhere = len(self.rows)
                extents.append((slot.group, self._address(index, VALUES), self.bytes_room[index], 1, nowhere))
        return code, np.array(extents, dtype=np.int64).reshape(-1, _EXTENT)

    def _address(self, index: int, which: int) -> int:
        held = self.held[index][which]
        assert held is not None
        return int(held.address)

    def _offset(self, index: int) -> int:
        """Where the rows or bytes behind the last offset end."""
        held = self.held[index][VALUES]
        return int(np.frombuffer(held, dtype=np.int32)[self.rows[self.slots[index].group]]) if held is not None else 0

    def _bytes_used(self, index: int) -> int:
        return self._offset(index)

    def _count(self, row: int) -> None:
        # A list stands before what it holds.
        self.rows[TOP] = row
        for index, slot in self.lists.items():
            self.rows[slot.child] = self._offset(index)

    def values(self, index: int) -> pa.Buffer:
        slot = self.slots[index]
        rows = self.rows[slot.group]
        return self._cut(index, VALUES, rows * slot.width if slot.kind == FIXED else (rows + 1) * 4)

    def data(self, index: int) -> pa.Buffer:
        return self._cut(index, DATA, self._bytes_used(index)) if self.slots[index].data else pa.py_buffer(b"")

    def _cut(self, index: int, which: int, used: int) -> pa.Buffer:
        """Without the room that was not needed."""
        held = self.held[index][which]
        assert held is not None
        held.resize(used)
        return held

    def bits(self, index: int) -> pa.Buffer:
        """Bools, which the kernel writes a byte each."""
        return self._packed(index, VALUES)

    def valid(self, index: int) -> pa.Buffer | None:
        """None where nothing is null."""
        if not self.slots[index].nullable:
            return None
        held = np.frombuffer(self.held[index][VALID], dtype=np.bool_)[: self.rows[self.slots[index].group]]
        return None if held.all() else self._packed(index, VALID)

    def _packed(self, index: int, which: int) -> pa.Buffer:
        held = np.frombuffer(self.held[index][which], dtype=np.uint8)[: self.rows[self.slots[index].group]]
        return pa.py_buffer(np.packbits(held, bitorder="little"))


def allocate(size: int) -> pa.Buffer:
    """Arrow's own memory; what is never written to is never there."""
    return pa.allocate_buffer(size, resizable=True)


