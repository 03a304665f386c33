"""Reads fields of variable length into their columns, one operation each. Returns the position after the field, or
`BAD_POSITION` if the careful codec has to read it."""

import numpy as np

from kafkascope.columnar.compiling.jit import inline, plain
from kafkascope.columnar.kernel.batches import read_batches
from kafkascope.columnar.kernel.fixed_fields import read_runs
from kafkascope.columnar.kernel.memory import (
    apart,
    copy_8_numbers,
    copy_32,
    copy_64,
    copy_bytes,
    load_i32,
    load_raw32,
    prefetch,
    store_8,
    store_32,
    word,
)
from kafkascope.columnar.kernel.scan import BAD_POSITION, is_text, is_utf8, length_of
from kafkascope.columnar.kernel.signatures import Int, Pair
from kafkascope.limits import MAX_STRING_BYTES

# Up to this many bytes are copied without checking how many there are.
_SHORT = 32
# The same after a check. One less is copied, so that a shift can clear all of it.
_MIDDLING = 63
# The limit of int32.
_FEW = 8


@inline
def read_text(code: Int, p: Int, end: Int, row: Int) -> Int:
    length, p = length_of(p, word(code, 4))
    if length < 0 or length > _SHORT:
        return read_other_text(code, p, length, end, row)
    offsets = word(code, 1) + 4 * row
    used = load_raw32(offsets)
    # The bytes after the string are copied too, and overwritten by the next.
    high = copy_32(word(code, 3) + used, p)
    store_32(offsets + 4, used + length)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(1))
    if high & ((np.int64(1) << length) - 1) and not is_utf8(p, length):
        return np.int64(BAD_POSITION)
    return p + length


@plain
def read_other_text(code: Int, p: Int, length: Int, end: Int, row: Int) -> Int:
    """A long string, or null."""
    if length < -word(code, 5) or length > min(end - p, np.int64(MAX_STRING_BYTES)):
        return np.int64(BAD_POSITION)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(length >= 0))
    length = max(length, np.int64(0))
    offsets = word(code, 1) + 4 * row
    used = load_raw32(offsets)
    store_32(offsets + 4, used + length)
    if length <= _MIDDLING:
        high = copy_64(word(code, 3) + used, p)
        good = high & ((np.int64(1) << length) - 1) == 0 or is_utf8(p, length)
    else:
        copy_bytes(word(code, 3) + used, p, length)
        good = is_text(p, length)
    return p + length if good else np.int64(BAD_POSITION)


@plain
def read_blob(code: Int, p: Int, end: Int, row: Int) -> Int:
    length, p = length_of(p, word(code, 4))
    if length < -word(code, 5) or length > end - p:
        return np.int64(BAD_POSITION)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(length >= 0))
    length = max(length, np.int64(0))
    offsets = word(code, 1) + 4 * row
    used = load_raw32(offsets)
    copy_bytes(word(code, 3) + used, p, length)
    store_32(offsets + 4, used + length)
    return p + length


@inline
def read_small_ints(code: Int, p: Int, end: Int, row: Int) -> Int:
    """A list of int8, which has the layout of bytes."""
    length, behind = length_of(p, word(code, 4))
    if length < 0 or length > _SHORT:
        return read_blob(code, p, end, row)
    offsets = word(code, 1) + 4 * row
    used = load_raw32(offsets)
    copy_32(word(code, 3) + used, behind)
    store_32(offsets + 4, used + length)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(1))
    return behind + length


@plain
def step_over(code: Int, p: Int, end: Int, row: Int) -> Int:
    """A string or bytes that stay hidden: null, whatever the value is."""
    length, p = length_of(p, word(code, 4))
    if length < -word(code, 5) or length > min(end - p, word(code, 3)):
        return np.int64(BAD_POSITION)
    store_8(word(code, 2) + row, np.int64(0))
    offsets = word(code, 1) + 4 * row
    store_32(offsets + 4, load_raw32(offsets))
    return p + max(length, np.int64(0))


@inline
def read_count(code: Int, p: Int, end: Int, row: Int) -> Pair:
    """The number of elements of an array, 0 for null; writes its offset and validity."""
    length, p = length_of(p, word(code, 3))
    if length < -word(code, 4) or length * word(code, 5) > end - p:
        return np.int64(0), np.int64(BAD_POSITION)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(length >= 0))
    length = max(length, np.int64(0))
    offsets = word(code, 1) + 4 * row
    store_32(offsets + 4, load_raw32(offsets) + length)
    return length, p


@inline
def read_ints(code: Int, p: Int, end: Int, row: Int) -> Int:
    """A list of int32."""
    length, p = length_of(p, word(code, 3))
    if length < 0 or length > _FEW:
        return read_other_ints(code, p, length, end, row)
    offsets = word(code, 1) + 4 * row
    used = load_raw32(offsets)
    copy_8_numbers(word(code, 6) + 4 * used, p)
    store_32(offsets + 4, used + length)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(1))
    return p + 4 * length


@plain
def read_other_ints(code: Int, p: Int, length: Int, end: Int, row: Int) -> Int:
    """A long list, or null."""
    if length < -word(code, 4) or 4 * length > end - p:
        return np.int64(BAD_POSITION)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(length >= 0))
    length = max(length, np.int64(0))
    offsets = word(code, 1) + 4 * row
    used = load_raw32(offsets)
    values = word(code, 6) + 4 * used
    for index in range(length):
        store_32(values + 4 * index, load_i32(p + 4 * index))
    store_32(offsets + 4, used + length)
    return p + 4 * length


@inline
def read_list(code: Int, p: Int, end: Int, row: Int) -> Int:
    """A list whose elements are runs."""
    length, p = read_count(code, p, end, row)
    if length == 0:
        return p
    first = load_raw32(word(code, 1) + 4 * row)
    if read_runs(word(code, 6), word(code, 7), p, word(code, 5), length, first):
        return p + length * word(code, 5)
    return np.int64(BAD_POSITION)


@plain
def try_list(code: Int, p: Int, end: Int, row: Int) -> Int:
    """The same for elements that may have tags: if one has, nothing is read."""
    apart()
    length, behind = length_of(p, word(code, 3))
    if length <= 0 or length * word(code, 5) > end - behind:
        return p
    offsets = word(code, 1) + 4 * row
    first = load_raw32(offsets)
    if not read_runs(word(code, 6), word(code, 7), behind, word(code, 5), length, first):
        return p
    if word(code, 4):
        store_8(word(code, 4) + row, np.int64(1))
    store_32(offsets + 4, first + length)
    return behind + length * word(code, 5)


@plain
def read_records(code: Int, p: Int, end: Int, row: Int) -> Int:
    """Record data: its size, and a row for each batch, or null if these aren't batches."""
    apart()
    length, p = length_of(p, word(code, 2))
    if length < -word(code, 3) or length > end - p:
        return np.int64(BAD_POSITION)
    # The bytes after it, and the next frame, are needed next, and the processor can't predict that.
    prefetch(p + length)
    prefetch(end)
    prefetch(end + 64)
    columns = word(code, 1)
    if word(columns, 0):
        store_8(word(columns, 0) + row, np.int64(length >= 0))
    length = max(length, np.int64(0))
    offsets = word(columns, 3) + 4 * row
    first = load_raw32(offsets)
    behind, left = read_batches(p, p + length, columns + 40, first)
    store_8(word(columns, 4) + row, np.int64(behind >= 0))
    store_32(offsets + 4, max(behind, first))
    store_32(word(columns, 1) + 4 * row, length)
    store_32(word(columns, 2) + 4 * row, max(left, np.int64(0)))
    return p + length
