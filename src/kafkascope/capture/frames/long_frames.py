"""Moves a frame that is longer than a portion from the pool to the output. Never holds it twice: at the largest, that
would be a tenth of a gigabyte."""

from kafkascope.capture.base.flow import Bytes, Int64s
from kafkascope.capture.frames.chunks import free_chunks
from kafkascope.capture.frames.frame_table import (
    CHUNK,
    MOVED,
    STEP_CHUNKS,
    Partial,
    Tables,
    give_back,
)


def move_long(tables: Tables, state: Int64s, body: Bytes) -> None:
    """What was collected of a frame to the beginning of `body`, without being there twice: the system has the memory of
    its chunks back as they are copied."""
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
