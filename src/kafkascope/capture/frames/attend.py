"""The pieces of a batch that the kernel leaves to Python, one row after the other: to whom each goes, and how far."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kafkascope.capture.base.flow import (
    PieceKind,
)
from kafkascope.capture.frames.detect.resync import Parts
from kafkascope.capture.frames.frame_table import (
    PYTHON,
    Cursor,
)
from kafkascope.capture.frames.left_pieces import Row, Work
from kafkascope.capture.frames.split import go_on
from kafkascope.limits import MAX_SEARCHED_TOTAL_BYTES, MAX_UNDECIDED_BYTES

# Fewer pieces go one by one: arrays take longer. So do a few at a time of more, until they may be taken together.
FEW_TIED, FEW = 8, 4
# What a connection or a piece that waits takes beside its bytes.
CONNECTION_COST = 2_048
PIECE_COST = 256

if TYPE_CHECKING:
    from kafkascope.capture.frames.framing import Framer


def is_left(framer: "Framer", work: Work) -> bool:
    """Whether the kernel would leave the next piece to Python as well."""
    return framer._tables.place.item(work.piece.stream.item(work.at)) == PYTHON


def attend_again(framer: "Framer", work: Work) -> None:
    """The pieces of a connection that are read again, up to one that is for the kernel."""
    for row in work.left.again(work.at, work.following):
        index, count = row[6:8]
        taken = _hand_over(framer, work, row)
        work.cursor[Cursor.AGAIN] = work.left.number(index + taken - 1)
        go_on(work.cursor, work.following, len(work.piece.kind))
        if (
            taken < count
            or work.cursor.item(Cursor.AGAIN) < 0
            or framer._work[-1] is not work
            or not is_left(framer, work)
        ):
            return


def attend_ahead(framer: "Framer", work: Work) -> None:
    """The pieces from the cursor on, up to one that is for the kernel or has to be read again first."""
    at: int = work.cursor.item(Cursor.PIECE)
    place, left = framer._tables.place, work.left
    while framer._work[-1] is work and (rows := left.ahead(at, framer._tables)):
        for row in rows:
            stream, kind = row[:2]
            here = place.item(stream)
            if here == PYTHON:
                taken = _hand_over(framer, work, row)
            elif here >= 0 or kind == PieceKind.RENEWED:
                work.cursor[Cursor.PIECE] = at
                return
            else:
                taken = row[7]
            at += taken
            if kind == PieceKind.RENEWED or taken < row[7] or framer._work[-1] is not work:
                break
    work.cursor[Cursor.PIECE] = at


def _hand_over(framer: "Framer", work: Work, row: Row) -> int:
    """How many of the pieces were taken: the others are for the kernel, or have to wait."""
    stream, kind, offset, start, time, packet, index, count, length = row
    left, number = work.left, stream >> 1
    if count == 1:
        _act(framer, stream, kind, offset, left.bytes(kind, start, length), length, time, packet)
        return 1
    if count < FEW_TIED or stream in framer._searches:
        return _one_by_one(framer, work, stream, index, count)
    taken = 0
    while taken < count:
        undecided = framer._undecided.get(number)
        if count - taken >= FEW and undecided is not None and undecided.size < MAX_UNDECIDED_BYTES:
            data, parts = left.together(index + taken, count - taken)
            broken = bool((parts.kinds == PieceKind.GAP).any())
            if undecided.may_join(stream & 1, data, broken=broken):
                at = left.take(left.number(index + taken))[1][1]
                undecided.add_parts(stream & 1, at, data, parts)
                framer._decide(number, final=False)
                _keep(framer, number, parts)
                return count
        done = _one_by_one(framer, work, stream, index + taken, min(FEW, count - taken))
        taken += done
        if done < FEW:
            break
    return taken


def _keep(framer: "Framer", number: int, parts: Parts) -> None:
    """What these pieces take; where that is too much, each of them makes room. A connection that was forgotten, this
    one too, gave back all that it has."""
    sizes = np.where(parts.kinds == PieceKind.GAP, 0, parts.lengths) + PIECE_COST
    total = int(sizes.sum())
    if framer._kept + total <= MAX_SEARCHED_TOTAL_BYTES:
        framer._kept += total
        return
    for size, packet in zip(sizes.tolist(), parts.packets.tolist(), strict=True):
        framer._kept += size
        if number in framer._undecided:
            framer._make_room(packet)


def _one_by_one(framer: "Framer", work: Work, stream: int, index: int, count: int) -> int:
    for taken in range(count):
        if framer._work[-1] is not work or framer._tables.place.item(stream) != PYTHON:
            return taken
        _, piece = work.left.take(work.left.number(index + taken))
        _act(framer, stream, *piece)
    return count


def _act(framer: "Framer", stream: int, *piece: Any) -> None:
    (framer._search if stream in framer._searches else framer._consider)(stream, *piece)
