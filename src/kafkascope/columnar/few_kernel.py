"""Works in, tables out: the frames of each are read into the scratch memory and packed out of it, one by one."""

import numpy as np

from kafkascope.columnar.job import FORM_SIZE, NOTED
from kafkascope.columnar.kernel import Int, Pair, plain
from kafkascope.columnar.machine import read_frames
from kafkascope.columnar.memory import store_8, store_64, word
from kafkascope.columnar.pack import pack, packed_size

# The words of a work: a job or 0, the frames, and what the kernel says: where its table begins, and how long it is.
JOB, BASE, ENDS, COUNT, AT, SIZE = range(6)
WORDS = 6
_LINE = 64


@plain
def read_few(works: Int, index: Int, count: Int, target: Int, room: Int, status: Int) -> Pair:
    """(the first work whose table has no room, or `count`; bytes of the tables). A table's size is 0 where it has
    something that the careful codec must see to."""
    used = np.int64(0)
    while index < count:
        work = works + 8 * WORDS * index
        job, frames = word(work, JOB), word(work, COUNT)
        store_64(work + 8 * SIZE, np.int64(0))
        if job:
            frame, row = read_frames(job, word(work, BASE), word(work, ENDS), np.int64(0), frames, np.int64(0), status)
            if frame == frames and row == frames and word(job, NOTED) == 0:
                if packed_size(job) > room - used:
                    break
                size = word(job, FORM_SIZE) + pack(job, target + used)
                store_64(work + 8 * AT, used)
                store_64(work + 8 * SIZE, size)
                used += (size + (_LINE - 1)) & -_LINE
            else:
                for bad in range(frames):
                    store_8(status + bad, np.int64(0))
        index += 1
    return index, used
