"""The kernel: a program and the bytes of many frames in, filled column buffers out.

One pass over each frame. A frame that is not in the one form Kafka writes is left to the careful codec (status 1), and
its row is written again by the next. Nothing is written behind a column's room: every row of a column takes bytes of
the frame, so the bytes of the frames to come say how many rows there can be at the most, and the kernel stops before
the frame that might not fit. Bytes behind a frame's end, up to `READ_SLACK`, may be read before the end is looked at;
the caller sees to it that they are there.

A row of a list tells where the rows of its elements end, so no counters are kept: the row of the frame leads to all
others, and a frame that fails leaves nothing to undo.
"""

import numpy as np

from kafkascope.columnar.batches import read_batches
from kafkascope.columnar.kernel import Bool, Int, Pair, inline, plain
from kafkascope.columnar.memory import (
    copy_8_numbers,
    copy_32,
    copy_bytes,
    load_i32,
    load_raw32,
    load_raw64,
    load_u8,
    store_8,
    store_32,
    store_64,
    word,
)
from kafkascope.columnar.pieces import fill, read_run, read_runs
from kafkascope.columnar.program import (
    ARRAY,
    ARRAY_DEPTH,
    BLOB,
    END,
    HIDDEN,
    INTS,
    NEXT,
    NOTHING,
    OPERATION,
    PRESENT,
    RECORDS,
    RUN_AT,
    RUNS,
    SECTION_DEPTH,
    SMALL_INTS,
    TAG,
    TAG_END,
    TAGS,
    TEXT,
    UUID,
)
from kafkascope.columnar.scan import is_text, is_utf8, length_of, long_varint
from kafkascope.limits import MAX_STRING_BYTES

_STEP = 8 * OPERATION
_ARRAY = 8 * ARRAY_DEPTH
_SECTION = 8 * SECTION_DEPTH
_TAG = 8 * TAG
# A position behind every frame: what is there cannot be read.
_BAD = 1 << 62
_SHORT = 32
_FEW = 8


@plain
def read_frames(
    code: Int, stack: Int, extents: Int, extents_count: Int, rows: Int, base: Int, ends: Int, frame: Int, frames: Int,
    row: Int, status: Int,
) -> Pair:  # fmt: skip
    """(the first frame that might not fit, or `frames`; the row behind the last). `ends` are where frames end, counted
    from `base`; `rows` is room for the number of rows in each group."""
    while frame < frames:
        fitting = word(ends, frame) + bytes_that_fit(extents, extents_count, rows, row)
        if word(ends, frame + 1) > fitting:
            break
        while frame < frames and word(ends, frame + 1) <= fitting:
            if read_frame(code, stack, base + word(ends, frame), base + word(ends, frame + 1), row):
                row += 1
            else:
                store_8(status + frame, np.int64(1))
            frame += 1
    return frame, row


@plain
def bytes_that_fit(extents: Int, count: Int, rows: Int, row: Int) -> Int:
    """How many bytes of frames surely fit into what room is left. An extent is a list's or a string's column: the
    group it is in, its offsets, the room behind them, the fewest bytes that one of it takes, the group behind it."""
    store_64(rows, row)
    fitting = np.int64(1 << 62)
    for index in range(count):
        extent = extents + 40 * index
        used = load_raw32(word(extent, 1) + 4 * word(rows, word(extent, 0)))
        store_64(rows + 8 * word(extent, 4), used)
        # One more than fits by its bytes may be begun and not ended.
        fitting = min(fitting, (word(extent, 2) - used - 1) * word(extent, 3))
    return fitting


@inline
def read_frame(code: Int, stack: Int, p: Int, end: Int, row: Int) -> Bool:
    """One frame, from `p` to `end`, into row `row`."""
    last = np.int64(0)
    while True:
        count = word(code, RUN_AT)
        if count:
            size = word(code, RUN_AT + 1)
            if size > end - p or not read_run(word(code, RUN_AT + 2), count, p, row):
                return False
            p += size
        op = word(code, 0)
        if op == TEXT:
            p = read_text(code, p, end, row)
        elif op == INTS:
            p = read_ints(code, p, end, row)
            while word(code + _STEP, 0) == INTS and word(code + _STEP, RUN_AT) == 0:
                if p > end:
                    return False
                code += _STEP
                p = read_ints(code, p, end, row)
        elif op == ARRAY:
            length, p = read_count(code, p, end, row)
            if length == 0:
                code = word(code, 6) - _STEP
            else:
                store_64(stack, row)
                store_64(stack + 8, last)
                stack += _ARRAY
                last = load_raw32(word(code, 1) + 4 * row + 4)
                row = last - length
        elif op == UUID:
            values = word(code, 1) + 16 * row
            store_64(values, load_raw64(p))
            store_64(values + 8, load_raw64(p + 8))
            p += 16
        elif op == TAGS:
            number = load_u8(p)
            p += 1
            if number == 0:
                fill(word(code, 2), word(code, 3), row)
                code = word(code, 1) - _STEP
            else:
                code, p = begin_section(stack, code, number, p, end)
                stack += _SECTION
        elif op == TAG_END:
            if p != word(stack - _SECTION, 3):
                return False
            if word(stack - _SECTION, 0) == 0:
                stack -= _SECTION
                code = end_section(stack, row)
            else:
                code, p = next_tag(stack - _SECTION, p, end)
        elif op == SMALL_INTS:
            p = read_small_ints(code, p, end, row)
        elif op == RUNS:
            p = read_list(code, p, end, row)
        elif op == PRESENT:
            present = load_u8(p)
            p += 1
            store_8(word(code, 1) + row, np.int64(present == 1))
            if present != 1:
                if present != word(code, 2):
                    return False
                fill(word(code, 4), word(code, 5), row)
                code = word(code, 3) - _STEP
        elif op == BLOB:
            p = read_blob(code, p, end, row)
        elif op == HIDDEN:
            p = step_over(code, p, end, row)
        elif op == RECORDS:
            p = read_records(code, p, end, row)
        elif op != NOTHING:
            return op == END and p == end
        if p > end:
            return False
        code += _STEP
        # An element's end is looked for here, not above: it comes most often, and a branch costs less than a jump.
        while word(code, 0) == NEXT:
            if word(code, 2):
                if load_u8(p) != 0 or p >= end:
                    return False
                p += 1
            row += 1
            if row < last:
                code = word(code, 1)
            else:
                stack -= _ARRAY
                row, last = word(stack, 0), word(stack, 1)
                code += _STEP


@inline
def read_text(code: Int, p: Int, end: Int, row: Int) -> Int:
    length, p = length_of(p, word(code, 4))
    if length < 0 or length > _SHORT:
        return read_other_text(code, p, length, end, row)
    offsets = word(code, 1) + 4 * row
    used = load_raw32(offsets)
    # The bytes behind the string are copied too, and written over by the next.
    high = copy_32(word(code, 3) + used, p)
    store_32(offsets + 4, used + length)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(1))
    if high & ((np.int64(1) << length) - 1) and not is_utf8(p, length):
        return np.int64(_BAD)
    return p + length


@plain
def read_other_text(code: Int, p: Int, length: Int, end: Int, row: Int) -> Int:
    """A long string, or null."""
    if length < -word(code, 5) or length > min(end - p, np.int64(MAX_STRING_BYTES)):
        return np.int64(_BAD)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(length >= 0))
    length = max(length, np.int64(0))
    offsets = word(code, 1) + 4 * row
    used = load_raw32(offsets)
    copy_bytes(word(code, 3) + used, p, length)
    store_32(offsets + 4, used + length)
    return p + length if is_text(p, length) else np.int64(_BAD)


@plain
def read_blob(code: Int, p: Int, end: Int, row: Int) -> Int:
    length, p = length_of(p, word(code, 4))
    if length < -word(code, 5) or length > end - p:
        return np.int64(_BAD)
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
    """A list of int8, which lies as bytes do."""
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
    """A string or bytes that nobody is to see: null, whatever it is."""
    length, p = length_of(p, word(code, 4))
    if length < -word(code, 5) or length > min(end - p, word(code, 3)):
        return np.int64(_BAD)
    store_8(word(code, 2) + row, np.int64(0))
    offsets = word(code, 1) + 4 * row
    store_32(offsets + 4, load_raw32(offsets))
    return p + max(length, np.int64(0))


@inline
def read_count(code: Int, p: Int, end: Int, row: Int) -> Pair:
    """The number of elements of an array, 0 for null; its offset and validity are written."""
    length, p = length_of(p, word(code, 3))
    if length < -word(code, 4) or length * word(code, 5) > end - p:
        return np.int64(0), np.int64(_BAD)
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
        return np.int64(_BAD)
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
    return np.int64(_BAD)


@plain
def read_records(code: Int, p: Int, end: Int, row: Int) -> Int:
    """Record data: its size, and a row for each batch, or null where these are no batches."""
    length, p = length_of(p, word(code, 2))
    if length < -word(code, 3) or length > end - p:
        return np.int64(_BAD)
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


@plain
def begin_section(section: Int, code: Int, number: Int, p: Int, end: Int) -> Pair:
    """On the stack: tags left, the last one's number, those seen, where the present one ends, the operation."""
    if number > 0x7F:
        return code, np.int64(_BAD)
    store_64(section, number)
    store_64(section + 8, np.int64(-1))
    store_64(section + 16, np.int64(0))
    store_64(section + 32, code)
    return next_tag(section, p, end)


@plain
def next_tag(section: Int, p: Int, end: Int) -> Pair:
    """(before the first operation, position) of the next tag's content: known tags in ascending order, or none."""
    code = word(section, 4)
    number, p = long_varint(p, np.int64(0))
    if number <= word(section, 1):
        return code, np.int64(_BAD)
    size, p = long_varint(p, np.int64(0))
    if size < 0 or size > end - p:
        return code, np.int64(_BAD)
    store_64(section, word(section, 0) - 1)
    store_64(section + 8, number)
    store_64(section + 24, p + size)
    for index in range(word(code, 5)):
        tag = word(code, 4) + _TAG * index
        if word(tag, 0) == number:
            store_64(section + 16, word(section, 2) | (np.int64(1) << index))
            return word(tag, 1) - _STEP, p
    return code, np.int64(_BAD)


@plain
def end_section(section: Int, row: Int) -> Int:
    """Fills what was not there; before the operation behind the section."""
    code = word(section, 4)
    for index in range(word(code, 5)):
        if word(section, 2) >> index & 1 == 0:
            tag = word(code, 4) + _TAG * index
            fill(word(tag, 2), word(tag, 3), row)
    return word(code, 1) - _STEP
