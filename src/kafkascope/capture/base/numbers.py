"""Reads numbers of either byte order from byte arrays, for the kernels. The caller checks the end of the array."""

from typing import Any

import numpy as np

from kafkascope.columnar.compiling.jit import jit

# Integers of the kernels: int64 inside, whatever type Python sees.
Number = Any
Numbers = Any  # several, as a tuple


@jit
def big16(data: Any, at: Number) -> Number:
    return np.int64(data[at]) << 8 | np.int64(data[at + 1])


@jit
def big32(data: Any, at: Number) -> Number:
    return big16(data, at) << 16 | big16(data, at + 2)


@jit
def big64(data: Any, at: Number) -> Number:
    return big32(data, at) << 32 | big32(data, at + 4)


@jit
def any16(data: Any, at: Number, big: bool) -> Number:
    if big:
        return big16(data, at)
    return np.int64(data[at + 1]) << 8 | np.int64(data[at])


@jit
def any32(data: Any, at: Number, big: bool) -> Number:
    if big:
        return big32(data, at)
    return any16(data, at + 2, False) << 16 | any16(data, at, False)
