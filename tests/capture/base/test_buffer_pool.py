"""Memory is used again when nobody has it, and never before."""

import gc

import numpy as np
import pyarrow as pa
import pytest

from kafkascope.capture.base.buffer_pool import BufferPool

SIZE = 1 << 21


def test_memory_comes_again_when_nobody_has_it() -> None:
    pool = BufferPool()
    first = pool.take(SIZE)
    address = first.ctypes.data
    del first
    assert pool.take(SIZE).ctypes.data == address
    assert pool.take(SIZE // 2).ctypes.data == address


@pytest.mark.parametrize(
    "hold",
    [
        lambda array: array[10:20],
        lambda array: array[100:][:50][::2],
        lambda array: array[:400].view(np.int32),
        lambda array: array[:64].reshape(8, 8)[1:3],
        lambda array: memoryview(array)[5:],
        lambda array: pa.py_buffer(array[:99]),
        lambda array: np.ascontiguousarray(array),
        lambda array: {"kept": [array[1:2]]},
    ],
    ids=["slice", "slice of slices", "view", "reshaped", "memoryview", "arrow", "contiguous", "kept"],
)
def test_whoever_has_a_part_has_all_of_it(hold) -> None:  # type: ignore[no-untyped-def]
    pool = BufferPool()
    first = pool.take(SIZE)
    address = first.ctypes.data
    part = hold(first)
    del first
    gc.collect()
    assert pool.take(SIZE).ctypes.data != address
    del part
    gc.collect()
    assert address in [array.ctypes.data for array in (pool.take(SIZE), pool.take(SIZE))]


def test_larger_memory_takes_the_place_of_smaller() -> None:
    pool = BufferPool()
    for factor in (1, 2, 4):
        assert len(pool.take(factor * SIZE)) == factor * SIZE
    assert [len(array) for array in pool._free] == [4 * SIZE]
    assert len(pool.take(0)) == 0


def test_what_waits_is_bounded() -> None:
    pool = BufferPool()
    many = [pool.take(SIZE) for _ in range(20)]
    del many
    assert len(pool._free) == 2
