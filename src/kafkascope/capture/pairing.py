"""Requests and their responses: rows of frames in, pairs of row numbers out. One kernel, one pass, frames in the order
of the recording; what is left waits for the next batch.

A broker answers in the order of the requests (GOTCHAS 8), so a response that fits a later request says that the ones
before it will never be answered, or that the recording lost their answers. A response that fits no request is kept for
a while: the recording may have it before its request (GOTCHAS 9).

Some clients give all requests one correlation id, and order alone pairs them. After a loss it cannot: what may be the
answer to several requests is then the answer to none.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.flow import ENDED, FRAME, LOST, TOKEN
from kafkascope.capture.headers import (
    AFTER_LOSS,
    CONNECTION,
    CORRELATION,
    FIRST_NS,
    KIND,
    LAST_NS,
    NO_ANSWER,
    RESPONSE,
    SIZE,
    Rows,
)
from kafkascope.capture.numbers import Number, Numbers
from kafkascope.columnar.compiling import jit

ANSWERED, UNANSWERED, NO_ANSWER_EXPECTED, ANSWER_ONLY, UNDECODED = range(5)
STATUSES = ("answered", "unanswered", "no_answer_expected", "answer_only", "undecoded")

# Clocks of two interfaces differ, and a recording has a response before its request, by less than this.
EARLIEST_NS = 1_000_000_000
# The longest wait by design is a JoinGroup of max.poll.interval.ms, 5 minutes by default: twice that is no wait.
LONGEST_WAIT_NS = 600_000_000_000
# What AFTER_LOSS says of a request: bytes of the answering stream were lost while it waited, or of its own; it came
# behind such a one with the same correlation id.
LOST_WITH, LOST_BEHIND, IN_DOUBT = 1, 2, 4
# How far a response looks for its request. Java has 5 in flight, librdkafka as many as fit its queue.
DEEPEST = 4_096
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Row numbers, -1 where there is none; `left` are the rows that still wait."""

    request: npt.NDArray[np.int64]
    response: npt.NDArray[np.int64]
    status: npt.NDArray[np.uint8]
    left: npt.NDArray[np.int64]
    lost_answers: int


def pair(rows: Rows, waiting: int, connections: int, *, most_bytes: int, finish: bool) -> Pairs:
    """The first `waiting` rows are those that were left before. With `finish` nothing is left; otherwise what has
    waited too long is not, nor are the oldest once they hold more than `most_bytes`."""
    count = len(rows)
    request, response, following = np.empty((3, count), dtype=np.int64)
    status, used = np.empty((2, count), dtype=np.uint8)
    # One list of waiting requests and one of waiting responses a connection.
    head, tail = np.empty((2, 2, connections), dtype=np.int64)
    found, left, lost = _pair(rows, waiting, request, response, status, used, following, head, tail, most_bytes, finish)
    return Pairs(
        request[:found], response[:found], status[:found], np.flatnonzero(used == 0) if left else _NONE, int(lost)
    )


@jit
def alike(one: Any, other: Any) -> Number:
    """Raw SASL tokens have no correlation ids."""
    return one[KIND] == other[KIND] and (one[KIND] == TOKEN or one[CORRELATION] == other[CORRELATION])


@jit
def unlink(head: Any, tail: Any, following: Any, side: Number, connection: Number, before: Number, at: Number) -> None:
    """Out of the list of a side; `before` is the one before it there, -1 where it is the first."""
    if before >= 0:
        following[before] = following[at]
    else:
        head[side, connection] = following[at]
    if tail[side, connection] == at:
        tail[side, connection] = before


@jit
def _pair(
    rows: Any, waiting: int, request: Any, response: Any, status: Any, used: Any, following: Any, head: Any, tail: Any,
    most_bytes: int, finish: bool,
) -> Numbers:  # fmt: skip
    """(pairs, rows that still wait, answers that were lost)"""
    request[:] = -1
    response[:] = -1
    used[:] = 0
    following[:] = -1
    head[:] = -1
    tail[:] = -1
    found = 0
    lost = 0
    newest = np.int64(-(1 << 62))
    for index in range(len(rows)):
        row = rows[index]
        kind = row[KIND]
        connection = row[CONNECTION]
        side = row[RESPONSE]
        newest = max(newest, row[LAST_NS])
        if kind == LOST:
            used[index] = 1
            for which in range(2 - side):
                at = head[which, connection]
                while at >= 0:
                    rows[at, AFTER_LOSS] |= LOST_WITH if side else LOST_BEHIND
                    at = following[at]
            continue
        if kind == ENDED:
            used[index] = 1
            # Nobody answers any more; or nobody asks, and what came early has had its chance. The other side may go on:
            # of a stream that lacks a packet the rest is held back, and comes out behind the end of its answers.
            at = head[1 - side, connection]
            while at >= 0:
                (request if side else response)[found] = at
                status[found] = UNANSWERED if side else ANSWER_ONLY
                lost += rows[at, AFTER_LOSS] & LOST_WITH
                found += 1
                used[at] = 1
                at = following[at]
            head[1 - side, connection] = -1
            tail[1 - side, connection] = -1
            continue
        if kind != FRAME and kind != TOKEN:
            used[index] = 1
            continue
        if side == 0 and row[NO_ANSWER]:
            request[found] = index
            status[found] = NO_ANSWER_EXPECTED
            found += 1
            used[index] = 1
            continue
        partner = np.int64(-1)
        if index >= waiting:
            if side == 0:
                at = head[1, connection]
                while at >= 0 and row[LAST_NS] - rows[at, FIRST_NS] > EARLIEST_NS:
                    # The request of a response of long ago is not in the recording.
                    response[found] = at
                    status[found] = ANSWER_ONLY
                    found += 1
                    used[at] = 1
                    at = following[at]
                head[1, connection] = at
                if at < 0:
                    tail[1, connection] = -1
            at = head[1 - side, connection]
            depth = 0
            while at >= 0 and depth < DEEPEST:
                depth += 1
                if alike(rows[at], row):
                    partner = at
                    break
                at = following[at]
        if partner >= 0 and side == 0 and rows[partner, AFTER_LOSS]:
            # Answers that are alike, and one of them may be that of a request which was lost: they are nobody's.
            at = following[partner]
            while at >= 0 and not alike(rows[at], row):
                at = following[at]
            if at >= 0:
                before = np.int64(-1)
                at = head[1, connection]
                while at >= 0:
                    if alike(rows[at], row):
                        response[found] = at
                        status[found] = ANSWER_ONLY
                        found += 1
                        used[at] = 1
                        unlink(head, tail, following, 1, connection, before, at)
                    else:
                        before = at
                    at = following[at]
                row[AFTER_LOSS] |= IN_DOUBT
                partner = np.int64(-1)
        if partner < 0:
            following[index] = -1
            last = tail[side, connection]
            if last >= 0:
                following[last] = index
                behind = side == 0 and index >= waiting and rows[last, AFTER_LOSS] > 0
                if behind and rows[last, CORRELATION] == row[CORRELATION]:
                    row[AFTER_LOSS] |= IN_DOUBT
            else:
                head[side, connection] = index
            tail[side, connection] = index
            continue
        if side:
            at = head[0, connection]
            while at != partner:
                request[found] = at
                status[found] = UNANSWERED
                lost += rows[at, AFTER_LOSS] & LOST_WITH
                found += 1
                used[at] = 1
                at = following[at]
            head[0, connection] = following[partner]
            if head[0, connection] < 0:
                tail[0, connection] = -1
        else:
            before = np.int64(-1)
            at = head[1, connection]
            while at != partner:
                before = at
                at = following[at]
            unlink(head, tail, following, 1, connection, before, partner)
        if side and rows[partner, AFTER_LOSS]:
            at = following[partner]
            while at >= 0 and not alike(rows[at], row):
                at = following[at]
            if at >= 0 or rows[partner, AFTER_LOSS] & IN_DOUBT:
                request[found] = partner
                status[found] = UNANSWERED
                lost += rows[partner, AFTER_LOSS] & LOST_WITH
                response[found + 1] = index
                status[found + 1] = ANSWER_ONLY
                found += 2
                used[index] = 1
                used[partner] = 1
                continue
        request[found] = partner if side else index
        response[found] = index if side else partner
        status[found] = ANSWERED
        found += 1
        used[index] = 1
        used[partner] = 1
    held = np.int64(0)
    left = 0
    for index in range(len(rows)):
        if not used[index]:
            held += rows[index, SIZE]
            left += 1
    for index in range(len(rows)):
        if used[index]:
            continue
        row = rows[index]
        if finish or held > most_bytes or newest - row[LAST_NS] > LONGEST_WAIT_NS:
            if row[RESPONSE]:
                response[found] = index
                status[found] = ANSWER_ONLY
            else:
                request[found] = index
                status[found] = UNANSWERED
                lost += row[AFTER_LOSS] & LOST_WITH
            found += 1
            used[index] = 1
            held -= row[SIZE]
            left -= 1
    return found, left, lost
