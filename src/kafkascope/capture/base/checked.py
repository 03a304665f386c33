"""Reads, writes and copies bytes in arrays, for the kernels. Each function compares its place with both ends of the
array and raises IndexError if it is outside, so no wrong count in a recording can reach other memory.

Single items use plain indexing: `jit` compiles the same check into every index. Functions here take several bytes at
once, and no other module of `capture` uses memory addresses (a test checks that)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.columnar.compiling.jit import inlined, jit
from kafkascope.columnar.kernel import memory

Bytes = npt.NDArray[np.uint8]

# numba passes intrinsics their first argument.
_copy: Any = memory.copy_bytes
_load_16: Any = memory.load_i16
_load_32: Any = memory.load_i32
_load_64: Any = memory.load_raw64
_load_8: Any = memory.load_u8
_prefetch: Any = memory.prefetch


@inlined
def check(data: Any, at: Number, count: Number) -> None:
    """Ensures 0 <= at, 0 <= count and at + count <= len(data), without a sum that could overflow."""
    if at < 0 or count < 0 or at > len(data) or count > len(data) - at:
        raise IndexError("bytes outside their array")


@inlined
def read_i16(data: Any, at: Number) -> Number:
    check(data, at, 2)
    return _load_16(data.ctypes.data + at)


@inlined
def read_i32(data: Any, at: Number) -> Number:
    check(data, at, 4)
    return _load_32(data.ctypes.data + at)


@inlined
def copy(target: Any, to: Number, source: Any, at: Number, count: Number) -> None:
    """The two ranges must not overlap."""
    check(target, to, count)
    check(source, at, count)
    _copy(target.ctypes.data + to, source.ctypes.data + at, count)


@jit
def differing_bytes(first_data: Any, first_at: Number, second_data: Any, second_at: Number, count: Number) -> Number:
    """How many of `count` bytes from `first_at` and from `second_at` on differ."""
    check(first_data, first_at, count)
    check(second_data, second_at, count)
    a = first_data.ctypes.data + first_at
    b = second_data.ctypes.data + second_at
    at = np.int64(0)
    while count - at >= 8 and _load_64(a + at) == _load_64(b + at):
        at += 8
    different = np.int64(0)
    while at < count:
        if _load_8(a + at) != _load_8(b + at):
            different += 1
        at += 1
    return different


@inlined
def prefetch(data: Any, at: Number) -> None:
    """Hints that the bytes at `at` are needed soon. Nothing is read, so any place is allowed."""
    _prefetch(data.ctypes.data + at)


@inlined
def place(first: Any, second: Any, at: Number) -> Numbers:
    """(array, place in it) for place `at` in two arrays that are addressed as one, the second after the first."""
    if at < len(first):
        return first, at
    return second, at - len(first)


def writable(data: Bytes) -> Bytes:
    """A contiguous array of the type that the kernels are compiled for: arrays over `bytes` are read-only."""
    data = np.ascontiguousarray(data, np.uint8)
    return data if data.flags.writeable else data.copy()
