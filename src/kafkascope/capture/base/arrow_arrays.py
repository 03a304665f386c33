"""Wraps the memory of numpy columns as Arrow arrays. `pa.array` does so too, but it looks for pandas first, and
importing pandas takes longer than reading a small recording."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]


def numbers(values: npt.NDArray[np.integer], kind: pa.DataType) -> pa.Array:
    """An Arrow array of type `kind` that shares the memory of `values`."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
