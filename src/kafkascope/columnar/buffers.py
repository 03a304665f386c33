"""The memory that the kernel writes to: a program and frames in, columns filled by the kernel and cut to size out.

Room is made for what some frames can need at the most, then for what those that were read make likely; the kernel stops
before a frame that might not fit, and goes on when there is more.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.columnar.compiled import kernel
from kafkascope.columnar.pieces import WRITE_SLACK
from kafkascope.columnar.program import DATA, FIXED, LIST, STRUCT, TOP, VALID, VALUES, Program
from kafkascope.columnar.scan import READ_SLACK

# The first frames are read into room for the worst that so many bytes can hold.
FIRST_BYTES = 256 * 1024
_EXTENT = 5


@dataclass(frozen=True, slots=True)
class _Plan:
    """A program's addresses to set, as arrays."""

    words: npt.NDArray[np.int64]
    jumps: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    links: npt.NDArray[np.int64]
    buffers: npt.NDArray[np.int64]


@lru_cache(maxsize=2048)
def _plan(program: Program) -> _Plan:
    jumps = np.array(program.jumps, dtype=np.int64).reshape(-1, 2)
    links = [(link.at, 3 * link.slot + link.buffer) for link in program.links]
    pairs = np.array(links, dtype=np.int64).reshape(-1, 2)
    return _Plan(np.array(program.words, dtype=np.int64), jumps[:, 0], 8 * jumps[:, 1], pairs[:, 0], pairs[:, 1])


class Buffers:
    """`rows` has the number of rows of each group once the frames are read."""

    def __init__(self, program: Program, frames: int) -> None:
        self.program = program
        self.slots = program.slots
        self.room = [0] * len(program.least)
        self.room[TOP] = frames
        self.bytes_room = [0] * len(self.slots)
        self.rows = [0] * len(program.least)
        self.held: list[pa.Buffer | None] = [None] * 3 * len(self.slots)
        self.addresses = np.zeros(3 * len(self.slots), dtype=np.int64)
        self.stack = np.zeros(program.depth + 1, dtype=np.int64)
        self.counted = np.zeros(len(program.least) + 1, dtype=np.int64)

    def read(self, base: int, ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Every frame between `base + ends[0]` and `base + ends[-1]`; those the careful codec must read are 1."""
        frames = len(ends) - 1
        status = np.zeros(frames, dtype=np.uint8)
        # Behind these frames lie others, which the kernel may read a little of.
        inner = max(0, int(np.searchsorted(ends, ends[-1] - READ_SLACK, side="right")) - 1)
        if ends[-1] - ends[0] <= FIRST_BYTES:
            inner = 0  # so few that one way is enough
        self._read(base, ends, 0, inner, status)
        # The last ones are copied to where there is something behind them.
        start, size = int(ends[inner]), int(ends[-1] - ends[inner])
        copy = allocate(size + READ_SLACK)
        view = np.frombuffer(copy, dtype=np.uint8)
        view[size:] = 0
        if size:
            view[:size] = np.frombuffer(pa.foreign_buffer(base + start, size), dtype=np.uint8)
        self._read(copy.address - start, ends, inner, frames, status)
        return status

    def _read(
        self, base: int, ends: npt.NDArray[np.int64], frame: int, frames: int, status: npt.NDArray[np.uint8]
    ) -> None:
        start, whole = int(ends[0]), int(ends[-1])
        while frame < frames:
            done = int(ends[frame])
            first = int(ends[frame + 1]) - done
            self._make_room(done - start, whole - done, max(first, min(FIRST_BYTES, whole - done)))
            code, extents = self._linked()
            frame, row = kernel()(
                code.ctypes.data, self.stack.ctypes.data, extents.ctypes.data, len(extents), self.counted.ctypes.data,
                base, ends.ctypes.data, frame, frames, self.rows[TOP], status.ctypes.data,
            )  # fmt: skip
            self._count(row)

    def _make_room(self, done: int, left: int, at_most: int) -> None:
        """For the worst of `at_most` bytes, and what `done` bytes make likely for those that are left."""
        likely = 1.1 * left / done if done else 0.0
        for index, slot in enumerate(self.slots):
            rows = self.rows[slot.group]
            room = self.room[slot.group]
            if slot.kind == FIXED:
                self._hold(index, VALUES, rows * slot.width, room * slot.width)
            elif slot.kind != STRUCT:
                used = self._used(index)
                # One more: n lists or strings have n + 1 offsets.
                self._hold(index, VALUES, (rows + 1) * 4, (room + 1) * 4)
                if slot.kind == LIST:
                    least = self.program.least[slot.child]
                    self.room[slot.child] = used + int(used * likely) + at_most // least + 2
                elif slot.data:
                    self.bytes_room[index] = used + int(used * likely) + at_most + 2
                    self._hold(index, DATA, used, self.bytes_room[index])
            if slot.nullable:
                self._hold(index, VALID, rows, room)

    def _hold(self, index: int, which: int, used: int, size: int) -> None:
        place = 3 * index + which
        before = self.held[place]
        start = _start(place)
        size += start + WRITE_SLACK
        if before is not None and before.size >= size:
            return
        made = allocate(size)
        target = np.frombuffer(made, dtype=np.uint8)[start:]
        if before is not None:
            target[:used] = np.frombuffer(before, dtype=np.uint8)[start : start + used]
        elif which == VALUES:
            target[:4] = 0  # the first offset
        self.held[place] = made
        self.addresses[place] = made.address + start

    def _linked(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The program with its addresses, and for each list and string what room it has."""
        plan = _plan(self.program)
        code = plan.words.copy()
        code[plan.jumps] = plan.targets + code.ctypes.data
        code[plan.links] = self.addresses[plan.buffers]
        extents = []
        for index, slot in enumerate(self.slots):
            if slot.kind == LIST:
                least = self.program.least[slot.child]
                extents.append((slot.group, self.addresses[3 * index], self.room[slot.child], least, slot.child))
            elif slot.data:
                # What lies behind a string is no group: its count goes to a place that nobody reads.
                nowhere = len(self.rows)
                extents.append((slot.group, self.addresses[3 * index], self.bytes_room[index], 1, nowhere))
        return code, np.array(extents, dtype=np.int64).reshape(-1, _EXTENT)

    def _count(self, row: int) -> None:
        # A list stands before what it holds.
        self.rows[TOP] = row
        for index, slot in enumerate(self.slots):
            if slot.kind == LIST:
                self.rows[slot.child] = self._used(index)

    def _used(self, index: int) -> int:
        """The rows or bytes behind a list's or string's column: where its last offset is."""
        if self.held[3 * index] is None:
            return 0
        at = 4 * self.rows[self.slots[index].group]
        return int(self._view(index, VALUES)[at : at + 4].view(np.int32)[0])

    def _view(self, index: int, which: int) -> npt.NDArray[np.uint8]:
        place = 3 * index + which
        held = self.held[place]
        assert held is not None
        return np.frombuffer(held, dtype=np.uint8)[_start(place) :]

    def values(self, index: int) -> pa.Buffer:
        slot = self.slots[index]
        rows = self.rows[slot.group]
        return self._cut(index, VALUES, rows * slot.width if slot.kind == FIXED else (rows + 1) * 4)

    def data(self, index: int) -> pa.Buffer:
        """Of a hidden column there is none."""
        return self._cut(index, DATA, self._used(index)) if self.slots[index].data else pa.py_buffer(b"")

    def _cut(self, index: int, which: int, used: int) -> pa.Buffer:
        """Without the room that was not needed."""
        place = 3 * index + which
        held = self.held[place]
        assert held is not None
        held.resize(_start(place) + used, shrink_to_fit=True)
        return held.slice(_start(place))

    def bits(self, index: int) -> pa.Buffer:
        """Bools, which the kernel writes a byte each."""
        return self._packed(self._view(index, VALUES), index)

    def valid(self, index: int) -> pa.Buffer | None:
        """None where nothing is null."""
        if not self.slots[index].nullable:
            return None
        held = self._view(index, VALID)
        rows = self.rows[self.slots[index].group]
        return None if held[:rows].view(np.bool_).all() else self._packed(held, index)

    def _packed(self, held: npt.NDArray[np.uint8], index: int) -> pa.Buffer:
        return pa.py_buffer(np.packbits(held[: self.rows[self.slots[index].group]], bitorder="little"))


def _start(place: int) -> int:
    """Buffers begin at different places of their pages: columns that are written side by side must not all fall into
    the same few lines of the processor's cache. A multiple of 64, as Arrow likes it."""
    return 64 * (5 * place % 61)


def allocate(size: int) -> pa.Buffer:
    """Arrow's own memory; what is never written to is never there."""
    return pa.allocate_buffer(size, resizable=True)
