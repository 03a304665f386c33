"""Reads fields of fixed size: runs of them, lists of runs, and the defaults of missing ones.

Most are read and written as eight bytes, whatever their width, which avoids branches: the excess is overwritten by the
next row, and after the last row there is `WRITE_SLACK`.
"""

import numpy as np

from kafkascope.columnar.compiling.jit import inline, plain
from kafkascope.columnar.kernel.memory import (
    apart,
    load_i16,
    load_i32,
    load_i64,
    load_raw32,
    load_raw64,
    load_u8,
    one_by_one,
    store_8,
    store_16,
    store_32,
    store_64,
    word,
)
from kafkascope.columnar.kernel.signatures import Bool, Int

# Every buffer has this many bytes more than its rows take.
WRITE_SLACK = 64

# A piece of a run: kind, values, offset in the run, foreign bits of the eight bytes, width, bits that must be 0. The
# kind is the width, or one of these.
PIECE = 6
BOOL, NO_TAG = 3, 5

# A fill: kind, values, valid, default, presence. The kind is the width, or one of these.
FILL = 5
ONLY_VALID, AGAIN = 0, 5  # AGAIN: the previous offset repeated, an empty string or list


@inline
def read_run(piece: Int, count: Int, p: Int, row: Int) -> Bool:
    """Adjacent fields, none of them a uuid; False for a tag."""
    odd = np.int64(0)
    for _ in range(count):
        value = load_i64(p + word(piece, 2)) >> word(piece, 3)
        store_64(word(piece, 1) + word(piece, 4) * row, value)
        odd |= value & word(piece, 5)
        piece += 8 * PIECE
    return odd == 0


@plain
def read_runs(piece: Int, count: Int, p: Int, size: Int, length: Int, first: Int) -> Bool:
    """The same for `length` elements of `size` bytes, column by column; uuids may be among them."""
    apart()
    odd = np.int64(0)
    for _ in range(count):
        kind, values, at = word(piece, 0), word(piece, 1), p + word(piece, 2)
        values += word(piece, 4) * first
        # Four at a time, to be done in any order: see `one_by_one`.
        if kind == 4:
            for _ in range(length >> 2):
                for _ in range(4):
                    one_by_one()
                    store_32(values, load_i32(at))
                    at += size
                    values += 4
            for _ in range(length & 3):
                one_by_one()
                store_32(values, load_i32(at))
                at += size
                values += 4
        elif kind == 8:
            for _ in range(length >> 2):
                for _ in range(4):
                    one_by_one()
                    store_64(values, load_i64(at))
                    at += size
                    values += 8
            for _ in range(length & 3):
                one_by_one()
                store_64(values, load_i64(at))
                at += size
                values += 8
        elif kind == 2:
            for index in range(length):
                one_by_one()
                store_16(values + 2 * index, load_i16(at + size * index))
        elif kind == 16:
            for index in range(length):
                one_by_one()
                store_64(values + 16 * index, load_raw64(at + size * index))
                store_64(values + 16 * index + 8, load_raw64(at + size * index + 8))
        elif kind == NO_TAG:
            for index in range(length):
                one_by_one()
                odd |= load_u8(at + size * index)
        else:
            for index in range(length):
                one_by_one()
                byte = load_u8(at + size * index)
                odd |= byte & word(piece, 5)
                store_8(values + index, byte)
        piece += 8 * PIECE
    return odd == 0


@inline
def fill(entry: Int, count: Int, row: Int) -> None:
    """Defaults, for missing fields."""
    for _ in range(count):
        kind, values = word(entry, 0), word(entry, 1)
        if word(entry, 2):
            store_8(word(entry, 2) + row, word(entry, 4))
        if kind == AGAIN:
            store_32(values + 4 * row + 4, load_raw32(values + 4 * row))
        elif kind != ONLY_VALID:
            store_64(values + kind * row, word(entry, 3))
            if kind == 16:
                store_64(values + 16 * row + 8, np.int64(0))
        entry += 8 * FILL
