"""Lengths and strings as they lie on the wire: a position in, the value and the next position out.

A position of 0 says that this is not the one form in which Kafka writes it, or that the frame ends before.
"""

import numpy as np

from kafkascope.columnar.kernel import inline, plain
from kafkascope.columnar.memory import (
    copy_bytes,
    load_i16,
    load_i32,
    load_raw64,
    load_u8,
    store_8,
    store_64,
)

_HIGH_BITS = np.int64(-0x7F7F7F7F7F7F7F80)  # 0x8080808080808080
# A string of 1 to 7 bytes is written as 8: data buffers have that much more room than they are said to have.
SLACK = 8


@plain
def long_varint(p: int, end: int) -> tuple[int, int]:  # type: ignore[misc]
    """Of several bytes, in the shortest form, within an int32."""
    value = np.int64(0)
    for index in range(5):
        if p >= end:
            return np.int64(0), np.int64(0)
        byte = load_u8(p)
        p += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if (index and byte == 0) or value > 0x7FFFFFFF:
                return np.int64(0), np.int64(0)
            return value, p
    return np.int64(0), np.int64(0)


@inline
def varint(p: int, end: int) -> tuple[int, int]:  # type: ignore[misc]
    """An unsigned varint (KIP-482); nearly always one byte."""
    if p < end:
        byte = load_u8(p)
        if byte < 0x80:
            return byte, p + 1
    return long_varint(p, end)


@inline
def length_of(p: int, end: int, size: int) -> tuple[int, int]:  # type: ignore[misc]
    """A length or count in `size` bytes, or compact where `size` is 0; -1 is null."""
    if size == 0:
        value, p = varint(p, end)
        return value - 1, p
    if end - p < size:
        return np.int64(0), np.int64(0)
    if size == 4:
        return load_i32(p), p + 4
    return load_i16(p), p + 2


@inline
def copy_text(target: int, p: int, count: int, limit: int) -> bool:  # type: ignore[misc]
    """Whether the `count` bytes at `p` are UTF-8; they are copied on the way. Nothing is read from `limit` on."""
    if count >= 8:
        seen = np.int64(0)
        last = p + count - 8
        at = p
        while at < last:
            eight = load_raw64(at)
            store_64(target, eight)
            seen |= eight
            target += 8
            at += 8
        # The last eight bytes, some of them for the second time.
        eight = load_raw64(last)
        store_64(target + last - at, eight)
        if (seen | eight) & _HIGH_BITS == 0:
            return True
    elif limit - p >= 8:
        eight = load_raw64(p)
        store_64(target, eight)
        if count == 0 or (eight << (64 - 8 * count)) & _HIGH_BITS == 0:
            return True
    else:
        for index in range(count):
            store_8(target + index, load_u8(p + index))
    return is_utf8(p, count)


@plain
def is_utf8(p: int, count: int) -> bool:  # type: ignore[misc]
    """As Python and Java have it: no overlong forms, no surrogates, nothing above U+10FFFF."""
    end = p + count
    while p < end:
        first = load_u8(p)
        p += 1
        if first < 0x80:
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if end - p < more:
            return False
        if not low <= load_u8(p) <= high:
            return False
        for index in range(1, more):
            if not 0x80 <= load_u8(p + index) <= 0xBF:
                return False
        p += more
    return True


@inline
def copy_blob(target: int, p: int, count: int) -> None:  # type: ignore[misc]
    copy_bytes(target, p, count)
