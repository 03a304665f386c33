"""Runs a program over the bytes of many frames and fills the buffers of their columns.

It makes one pass over each frame. A frame that is neither in the one form Kafka writes nor close to it is left to the
careful codec (status 1), and its row is overwritten by the next. Nothing is written after a column's room: every row of
a column takes bytes of the frame, so the bytes of the remaining frames limit the number of rows, and the kernel stops
before the frame that might not fit. Bytes after a frame's end may be read before the end is checked. After the last
frame there are none, so its end is copied to a place with bytes after it, and reading continues there.

A row of a list stores where the rows of its elements end, so no counters are needed: the row of the frame leads to all
others, and a frame that fails leaves nothing to undo.
"""

import numpy as np

from kafkascope.columnar.compiling.jit import inline, plain
from kafkascope.columnar.kernel.arguments import (
    ACTIVE_CODE,
    CODE,
    COUNTED,
    EXTENTS,
    EXTENTS_COUNT,
    FIRST_OFFSETS,
    FITTING,
    FRAME_ENDS,
    FRAMES_BASE,
    LAST_FRAME,
    LIMIT,
    NOTED_ROWS,
    NOTED_TAGS,
    OFFSETS_COUNT,
    OPEN_CODE,
    STACK,
    TAIL,
    TAIL_SHIFT,
    TAIL_SIZE,
)
from kafkascope.columnar.kernel.fixed_fields import fill, read_run
from kafkascope.columnar.kernel.memory import (
    apart,
    copy_bytes,
    load_raw32,
    load_raw64,
    load_u8,
    store_8,
    store_32,
    store_64,
    word,
)
from kafkascope.columnar.kernel.signatures import Bool, Int, Pair
from kafkascope.columnar.kernel.tag_sections import begin_section, end_section, next_tag
from kafkascope.columnar.kernel.values import (
    read_blob,
    read_count,
    read_ints,
    read_list,
    read_records,
    read_small_ints,
    read_text,
    step_over,
    try_list,
)
from kafkascope.columnar.operations import (
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
    TAG_END,
    TAGS,
    TEXT,
    TRY_RUNS,
    UUID,
)

_STEP = 8 * OPERATION
_ARRAY = 8 * ARRAY_DEPTH
_SECTION = 8 * SECTION_DEPTH
# Frames that the second program reads before the first is tried again.
_MOST_OPEN = 64


@plain
def read_frames(job: Int, base: Int, ends: Int, frame: Int, frames: Int, row: Int, status: Int) -> Pair:
    """(the first frame that might not fit, or `frames`; the row after the last). `ends` are where frames end, counted
    from `base`; `arguments` lists the words of a job."""
    closed, opened = word(job, CODE), word(job, OPEN_CODE)
    counted = word(job, COUNTED)
    if row == 0:
        store_64(job + 8 * NOTED_TAGS, np.int64(0))
        for index in range(word(job, OFFSETS_COUNT)):
            store_32(word(word(job, FIRST_OFFSETS), index), np.int64(0))
    store_64(job + 8 * FRAMES_BASE, base)
    store_64(job + 8 * FRAME_ENDS, ends)
    copy_tail(job, base + load_raw32(ends + 4 * frame), base + load_raw32(ends + 4 * frames))
    open_frames = np.int64(0)
    while frame < frames:
        fitting = load_raw32(ends + 4 * frame) + bytes_that_fit(job, counted, row)
        store_64(job + 8 * FITTING, fitting)
        if load_raw32(ends + 4 * frame + 4) > fitting:
            break
        if open_frames == 0:
            frame, row = read_good(job, closed, frame, frames, row)
            if frame == frames or load_raw32(ends + 4 * frame + 4) > fitting:
                continue
            forget(job, row)
            open_frames = np.int64(1)
        # Try again with the program that takes a tag anywhere, and use it for the next frames while they have such
        # tags.
        noted, last = word(job, NOTED_TAGS), min(frames, frame + open_frames)
        frame, row = read_good(job, opened, frame, last, row)
        if frame < last and load_raw32(ends + 4 * frame + 4) <= fitting:
            forget(job, row)
            store_8(status + frame, np.int64(1))
            frame += 1
        tagged = word(job, NOTED_TAGS) > noted
        open_frames = min(2 * open_frames, np.int64(_MOST_OPEN)) if tagged else np.int64(0)
    bytes_that_fit(job, counted, row)
    return frame, row


@plain
def read_good(job: Int, code: Int, frame: Int, frames: Int, row: Int) -> Pair:
    """Reads frames up to the first that doesn't fit or that this program doesn't read; returns that frame and the
    row."""
    apart()
    store_64(job + 8 * ACTIVE_CODE, code)
    store_64(job + 8 * LAST_FRAME, frames)
    # The code that notes an unknown tag looks for the row there.
    store_64(word(job, STACK), row)
    while frame < word(job, LAST_FRAME):
        end = load_raw32(word(job, FRAME_ENDS) + 4 * frame + 4)
        if end > word(job, FITTING):
            break
        start = word(job, FRAMES_BASE) + load_raw32(word(job, FRAME_ENDS) + 4 * frame)
        if not read_frame(job, word(job, ACTIVE_CODE), word(job, STACK), start, word(job, FRAMES_BASE) + end):
            break
        store_64(word(job, STACK), word(word(job, STACK), 0) + 1)
        frame += 1
    return frame, word(word(job, STACK), 0)


@plain
def forget(job: Int, row: Int) -> None:
    """Drops the unknown tags that were noted for a frame."""
    noted = word(job, NOTED_TAGS)
    while noted and load_raw32(word(job, NOTED_ROWS) + 4 * noted - 4) == row:
        noted -= 1
    store_64(job + 8 * NOTED_TAGS, noted)


@inline
def copy_tail(job: Int, start: Int, end: Int) -> None:
    """Sets where to switch to the copy, and how far away that is. Short frames are copied whole."""
    size = min(word(job, TAIL_SIZE), end - start)
    copy_bytes(word(job, TAIL), end - size, size)
    # If all frames are in the copy, they start after its beginning.
    store_64(job + 8 * LIMIT, start - 1 if size == end - start else end - size)
    store_64(job + 8 * TAIL_SHIFT, word(job, TAIL) - (end - size))


@plain
def bytes_that_fit(job: Int, counted: Int, row: Int) -> Int:
    """How many bytes of frames surely fit into the remaining room; counts the rows of each group on the way. An extent
    is a list's or a string's column: its group, its offsets, the room of its contents, the fewest bytes of one of them,
    and the group of its contents."""
    store_64(counted, row)
    fitting = np.int64(1 << 62)
    for index in range(word(job, EXTENTS_COUNT)):
        extent = word(job, EXTENTS) + 40 * index
        used = load_raw32(word(extent, 1) + 4 * word(counted, word(extent, 0)))
        store_64(counted + 8 * word(extent, 4), used)
        # One more than the bytes suggest may be begun and not finished.
        fitting = min(fitting, (word(extent, 2) - used - 1) * word(extent, 3))
    return fitting


@inline
def read_frame(job: Int, code: Int, stack: Int, p: Int, end: Int) -> Bool:
    """Reads one frame, from `p` to `end`, into the row on the stack; from `LIMIT` on it is read `TAIL_SHIFT` bytes
    away."""
    last = np.int64(0)
    row = word(stack, 0)
    stack += 8
    stop = min(end, word(job, LIMIT))
    if p > stop:
        p, end = p + word(job, TAIL_SHIFT), end + word(job, TAIL_SHIFT)
        stop = end
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
            while p <= stop and word(code + _STEP, 0) == INTS and word(code + _STEP, RUN_AT) == 0:
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
                code, p = begin_section(stack, code, p - 1, end, row)
                stack += _SECTION
        elif op == TAG_END:
            if end - p != word(stack - _SECTION, 3):
                return False
            if word(stack - _SECTION, 0) == 0:
                stack -= _SECTION
                code = end_section(stack, row)
            else:
                code, p = next_tag(stack - _SECTION, p, end, row)
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
        elif op == TRY_RUNS:
            tried = try_list(code, p, end, row)
            if tried != p:
                p = tried
                code = word(code, 2) - _STEP
        elif op != NOTHING:
            # Bytes after the message belong to no field.
            return op == END and p <= end
        if p > stop:
            if p > end:
                return False
            p, end = p + word(job, TAIL_SHIFT), end + word(job, TAIL_SHIFT)
            stop = end
        code += _STEP
        # Check for an element's end here, not above: it is the most common case, and a branch costs less than a jump.
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
