"""The kernel's entry, compiled once a machine and kept on disk; everything that it calls is compiled into it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import numba

from kafkascope.columnar.machine import read_frames as _read

ReadFrames = Callable[[int, int, int, int, int, int, int, int, int, int, int], tuple[int, int]]
_SOURCES = ("batches", "compiled", "kernel", "machine", "memory", "pieces", "program", "scan", "../limits")
_SIGNATURE = "UniTuple(int64, 2)(" + ", ".join(["int64"] * 11) + ")"


@dataclass(frozen=True, slots=True)
class WarmUp:
    """`folder` is where the compiled kernel is kept: beside the package, in NUMBA_CACHE_DIR, or in the user's cache;
    None where no such place can be written to, and every process compiles anew. `from_disk` says that it was there."""

    seconds: float
    from_disk: bool
    folder: str | None


def warm_up() -> WarmUp:
    """Makes the kernel ready: tens of seconds at the most the first time on a machine, a third of one after that."""
    start = perf_counter()
    made: Any = kernel()
    stats = made.stats
    return WarmUp(perf_counter() - start, bool(stats.cache_hits), stats.cache_path)


@cache
def kernel() -> ReadFrames:
    return _entry(_stamp())


def _stamp() -> int:
    """Of all sources: numba by itself looks at the file of the entry alone, and would go on with an outdated kernel."""
    digest = sha256()
    for name in _SOURCES:
        digest.update((Path(__file__).parent / f"{name}.py").read_bytes())
    return int.from_bytes(digest.digest()[:7]) + 1


def _entry(stamp: int) -> ReadFrames:
    def read_frames(code, stack, extents, extents_count, rows, base, ends, frame, frames, row, status):  # type: ignore[no-untyped-def]
        # Never 0. A variable of the enclosing function is part of what the cache goes by.
        if stamp == 0:
            return frame, row
        return _read(code, stack, extents, extents_count, rows, base, ends, frame, frames, row, status)

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        made: ReadFrames = numba.njit(_SIGNATURE, cache=True, **options)(read_frames)
    except RuntimeError:
        # No folder to keep it in.
        made = numba.njit(_SIGNATURE, **options)(read_frames)
    return made
