"""Works in, tables out: the frames of each version are read into the scratch memory and packed out of it, one by one,
and joined to one table a message."""

import numpy as np

from kafkascope.columnar.compiling.jit import plain
from kafkascope.columnar.kernel.arguments import FORM_SIZE, NOTED_TAGS
from kafkascope.columnar.kernel.join import join, joined_size
from kafkascope.columnar.kernel.machine import read_frames
from kafkascope.columnar.kernel.memory import store_8, store_64, word
from kafkascope.columnar.kernel.pack import lines, pack, packed_size
from kafkascope.columnar.kernel.signatures import Int, Pair

# The words of a work: a job or 0, and how many frames.
WORK_JOB, WORK_FRAMES = range(2)
WORK_WORDS = 2
# Those of a message: its works, its first row of all, its form, and what the kernel says: where its table begins, and
# how long it is.
WORKS, WORKS_END, FIRST_ROW, TABLE_FORM, TABLE_AT, TABLE_SIZE = range(6)
MESSAGE_WORDS = 6
# What is the same for all: works, messages, where frames lie and end, what stands in front of every table, a byte for
# each frame of a work, room for the packed tables of one message and for their addresses.
ALL_WORKS, ALL_MESSAGES, BATCH_BASE, BATCH_ENDS, FRONT_COLUMNS, FRAME_STATUS, STAGE, STAGE_SIZE, TABLE_PARTS = range(9)
TASK_WORDS = 9


@plain
def read_few(task: Int, index: Int, count: Int, target: Int, room: Int) -> Pair:
    """(the first message whose table has no room, or `count`; bytes of the tables). A table's size is 0 where it has
    something that the careful codec must see to."""
    used = np.int64(0)
    while index < count:
        message = word(task, ALL_MESSAGES) + 8 * MESSAGE_WORDS * index
        store_64(message + 8 * TABLE_SIZE, np.int64(0))
        rows = _stage(task, message)
        if rows >= 0:
            works = word(message, WORKS_END) - word(message, WORKS)
            job = word(word(task, ALL_WORKS) + 8 * WORK_WORDS * word(message, WORKS), WORK_JOB)
            parts, whole, front, first = (
                word(task, TABLE_PARTS),
                word(message, TABLE_FORM),
                word(task, FRONT_COLUMNS),
                word(message, FIRST_ROW),
            )
            if joined_size(job, parts, works, whole, front, first, rows) > room - used:
                break
            size = join(job, parts, works, whole, front, first, rows, target + used)
            store_64(message + 8 * TABLE_AT, used)
            store_64(message + 8 * TABLE_SIZE, size)
            used += lines(size)
        index += 1
    return index, used


@plain
def _stage(task: Int, message: Int) -> Int:
    """Packs the tables of all versions; their rows together, -1 where one of them cannot be packed."""
    used, rows = np.int64(0), np.int64(0)
    for index in range(word(message, WORKS), word(message, WORKS_END)):
        work = word(task, ALL_WORKS) + 8 * WORK_WORDS * index
        job, frames = word(work, WORK_JOB), word(work, WORK_FRAMES)
        if job == 0:
            return np.int64(-1)
        ends = word(task, BATCH_ENDS) + 4 * (word(message, FIRST_ROW) + rows)
        frame, row = read_frames(
            job, word(task, BATCH_BASE), ends, np.int64(0), frames, np.int64(0), word(task, FRAME_STATUS)
        )
        if frame < frames or row < frames or word(job, NOTED_TAGS):
            for bad in range(frames):
                store_8(word(task, FRAME_STATUS) + bad, np.int64(0))
            return np.int64(-1)
        if packed_size(job) > word(task, STAGE_SIZE) - used:
            return np.int64(-1)
        part = word(task, STAGE) + used
        store_64(word(task, TABLE_PARTS) + 8 * (index - word(message, WORKS)), part)
        used += lines(word(job, FORM_SIZE) + pack(job, part))
        rows += frames
    return rows
