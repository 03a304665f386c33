"""Holds the memory that the kernel fills first: a small table is packed from it, a large one gets memory of its own.

It is mostly address space: pages that no frame has needed take no memory.
"""

import ctypes
import mmap
from collections import OrderedDict
from typing import Any

import numpy as np

from kafkascope.columnar.frames import Places
from kafkascope.columnar.kernel.fixed_fields import WRITE_SLACK
from kafkascope.columnar.operations import TOP, Program
from kafkascope.columnar.plan import Ints, Job, link, plan_of

# If frames have fewer bytes than this on average, not all of them have room here.
_BYTES_A_FRAME = 16
# The ends of this many frames are stored here; more get room of their own.
_FRAMES = 16_384
# Memory that has grown beyond this isn't kept.
_KEPT_BYTES = 16 * 1024 * 1024
# Every program writes to pages of its own, so in the end most would be in use: after this many bytes all are released.
_WRITTEN_BYTES = 8 * 1024 * 1024
# Programs whose places here are remembered.
_MOST_JOBS = 256


class Scratch:
    """One thread uses it at a time."""

    def __init__(self) -> None:
        self.size = 0
        self.address = 0
        self.area: Any = None
        self.places = Places(_FRAMES)
        self.heavy = False
        self.written = 0
        self.jobs: OrderedDict[tuple[Program, int], tuple[Job, Ints, Ints]] = OrderedDict()

    def job(self, program: Program, room_bytes: int) -> tuple[Job, Ints, Ints]:
        """A job for the worst that this many bytes of frames can contain, with the addresses of its buffers by place,
        and the number of rows that each group has room for."""
        job = self.jobs.get((program, room_bytes))
        if job is None:
            if len(self.jobs) >= _MOST_JOBS:
                self.jobs.popitem(last=False)
            job = self.jobs[program, room_bytes] = self._made(program, room_bytes)
        return job

    def _made(self, program: Program, room_bytes: int) -> tuple[Job, Ints, Ints]:
        plan = plan_of(program)
        rooms = room_bytes // plan.least + 2
        rooms[TOP] = room_bytes // _BYTES_A_FRAME + 2
        sizes = (rooms[plan.group] + plan.more) * plan.width + WRITE_SLACK
        addresses = np.zeros(3 * len(program.slots), dtype=np.int64)
        addresses[plan.place] = self.reserve(sizes, plan.place)
        return link(plan, addresses, rooms), addresses, rooms

    def used(self, size: int) -> None:
        """Records that this many bytes were written; memory beyond the limit is released."""
        self.heavy |= size > _KEPT_BYTES
        self.written += size

    def reserve(self, sizes: Ints, places: Ints) -> Ints:
        """The starts of buffers of these sizes."""
        starts = start_of(places)
        ends = np.cumsum((starts + sizes + 63) // 64 * 64)
        if len(ends) and ends[-1] > self.size:
            self._map(int(ends[-1]))
        begins: Ints = self.address + np.concatenate([[0], ends[:-1]])[: len(ends)] + starts
        return begins

    def _map(self, size: int) -> None:
        self.jobs.clear()
        self.size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self.area = mmap.mmap(-1, self.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            # With large pages every column would take a whole one.
            self.area.madvise(mmap.MADV_NOHUGEPAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.area))


def start_of(places: Ints) -> Ints:
    """Buffers begin at different offsets of their pages: columns that are written side by side must not all fall into
    the same few lines of the processor's cache. A multiple of 64, which Arrow recommends."""
    return 64 * (5 * places % 61)


_FREE: list[Scratch] = []


def take() -> Scratch:
    try:
        return _FREE.pop()
    except IndexError:
        return Scratch()


def give_back(scratch: Scratch) -> None:
    if scratch.heavy:
        return
    if scratch.written > _WRITTEN_BYTES and hasattr(mmap, "MADV_DONTNEED"):
        scratch.area.madvise(mmap.MADV_DONTNEED)
        scratch.written = 0
    _FREE.append(scratch)
