"""Compiles or loads the kernel's one entry, which has everything that it calls compiled into it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from kafkascope.columnar.compiling.jit import entry
from kafkascope.columnar.kernel.machine import read_frames
from kafkascope.columnar.kernel.offsets import check_offsets, largest_frame, narrow_offsets
from kafkascope.columnar.kernel.pack import pack, packed_size

Kernel = Callable[[int, int, int, int, int, int, int, int], tuple[int, int]]
_SIGNATURE = "UniTuple(int64, 2)(" + ", ".join(["int64"] * 8) + ")"
# What the kernel is asked to do: one entry for all of it, since each takes its time to load.
READ_FRAMES, PACKED_SIZE, PACK, CHECK, NARROW, LARGEST = range(6)


@dataclass(frozen=True, slots=True)
class WarmUp:
    """`folder` is where compiled kernels are kept (see `kernel_folder`), None where no folder can be written to: every
    process then compiles for itself. `from_disk` says that this one was there."""

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
    made: Kernel = entry(_SIGNATURE)(_run)
    return made


def _run(task, job, a, b, c, d, e, f):  # type: ignore[no-untyped-def]
    if task == READ_FRAMES:
        return read_frames(job, a, b, c, d, e, f)
    if task == PACKED_SIZE:
        return packed_size(job), np.int64(0)
    if task == PACK:
        return pack(job, a), np.int64(0)
    if task == CHECK:
        return check_offsets(job, a, b)
    if task == NARROW:
        return narrow_offsets(job, a, b), np.int64(0)
    return largest_frame(job, a, b), np.int64(0)
