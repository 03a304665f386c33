"""Packs the filled columns of a small table into the bytes of one Arrow IPC record batch, without unused room.

Columns that a version lacks share one area of zeros.
"""

import numpy as np

from kafkascope.columnar.compiling.jit import inline, plain
from kafkascope.columnar.kernel.arguments import (
    BODY_LENGTH_AT,
    BUFFERS_AT,
    COUNTED,
    FIELDS,
    FIELDS_COUNT,
    FORM_DATA,
    FORM_SIZE,
    LENGTH_AT,
    NODES_AT,
)
from kafkascope.columnar.kernel.memory import copy_bytes, item_8, load_raw64, store_8, store_64, word
from kafkascope.columnar.kernel.signatures import Int

# A field in Arrow's order: kind, group, bytes per value, values beyond the rows, valid, values, data, the data's group.
FIELD = 8
# Kinds by their buffers after the one for nulls: none, values, bits from bytes, offsets and data.
STRUCT_FIELD, VALUES_FIELD, BITS_FIELD, TEXT_FIELD = range(4)
ABSENT_FIELD = 4
_LINE = 64
_LOW_BITS = np.int64(0x7F7F7F7F7F7F7F7F)
_ONES = np.int64(0x0101010101010101)
# Multiplied by this, eight bytes of 0 or 1 become bits of the highest byte.
_GATHER = np.int64(0x0102040810204080)


@plain
def packed_size(job: Int) -> Int:
    """Bytes of the batch, or slightly more."""
    size = word(job, FORM_SIZE) + _zeros(job)
    for index in range(word(job, FIELDS_COUNT)):
        field = word(job, FIELDS) + 8 * FIELD * index
        if word(field, 0) & ABSENT_FIELD == 0:
            rows = _rows(job, field)
            if word(field, 4):
                size += lines(_bytes_of_bits(rows))
            size += lines(_values_size(field, rows)) + lines(word(word(job, COUNTED), word(field, 7)))
    return size


@plain
def pack(job: Int, target: Int) -> Int:
    """Writes it to `target`; returns how many bytes of the room are its body."""
    copy_bytes(target, word(job, FORM_DATA), word(job, FORM_SIZE))
    body = target + word(job, FORM_SIZE)
    node, entry = target + word(job, NODES_AT), target + word(job, BUFFERS_AT)
    at = _zeros(job)
    for index in range(at >> 3):
        store_64(body + 8 * index, np.int64(0))
    for index in range(word(job, FIELDS_COUNT)):
        field = word(job, FIELDS) + 8 * FIELD * index
        kind, rows = word(field, 0), _rows(job, field)
        nulls = np.int64(0)
        size = _values_size(field, rows)
        if kind & ABSENT_FIELD:
            nulls = rows
            entry = put_entry(entry, np.int64(0), _bytes_of_bits(rows))
            if kind & 3 != STRUCT_FIELD:
                entry = put_entry(entry, np.int64(0), size)
            if kind & 3 == TEXT_FIELD:
                entry = put_entry(entry, np.int64(0), np.int64(0))
        else:
            if word(field, 4):
                nulls = rows - _ones(word(field, 4), rows)
            bits = _bytes_of_bits(rows) if nulls else np.int64(0)
            if bits:
                _put_bits(body + at, word(field, 4), rows, bits)
            entry = put_entry(entry, at, bits)
            at += lines(bits)
            if kind != STRUCT_FIELD:
                if kind == BITS_FIELD:
                    _put_bits(body + at, word(field, 5), rows, size)
                else:
                    _put(body + at, word(field, 5), size)
                entry = put_entry(entry, at, size)
                at += lines(size)
            if kind == TEXT_FIELD:
                size = word(word(job, COUNTED), word(field, 7))
                _put(body + at, word(field, 6), size)
                entry = put_entry(entry, at, size)
                at += lines(size)
        node = put_entry(node, rows, nulls)
    store_64(target + word(job, LENGTH_AT), word(word(job, COUNTED), 0))
    store_64(target + word(job, BODY_LENGTH_AT), at)
    return at


@plain
def _zeros(job: Int) -> Int:
    """Bytes of the widest missing column."""
    most = np.int64(0)
    for index in range(word(job, FIELDS_COUNT)):
        field = word(job, FIELDS) + 8 * FIELD * index
        if word(field, 0) & ABSENT_FIELD:
            rows = _rows(job, field)
            most = max(most, _bytes_of_bits(rows), _values_size(field, rows))
    return lines(most)


@inline
def _rows(job: Int, field: Int) -> Int:
    return word(word(job, COUNTED), word(field, 1))


@inline
def _values_size(field: Int, rows: Int) -> Int:
    if word(field, 0) & 3 == BITS_FIELD:
        return _bytes_of_bits(rows)
    return (rows + word(field, 3)) * word(field, 2)


@inline
def _bytes_of_bits(rows: Int) -> Int:
    return (rows + 7) >> 3


@inline
def lines(size: Int) -> Int:
    return (size + (_LINE - 1)) & -_LINE


@inline
def put_entry(at: Int, first: Int, second: Int) -> Int:
    store_64(at, first)
    store_64(at + 8, second)
    return at + 16


@inline
def clear_last_line(target: Int, size: Int) -> None:
    if size:
        last = target + lines(size) - _LINE
        for index in range(8):
            store_64(last + 8 * index, np.int64(0))


@plain
def _put(target: Int, source: Int, size: Int) -> None:
    clear_last_line(target, size)
    copy_bytes(target, source, size)


@plain
def _put_bits(target: Int, source: Int, rows: Int, size: Int) -> None:
    """One bit per byte: 1 if the byte isn't 0, which is what Java reads as true."""
    clear_last_line(target, size)
    for index in range(rows >> 3):
        store_8(target + index, _bits(load_raw64(source + 8 * index)))
    left = rows & 7
    if left:
        store_8(target + (rows >> 3), _bits(load_raw64(source + rows - left) & ((np.int64(1) << (8 * left)) - 1)))


@inline
def _bits(eight: Int) -> Int:
    high = ((eight & _LOW_BITS) + _LOW_BITS) | eight
    return (high >> 7 & _ONES) * _GATHER >> 56


@plain
def _ones(source: Int, rows: Int) -> Int:
    ones = np.int64(0)
    for index in range(rows):
        ones += item_8(source, index)
    return ones
