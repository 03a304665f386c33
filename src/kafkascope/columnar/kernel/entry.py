"""Compiles or loads the kernel's one entry, into which everything that it calls is compiled."""

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
# The tasks of the kernel. One entry serves all of them, since loading each takes time.
READ_FRAMES, PACKED_SIZE, PACK, CHECK, NARROW, LARGEST = range(6)


@dataclass(frozen=True, slots=True)
class WarmUp:
    """`folder` is where compiled kernels are stored (see `kernel_folder`), None if no folder can be written to: then
    every process compiles for itself. `from_disk`: this kernel was loaded from there."""

    seconds: float
    from_disk: bool
    folder: str | None


def warm_up() -> WarmUp:
    """Prepares the kernel: at most tens of seconds the first time on a machine, a third of a second after that."""
    start = perf_counter()
    made: Any = kernel()
    stats = made.stats
    return WarmUp(perf_counter() - start, bool(stats.cache_hits), stats.cache_path)


@cache
def kernel() -> Kernel:
    """Takes (task, the job or what the task takes in its place, further arguments); returns the task's result, 0 if
    none."""
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
