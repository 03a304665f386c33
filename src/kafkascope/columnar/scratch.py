"""Holds the memory that the kernel fills first: a small table is packed out of it, a large one gets memory of its own.

It is address space most of all: pages that no frame has needed are not there.
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

# Frames of fewer bytes than this on average have no room here for as many as they are.
_BYTES_A_FRAME = 16
# Where so many frames end is remembered here; more have room of their own.
_FRAMES = 16_384
# Memory that has become more than this is not kept.
_KEPT_BYTES = 16 * 1024 * 1024
# Every program writes to pages of its own, so that in the end most would be there: all go when so much was written.
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
        """For the worst that so many bytes of frames can hold, with the addresses of its buffers by place, and the rows
        there is room for in each group."""
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
        """So many bytes of it were written to, more than is good to keep perhaps."""
        self.heavy |= size > _KEPT_BYTES
        self.written += size

    def reserve(self, sizes: Ints, places: Ints) -> Ints:
        """Where buffers of these sizes begin."""
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
            # Of a large page every column would take a whole one.
            self.area.madvise(mmap.MADV_NOHUGEPAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.area))


def start_of(places: Ints) -> Ints:
    """Buffers begin at different places of their pages: columns that are written side by side must not all fall into
    the same few lines of the processor's cache. A multiple of 64, as Arrow likes it."""
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
