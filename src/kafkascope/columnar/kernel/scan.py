"""Reads lengths and checks strings on the wire.

Up to `READ_SLACK` bytes after the end of a frame may be read here; the callers check the end afterwards.
"""

import numpy as np

from kafkascope.columnar.compiling.jit import inline, plain
from kafkascope.columnar.kernel.memory import apart, load_i16, load_i32, load_raw64, load_u8
from kafkascope.columnar.kernel.signatures import Bool, Int, Pair

# After a position within the frame: a few numbers, and a list of a few elements, that are read without a check.
READ_SLACK = 1024
# A position after every frame, where nothing can be read.
BAD_POSITION = 1 << 62
# Not a length: cut off, or more than an int32 can hold. Below every number that a length can be.
NO_LENGTH = -(1 << 40)
_HIGH_BITS = np.int64(-0x7F7F7F7F7F7F7F80)  # 0x8080808080808080


@inline
def length_of(p: Int, size: Int) -> Pair:
    """A length or count in `size` bytes, or compact if `size` is 0; -1 is null."""
    if size == 0:
        byte = load_u8(p)
        if byte < 0x80:
            return byte - 1, p + 1
        return long_varint(p, np.int64(1))
    if size == 4:
        return load_i32(p), p + 4
    return load_i16(p), p + 2


@plain
def long_varint(p: Int, less: Int) -> Pair:
    """An unsigned varint (KIP-482) of at most an int32, minus `less`."""
    value = np.int64(0)
    for index in range(5):
        byte = load_u8(p + index)
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value > 0x7FFFFFFF:
                break
            return value - less, p + index + 1
    return np.int64(NO_LENGTH), p


@plain
def is_text(p: Int, count: Int) -> Bool:
    """If these are UTF-8; most often they are ASCII."""
    seen = np.int64(0)
    at, end = p, p + count
    while end - at >= 8:
        seen |= load_raw64(at)
        at += 8
    while at < end:
        seen |= load_u8(at)
        at += 1
    return seen & _HIGH_BITS == 0 or is_utf8(p, count)


@plain
def is_utf8(p: Int, count: Int) -> Bool:
    """As Python and Java define it: no overlong forms, no surrogates, nothing above U+10FFFF."""
    apart()
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
        if end - p < more or not low <= load_u8(p) <= high:
            return False
        for index in range(1, more):
            if not 0x80 <= load_u8(p + index) <= 0xBF:
                return False
        p += more
    return True
