"""The kernel: a program and the bytes of many frames in, filled column buffers out.

One pass over each frame. A frame that is not in the one form Kafka writes is left to the careful codec (status 1), and
its row is written again by the next. Nothing is read before its end is compared with the frame's. Nothing is written
behind a column's room: every row of a column takes bytes of the frame, so the bytes of the frames to come say how many
rows there can be at the most, and the kernel stops before the frame that might not fit.

A row of a list tells where the rows of its elements end, so that no counters are kept: the row of the frame leads to
all others, and a frame that fails leaves nothing to undo.
"""

import numpy as np

from kafkascope.columnar.batches import read_batches
from kafkascope.columnar.kernel import inline, plain
from kafkascope.columnar.memory import (
    copy_bytes,
    load_i16,
    load_i32,
    load_i64,
    load_raw32,
    load_raw64,
    load_u8,
    store_8,
    store_16,
    store_32,
    store_64,
    word,
)
from kafkascope.columnar.program import (
    AGAIN,
    ARRAY,
    ARRAY_DEPTH,
    BLOB,
    BOOL,
    END,
    FILL,
    HIDDEN,
    NEXT,
    NO_TAG,
    NO_TAGS,
    ONLY_VALID,
    OPERATION,
    PIECE,
    PRESENT,
    RECORDS,
    RUN,
    RUNS,
    SECTION_DEPTH,
    TAG,
    TAG_END,
    TAGS,
    TEXT,
)
from kafkascope.columnar.scan import copy_text, length_of, varint
from kafkascope.limits import MAX_STRING_BYTES

_STEP = 8 * OPERATION
_PIECE = 8 * PIECE
_FILL = 8 * FILL
_TAG = 8 * TAG


@plain
def read_frames(  # type: ignore[misc]
    code: int, stack: int, extents: int, extents_count: int, rows: int, base: int, ends: int, frame: int, frames: int,
    row: int, status: int,
) -> tuple[int, int]:  # fmt: skip
    """(the first frame that might not fit, or their number; the row behind the last). `ends` are where frames end,
    counted from `base`; `rows` is room for the number of rows in each group."""
    limit = base + word(ends, frames)
    while frame < frames:
        fitting = word(ends, frame) + bytes_that_fit(extents, extents_count, rows, row)
        if word(ends, frame + 1) > fitting:
            break
        while frame < frames and word(ends, frame + 1) <= fitting:
            if read_frame(code, stack, base + word(ends, frame), base + word(ends, frame + 1), limit, row):
                row += 1
            else:
                store_8(status + frame, np.int64(1))
            frame += 1
    return frame, row


@plain
def bytes_that_fit(extents: int, count: int, rows: int, row: int) -> int:  # type: ignore[misc]
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


@plain
def read_frame(code: int, stack: int, p: int, end: int, limit: int, row: int) -> bool:  # type: ignore[misc]
    """One frame, from `p` to `end`, into row `row`. Bytes up to `limit` may be read, but say nothing."""
    last = np.int64(0)
    while True:
        op = word(code, 0)
        if op == RUN:
            if end - p < word(code, 1) or not read_run(word(code, 2), word(code, 3), p, row):
                return False
            p += word(code, 1)
        elif op == TEXT:
            p = read_text(code, p, end, limit, row)
        elif op == NEXT:
            row += 1
            if row < last:
                code = word(code, 1)
                continue
            stack -= 8 * ARRAY_DEPTH
            row, last = word(stack, 0), word(stack, 1)
        elif op == NO_TAGS:
            if p >= end or load_u8(p) != 0:
                return False
            p += 1
        elif op == ARRAY:
            length, p = read_count(code, p, end, row)
            if p == 0:
                return False
            if length == 0:
                code = word(code, 6)
                continue
            store_64(stack, row)
            store_64(stack + 8, last)
            stack += 8 * ARRAY_DEPTH
            last = load_raw32(word(code, 1) + 4 * row + 4)
            row = last - length
        elif op == RUNS:
            length, p = read_count(code, p, end, row)
            if p == 0:
                return False
            if length:
                first = load_raw32(word(code, 1) + 4 * row)
                if not read_runs(word(code, 6), word(code, 7), p, word(code, 5), length, first):
                    return False
                p += length * word(code, 5)
        elif op == TAGS:
            if p >= end:
                return False
            number = load_u8(p)
            p += 1
            if number == 0:
                fill(word(code, 2), word(code, 3), row)
                code = word(code, 1)
                continue
            if number > 0x7F:
                return False
            begin_section(stack, code, number)
            stack += 8 * SECTION_DEPTH
            code, p = next_tag(stack - 8 * SECTION_DEPTH, p, end)
            if p == 0:
                return False
            continue
        elif op == TAG_END:
            section = stack - 8 * SECTION_DEPTH
            if p != word(section, 3):
                return False
            if word(section, 0) == 0:
                stack = section
                code = end_section(section, row)
                continue
            code, p = next_tag(section, p, end)
            if p == 0:
                return False
            continue
        elif op == PRESENT:
            if p >= end:
                return False
            present = load_u8(p)
            p += 1
            store_8(word(code, 1) + row, np.int64(present == 1))
            if present != 1:
                if present != word(code, 2):
                    return False
                fill(word(code, 4), word(code, 5), row)
                code = word(code, 3)
                continue
        elif op == BLOB:
            p = read_blob(code, p, end, row)
        elif op == HIDDEN:
            p = step_over(code, p, end, row)
        elif op == RECORDS:
            p = read_records(code, p, end, row)
        else:
            return op == END and p == end
        if p == 0:
            return False
        code += _STEP


@inline
def read_run(piece: int, count: int, p: int, row: int) -> bool:  # type: ignore[misc]
    """Fields of fixed size side by side; False for a bool that is neither 0 nor 1, or for a tag."""
    for _ in range(count):
        kind, values, at = word(piece, 0), word(piece, 1), p + word(piece, 2)
        if kind == 4:
            store_32(values + 4 * row, load_i32(at))
        elif kind == 8:
            store_64(values + 8 * row, load_i64(at))
        elif kind == NO_TAG:
            if load_u8(at) != 0:
                return False
        elif kind == 2:
            store_16(values + 2 * row, load_i16(at))
        elif kind == 16:
            store_64(values + 16 * row, load_raw64(at))
            store_64(values + 16 * row + 8, load_raw64(at + 8))
        else:
            byte = load_u8(at)
            if kind == BOOL and byte > 1:
                return False
            store_8(values + row, byte)
        piece += _PIECE
    return True


@inline
def read_runs(piece: int, count: int, p: int, size: int, length: int, first: int) -> bool:  # type: ignore[misc]
    """The same for `length` elements of `size` bytes, column by column."""
    for _ in range(count):
        kind, values, at = word(piece, 0), word(piece, 1), p + word(piece, 2)
        if kind == 4:
            values += 4 * first
            for index in range(length):
                store_32(values + 4 * index, load_i32(at + size * index))
        elif kind == 8:
            values += 8 * first
            for index in range(length):
                store_64(values + 8 * index, load_i64(at + size * index))
        elif kind == NO_TAG:
            found = np.int64(0)
            for index in range(length):
                found |= load_u8(at + size * index)
            if found != 0:
                return False
        elif kind == 2:
            values += 2 * first
            for index in range(length):
                store_16(values + 2 * index, load_i16(at + size * index))
        elif kind == 16:
            values += 16 * first
            for index in range(length):
                store_64(values + 16 * index, load_raw64(at + size * index))
                store_64(values + 16 * index + 8, load_raw64(at + size * index + 8))
        else:
            values += first
            highest = np.int64(0)
            for index in range(length):
                byte = load_u8(at + size * index)
                highest |= byte
                store_8(values + index, byte)
            if kind == BOOL and highest > 1:
                return False
        piece += _PIECE
    return True


@inline
def read_count(code: int, p: int, end: int, row: int) -> tuple[int, int]:  # type: ignore[misc]
    """The number of elements of an array, 0 for null; its offset and validity are written."""
    length, p = length_of(p, end, word(code, 3))
    if p == 0 or length < -word(code, 4) or length * word(code, 5) > end - p:
        return np.int64(0), np.int64(0)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(length >= 0))
    length = max(length, np.int64(0))
    offsets = word(code, 1) + 4 * row
    store_32(offsets + 4, load_raw32(offsets) + length)
    return length, p


@inline
def read_text(code: int, p: int, end: int, limit: int, row: int) -> int:  # type: ignore[misc]
    length, p = length_of(p, end, word(code, 4))
    if p == 0 or length < -word(code, 5) or length > min(end - p, np.int64(MAX_STRING_BYTES)):
        return np.int64(0)
    offsets = word(code, 1) + 4 * row
    used = load_raw32(offsets)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(length >= 0))
        length = max(length, np.int64(0))
    store_32(offsets + 4, used + length)
    if not copy_text(word(code, 3) + used, p, length, limit):
        return np.int64(0)
    return p + length


@inline
def read_blob(code: int, p: int, end: int, row: int) -> int:  # type: ignore[misc]
    length, p = length_of(p, end, word(code, 4))
    if p == 0 or length < -word(code, 5) or length > end - p:
        return np.int64(0)
    offsets = word(code, 1) + 4 * row
    used = load_raw32(offsets)
    if word(code, 2):
        store_8(word(code, 2) + row, np.int64(length >= 0))
        length = max(length, np.int64(0))
    store_32(offsets + 4, used + length)
    copy_bytes(word(code, 3) + used, p, length)
    return p + length


@inline
def step_over(code: int, p: int, end: int, row: int) -> int:  # type: ignore[misc]
    """A string or bytes that nobody is to see: null, whatever it is."""
    length, p = length_of(p, end, word(code, 4))
    if p == 0 or length < -word(code, 5) or length > min(end - p, word(code, 3)):
        return np.int64(0)
    store_8(word(code, 2) + row, np.int64(0))
    offsets = word(code, 1) + 4 * row
    store_32(offsets + 4, load_raw32(offsets))
    return p + max(length, np.int64(0))


@inline
def read_records(code: int, p: int, end: int, row: int) -> int:  # type: ignore[misc]
    """Record data: its size, and a row for each batch, or null where these are no batches."""
    length, p = length_of(p, end, word(code, 2))
    if p == 0 or length < -word(code, 3) or length > end - p:
        return np.int64(0)
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


@inline
def fill(entry: int, count: int, row: int) -> None:  # type: ignore[misc]
    """Defaults, for fields that are not there."""
    for _ in range(count):
        kind, values, value = word(entry, 0), word(entry, 1), word(entry, 3)
        if word(entry, 2):
            store_8(word(entry, 2) + row, word(entry, 4))
        if kind == AGAIN:
            store_32(values + 4 * row + 4, load_raw32(values + 4 * row))
        elif kind == 4:
            store_32(values + 4 * row, value)
        elif kind == 8:
            store_64(values + 8 * row, value)
        elif kind == 16:
            store_64(values + 16 * row, np.int64(0))
            store_64(values + 16 * row + 8, np.int64(0))
        elif kind == 2:
            store_16(values + 2 * row, value)
        elif kind != ONLY_VALID:
            store_8(values + row, value)
        entry += _FILL


@inline
def begin_section(section: int, code: int, number: int) -> None:  # type: ignore[misc]
    """On the stack: tags left, the last one's number, those seen, where the present one ends, the operation."""
    store_64(section, number)
    store_64(section + 8, np.int64(-1))
    store_64(section + 16, np.int64(0))
    store_64(section + 32, code)


@plain
def next_tag(section: int, p: int, end: int) -> tuple[int, int]:  # type: ignore[misc]
    """(first operation, position) of the next tag's content; known tags in ascending order, or else position 0."""
    nothing = np.int64(0)
    number, p = varint(p, end)
    if p == 0 or number <= word(section, 1):
        return nothing, nothing
    size, p = varint(p, end)
    if p == 0 or size > end - p:
        return nothing, nothing
    store_64(section, word(section, 0) - 1)
    store_64(section + 8, number)
    store_64(section + 24, p + size)
    code = word(section, 4)
    for index in range(word(code, 5)):
        tag = word(code, 4) + _TAG * index
        if word(tag, 0) == number:
            store_64(section + 16, word(section, 2) | (np.int64(1) << index))
            return word(tag, 1), p
    return nothing, nothing


@plain
def end_section(section: int, row: int) -> int:  # type: ignore[misc]
    """Fills what was not there; the operation behind the section."""
    code = word(section, 4)
    for index in range(word(code, 5)):
        if word(section, 2) >> index & 1 == 0:
            tag = word(code, 4) + _TAG * index
            fill(word(tag, 2), word(tag, 3), row)
    return word(code, 1)
