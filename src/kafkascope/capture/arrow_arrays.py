"""numpy columns in, Arrow arrays of the same memory out. `pa.array` does so too but looks for pandas first: where it is
installed, its import takes longer than a small recording does."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.memory_view import gather_all

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def numbers(values: npt.NDArray[np.integer], kind: pa.DataType, there: Mask | None = None) -> pa.Array:
    """`values` in the memory that `kind` has; null where `there` does not hold."""
    content = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [_bits(there), content])


def booleans(values: Mask) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def words(known: Sequence[str | None], which: Ints, there: Mask | None = None) -> pa.Array:
    """One of `known` a row; a None among them is null."""
    encoded = [None if word is None else word.encode() for word in known]
    content = np.frombuffer(b"".join(word for word in encoded if word is not None), np.uint8)
    sizes = np.array([-1 if word is None else len(word) for word in encoded], dtype=np.int64)
    kept = np.maximum(sizes, 0)
    starts = np.cumsum(kept) - kept
    taken = sizes[which]
    if there is not None:
        taken = np.where(there, taken, -1)
    return texts(content.ctypes.data + starts[which], taken)


def texts(addresses: Ints, sizes: Ints) -> pa.Array:
    """UTF-8 at addresses, as it is; a size below 0 is null."""
    ends, content = gather_all(addresses, sizes)
    valid = _bits(sizes >= 0) if (sizes < 0).any() else None
    return pa.Array.from_buffers(
        pa.string(), len(sizes), [valid, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(content)]
    )


def _bits(mask: Mask | None) -> pa.Buffer | None:
    return None if mask is None else pa.py_buffer(np.packbits(mask, bitorder="little"))
