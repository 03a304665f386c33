"""Collects the bytes of unfinished frames in chunks of a bounded pool; a damaged frame keeps the first chunk alone, for
its header."""

from typing import Any

from kafkascope.capture.base.checked import copy
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.frames.frame_table import CHUNK, MOVED, FrameCount, Partial
from kafkascope.columnar.compiling.jit import jit


@jit
def begin_frame(state: Any) -> None:
    state[Partial.HAVE] = 0
    state[Partial.PREFIX] = 0
    state[Partial.LENGTH] = -1
    state[Partial.FILLED] = 0
    state[Partial.DAMAGED] = 0


@jit
def held_bytes(state: Any) -> Number:
    """Bytes of an unfinished frame in its chunks: of a damaged frame those before its first missing byte, at most one
    chunk."""
    return state[Partial.FILLED] if state[Partial.DAMAGED] == 0 else state[Partial.DAMAGED] - 1


@jit
def damage(following: Any, count: Any, state: Any) -> None:
    """Bytes of the frame are missing. The first chunk is kept, for its header."""
    if state[Partial.DAMAGED]:
        return
    if state[Partial.FILLED] > CHUNK:
        following[state[Partial.TAIL]] = count[FrameCount.FREE_CHUNK]
        count[FrameCount.FREE_CHUNK] = following[state[Partial.HEAD]]
        count[FrameCount.FREE_CHUNKS] += (state[Partial.FILLED] + CHUNK - 1) // CHUNK - 1
        following[state[Partial.HEAD]] = -1
        state[Partial.TAIL] = state[Partial.HEAD]
    state[Partial.DAMAGED] = 1 + min(state[Partial.FILLED], CHUNK)


@jit
def free_chunks(following: Any, count: Any, state: Any) -> None:
    if state[Partial.HEAD] >= 0:
        number = (held_bytes(state) + CHUNK - 1) // CHUNK
        following[state[Partial.TAIL]] = count[FrameCount.FREE_CHUNK]
        count[FrameCount.FREE_CHUNK] = state[Partial.HEAD]
        count[FrameCount.FREE_CHUNKS] += number
    state[Partial.HEAD] = -1
    state[Partial.TAIL] = -1


@jit
def collect(pool: Any, following: Any, count: Any, state: Any, source: Any, start: int, length: int) -> None:
    """Adds bytes to an unfinished frame; there are enough free chunks."""
    while length > 0:
        used = state[Partial.FILLED] % CHUNK
        if used == 0:
            chunk = count[FrameCount.FREE_CHUNK]
            count[FrameCount.FREE_CHUNK] = following[chunk]
            count[FrameCount.FREE_CHUNKS] -= 1
            following[chunk] = -1
            if state[Partial.HEAD] < 0:
                state[Partial.HEAD] = chunk
            else:
                following[state[Partial.TAIL]] = chunk
            state[Partial.TAIL] = chunk
        part = min(length, CHUNK - used)
        copy(pool, state[Partial.TAIL] * CHUNK + used, source, start, part)
        state[Partial.FILLED] += part
        start += part
        length -= part


@jit
def collected(pool: Any, following: Any, state: Any, body: Any, target: int) -> None:
    """Copies the collected bytes to place `target` of `body`, unless they are in `body` already."""
    left = state[Partial.FILLED] if state[Partial.HEAD] != MOVED else 0
    chunk = state[Partial.HEAD]
    while left > 0:
        part = min(left, CHUNK)
        copy(body, target, pool, chunk * CHUNK, part)
        target += part
        left -= part
        chunk = following[chunk]
