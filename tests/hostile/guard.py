"""Puts bytes that kernels read before a page without access, so that an over-read is a signal and not a wrong row."""

import ctypes
import weakref
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kafkascope.capture.base.buffer_pool import BufferPool
from kafkascope.capture.base.flow import Bytes
from tests.columnar.guarded import Guarded


def guarded_bytes(size: int) -> Bytes:
    """An array whose last byte is the last before a page without access."""
    area = Guarded(size)
    array: Bytes = np.frombuffer(area.bytes, np.uint8)
    # Every slice holds the array: the pages go with the last of them.
    weakref.finalize(array, _release, area).atexit = False
    return array


def _release(_: Guarded) -> None:
    """Holding the area until now was all."""


def _take(_: BufferPool, size: int) -> Bytes:
    return guarded_bytes(size)


def guard_captures() -> None:
    """From now on this process reads every recording into such memory, which is as large as a batch is."""
    setattr(BufferPool, "take", _take)  # noqa: B010 - mypy


def guarded_frames(frames: Sequence[bytes]) -> pa.Array:
    """A binary array whose content ends before such a page."""
    joined = b"".join(frames)
    area = Guarded(len(joined))
    ctypes.memmove(area.address, joined, len(joined))
    content = pa.foreign_buffer(area.address, len(joined), area)
    ends = np.cumsum([0, *map(len, frames)]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(frames), [None, pa.py_buffer(ends), content])
