"""Pairs requests with their responses, in one pass over the frames in the order of the recording. Frames without a
partner wait for the next batch.

A broker responds in the order of the requests (protocol note 9), so a response that fits a later request shows that the
earlier ones will never get one, or that the recording lost it. A response that fits no request is kept for a while: the
recording may have it before its request (protocol note 10).

Partners are found by a hash, and nothing walks over waiting rows: the work depends only on the number of rows.

Some clients give all requests one correlation id, and order alone pairs them. After a loss it can't: a response that
may belong to several requests then belongs to none.
"""

import os
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import FrameKind
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.capture.frames.headers import Frame, FrameRows
from kafkascope.columnar.compiling.jit import jit


class PairStatus(IntEnum):
    """What became of a row: `exchanges.status`."""

    ANSWERED = 0
    UNANSWERED = 1
    NO_ANSWER_EXPECTED = 2
    ANSWER_ONLY = 3
    UNDECODED = 4


STATUSES = tuple(status.name.lower() for status in PairStatus)

# Clocks of two interfaces differ by less than this, so a response may be recorded this long before its request.
EARLIEST_NS = 1_000_000_000
# The longest wait by design is a JoinGroup of max.poll.interval.ms, 5 minutes by default: nothing waits twice as long.
LONGEST_WAIT_NS = 600_000_000_000
# Bits of AFTER_LOSS of a request: bytes of the responding stream were lost while it waited; bytes of its own stream
# were; it came after such a request with the same correlation id.
LOST_WITH, LOST_BEHIND, IN_DOUBT = 1, 2, 4
# Memory of a waiting row besides its bytes while a batch is paired: three copies of it, its links, its pair.
ROW_COST = 512


class RowLink(IntEnum):
    """The links of a row in its two lists: that of its direction, and that of the rows with its key. The first row with
    a key leads the others, whether it still waits or not: it has the first and the last row that do, and the next
    leader of its slot."""

    BEFORE = 0
    FOLLOWING = 1
    NEXT_ALIKE = 2
    FRONT = 3
    LAST = 4
    NEXT_LEADER = 5


# A random odd number: a sender who chooses correlation ids can't choose which of them share a slot (multiply-shift
# hashing, Dietzfelbinger and others, 1997).
_FACTOR = np.uint64(int.from_bytes(os.urandom(8)) | 1)
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Row numbers, -1 for none; `left` are the rows that still wait."""

    request: npt.NDArray[np.int64]
    response: npt.NDArray[np.int64]
    status: npt.NDArray[np.uint8]
    left: npt.NDArray[np.int64]
    lost_answers: int


def pair(rows: FrameRows, waiting: int, connections: int, *, most_bytes: int, finish: bool) -> Pairs:
    """The first `waiting` rows are those that were left before. With `finish` nothing is left. Without it rows are
    left, except those that have waited too long, and the oldest while all together hold more than `most_bytes`, at
    `ROW_COST` each."""
    count = len(rows)
    request, response = np.empty((2, count), dtype=np.int64)
    status, used = np.empty((2, count), dtype=np.uint8)
    links = np.empty((len(RowLink), count), dtype=np.int32)
    # One list of waiting requests and one of waiting responses per connection: first and last.
    ends = np.empty((2, 2, connections), dtype=np.int64)
    lost_at = np.zeros((2, connections), dtype=np.int64)
    bits = max(1, count.bit_length())
    bucket = np.empty(1 << bits, dtype=np.int32)
    pairs, left, lost = _pair(
        rows, waiting, request, response, status, used, links, ends, lost_at, bucket, _FACTOR, np.uint64(64 - bits),
        most_bytes, finish,
    )  # fmt: skip
    return Pairs(
        request[:pairs], response[:pairs], status[:pairs], np.flatnonzero(used == 0) if left else _NONE, int(lost)
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
    """The leader of the rows with this key, searched from the first leader of its slot on; -1 if there is none."""
    while at >= 0 and key_of(rows[at]) != key:
        at = np.int64(links[RowLink.NEXT_LEADER, at])
    return at


@jit
def first_with(rows: Any, used: Any, links: Any, bucket: Any, key: Number, factor: Number, shift: Number) -> Number:
    """The first waiting row with this key, -1 if there is none. Rows with one key leave in order, so used ones are
    skipped once and for all."""
    leader = leader_of(rows, links, np.int64(bucket[slot_of(key, factor, shift)]), key)
    if leader < 0:
        return leader
    at = np.int64(links[RowLink.FRONT, leader])
    while at >= 0 and used[at]:
        at = np.int64(links[RowLink.NEXT_ALIKE, at])
    links[RowLink.FRONT, leader] = at
    return at


@jit
def enqueue(rows: Any, links: Any, ends: Any, bucket: Any, at: Number, factor: Number, shift: Number) -> None:
    """Appends a waiting row to both of its lists: that of its direction, and that of its key."""
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
def dequeue(rows: Any, links: Any, ends: Any, at: Number) -> None:
    """Removes a row from the list of its direction; in the list of its key, used rows are skipped."""
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
def loss_marks(rows: Any, lost_at: Any, at: Number) -> Number:
    """AFTER_LOSS of a waiting row. A loss while it waited is after it in the batch, so a loss is noted once for the
    connection, and not for each row that waits."""
    mark = rows[at, Frame.AFTER_LOSS]
    connection = rows[at, Frame.CONNECTION]
    if at < lost_at[0, connection]:
        mark |= LOST_BEHIND
    if at < lost_at[1, connection] and not rows[at, Frame.RESPONSE]:
        mark |= LOST_WITH
    return mark


@jit
def add_unpaired(
    rows: Any, lost_at: Any, request: Any, response: Any, status: Any, used: Any, number: Number, at: Number
) -> Number:
    """Turns a row without its partner into pair `number`; returns whether its response was lost."""
    used[at] = 1
    if rows[at, Frame.RESPONSE]:
        response[number] = at
        status[number] = PairStatus.ANSWER_ONLY
        return np.int64(0)
    request[number] = at
    status[number] = PairStatus.UNANSWERED
    return loss_marks(rows, lost_at, at) & LOST_WITH


@jit
def _pair(
    rows: Any, waiting: int, request: Any, response: Any, status: Any, used: Any, links: Any, ends: Any, lost_at: Any,
    bucket: Any, factor: Number, shift: Number, most_bytes: int, finish: bool,
) -> Numbers:  # fmt: skip
    """(pairs, rows that still wait, responses that were lost)"""
    request[:] = -1
    response[:] = -1
    used[:] = 0
    ends[:] = -1
    bucket[:] = -1
    count = 0
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
            # No more responses come; or no more requests, and early responses stay without one. The other side may
            # continue: a stream that lacks a packet is held back, and is delivered after the end of its responses.
            at = ends[0, 1 - side, connection]
            while at >= 0:
                lost += add_unpaired(rows, lost_at, request, response, status, used, count, at)
                count += 1
                at = np.int64(links[RowLink.FOLLOWING, at])
            ends[0, 1 - side, connection] = -1
            ends[1, 1 - side, connection] = -1
            continue
        if kind != FrameKind.FRAME and kind != FrameKind.TOKEN:
            used[index] = 1
            continue
        if side == 0 and row[Frame.NO_ANSWER]:
            request[count] = index
            status[count] = PairStatus.NO_ANSWER_EXPECTED
            count += 1
            used[index] = 1
            continue
        if index < waiting:
            enqueue(rows, links, ends, bucket, index, factor, shift)
            continue
        if side == 0:
            at = ends[0, 1, connection]
            while at >= 0 and row[Frame.LAST_NS] - rows[at, Frame.FIRST_NS] > EARLIEST_NS:
                # The request of such an old response wasn't recorded.
                add_unpaired(rows, lost_at, request, response, status, used, count, at)
                count += 1
                dequeue(rows, links, ends, at)
                at = ends[0, 1, connection]
        partner = np.int64(-1)
        if ends[0, 1 - side, connection] >= 0:
            partner = first_with(rows, used, links, bucket, key_of(row) ^ 1 << 33, factor, shift)
        if partner < 0:
            last = ends[1, side, connection]
            if (
                side == 0
                and last >= 0
                and loss_marks(rows, lost_at, last)
                and rows[last, Frame.CORRELATION] == row[Frame.CORRELATION]
            ):
                row[Frame.AFTER_LOSS] |= IN_DOUBT
            enqueue(rows, links, ends, bucket, index, factor, shift)
            continue
        mark = loss_marks(rows, lost_at, partner)
        several = links[RowLink.NEXT_ALIKE, partner] >= 0
        if side == 0 and mark and several:
            # Equal responses, one of which may belong to a lost request: none of them is paired.
            at = partner
            while at >= 0:
                add_unpaired(rows, lost_at, request, response, status, used, count, at)
                count += 1
                dequeue(rows, links, ends, at)
                at = np.int64(links[RowLink.NEXT_ALIKE, at])
            row[Frame.AFTER_LOSS] |= IN_DOUBT
            enqueue(rows, links, ends, bucket, index, factor, shift)
            continue
        if side:
            at = ends[0, 0, connection]
            while at != partner:
                lost += add_unpaired(rows, lost_at, request, response, status, used, count, at)
                count += 1
                dequeue(rows, links, ends, at)
                at = ends[0, 0, connection]
        dequeue(rows, links, ends, partner)
        if side and mark and (several or mark & IN_DOUBT):
            lost += add_unpaired(rows, lost_at, request, response, status, used, count, partner)
            add_unpaired(rows, lost_at, request, response, status, used, count + 1, index)
            count += 2
            continue
        request[count] = partner if side else index
        response[count] = index if side else partner
        status[count] = PairStatus.ANSWERED
        count += 1
        used[index] = 1
        used[partner] = 1
    held = np.int64(0)
    left = 0
    for index in range(len(rows)):
        if not used[index]:
            rows[index, Frame.AFTER_LOSS] = loss_marks(rows, lost_at, index)
            held += rows[index, Frame.SIZE] + ROW_COST
            left += 1
    for index in range(len(rows)):
        if used[index]:
            continue
        if finish or held > most_bytes or newest - rows[index, Frame.LAST_NS] > LONGEST_WAIT_NS:
            lost += add_unpaired(rows, lost_at, request, response, status, used, count, index)
            count += 1
            held -= rows[index, Frame.SIZE] + ROW_COST
            left -= 1
    return count, left, lost
