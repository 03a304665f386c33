"""The kernel's entry, compiled once a machine and kept on disk; everything that it calls is compiled into it."""

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

import numba

from kafkascope.columnar.machine import read_frames as _read

ReadFrames = Callable[[int, int, int, int, int, int, int, int, int, int, int], tuple[int, int]]
_SOURCES = ("batches.py", "compiled.py", "kernel.py", "machine.py", "memory.py", "pieces.py", "program.py", "scan.py", "../limits.py")


def _stamp() -> int:
    """Of all sources: numba by itself looks at the file of the entry alone, and would keep a kernel that is outdated."""
    digest = sha256()
    for name in _SOURCES:
        digest.update((Path(__file__).parent / name).read_bytes())
    return int.from_bytes(digest.digest()[:7]) + 1


@cache
def kernel() -> ReadFrames:
    return _entry(_stamp())


def _entry(stamp: int) -> ReadFrames:
    def read_frames(code, stack, extents, extents_count, rows, base, ends, frame, frames, row, status):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        # The stamp is never 0; a variable of the enclosing function is part of what the cache goes by.
        if stamp == 0:
            return frame, row
        return _read(code, stack, extents, extents_count, rows, base, ends, frame, frames, row, status)

    signature = "UniTuple(int64, 2)(" + ", ".join(["int64"] * 11) + ")"
    try:
        return numba.njit(signature, cache=True, nogil=True, error_model="numpy")(read_frames)
    except RuntimeError:
        # No folder to keep it in: neither the package's, nor NUMBA_CACHE_DIR, nor one of the user's.
        return numba.njit(signature, nogil=True, error_model="numpy")(read_frames)
