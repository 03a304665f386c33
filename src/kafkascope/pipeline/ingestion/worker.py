"""Tunes the process of a task before it works: it has one core and reads gigabytes."""

import ctypes
import gc
from contextlib import suppress

import pyarrow as pa

# glibc's numbers for what malloc gives back to the system, and what it asks for apart each time (mallopt(3)).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES, _APART_BYTES = 256 << 20, 32 << 20


def tune_process() -> None:
    # Another task has the other cores.
    pa.set_cpu_count(1)
    # What is loaded by now stays: looking through it for garbage is some percent of a task.
    gc.freeze()
    # With Arrow's own pool a task's peak is an eighth higher, and it takes as long.
    pa.set_memory_pool(pa.system_memory_pool())
    # Batch after batch takes the same memory: malloc would give it back and ask for it again, and the system clears
    # every page. That was 4 to 14 % of a task, and its peak is the same.
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _APART_BYTES)
