"""Tunes the process of a task before it works: it has one core and reads gigabytes."""

import ctypes
import gc
from contextlib import suppress

import pyarrow as pa

# glibc's parameters for what malloc returns to the system, and for what it maps separately (mallopt(3)).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES, _APART_BYTES = 256 << 20, 32 << 20


def tune_process() -> None:
    # Other tasks use the other cores.
    pa.set_cpu_count(1)
    # Modules loaded by now stay: scanning them for garbage takes some percent of a task.
    gc.freeze()
    # With Arrow's own pool a task's peak is an eighth higher, and its time is the same.
    pa.set_memory_pool(pa.system_memory_pool())
    # Each batch takes the same memory: malloc would return it and request it again, and the system clears every page.
    # That took 4 to 14 % of a task; the peak is the same without it.
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _APART_BYTES)
