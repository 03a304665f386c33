"""Bytes of frames that are not complete, in chunks of a pool that cannot grow without end; of a frame that is damaged
the first chunk alone, for its header."""

from typing import Any

from kafkascope.capture.base.checked import copy
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.frames.frame_table import (
    CHUNK,
    DAMAGED,
    FILLED,
    FREE_CHUNK,
    FREE_CHUNKS,
    HAVE,
    HEAD,
    LENGTH,
    MOVED,
    PREFIX,
    TAIL,
)
from kafkascope.columnar.compiling.jit import jit


@jit
def begin_frame(state: Any) -> None:
    state[HAVE] = 0
    state[PREFIX] = 0
    state[LENGTH] = -1
    state[FILLED] = 0
    state[DAMAGED] = 0


@jit
def held_bytes(state: Any) -> Number:
    """Of an unfinished frame, in chunks: of a damaged one those before its first missing byte, as far as one chunk."""
    return state[FILLED] if state[DAMAGED] == 0 else state[DAMAGED] - 1


@jit
def damage(following: Any, count: Any, state: Any) -> None:
    """Bytes of the frame are missing. What is there of its header is kept."""
    if state[DAMAGED]:
        return
    if state[FILLED] > CHUNK:
        following[state[TAIL]] = count[FREE_CHUNK]
        count[FREE_CHUNK] = following[state[HEAD]]
        count[FREE_CHUNKS] += (state[FILLED] + CHUNK - 1) // CHUNK - 1
        following[state[HEAD]] = -1
        state[TAIL] = state[HEAD]
    state[DAMAGED] = 1 + min(state[FILLED], CHUNK)


@jit
def free_chunks(following: Any, count: Any, state: Any) -> None:
    if state[HEAD] >= 0:
        number = (held_bytes(state) + CHUNK - 1) // CHUNK
        following[state[TAIL]] = count[FREE_CHUNK]
        count[FREE_CHUNK] = state[HEAD]
        count[FREE_CHUNKS] += number
    state[HEAD] = -1
    state[TAIL] = -1


@jit
def collect(pool: Any, following: Any, count: Any, state: Any, source: Any, start: int, length: int) -> None:
    """More bytes of an unfinished frame; there are enough free chunks."""
    while length > 0:
        used = state[FILLED] % CHUNK
        if used == 0:
            made = count[FREE_CHUNK]
            count[FREE_CHUNK] = following[made]
            count[FREE_CHUNKS] -= 1
            following[made] = -1
            if state[HEAD] < 0:
                state[HEAD] = made
            else:
                following[state[TAIL]] = made
            state[TAIL] = made
        part = min(length, CHUNK - used)
        copy(pool, state[TAIL] * CHUNK + used, source, start, part)
        state[FILLED] += part
        start += part
        length -= part


@jit
def collected(pool: Any, following: Any, state: Any, body: Any, target: int) -> None:
    """What was collected to place `target` of `body`, where it is not there already."""
    left = state[FILLED] if state[HEAD] != MOVED else 0
    chunk = state[HEAD]
    while left > 0:
        part = min(left, CHUNK)
        copy(body, target, pool, chunk * CHUNK, part)
        target += part
        left -= part
        chunk = following[chunk]
