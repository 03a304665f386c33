"""Holds the memory that the kernel writes to, and cuts the filled columns to size.

The kernel begins in scratch memory. If that isn't enough, room is made for the most that the next frames can need and
for what the frames read so far make likely; the kernel stops before a frame that might not fit, and continues once
there is more room.
"""

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.columnar.frames import Frames
from kafkascope.columnar.kernel.arguments import NOTED_TAGS
from kafkascope.columnar.kernel.entry import LARGEST, PACK, PACKED_SIZE, READ_FRAMES, kernel
from kafkascope.columnar.kernel.fixed_fields import WRITE_SLACK
from kafkascope.columnar.operations import DATA, FIXED, TOP, VALID, VALUES, Program
from kafkascope.columnar.plan import Ints, link, plan_of
from kafkascope.columnar.scratch import Scratch, start_of

# The scratch memory has room for the worst that this many bytes of frames can contain, in rows of every list and in
# strings: for all frames if they are few, for the first ones if they are many. Record data makes few rows, so with it
# there is room for more: a large fetch is a small table.
SMALL_BYTES = 1024 * 1024
FIRST_BYTES = 256 * 1024
RECORDS_BYTES = 4 * 1024 * 1024
# A buffer of a table is at most this many times as large as its contents.
_MOST_WASTE = 1.25


class Buffers:
    """One table's columns. `rows` is the number of rows in each group once the frames are read."""

    def __init__(self, program: Program, scratch: Scratch) -> None:
        self.program = program
        self.slots = program.slots
        self.scratch = scratch
        # By place; None while the columns are in the scratch memory.
        self.held: dict[int, pa.Buffer] = {}

    def read(self, frames: Frames) -> None:
        """Reads all frames; the status of those that the careful codec must read is 1."""
        first = FIRST_BYTES if frames.size > SMALL_BYTES else SMALL_BYTES
        if self.program.has_records and frames.size > first:
            first = RECORDS_BYTES
        self.job, self.addresses, self.rooms = self.scratch.job(self.program, first)
        run = kernel()
        frame = row = 0
        while True:
            most = min(frames.count, frame + int(self.rooms[TOP]) - row)
            at = frames.base, frames.ends_at
            frame, row = run(READ_FRAMES, self.job.address, *at, frame, most, row, frames.status_at)
            if not self.held:
                # For few frames it isn't worth computing.
                small = frames.size <= FIRST_BYTES
                self.scratch.used(frames.size if small else int(self._sizes(self.job.counted).sum()))
            if frame == frames.count:
                return
            self._grow(frames, frame)

    def packed(self) -> pa.Buffer | None:
        """All columns as one IPC message without unused room; None if it's better to return them as they are."""
        if self.held or not self.job.packable:
            return None
        run = kernel()
        size = run(PACKED_SIZE, self.job.address, 0, 0, 0, 0, 0, 0)[0]
        made = allocate(size)
        run(PACK, self.job.address, made.address, 0, 0, 0, 0, 0)
        return made

    def _grow(self, frames: Frames, frame: int) -> None:
        least, counted = plan_of(self.program).least, self.job.counted
        start, end = (ctypes.c_int32.from_address(frames.ends_at + 4 * at).value for at in (0, frame))
        done, left = end - start, frames.size - end + start
        largest, _ = kernel()(LARGEST, frames.ends_at, frame, frames.count, 0, 0, 0, 0)
        # Twice the largest, so that there is room for one more when its rows are written.
        at_most = min(max(2 * largest, FIRST_BYTES), left)
        likely = 1.1 * left / done if done else 0.0
        rooms = counted[:-1] + (counted[:-1] * likely).astype(np.int64) + at_most // least + 2
        rooms[TOP] = frames.count
        self._move(rooms)

    def _move(self, rooms: Ints) -> None:
        """Moves the columns to memory of their own, or to more of it."""
        plan, counted = plan_of(self.program), self.job.counted
        starts = start_of(plan.place)
        sizes, used = self._sizes(rooms) + starts + WRITE_SLACK, self._sizes(counted)
        addresses = self.addresses.tolist()
        columns = (plan.place, starts, sizes, used)
        for place, start, size, kept in zip(*(column.tolist() for column in columns), strict=True):
            before = self.held.get(place)
            if before is None or before.size < size:
                made = allocate(size)
                ctypes.memmove(made.address + start, addresses[place], kept)
                self.held[place] = made
                addresses[place] = made.address + start
        self.addresses = np.array(addresses, dtype=np.int64)
        noted = self.job.words[NOTED_TAGS]
        self.job, self.rooms = link(plan, self.addresses, rooms), rooms
        self.job.counted[:] = counted
        self.job.words[NOTED_TAGS] = noted

    def _sizes(self, rows: Ints) -> Ints:
        """Bytes that this many rows of each group take, buffer by buffer."""
        plan = plan_of(self.program)
        sizes: Ints = (rows[plan.group] + plan.more) * plan.width
        return sizes

    def settle(self) -> None:
        """Moves every column out of the scratch memory."""
        if not self.held:
            self._move(self.job.counted[:-1].copy())

    def rows(self, group: int) -> int:
        return int(self.job.counted[group])

    def values(self, index: int) -> pa.Buffer:
        slot = self.slots[index]
        rows = self.rows(slot.group)
        return self._cut(index, VALUES, rows * slot.width if slot.kind == FIXED else (rows + 1) * 4)

    def data(self, index: int) -> pa.Buffer:
        """Empty for a hidden column."""
        if not self.slots[index].data:
            return pa.py_buffer(b"")
        return self._cut(index, DATA, self.rows(plan_of(self.program).data_group[index]))

    def _cut(self, index: int, which: int, used: int) -> pa.Buffer:
        """Cuts off unused room, if there is enough of it to justify the copy."""
        place = 3 * index + which
        held = self.held[place]
        start = int(self.addresses[place]) - held.address
        if held.size > _MOST_WASTE * (start + used):
            held.resize(start + used, shrink_to_fit=True)
        return held.slice(start, used)

    def bits(self, index: int) -> pa.Buffer:
        """Bools as bits; the kernel writes a byte each."""
        return pa.py_buffer(np.packbits(self.view(index, VALUES, np.uint8), bitorder="little"))

    def valid(self, index: int) -> pa.Buffer | None:
        """None if nothing is null."""
        if not self.slots[index].nullable:
            return None
        held = self.view(index, VALID, np.uint8)
        return None if held.all() else pa.py_buffer(np.packbits(held, bitorder="little"))

    def view(self, index: int, which: int, type_: type[np.generic]) -> npt.NDArray[Any]:
        """A buffer's rows, wherever they are."""
        size = self.rows(self.slots[index].group) * np.dtype(type_).itemsize
        return np.frombuffer(pa.foreign_buffer(int(self.addresses[3 * index + which]), size), dtype=type_)


def allocate(size: int) -> pa.Buffer:
    """Arrow's own memory; pages that are never written to take no memory."""
    return pa.allocate_buffer(size, resizable=True)
