"""Bytes at an address that a batch keeps alive: copied out one frame at a time, or many into an Arrow array."""

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.numbers import jit
from kafkascope.columnar.memory import copy_bytes

_copy: Any = copy_bytes  # numba gives it its first argument


def bytes_at(address: int | np.int64, size: int | np.int64) -> bytes:
    return ctypes.string_at(int(address), int(size))


def binary_at(addresses: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> pa.LargeBinaryArray:
    """One value an address; a size below 0 is null."""
    ends, data = gather_all(addresses, sizes)
    valid = None
    if (sizes < 0).any():
        valid = pa.py_buffer(np.packbits(sizes >= 0, bitorder="little"))
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), [valid, pa.py_buffer(ends), pa.py_buffer(data)])


def gather_all(
    addresses: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """(ends, with a 0 in front; all the bytes side by side)"""
    kept = np.maximum(sizes, 0)
    ends = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(kept, out=ends[1:])
    data = np.empty(int(ends[-1]), dtype=np.uint8)
    gather(addresses, kept, data)
    return ends, data


@jit
def gather(addresses: Any, sizes: Any, data: Any) -> None:
    at = np.int64(0)
    base = data.ctypes.data
    for index in range(len(addresses)):
        _copy(base + at, addresses[index], sizes[index])
        at += sizes[index]


@jit
def copy_all(addresses: Any, ends: Any, starts: Any, targets: Any) -> None:
    """Those from each of `starts` on to a target of their own, one behind the other."""
    for group in range(len(targets)):
        base = targets[group] - ends[starts[group]]
        for index in range(starts[group], starts[group + 1]):
            _copy(base + ends[index], addresses[index], ends[index + 1] - ends[index])
