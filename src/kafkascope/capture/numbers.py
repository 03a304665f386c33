"""Numbers of either byte order out of bytes, for the kernels. The caller has compared the end."""

from typing import Any

import numba
import numpy as np

# What the kernels count with: int64 inside, whatever Python sees.
Number = Any
Numbers = Any  # several, as a tuple

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": True, "_nrt": False}


def jit(function: Any) -> Any:
    """No kernel makes arrays, and who calls it holds those that it gets: nothing has to be counted. With numba's
    runtime every table that is handed on, and every row of one, would be, by atomic operations."""
    return numba.njit(cache=True, **_OPTIONS)(function)


def inlined(function: Any) -> Any:
    """As `jit`, but never called: handing over forty arrays for each piece took longer than the piece."""
    return numba.njit(cache=True, forceinline=True, **_OPTIONS)(function)


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
