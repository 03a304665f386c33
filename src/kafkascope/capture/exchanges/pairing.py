"""Requests and their responses: rows of frames in, pairs of row numbers out. One kernel, one pass, frames in the order
of the recording; what is left waits for the next batch.

A broker answers in the order of the requests (protocol note 9), so a response that fits a later request says that the
ones before it will never be answered, or that the recording lost their answers. A response that fits no request is
kept for a while: the recording may have it before its request (protocol note 10).

A hash finds what fits, and nothing walks over what waits: the work depends on the number of rows alone.

Some clients give all requests one correlation id, and order alone pairs them. After a loss it cannot: what may be the
answer to several requests is then the answer to none.
"""

import os
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import (
    FrameKind,
)
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.capture.frames.headers import (
    Frame,
    FrameRows,
)
from kafkascope.columnar.compiling.jit import jit


class PairStatus(IntEnum):
    """What became of a row: `exchanges.status`."""

    ANSWERED = 0
    UNANSWERED = 1
    NO_ANSWER_EXPECTED = 2
    ANSWER_ONLY = 3
    UNDECODED = 4


STATUSES = tuple(status.name.lower() for status in PairStatus)

# Clocks of two interfaces differ, and a recording has a response before its request, by less than this.
EARLIEST_NS = 1_000_000_000
# The longest wait by design is a JoinGroup of max.poll.interval.ms, 5 minutes by default: twice that is no wait.
LONGEST_WAIT_NS = 600_000_000_000
# What AFTER_LOSS says of a request: bytes of the answering stream were lost while it waited, or of its own; it came
# behind such a one with the same correlation id.
LOST_WITH, LOST_BEHIND, IN_DOUBT = 1, 2, 4
# What a row that waits takes beside its bytes while a batch is paired: three copies of it, its links, its pair.
ROW_COST = 512


class RowLink(IntEnum):
    """Where a row is in its lists: that of its direction, and that of the rows with its key. The first row with a
    key leads the others, whether it still waits or not: it has the first and the last that do, and the next leader
    of its slot."""

    BEFORE = 0
    FOLLOWING = 1
    NEXT_ALIKE = 2
    FRONT = 3
    LAST = 4
    NEXT_LEADER = 5


# An odd number that nobody knows: whoever chooses correlation ids cannot choose which of them share a slot (multiply,
# then shift: Dietzfelbinger and others, 1997).
_FACTOR = np.uint64(int.from_bytes(os.urandom(8)) | 1)
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Row numbers, -1 where there is none; `left` are the rows that still wait."""

    request: npt.NDArray[np.int64]
    response: npt.NDArray[np.int64]
    status: npt.NDArray[np.uint8]
    left: npt.NDArray[np.int64]
    lost_answers: int


def pair(rows: FrameRows, waiting: int, connections: int, *, most_bytes: int, finish: bool) -> Pairs:
    """The first `waiting` rows are those that were left before. With `finish` nothing is left; otherwise what has
    waited too long is not, nor are the oldest once they hold more than `most_bytes`, at `ROW_COST` each."""
    count = len(rows)
    request, response = np.empty((2, count), dtype=np.int64)
    status, used = np.empty((2, count), dtype=np.uint8)
    links = np.empty((len(RowLink), count), dtype=np.int32)
    # One list of waiting requests and one of waiting responses per connection: first and last.
    ends = np.empty((2, 2, connections), dtype=np.int64)
    lost_at = np.zeros((2, connections), dtype=np.int64)
    bits = max(1, count.bit_length())
    bucket = np.empty(1 << bits, dtype=np.int32)
    found, left, lost = _pair(
        rows, waiting, request, response, status, used, links, ends, lost_at, bucket, _FACTOR, np.uint64(64 - bits),
        most_bytes, finish,
    )  # fmt: skip
    return Pairs(
        request[:found], response[:found], status[:found], np.flatnonzero(used == 0) if left else _NONE, int(lost)
    )


@jit
def key_of(row: Any) -> Number:
    """Two frames of one direction of a connection with the same key fit the same partners. Raw SASL tokens have no
    correlation ids."""
    place = row[Frame.CONNECTION] << 34 | row[Frame.RESPONSE] << 33
    return place | 1 << 32 if row[Frame.KIND] == FrameKind.TOKEN else place | row[Frame.CORRELATION] & 0xFFFFFFFF


@jit
def slot_of(key: Number, factor: Number, shift: Number) -> Number:
    return np.int64(np.uint64(key) * factor >> shift)


@jit
def leader_of(rows: Any, links: Any, at: Number, key: Number) -> Number:
    """Of the rows with this key, from the first leader of its slot on; -1 where there are none."""
    while at >= 0 and key_of(rows[at]) != key:
        at = np.int64(links[RowLink.NEXT_LEADER, at])
    return at


@jit
def first_with(rows: Any, used: Any, links: Any, bucket: Any, key: Number, factor: Number, shift: Number) -> Number:
    """The first row that waits with this key, -1 where none does. Those with one key leave in their order, so what is
    used is skipped once and for all."""
    leader = leader_of(rows, links, np.int64(bucket[slot_of(key, factor, shift)]), key)
    if leader < 0:
        return leader
    at = np.int64(links[RowLink.FRONT, leader])
    while at >= 0 and used[at]:
        at = np.int64(links[RowLink.NEXT_ALIKE, at])
    links[RowLink.FRONT, leader] = at
    return at


@jit
def put(rows: Any, links: Any, ends: Any, bucket: Any, at: Number, factor: Number, shift: Number) -> None:
    """Behind those that wait already, in both lists that it is on: of its direction, and of its key."""
    side = rows[at, Frame.RESPONSE]
    connection = rows[at, Frame.CONNECTION]
    last = ends[1, side, connection]
    links[RowLink.FOLLOWING, at] = -1
    links[RowLink.BEFORE, at] = last
    if last >= 0:
        links[RowLink.FOLLOWING, last] = at
    else:
        ends[0, side, connection] = at
    ends[1, side, connection] = at
    links[RowLink.NEXT_ALIKE, at] = -1
    key = key_of(rows[at])
    slot = slot_of(key, factor, shift)
    leader = leader_of(rows, links, np.int64(bucket[slot]), key)
    if leader < 0:
        links[RowLink.NEXT_LEADER, at] = bucket[slot]
        links[RowLink.FRONT, at] = at
        links[RowLink.LAST, at] = at
        bucket[slot] = at
        return
    links[RowLink.NEXT_ALIKE, links[RowLink.LAST, leader]] = at
    links[RowLink.LAST, leader] = at
    if links[RowLink.FRONT, leader] < 0:
        links[RowLink.FRONT, leader] = at


@jit
def take_out(rows: Any, links: Any, ends: Any, at: Number) -> None:
    """Of the list of its direction; that of its key sees that it is used."""
    side = rows[at, Frame.RESPONSE]
    connection = rows[at, Frame.CONNECTION]
    before = links[RowLink.BEFORE, at]
    following = links[RowLink.FOLLOWING, at]
    if before >= 0:
        links[RowLink.FOLLOWING, before] = following
    else:
        ends[0, side, connection] = following
    if following >= 0:
        links[RowLink.BEFORE, following] = before
    else:
        ends[1, side, connection] = before


@jit
def marks(rows: Any, lost_at: Any, at: Number) -> Number:
    """AFTER_LOSS of a row that waits. What was lost while it did is behind it in the batch, so a loss writes one number
    for its connection and nothing to those that wait."""
    mark = rows[at, Frame.AFTER_LOSS]
    connection = rows[at, Frame.CONNECTION]
    if at < lost_at[0, connection]:
        mark |= LOST_BEHIND
    if at < lost_at[1, connection] and not rows[at, Frame.RESPONSE]:
        mark |= LOST_WITH
    return mark


@jit
def alone(
    rows: Any, lost_at: Any, request: Any, response: Any, status: Any, used: Any, found: Number, at: Number
) -> Number:
    """A row without its other half is pair number `found`; whether its answer was lost."""
    used[at] = 1
    if rows[at, Frame.RESPONSE]:
        response[found] = at
        status[found] = PairStatus.ANSWER_ONLY
        return np.int64(0)
    request[found] = at
    status[found] = PairStatus.UNANSWERED
    return marks(rows, lost_at, at) & LOST_WITH


@jit
def _pair(
    rows: Any, waiting: int, request: Any, response: Any, status: Any, used: Any, links: Any, ends: Any, lost_at: Any,
    bucket: Any, factor: Number, shift: Number, most_bytes: int, finish: bool,
) -> Numbers:  # fmt: skip
    """(pairs, rows that still wait, answers that were lost)"""
    request[:] = -1
    response[:] = -1
    used[:] = 0
    ends[:] = -1
    bucket[:] = -1
    found = 0
    lost = np.int64(0)
    newest = np.int64(-(1 << 62))
    for index in range(len(rows)):
        row = rows[index]
        kind = row[Frame.KIND]
        connection = row[Frame.CONNECTION]
        side = row[Frame.RESPONSE]
        newest = max(newest, row[Frame.LAST_NS])
        if kind == FrameKind.LOST:
            used[index] = 1
            lost_at[side, connection] = index
            continue
        if kind == FrameKind.ENDED:
            used[index] = 1
            # Nobody answers any more; or nobody asks, and what came early has had its chance. The other side may go on:
            # of a stream that lacks a packet the rest is held back, and comes out behind the end of its answers.
            at = ends[0, 1 - side, connection]
            while at >= 0:
                lost += alone(rows, lost_at, request, response, status, used, found, at)
                found += 1
                at = np.int64(links[RowLink.FOLLOWING, at])
            ends[0, 1 - side, connection] = -1
            ends[1, 1 - side, connection] = -1
            continue
        if kind != FrameKind.FRAME and kind != FrameKind.TOKEN:
            used[index] = 1
            continue
        if side == 0 and row[Frame.NO_ANSWER]:
            request[found] = index
            status[found] = PairStatus.NO_ANSWER_EXPECTED
            found += 1
            used[index] = 1
            continue
        if index < waiting:
            put(rows, links, ends, bucket, index, factor, shift)
            continue
        if side == 0:
            at = ends[0, 1, connection]
            while at >= 0 and row[Frame.LAST_NS] - rows[at, Frame.FIRST_NS] > EARLIEST_NS:
                # The request of a response of long ago is not in the recording.
                alone(rows, lost_at, request, response, status, used, found, at)
                found += 1
                take_out(rows, links, ends, at)
                at = ends[0, 1, connection]
        partner = np.int64(-1)
        if ends[0, 1 - side, connection] >= 0:
            partner = first_with(rows, used, links, bucket, key_of(row) ^ 1 << 33, factor, shift)
        if partner < 0:
            last = ends[1, side, connection]
            if (
                side == 0
                and last >= 0
                and marks(rows, lost_at, last)
                and rows[last, Frame.CORRELATION] == row[Frame.CORRELATION]
            ):
                row[Frame.AFTER_LOSS] |= IN_DOUBT
            put(rows, links, ends, bucket, index, factor, shift)
            continue
        mark = marks(rows, lost_at, partner)
        several = links[RowLink.NEXT_ALIKE, partner] >= 0
        if side == 0 and mark and several:
            # Answers that are alike, and one of them may be that of a request which was lost: they are nobody's.
            at = partner
            while at >= 0:
                alone(rows, lost_at, request, response, status, used, found, at)
                found += 1
                take_out(rows, links, ends, at)
                at = np.int64(links[RowLink.NEXT_ALIKE, at])
            row[Frame.AFTER_LOSS] |= IN_DOUBT
            put(rows, links, ends, bucket, index, factor, shift)
            continue
        if side:
            at = ends[0, 0, connection]
            while at != partner:
                lost += alone(rows, lost_at, request, response, status, used, found, at)
                found += 1
                take_out(rows, links, ends, at)
                at = ends[0, 0, connection]
        take_out(rows, links, ends, partner)
        if side and mark and (several or mark & IN_DOUBT):
            lost += alone(rows, lost_at, request, response, status, used, found, partner)
            alone(rows, lost_at, request, response, status, used, found + 1, index)
            found += 2
            continue
        request[found] = partner if side else index
        response[found] = index if side else partner
        status[found] = PairStatus.ANSWERED
        found += 1
        used[index] = 1
        used[partner] = 1
    held = np.int64(0)
    left = 0
    for index in range(len(rows)):
        if not used[index]:
            rows[index, Frame.AFTER_LOSS] = marks(rows, lost_at, index)
            held += rows[index, Frame.SIZE] + ROW_COST
            left += 1
    for index in range(len(rows)):
        if used[index]:
            continue
        if finish or held > most_bytes or newest - rows[index, Frame.LAST_NS] > LONGEST_WAIT_NS:
            lost += alone(rows, lost_at, request, response, status, used, found, index)
            found += 1
            held -= rows[index, Frame.SIZE] + ROW_COST
            left -= 1
    return found, left, lost
