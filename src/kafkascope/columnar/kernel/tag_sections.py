"""Reads tag sections (KIP-482): known tags lead to their content, unknown ones are noted in columns of their own with
their place."""

import numpy as np

from kafkascope.columnar.compiling.jit import plain
from kafkascope.columnar.kernel.fixed_fields import fill
from kafkascope.columnar.kernel.memory import apart, load_raw32, store_32, store_64, word
from kafkascope.columnar.kernel.scan import BAD_POSITION, long_varint
from kafkascope.columnar.kernel.signatures import Int, Pair
from kafkascope.columnar.operations import OPERATION, TAG

_STEP = 8 * OPERATION
_TAG = 8 * TAG


@plain
def begin_section(section: Int, code: Int, p: Int, end: Int, row: Int) -> Pair:
    """Pushes to the stack: tags left, the last one's number, known tags seen, how far before the frame's end the
    current one ends, and the operation."""
    apart()
    number, p = long_varint(p, np.int64(0))
    if number <= 0:
        return code, np.int64(BAD_POSITION)
    store_64(section, number)
    store_64(section + 8, np.int64(-1))
    store_64(section + 16, np.int64(0))
    store_64(section + 32, code)
    return next_tag(section, p, end, row)


@plain
def next_tag(section: Int, p: Int, end: Int, row: Int) -> Pair:
    """(one before the first operation, position) of the next tag's content; for an unknown tag its end. If tags aren't
    in ascending order, the careful codec has to read them."""
    apart()
    code = word(section, 4)
    number, p = long_varint(p, np.int64(0))
    if number <= word(section, 1):
        return code, np.int64(BAD_POSITION)
    size, p = long_varint(p, np.int64(0))
    if size < 0 or size > end - p:
        return code, np.int64(BAD_POSITION)
    store_64(section, word(section, 0) - 1)
    store_64(section + 8, number)
    store_64(section + 24, end - p - size)
    for index in range(word(code, 5)):
        tag = word(code, 4) + _TAG * index
        if word(tag, 0) == number:
            store_64(section + 16, word(section, 2) | (np.int64(1) << index))
            return word(tag, 1) - _STEP, p
    place = word(code, 6)
    if place == 0:
        return code, np.int64(BAD_POSITION)
    _note(section, place, number, size, row)
    return word(code, 7) - _STEP, p + size


@plain
def _note(section: Int, place: Int, number: Int, size: Int, row: Int) -> None:
    """Adds a row to the columns of unknown tags. A place has: these columns, preceded by their count's address, the
    section's distance from the bottom of the stack, its number, the number of arrays around it, and for each of them
    where its outer row is on the stack and its offsets."""
    columns = word(place, 0)
    bottom = section - word(place, 1)
    at = word(word(columns, 0), 0)
    store_64(word(columns, 0), at + 1)
    store_32(word(columns, 1) + 4 * at, word(bottom - 8, 0))
    store_64(word(columns, 2) + 8 * at, number)
    store_32(word(columns, 3) + 4 * at, size)
    store_32(word(columns, 4) + 4 * at, word(place, 2))
    for back in range(word(place, 3)):
        level = word(place, 3) - 1 - back
        outer = word(bottom + word(place, 4 + 2 * level), 0)
        store_32(word(columns, 5 + level) + 4 * at, row - load_raw32(word(place, 5 + 2 * level) + 4 * outer))
        row = outer


@plain
def end_section(section: Int, row: Int) -> Int:
    """Fills in missing fields; returns one before the operation after the section."""
    apart()
    code = word(section, 4)
    for index in range(word(code, 5)):
        if word(section, 2) >> index & 1 == 0:
            tag = word(code, 4) + _TAG * index
            fill(word(tag, 2), word(tag, 3), row)
    return word(code, 1) - _STEP
