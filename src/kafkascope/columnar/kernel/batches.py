"""Reads the headers of record batches, one row per batch, or reports that the bytes aren't record data.

The verdict equals that of `decode_records(..., unpack=False)` in the codec.
"""

import numpy as np

from kafkascope.columnar.compiling.jit import inline
from kafkascope.columnar.kernel.memory import (
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u32,
    store_8,
    store_16,
    store_32,
    store_64,
    word,
)
from kafkascope.columnar.kernel.signatures import Bool, Int, Pair
from kafkascope.limits import MAX_RECORD_ITEMS

# Every batch begins with offset and length, whatever its magic; the magic is at the same place in all.
_OVERHEAD = 12
_MAGIC_AT = 16
_HEADER = 61
# crc, magic, attributes, perhaps a timestamp, and two lengths
_LEAST_0, _LEAST_1 = 14, 22
LEAST_BYTES = _OVERHEAD + _LEAST_0
_COMPRESSIONS = 5
# Bytes per value, in the order of the columns of a batch.
ITEM_BYTES = (8, 8, 4, 4, 1, 4, 2, 8, 8, 8, 2, 4, 4)


@inline
def read_batches(p: Int, stop: Int, columns: Int, first: Int) -> Pair:
    """(row after the last batch, bytes of a cut last batch); the row is -1 if this isn't record data."""
    none = np.int64(-1)
    row = first
    while stop - p >= _OVERHEAD:
        size = load_i32(p + 8)
        if size < _LEAST_0:
            return none, none
        left = stop - p
        if left <= _MAGIC_AT:
            return row, left
        magic = load_u8(p + _MAGIC_AT)
        if magic > 2:
            return none, none
        if size > left - _OVERHEAD:
            return row, left
        if row - first >= MAX_RECORD_ITEMS:
            return none, none
        good = _batch(p, size, columns, row) if magic == 2 else _message(p, size, magic, columns, row)
        if not good:
            return none, none
        row += 1
        p += size + _OVERHEAD
    return row, stop - p


@inline
def _batch(p: Int, size: Int, columns: Int, row: Int) -> Bool:
    """Magic 2."""
    if size < _HEADER - _OVERHEAD:
        return False
    attributes = load_i16(p + 21)
    records = load_i32(p + 57)
    if records < 0 or attributes & 7 >= _COMPRESSIONS:
        return False
    base = load_i64(p)
    _start(columns, row, base, base + load_i32(p + 23), size, np.int64(2), attributes, records)
    store_32(word(columns, 3) + 4 * row, load_i32(p + 12))
    store_32(word(columns, 5) + 4 * row, load_u32(p + 17))
    store_64(word(columns, 7) + 8 * row, load_i64(p + 27))
    store_64(word(columns, 8) + 8 * row, load_i64(p + 35))
    store_64(word(columns, 9) + 8 * row, load_i64(p + 43))
    store_16(word(columns, 10) + 2 * row, load_i16(p + 51))
    store_32(word(columns, 11) + 4 * row, load_i32(p + 53))
    return True


@inline
def _message(p: Int, size: Int, magic: Int, columns: Int, row: Int) -> Bool:
    """Magic 0 and 1: a message of a message set, by itself or compressed with others inside."""
    end = p + _OVERHEAD + size
    attributes = load_i8(p + 17)
    if attributes & 7 >= _COMPRESSIONS:
        return False
    stamp = np.int64(-1)
    at = p + 18
    if magic == 1:
        if size < _LEAST_1:
            return False
        stamp = load_i64(at)
        at += 8
    # Key and value must end within the message.
    for _ in range(2):
        if end - at < 4:
            return False
        length = load_i32(at)
        at += 4
        if length > end - at:
            return False
        at += max(length, np.int64(0))
    # A compressed message doesn't show how many it contains.
    records = np.int64(1 if attributes & 7 == 0 else -1)
    none = np.int64(-1)
    base = load_i64(p)
    _start(columns, row, base, base, size, magic, attributes, records)
    store_32(word(columns, 3) + 4 * row, none)
    store_32(word(columns, 5) + 4 * row, load_u32(p + 12))
    store_64(word(columns, 7) + 8 * row, stamp)
    store_64(word(columns, 8) + 8 * row, stamp)
    store_64(word(columns, 9) + 8 * row, none)
    store_16(word(columns, 10) + 2 * row, none)
    store_32(word(columns, 11) + 4 * row, none)
    return True


@inline
def _start(columns: Int, row: Int, base: Int, last: Int, size: Int, magic: Int, attributes: Int, records: Int) -> None:
    store_64(word(columns, 0) + 8 * row, base)
    store_64(word(columns, 1) + 8 * row, last)
    store_32(word(columns, 2) + 4 * row, size + _OVERHEAD)
    store_8(word(columns, 4) + row, magic)
    store_16(word(columns, 6) + 2 * row, attributes)
    store_32(word(columns, 12) + 4 * row, records)
