"""numpy columns in, Arrow arrays of the same memory out. `pa.array` does so too but looks for pandas first: where it is
installed, its import takes longer than a small recording does."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]


def numbers(values: npt.NDArray[np.integer], kind: pa.DataType) -> pa.Array:
    """`values` in the memory that `kind` has."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
