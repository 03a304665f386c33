"""A batch of pieces on its way through the framing kernel, and those of them that it leaves to Python: looked for and
converted many at a time where many follow each other. Small pieces that follow each other in a stream are one row: one
segment can bring dozens of others that waited for it, and each look at them costs as much as a packet."""

from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np

from kafkascope.capture.base.flow import (
    Int64s,
    PieceKind,
)
from kafkascope.capture.base.memory_view import Content
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.frames.detect.resync import Parts
from kafkascope.capture.frames.detect.start import (
    MOST_PIECES,
    UNKNOWN,
    Opening,
)
from kafkascope.capture.frames.frame_table import (
    FRESH,
    PYTHON,
    SKIP,
    Cursor,
    FrameCount,
    Piece,
    Tables,
)
from kafkascope.columnar.compiling.jit import jit

# Pieces that are converted at once, behind the first.
FEWEST_CONVERTED, MOST_CONVERTED = 32, 1_024
# Pieces below the first size are taken together, up to the second. So are runs of fewer bytes than the third, in which
# nobody finds a frame or another protocol (`cut`, `recognise`), and the gaps between them.
SMALL, MOST_TOGETHER, SHORT_RUN = 128, 1_024, 11
# Stream, kind, offset, start, time and packet of the first piece; its index among the numbers, how many there are, how
# many bytes. A plain tuple: there are very many.
Row = tuple[int, int, int, int, int, int, int, int, int]


class LeftPieces:
    """The rows of a batch as Python has them."""

    __slots__ = ("_content", "_end", "_first", "_indices", "_numbers", "_piece", "_rows")

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._content = Content(piece.data, piece.waited)
        # What is converted: pieces from `_first` to before `_end`, their rows, and the index of each row's first piece.
        self._first = self._end = 0
        self._numbers = np.empty(0, np.int64)
        self._rows: list[Row] = []
        self._indices: list[int] = []

    def take(self, at: int) -> tuple[int, tuple[int, int, bytes, int, int, int]]:
        """A single piece: stream, (kind, offset, data, length, time, packet)"""
        stream, kind, offset, start, time, packet, _, _, length = self._single(at)
        return stream, (kind, offset, self.bytes(kind, start, length), length, time, packet)

    def together(self, index: int, count: int) -> tuple[bytes, Parts]:
        """The bytes of a row of several pieces."""
        piece, numbers = self._piece, self._numbers[index : index + count]
        kinds, lengths = piece.kind[numbers], piece.length[numbers]
        there = numbers[kinds == PieceKind.BYTES]
        data = self._content.gathered(piece.start[there], piece.length[there]).tobytes()
        return data, Parts(kinds, lengths, piece.time[numbers], piece.packet[numbers])

    def bytes(self, kind: int, start: int, length: int) -> bytes:
        return self._content.bytes(start, length) if kind == PieceKind.BYTES else b""

    def number(self, index: int) -> int:
        """Of the piece at this index."""
        return self._numbers.item(index)

    def ahead(self, at: int, tables: Tables) -> list[Row]:
        """From `at` on, what the kernel would leave to Python or pass over: the next piece, and many where many of
        them were needed. It may be empty."""
        piece = self._piece
        if at >= len(piece.kind):
            return []
        index = bisect_left(self._indices, at - self._first)
        if not self._first <= at < self._end or self._indices[index : index + 1] != [at - self._first]:
            # Also where the kernel took the first pieces of a row.
            self._convert(at)
            index = 0
        full = tables.counts.item(FrameCount.WAITING) == len(tables.waiting)
        stop = leave_ahead(
            tables.place, tables.opened, tables.starters, tables.first, full, piece.kind, piece.stream, at, self._end,
        )  # fmt: skip
        return self._rows[index : bisect_left(self._indices, int(stop) - self._first)]

    def again(self, at: int, following: Int64s) -> list[Row]:
        """From `at` on, those that the kernel kept for the connection."""
        numbers = np.empty(MOST_PIECES + 1, np.int64)
        self._first = self._end = 0
        self._tie(numbers[: list_kept(following, at, numbers)])
        return self._rows

    def _convert(self, at: int) -> None:
        """Twice as many as before where they were all needed, and a few more at first."""
        count = 1
        if at == self._end > self._first:
            count = max(2 * (self._end - self._first), FEWEST_CONVERTED)
            count = min(count, MOST_CONVERTED, len(self._piece.kind) - at)
        self._first, self._end = at, at + count
        if count == 1:
            self._rows, self._indices = [self._single(at)], [0]
        else:
            self._tie(np.arange(at, at + count))

    def _single(self, at: int) -> Row:
        piece = self._piece
        return (
            piece.stream.item(at), piece.kind.item(at), piece.offset.item(at), piece.start.item(at),
            piece.time.item(at), piece.packet.item(at), 0, 1, piece.length.item(at),
        )  # fmt: skip

    def _tie(self, numbers: Int64s) -> None:
        piece = self._piece
        tied = np.empty((4, len(numbers)), np.int64)
        rows = tie(piece.kind, piece.stream, piece.offset, piece.length, numbers, tied)
        indices = tied[0, :rows]
        first = numbers[indices]
        columns = (piece.stream, piece.kind, piece.offset, piece.start, piece.time, piece.packet)
        self._numbers = numbers
        self._indices = indices.tolist()
        self._rows = list(zip(*(column[first].tolist() for column in columns), *tied[:3, :rows].tolist(), strict=True))


@jit
def tie(kinds: Any, streams: Any, offsets: Any, lengths: Any, numbers: Any, tied: Any) -> Number:
    """How many rows these pieces are; of each the index of the first, how many pieces, how long they are without gaps
    behind the first, and how many gaps."""
    row = -1
    held = run = np.int64(0)
    for index in range(len(numbers)):
        at = numbers[index]
        before = numbers[max(index - 1, 0)]
        kind = kinds[at]
        size = np.int64(lengths[at] if kind == PieceKind.BYTES else 0)
        if (
            row >= 0
            and kind in (PieceKind.BYTES, PieceKind.GAP)
            and kinds[before] in (PieceKind.BYTES, PieceKind.GAP)
            and streams[at] == streams[before]
            and offsets[at] == offsets[before] + lengths[before]
            and size < SMALL
            and (kinds[before] == PieceKind.GAP or lengths[before] < SMALL)
            and held + size <= MOST_TOGETHER
            and (run + size < SHORT_RUN or (kind == PieceKind.BYTES and tied[3, row] == 0))
        ):
            tied[1, row] += 1
            tied[2, row] += size
            held += size
        else:
            row += 1
            tied[0, row] = index
            tied[1, row] = 1
            tied[2, row] = lengths[at]
            tied[3, row] = 0
            held = size
            run = np.int64(0)
        if kind == PieceKind.GAP:
            tied[3, row] += 1
            run = np.int64(0)
        else:
            run += size
    return row + 1


@jit
def list_kept(following: Any, at: int, numbers: Any) -> Number:
    """`at` and what follows it, as far as there is room; how many that are."""
    count = 0
    while at >= 0 and count < len(numbers):
        numbers[count] = at
        count += 1
        at = following[at]
    return count


@jit
def leave_ahead(
    place: Any, opened: Any, starters: Any, first: Any, full: bool, kinds: Any, streams: Any, at: int, end: int
) -> Number:
    """Does for the pieces from `at` on what the kernel does before it leaves them to Python, up to the first that it
    would not; that is the result."""
    for i in range(at, end):
        stream = streams[i]
        kind = kinds[i]
        here = place[stream]
        if here == PYTHON or (here == SKIP and kind != PieceKind.RENEWED):
            continue
        if here != FRESH or kind == PieceKind.RENEWED or first[stream >> 1, Opening.PIECES] > 0:
            return i
        if kind == PieceKind.OPEN:
            opened[stream] = 1
        elif kind in (PieceKind.CLOSE, PieceKind.RESET):
            place[stream] = SKIP
        elif (
            kind != PieceKind.BYTES
            or starters[stream >> 1] == UNKNOWN
            or not (opened[stream] and opened[stream ^ 1])
            or place[stream ^ 1] != FRESH
            or full
        ):
            place[stream] = PYTHON
            if place[stream ^ 1] == FRESH:
                place[stream ^ 1] = PYTHON
        else:
            return i
    return end


class Work(NamedTuple):
    """Pieces to read; `following` links those that are read again, and is empty where none can be."""

    piece: Piece
    cursor: Any
    following: Any
    left: LeftPieces

    @property
    def at(self) -> int:
        again: int = self.cursor.item(Cursor.AGAIN)
        return again if again >= 0 else int(self.cursor.item(Cursor.PIECE))
