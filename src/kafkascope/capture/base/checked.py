"""Reads, writes and copies of bytes in arrays, for the kernels. Each compares its place with both ends of the array and
raises IndexError where it lies outside, so that no count that a recording makes wrong can reach memory of others.

Single items are plain indexing: `jit` compiles the same check into every index. Here is what takes several bytes at
once, and no other module of the room reaches memory by its address (a test says so)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.columnar.compiling.jit import inlined, jit
from kafkascope.columnar.kernel import memory

Bytes = npt.NDArray[np.uint8]

# numba gives intrinsics their first argument.
_copy: Any = memory.copy_bytes
_load_16: Any = memory.load_i16
_load_32: Any = memory.load_i32
_load_64: Any = memory.load_raw64
_load_8: Any = memory.load_u8
_prefetch: Any = memory.prefetch


@inlined
def check(data: Any, at: Number, count: Number) -> None:
    """The proof of all below: 0 <= at, 0 <= count and at + count <= len(data), without a sum that could overflow."""
    if at < 0 or count < 0 or at > len(data) or count > len(data) - at:
        raise IndexError("bytes outside of their array")


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
    """The two never overlap."""
    check(target, to, count)
    check(source, at, count)
    _copy(target.ctypes.data + to, source.ctypes.data + at, count)


@jit
def differing_bytes(one: Any, first: Number, other: Any, second: Number, count: Number) -> Number:
    """How many of `count` bytes from `first` and from `second` on differ."""
    check(one, first, count)
    check(other, second, count)
    a = one.ctypes.data + first
    b = other.ctypes.data + second
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
    """The bytes there will be wanted soon. Nothing is read: any place will do."""
    _prefetch(data.ctypes.data + at)


@inlined
def place(first: Any, second: Any, at: Number) -> Numbers:
    """(array, place in it) of place `at` in two arrays that count as one, the second after the first."""
    if at < len(first):
        return first, at
    return second, at - len(first)


def writable(data: Bytes) -> Bytes:
    """Contiguous, and of the one type that the kernels are compiled for: arrays over `bytes` are read-only."""
    data = np.ascontiguousarray(data, np.uint8)
    return data if data.flags.writeable else data.copy()
