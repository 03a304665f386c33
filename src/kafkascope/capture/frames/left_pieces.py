"""Converts the pieces that the framing kernel leaves to Python, many at a time where many follow each other.

Small pieces that follow each other in a stream are one row: one segment can bring dozens of others that waited for it,
and each look at them costs as much as a packet."""

from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np

from kafkascope.capture.base.flow import Int64s, PieceKind, SinglePiece
from kafkascope.capture.base.memory_view import Content
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.frames.detect.resync import PieceGroup
from kafkascope.capture.frames.detect.start import MOST_PIECES, UNKNOWN, Opening
from kafkascope.capture.frames.frame_table import (
    FRESH,
    PYTHON,
    SKIP,
    Cursor,
    FrameCount,
    PieceColumns,
    Tables,
)
from kafkascope.columnar.compiling.jit import jit

# Pieces that are converted at once, after the first.
FEWEST_CONVERTED, MOST_CONVERTED = 32, 1_024
# Pieces below the first size are grouped, up to the second size. So are runs of fewer bytes than the third, which are
# too short for a frame or the name of another protocol (`cut_packets`, `grade`), and the gaps between them.
SMALL, MOST_TOGETHER, SHORT_RUN = 128, 1_024, 11
# One piece or a group: stream, kind, offset, start, time and packet of the first piece; its index among the numbers,
# how many pieces, how many bytes. A plain tuple: there are very many.
PieceRow = tuple[int, int, int, int, int, int, int, int, int]


class LeftPieces:
    """The pieces of a batch, converted from columns to rows as they are needed."""

    __slots__ = ("_columns", "_content", "_end", "_first", "_indices", "_numbers", "_rows")

    def __init__(self, columns: PieceColumns) -> None:
        self._columns = columns
        self._content = Content(columns.data, columns.waited)
        # What is converted: pieces from `_first` to before `_end`, their rows, and the index of each row's first piece.
        self._first = self._end = 0
        self._numbers = np.empty(0, np.int64)
        self._rows: list[PieceRow] = []
        self._indices: list[int] = []

    def take(self, at: int) -> SinglePiece:
        stream, kind, offset, start, time, packet, _, _, length = self._single(at)
        return SinglePiece(kind, stream, offset, time, packet, length, self.bytes(kind, start, length))

    def together(self, index: int, count: int) -> tuple[bytes, PieceGroup]:
        """The bytes of a row of several pieces."""
        columns, numbers = self._columns, self._numbers[index : index + count]
        kinds, lengths = columns.kind[numbers], columns.length[numbers]
        with_bytes = numbers[kinds == PieceKind.BYTES]
        data = self._content.gathered(columns.start[with_bytes], columns.length[with_bytes]).tobytes()
        return data, PieceGroup(kinds, lengths, columns.time[numbers], columns.packet[numbers])

    def bytes(self, kind: int, start: int, length: int) -> bytes:
        return self._content.bytes(start, length) if kind == PieceKind.BYTES else b""

    def number(self, index: int) -> int:
        """The number in the batch of the piece at this index."""
        return self._numbers.item(index)

    def ahead(self, at: int, tables: Tables) -> list[PieceRow]:
        """The pieces from `at` on that the kernel would leave to Python or skip: the next one, or many if many were
        needed before. May be empty."""
        columns = self._columns
        if at >= len(columns.kind):
            return []
        index = bisect_left(self._indices, at - self._first)
        if not self._first <= at < self._end or self._indices[index : index + 1] != [at - self._first]:
            # Also if the kernel took the first pieces of a row.
            self._convert(at)
            index = 0
        full = tables.counts.item(FrameCount.WAITING) == len(tables.waiting)
        stop = leave_ahead(
            tables.place, tables.opened, tables.starters, tables.first, full, columns.kind, columns.stream, at,
            self._end,
        )  # fmt: skip
        return self._rows[index : bisect_left(self._indices, int(stop) - self._first)]

    def replayed(self, at: int, links: Int64s) -> list[PieceRow]:
        """The pieces from `at` on that the kernel kept for the connection."""
        numbers = np.empty(MOST_PIECES + 1, np.int64)
        self._first = self._end = 0
        self._group(numbers[: list_linked(links, at, numbers)])
        return self._rows

    def _convert(self, at: int) -> None:
        """Twice as many as before if all of those were needed, and a few at first."""
        count = 1
        if at == self._end > self._first:
            count = max(2 * (self._end - self._first), FEWEST_CONVERTED)
            count = min(count, MOST_CONVERTED, len(self._columns.kind) - at)
        self._first, self._end = at, at + count
        if count == 1:
            self._rows, self._indices = [self._single(at)], [0]
        else:
            self._group(np.arange(at, at + count))

    def _single(self, at: int) -> PieceRow:
        columns = self._columns
        return (
            columns.stream.item(at), columns.kind.item(at), columns.offset.item(at), columns.start.item(at),
            columns.time.item(at), columns.packet.item(at), 0, 1, columns.length.item(at),
        )  # fmt: skip

    def _group(self, numbers: Int64s) -> None:
        batch = self._columns
        groups = np.empty((4, len(numbers)), np.int64)
        rows = group_pieces(batch.kind, batch.stream, batch.offset, batch.length, numbers, groups)
        indices = groups[0, :rows]
        first = numbers[indices]
        columns = (batch.stream, batch.kind, batch.offset, batch.start, batch.time, batch.packet)
        self._numbers = numbers
        self._indices = indices.tolist()
        lists = (column[first].tolist() for column in columns)
        self._rows = list(zip(*lists, *groups[:3, :rows].tolist(), strict=True))


@jit
def group_pieces(kinds: Any, streams: Any, offsets: Any, lengths: Any, numbers: Any, groups: Any) -> Number:
    """The number of rows that these pieces make. `groups` gets of each row the index of its first piece, the number of
    pieces, their length without the gaps after the first piece, and the number of gaps."""
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
            and (run + size < SHORT_RUN or (kind == PieceKind.BYTES and groups[3, row] == 0))
        ):
            groups[1, row] += 1
            groups[2, row] += size
            held += size
        else:
            row += 1
            groups[0, row] = index
            groups[1, row] = 1
            groups[2, row] = lengths[at]
            groups[3, row] = 0
            held = size
            run = np.int64(0)
        if kind == PieceKind.GAP:
            groups[3, row] += 1
            run = np.int64(0)
        else:
            run += size
    return row + 1


@jit
def list_linked(links: Any, at: int, numbers: Any) -> Number:
    """Lists `at` and the pieces that are linked after it, as far as there is room; returns how many."""
    count = 0
    while at >= 0 and count < len(numbers):
        numbers[count] = at
        count += 1
        at = links[at]
    return count


@jit
def leave_ahead(
    place: Any, opened: Any, starters: Any, first: Any, full: bool, kinds: Any, streams: Any, at: int, end: int
) -> Number:
    """Does for the pieces from `at` on what the kernel does before it leaves them to Python. Returns the first piece
    that the kernel wouldn't leave."""
    for i in range(at, end):
        stream = streams[i]
        kind = kinds[i]
        row = place[stream]
        if row == PYTHON or (row == SKIP and kind != PieceKind.RENEWED):
            continue
        if row != FRESH or kind == PieceKind.RENEWED or first[stream >> 1, Opening.PIECES] > 0:
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


class PieceBatch(NamedTuple):
    """A batch of pieces that is being framed. `links` chains the pieces that are replayed; it's empty where no piece
    can be."""

    columns: PieceColumns
    cursor: Any
    links: Any
    left: LeftPieces

    @property
    def is_replaying(self) -> bool:
        """Whether pieces are read that the kernel kept until now."""
        return bool(self.cursor.item(Cursor.REPLAY) >= 0)

    @property
    def at(self) -> int:
        """The next piece."""
        replayed: int = self.cursor.item(Cursor.REPLAY)
        return replayed if replayed >= 0 else int(self.cursor.item(Cursor.PIECE))
