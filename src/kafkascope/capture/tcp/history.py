"""Remembers what each stream delivered last, to find how many bytes of a retransmission differ and when they first
came. There is one ring per stream; streams whose numbers share a ring take it over from each other."""

from typing import Any

from kafkascope.capture.base.checked import copy, differing_bytes
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.tcp.stream_table import MARKS, RING_BYTES, RINGS, Tables
from kafkascope.columnar.compiling.jit import jit

FORGOTTEN = -(1 << 62)


@jit
def remember(
    owner: Any,
    low: Any,
    marks: Any,
    ring: Any,
    stream: int,
    offset: int,
    source: Any,
    start: int,
    length: int,
    time: int,
) -> None:
    """Remembers `length` bytes of `source` from `start` on. The arrays are separate arguments because every in-order
    segment passes here, and passing all tables takes longer than the rest."""
    slot = stream & (RINGS - 1)
    if owner[slot] != stream:
        owner[slot] = stream
        low[slot] = offset
        for index in range(MARKS):
            marks[slot, index, 0] = -1
    end = offset + length
    # The place of a mark follows from its end: no counter is needed, and older marks are overwritten.
    mark = (end >> 10) & (MARKS - 1)
    marks[slot, mark, 0] = end
    marks[slot, mark, 1] = time
    if length > RING_BYTES:
        start += length - RING_BYTES
        length = RING_BYTES
    at = (end - length) & (RING_BYTES - 1)
    base = slot * RING_BYTES
    first = min(length, RING_BYTES - at)
    copy(ring, base + at, source, start, first)
    if first < length:
        copy(ring, base, source, start + first, length - first)
    low[slot] = max(low[slot], end - RING_BYTES)


@jit
def forget_before(t: Tables, stream: int, offset: int) -> None:
    """A gap ends at `offset`: nothing before it is compared any more."""
    slot = stream & (RINGS - 1)
    if t.ring_owner[slot] == stream:
        t.ring_low[slot] = offset


@jit
def time_of(t: Tables, stream: int, end: int) -> Number:
    """When the byte before `end` first came, `FORGOTTEN` if that is forgotten."""
    slot = stream & (RINGS - 1)
    # Nothing before the first byte seen was ever delivered.
    if t.ring_owner[slot] != stream or end <= 0:
        return FORGOTTEN
    best = -1
    time = FORGOTTEN
    for index in range(MARKS):
        mark = t.marks[slot, index, 0]
        if mark >= end and (best < 0 or mark < best):
            best = mark
            time = t.marks[slot, index, 1]
    return time


@jit
def differing_from_delivered(t: Tables, stream: int, start: int, end: int, data: Any, place: int) -> Number:
    """How many of the bytes at `place`, for offsets `start` to `end`, differ from those delivered before."""
    slot = stream & (RINGS - 1)
    if t.ring_owner[slot] != stream:
        return 0
    low = max(start, t.ring_low[slot])
    base = slot * RING_BYTES
    different = 0
    while low < end:
        at = low & (RING_BYTES - 1)
        length = min(end - low, RING_BYTES - at)
        different += differing_bytes(t.ring, base + at, data, place + (low - start), length)
        low += length
    return different
