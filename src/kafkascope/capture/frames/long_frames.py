"""Moves a frame that is longer than a portion from the pool to the output, and never holds it twice."""

from kafkascope.capture.base.flow import Bytes, Int64s
from kafkascope.capture.frames.chunks import free_chunks
from kafkascope.capture.frames.frame_table import CHUNK, MOVED, STEP_CHUNKS, Partial, Tables, give_back


def move_long(tables: Tables, state: Int64s, body: Bytes) -> None:
    """Moves the collected bytes of a frame to the start of `body`. The memory of its chunks goes back to the system as
    they are copied: the largest frames are a tenth of a gigabyte."""
    following, counts = tables.following, tables.counts
    chunk, to = int(state[Partial.HEAD]), 0
    while chunk >= 0:
        first, count = chunk, 1
        # Chunks that are side by side go together.
        while count < STEP_CHUNKS and following.item(chunk) == chunk + 1:
            chunk, count = chunk + 1, count + 1
        part = tables.pool[first * CHUNK : (first + count) * CHUNK]
        size = min(len(part), int(state[Partial.FILLED]) - to)
        body[to : to + size] = part[:size]
        to += size
        give_back(tables.pool, first * CHUNK, len(part))
        chunk = following.item(chunk)
    free_chunks(following, counts, state)
    state[Partial.HEAD] = MOVED
