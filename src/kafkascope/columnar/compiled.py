"""The kernel's entry, compiled once a machine and kept on disk; everything that it calls is compiled into it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
import numpy as np

from kafkascope.columnar.few_kernel import read_few
from kafkascope.columnar.machine import read_frames
from kafkascope.columnar.notes import notes_size, write_notes
from kafkascope.columnar.offsets import check_offsets, largest_frame, narrow_offsets
from kafkascope.columnar.pack import pack, packed_size

Kernel = Callable[[int, int, int, int, int, int, int, int], tuple[int, int]]
_SOURCES = (
    "batches", "compiled", "few_kernel", "job", "join", "kernel", "machine", "memory", "notes", "offsets", "operations",
    "pack", "pieces", "scan", "sections", "values", "../limits",
)  # fmt: skip
_SIGNATURE = "UniTuple(int64, 2)(" + ", ".join(["int64"] * 8) + ")"
# What the kernel is asked to do: one entry for all of it, since each takes its time to load.
READ, SIZE, PACK, NOTES_SIZE, NOTES, CHECK, NARROW, LARGEST, FEW = range(9)


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
def kernel() -> Kernel:
    """(task, job or what the task takes in its place, and its other arguments) to what it gives, 0 for nothing."""
    return _entry(_stamp())


def _stamp() -> int:
    """Of all sources: numba by itself looks at the file of the entry alone, and would go on with an outdated kernel."""
    digest = sha256()
    for name in _SOURCES:
        digest.update((Path(__file__).parent / f"{name}.py").read_bytes())
    return int.from_bytes(digest.digest()[:7]) + 1


def _entry(stamp: int) -> Kernel:
    def entry(task, job, a, b, c, d, e, f):  # type: ignore[no-untyped-def]
        # Never 0. A variable of the enclosing function is part of what the cache goes by.
        if stamp == 0:
            return job, job
        if task == READ:
            return read_frames(job, a, b, c, d, e, f)
        if task == SIZE:
            return packed_size(job), np.int64(0)
        if task == PACK:
            return pack(job, a), np.int64(0)
        if task == NOTES_SIZE:
            return notes_size(job, a, b), np.int64(0)
        if task == NOTES:
            return write_notes(job, a, b, c), np.int64(0)
        if task == FEW:
            return read_few(job, a, b, c, d)
        if task == CHECK:
            return check_offsets(job, a, b)
        if task == NARROW:
            return narrow_offsets(job, a, b), np.int64(0)
        return largest_frame(job, a, b), np.int64(0)

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        made: Kernel = numba.njit(_SIGNATURE, cache=True, **options)(entry)
    except RuntimeError:
        # No folder to keep it in.
        made = numba.njit(_SIGNATURE, **options)(entry)
    return made
