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
from kafkascope.columnar.buffers import Buffers
from kafkascope.columnar.program import compile_program
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


HELD: list[Guarded] = []


def allocate(size: int) -> pa.Buffer:
    made = Guarded(size)
    ctypes.memset(made.address, _PATTERN, size)
    HELD.append(made)
    return pa.py_buffer(made.bytes)


def check_patterns(buffers: Buffers) -> None:
    for place, held in enumerate(buffers.held):
        if held is not None:
            before = np.frombuffer(held, dtype=np.uint8)[: buffers_module._start(place)]
            assert (before == _PATTERN).all(), f"written before the start of buffer {place}"


def read(place: Any, frames: list[bytes], *, at_end: bool) -> int:
    ends = np.cumsum([0, *map(len, frames)], dtype=np.int64)
    joined = b"".join(frames)
    given = Guarded(len(joined), at_end=at_end)
    ctypes.memmove(given.address, joined, len(joined))
    buffers = Buffers(compile_program(*place), len(frames))
    status = buffers.read(given.address, ends)
    check_patterns(buffers)
    HELD.clear()
    return int(status.sum())


def main() -> None:
    chunk, mutations = int(sys.argv[1]), int(sys.argv[2])
    agree.MUTATIONS = mutations
    buffers_module.allocate = allocate
    frames_read = left = 0
    for number, place in enumerate(every_place()[chunk::CHUNKS]):
        good = agree.canonical(place)
        frames = [*good, *agree.mutated(place, good)]
        Random(agree.SEED).shuffle(frames)
        # All at once, then the first ones alone with room for no more than one frame, so that each stands at the edge.
        buffers_module.FIRST_BYTES = 4096
        left += read(place, frames, at_end=number % 2 == 0)
        buffers_module.FIRST_BYTES = 1
        for frame in frames[:40]:
            left += read(place, [frame], at_end=True)
        frames_read += len(frames) + 40
    print(f"{frames_read} frames read between guard pages, {left} of them left to the careful codec")


if __name__ == "__main__":
    main()
