"""Writes numbers, strings and bytes as JSON for the kernels of this package, ASCII only: for a letter that isn't, a
function returns `REFUSED`, and the careful path writes the record. Callers check the room first."""

import numpy as np

from kafkascope.columnar.compiling.jit import inline, plain
from kafkascope.columnar.kernel.memory import (
    copy_32,
    load_raw64,
    load_u8,
    store_8,
    store_16,
    store_64,
)
from kafkascope.columnar.kernel.signatures import Int

# Instead of a position: the careful path has to write this record.
REFUSED = -1
# Instead of a position: there is no room for the rest of the record.
NO_ROOM = -2
# Copies write up to this many bytes more than they should; texts have as many after their end.
SLACK = 64
# The longest number, its sign and what a copy writes after it.
NUMBER_ROOM = 24
# A control character becomes \u0000.
LONGEST_ESCAPE = 6
UUID_DIGITS = 22

_LEAST = np.int64(-(1 << 63))
_HIGH = np.int64(-0x7F7F7F7F7F7F7F80)  # 0x8080808080808080
_ONES = np.int64(0x0101010101010101)
_PAIRS = np.frombuffer(b"".join(b"%02d" % number for number in range(100)), np.uint16).astype(np.int64)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8).astype(np.int64)
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8).astype(np.int64)
_URL = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8).astype(np.int64)
# The letter after the backslash for control characters that have one.
_SHORT = np.zeros(32, np.int64)
for _code, _letter in ((8, "b"), (9, "t"), (10, "n"), (12, "f"), (13, "r")):
    _SHORT[_code] = ord(_letter)


@inline
def put(out: Int, text: Int, size: Int) -> Int:
    """Copies text that has `SLACK` bytes after its end."""
    copy_32(out, text)
    done = np.int64(32)
    while done < size:
        copy_32(out + done, text + done)
        done += 32
    return out + size


@inline
def put_number(out: Int, value: Int) -> Int:
    if 0 <= value < 10:
        store_8(out, value + 48)
        return out + 1
    return put_long(out, value)


@plain
def put_long(out: Int, value: Int) -> Int:
    if value < 0:
        store_8(out, np.int64(45))
        out += 1
        if value == _LEAST:
            # Its opposite isn't an int64.
            store_8(out, np.int64(57))
            return put_digits(out + 1, np.int64(223_372_036_854_775_808), np.int64(18))
        value = -value
    digits, limit = np.int64(1), np.int64(10)
    while digits < 19 and value >= limit:
        digits += 1
        limit *= 10
    return put_digits(out, value, digits)


@inline
def put_digits(out: Int, value: Int, digits: Int) -> Int:
    at = out + digits
    while at - out >= 2:
        rest = value // 100
        at -= 2
        store_16(at, _PAIRS[value - 100 * rest])
        value = rest
    if at > out:
        store_8(out, value + 48)
    return out + digits


@plain
def put_text(out: Int, p: Int, size: Int) -> Int:
    """The string in quotes, with escapes; `REFUSED` if it isn't ASCII or has the letter DEL."""
    store_8(out, np.int64(34))
    out += 1
    end = p + size
    while end - p >= 8:
        word = load_raw64(p)
        # A byte's high bit: below 0x20, a quote, a backslash, above 0x7e. Borrows only add some that aren't.
        special = (word - (_ONES << 5)) | ((word ^ (_ONES * 34)) - _ONES) | ((word ^ (_ONES * 92)) - _ONES)
        special |= word | (word + _ONES)
        if special & _HIGH:
            stop = p + 8
            while p < stop:
                out = put_letter(out, load_u8(p))
                if out < 0:
                    return out
                p += 1
            continue
        store_64(out, word)
        out += 8
        p += 8
    while p < end:
        out = put_letter(out, load_u8(p))
        if out < 0:
            return out
        p += 1
    store_8(out, np.int64(34))
    return out + 1


@inline
def put_letter(out: Int, letter: Int) -> Int:
    if letter >= 127:
        return np.int64(REFUSED)
    if letter >= 32:
        if letter == 34 or letter == 92:
            store_8(out, np.int64(92))
            out += 1
        store_8(out, letter)
        return out + 1
    store_8(out, np.int64(92))
    short = _SHORT[letter]
    if short:
        store_8(out + 1, short)
        return out + 2
    store_8(out + 1, np.int64(117))
    store_8(out + 2, np.int64(48))
    store_8(out + 3, np.int64(48))
    store_8(out + 4, _HEX[letter >> 4])
    store_8(out + 5, _HEX[letter & 15])
    return out + 6


@plain
def put_base64(out: Int, p: Int, size: Int) -> Int:
    """In quotes, with padding."""
    store_8(out, np.int64(34))
    out += 1
    end = p + size
    while end - p >= 3:
        word = (load_u8(p) << 16) | (load_u8(p + 1) << 8) | load_u8(p + 2)
        store_8(out, _BASE64[word >> 18])
        store_8(out + 1, _BASE64[(word >> 12) & 63])
        store_8(out + 2, _BASE64[(word >> 6) & 63])
        store_8(out + 3, _BASE64[word & 63])
        out += 4
        p += 3
    if p < end:
        word = load_u8(p) << 16
        if end - p == 2:
            word |= load_u8(p + 1) << 8
        store_8(out, _BASE64[word >> 18])
        store_8(out + 1, _BASE64[(word >> 12) & 63])
        store_8(out + 2, _BASE64[(word >> 6) & 63] if end - p == 2 else np.int64(61))
        store_8(out + 3, np.int64(61))
        out += 4
    store_8(out, np.int64(34))
    return out + 1


@plain
def put_uuid(out: Int, p: Int) -> Int:
    """In quotes, in the 22 letters of Kafka's form."""
    store_8(out, np.int64(34))
    out += 1
    for _ in range(5):
        word = (load_u8(p) << 16) | (load_u8(p + 1) << 8) | load_u8(p + 2)
        store_8(out, _URL[word >> 18])
        store_8(out + 1, _URL[(word >> 12) & 63])
        store_8(out + 2, _URL[(word >> 6) & 63])
        store_8(out + 3, _URL[word & 63])
        out += 4
        p += 3
    last = load_u8(p)
    store_8(out, _URL[last >> 2])
    store_8(out + 1, _URL[(last & 3) << 4])
    store_8(out + 2, np.int64(34))
    return out + 3
