"""Checks the offsets of an Arrow array, which are the ends of frames, before the kernel relies on them."""

import numpy as np

from kafkascope.columnar.compiling.jit import plain
from kafkascope.columnar.kernel.memory import item_32, item_64, load_raw32, load_raw64, store_32
from kafkascope.columnar.kernel.signatures import Int, Pair


@plain
def check_offsets(source: Int, width: Int, count: Int) -> Pair:
    """The first and the last of them, of 4 or 8 bytes each; -1 if they aren't ascending or begin below 0."""
    falls = np.int64(0)
    if width == 4:
        first, last = load_raw32(source), load_raw32(source + 4 * (count - 1))
        for index in range(count - 1):
            falls |= item_32(source + 4, index) - item_32(source, index)
    else:
        first, last = load_raw64(source), load_raw64(source + 8 * (count - 1))
        for index in range(count - 1):
            end, next_end = item_64(source, index), item_64(source + 8, index)
            # Both are at least 0, so the difference can't overflow.
            falls |= end | next_end | (next_end - end)
    if first < 0 or falls < 0:
        return np.int64(-1), np.int64(-1)
    return first, last


@plain
def narrow_offsets(source: Int, count: Int, target: Int) -> Int:
    """Converts offsets of 8 bytes to 4 bytes each, relative to the first."""
    first = load_raw64(source)
    for index in range(count):
        store_32(target + 4 * index, item_64(source, index) - first)
    return first


@plain
def largest_frame(ends: Int, frame: Int, frames: Int) -> Int:
    largest = np.int64(0)
    for index in range(frame, frames):
        largest = max(largest, item_32(ends + 4, index) - item_32(ends, index))
    return largest
