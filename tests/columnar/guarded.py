"""`python -m tests.columnar.guarded CHUNK MUTATIONS`: the kernel between pages that nobody may touch.

Frames lie flush with a page that cannot be read, on either side in turn; every column ends where a page begins that
cannot be written, and has a pattern before its start. A wrong access ends this process with a signal; a changed pattern
with an error. In a process of its own, so that the tests live on.
"""

import ctypes
import mmap
import sys
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from kafkascope.columnar import buffers as buffers_module
from kafkascope.columnar import scratch as scratch_module
from kafkascope.columnar.buffers import Buffers
from kafkascope.columnar.frames import Frames, Places
from kafkascope.columnar.plan import Ints
from kafkascope.columnar.program import compile_program
from kafkascope.columnar.scratch import Scratch
from kafkascope.columnar.unknown import unknown_tags
from tests.columnar import test_engines_agree as agree
from tests.support.pairs import CHUNKS, every_place

_LIBC = ctypes.CDLL(None, use_errno=True)
_PAGE = mmap.PAGESIZE
_NONE, _PATTERN = 0, 0xA5


class Guarded:
    """`size` bytes between two pages that cannot be touched; at the end of the room, or at its start."""

    def __init__(self, size: int, *, at_end: bool = True) -> None:
        pages = -(-max(size, 1) // _PAGE)
        self.area = mmap.mmap(-1, (pages + 2) * _PAGE)
        first = ctypes.addressof(ctypes.c_char.from_buffer(self.area))
        for address in (first, first + (pages + 1) * _PAGE):
            if _LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(_PAGE), _NONE):
                raise OSError(ctypes.get_errno(), "mprotect")
        self.address = first + _PAGE + (pages * _PAGE - size if at_end else 0)
        self.bytes: Any = (ctypes.c_uint8 * size).from_address(self.address)


# What was handed out, and how many bytes of it stand before the column's own.
HELD: list[tuple[Guarded, int]] = []


def allocate(size: int) -> pa.Buffer:
    return pa.py_buffer(guarded(size, 0).bytes)


def reserve(_: Scratch, sizes: Ints, places: Ints) -> Ints:
    """Each column of the scratch memory in pages of its own."""
    starts = scratch_module.start_of(places).tolist()
    made = [guarded(size + start, start).address + start for size, start in zip(sizes.tolist(), starts, strict=True)]
    return np.array(made, dtype=np.int64)


def guarded(size: int, start: int) -> Guarded:
    made = Guarded(size)
    ctypes.memset(made.address, _PATTERN, size)
    HELD.append((made, start))
    return made


def check_patterns(buffers: Buffers) -> None:
    before = [(made.bytes, start) for made, start in HELD]
    for place, held in buffers.held.items():
        before.append((held, int(buffers.addresses[place]) - held.address))
    for held, start in before:
        assert (np.frombuffer(held, dtype=np.uint8)[:start] == _PATTERN).all(), "written before the start of a column"


def read(place: Any, frames: list[bytes], *, at_end: bool) -> int:
    joined = b"".join(frames)
    guarded = Guarded(len(joined), at_end=at_end)
    ctypes.memmove(guarded.address, joined, len(joined))
    places = Places(len(frames))
    places.ends[:] = np.cumsum([0, *map(len, frames)])
    buffers = Buffers(compile_program(*place), Scratch())
    at = guarded.address, places.ends_at, places.status, places.status_at
    buffers.read(Frames(0, len(frames), len(joined), *at))
    unknown_tags(buffers)
    buffers.packed()
    check_patterns(buffers)
    HELD.clear()
    return int(places.status.sum())


def main() -> None:
    chunk, mutations = int(sys.argv[1]), int(sys.argv[2])
    agree.MUTATIONS = mutations
    buffers_module.allocate = allocate
    setattr(Scratch, "reserve", reserve)  # noqa: B010 - mypy
    frames_read = left = 0
    for number, place in enumerate(every_place()[chunk::CHUNKS]):
        good = [*agree.canonical(place), *agree.tagged(place)]
        frames = [*good, *agree.mutated(place, good)]
        Random(agree.SEED).shuffle(frames)
        # All at once in the scratch memory; then beyond it; then the first ones alone with room for no more than one
        # frame, so that each stands at the edge.
        for small, first in ((sum(map(len, frames)), 0), (0, 4096)):
            buffers_module.SMALL_BYTES = buffers_module.RECORDS_BYTES = small
            buffers_module.FIRST_BYTES = first
            left += read(place, frames, at_end=number % 2 == 0)
        for frame in frames[:40]:
            for small in (len(frame), 0):
                buffers_module.SMALL_BYTES = buffers_module.RECORDS_BYTES = small
                buffers_module.FIRST_BYTES = 0
                left += read(place, [frame], at_end=True)
        frames_read += 2 * len(frames) + 2 * len(frames[:40])
    print(f"{frames_read} frames read between guard pages, {left} of them left to the careful codec")


if __name__ == "__main__":
    main()
