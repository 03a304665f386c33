"""Reads records of magic 2 for the kernels of this package, in the one form that Kafka writes: shortest varints, no
negative lengths but −1. Every read is checked against the end first."""

import numpy as np

from kafkascope.columnar.compiling.jit import inline, plain
from kafkascope.columnar.kernel.memory import load_u8, store_64, word
from kafkascope.columnar.kernel.signatures import Bool, Int, Pair
from kafkascope.limits import MAX_RECORD_ITEMS

# Where `read_record` writes what it has read: int64 words.
OFFSET, TIMESTAMP, KEY, KEY_SIZE, VALUE, VALUE_SIZE, WALK_HEADERS, HEADERS_COUNT, RECORD_WORDS = range(9)
# Instead of a position: these aren't the bytes that Kafka writes.
WALK_BAD = -1
_MOST_INT = (1 << 32) - 1


@inline
def read_varint(p: Int, end: Int) -> Pair:
    """An unsigned varint of at most 32 bits, in its shortest form; the position is `WALK_BAD` for any other."""
    if p < end:
        first = load_u8(p)
        if first < 0x80:
            return first, p + 1
    return read_long_varint(p, end, np.int64(5), np.int64(_MOST_INT))


@plain
def read_long_varint(p: Int, end: Int, most: Int, largest: Int) -> Pair:
    value, shift = np.int64(0), np.int64(0)
    stop = min(end, p + most)
    while p < stop:
        byte = load_u8(p)
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if (byte == 0 and shift) or value > largest or value < 0:
                break
            return value, p
        shift += 7
    return np.int64(0), np.int64(WALK_BAD)


@inline
def zigzag(value: Int) -> Int:
    return (value >> 1) ^ -(value & 1)


@inline
def read_size(p: Int, end: Int) -> Pair:
    """A length, −1 for null; what it's the length of is before `end`."""
    raw, p = read_varint(p, end)
    size = zigzag(raw)
    if p < 0 or size < -1 or size > end - p:
        return np.int64(0), np.int64(WALK_BAD)
    return size, p


@plain
def read_record(p: Int, end: Int, base_offset: Int, base_timestamp: Int, record: Int) -> Int:
    """Where the next record begins, or `WALK_BAD`. Offset and timestamp are within int64 if the bases are within a
    half."""
    length, p = read_varint(p, end)
    length = zigzag(length)
    if p < 0 or length < 6 or length > end - p:
        return np.int64(WALK_BAD)
    end = p + length
    if load_u8(p) > 127:
        return np.int64(WALK_BAD)
    # Nine bytes hold 63 bits, which can't leave int64 with a base of at most half of it.
    delta, p = read_long_varint(p + 1, end, np.int64(9), np.int64((1 << 63) - 1))
    if p < 0:
        return np.int64(WALK_BAD)
    store_64(record + 8 * TIMESTAMP, base_timestamp + zigzag(delta))
    delta, p = read_varint(p, end)
    if p < 0:
        return np.int64(WALK_BAD)
    store_64(record + 8 * OFFSET, base_offset + zigzag(delta))
    size, p = read_size(p, end)
    if p < 0:
        return np.int64(WALK_BAD)
    store_64(record + 8 * KEY, p)
    store_64(record + 8 * KEY_SIZE, size)
    size, p = read_size(p + max(size, np.int64(0)), end)
    if p < 0:
        return np.int64(WALK_BAD)
    store_64(record + 8 * VALUE, p)
    store_64(record + 8 * VALUE_SIZE, size)
    p += max(size, np.int64(0))
    count, p = read_varint(p, end)
    if p < 0 or count & 1:
        return np.int64(WALK_BAD)
    store_64(record + 8 * WALK_HEADERS, p)
    store_64(record + 8 * HEADERS_COUNT, count >> 1)
    for _ in range(count >> 1):
        size, p = read_size(p, end)
        if p < 0 or size < 0:
            return np.int64(WALK_BAD)
        size, p = read_size(p + size, end)
        if p < 0:
            return np.int64(WALK_BAD)
        p += max(size, np.int64(0))
    return p if p == end else np.int64(WALK_BAD)


@plain
def are_records(p: Int, end: Int, count: Int, base_offset: Int, base_timestamp: Int, record: Int) -> Bool:
    """Whether exactly `count` records fill these bytes; their headers count as records towards the limit."""
    items = count
    for _ in range(count):
        p = read_record(p, end, base_offset, base_timestamp, record)
        if p < 0:
            return False
        items += word(record, HEADERS_COUNT)
    return p == end and items <= MAX_RECORD_ITEMS
