"""A batch of pieces on its way through the framing kernel, and those of them that it leaves to Python: looked for and
converted many at a time where many follow each other."""

from typing import Any, NamedTuple

from kafkascope.capture.flow import BYTES, CLOSE, OPEN, RENEWED, RESET
from kafkascope.capture.frame_table import AGAIN, AT_PIECE, FRESH, PYTHON, SKIP, WAITING, Piece, Tables
from kafkascope.capture.fresh import PIECES, UNKNOWN
from kafkascope.capture.memory_view import Content
from kafkascope.capture.numbers import Number
from kafkascope.columnar.compiling import jit

# Pieces that are converted at once.
MOST_CONVERTED = 1_024

Row = tuple[int, ...]


class LeftPieces:
    """The rows of a batch as Python has them: (stream, kind, offset, start, length, time, packet)"""

    __slots__ = ("_content", "_first", "_piece", "_rows")

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._content = Content(piece.data, piece.waited)
        self._first = 0
        self._rows: list[Row] = []

    def take(self, at: int) -> tuple[int, tuple[int, int, bytes, int, int, int]]:
        """stream, (kind, offset, data, length, time, packet)"""
        stream, kind, offset, start, length, time, packet = self._at(at)[at - self._first]
        return stream, (kind, offset, self.bytes(kind, start, length), length, time, packet)

    def bytes(self, kind: int, start: int, length: int) -> bytes:
        return self._content.bytes(start, length) if kind == BYTES else b""

    def ahead(self, at: int, tables: Tables) -> list[Row]:
        """From `at` on, what the kernel would leave to Python or pass over: the next piece, and many where many of
        them were needed. It may be empty."""
        piece = self._piece
        if at >= len(piece.kind):
            return []
        rows = self._at(at)
        full = tables.counts.item(WAITING) == len(tables.waiting)
        stop = leave_ahead(
            tables.place, tables.opened, tables.starters, tables.first, full, piece.kind, piece.stream, at,
            self._first + len(rows),
        )  # fmt: skip
        return rows[at - self._first : int(stop) - self._first]

    def _at(self, at: int) -> list[Row]:
        if not 0 <= at - self._first < len(self._rows):
            self._convert(at)
        return self._rows

    def _convert(self, at: int) -> None:
        """Twice as many as before where they were all needed."""
        follows = self._rows and at == self._first + len(self._rows)
        part = slice(at, at + (min(2 * len(self._rows), MOST_CONVERTED) if follows else 1))
        piece = self._piece
        columns = (piece.stream, piece.kind, piece.offset, piece.start, piece.length, piece.time, piece.packet)
        self._first, self._rows = at, list(zip(*(column[part].tolist() for column in columns), strict=True))


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
        if here == PYTHON or (here == SKIP and kind != RENEWED):
            continue
        if here != FRESH or kind == RENEWED or first[stream >> 1, PIECES] > 0:
            return i
        if kind == OPEN:
            opened[stream] = 1
        elif kind in (CLOSE, RESET):
            place[stream] = SKIP
        elif (
            kind != BYTES
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
        again: int = self.cursor.item(AGAIN)
        return again if again >= 0 else int(self.cursor.item(AT_PIECE))
