"""A batch of pieces on its way through the framing kernel, and those of them that it leaves to Python: converted many
at a time where many follow each other."""

from typing import Any, NamedTuple

from kafkascope.capture.flow import BYTES
from kafkascope.capture.frame_table import AGAIN, AT_PIECE, Piece
from kafkascope.capture.memory_view import Content

# Pieces that are converted at once.
MOST_CONVERTED = 256


class LeftPieces:
    """The rows of a batch as Python has them."""

    __slots__ = ("_content", "_first", "_piece", "_rows")

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._content = Content(piece.data, piece.waited)
        self._first = 0
        self._rows: list[tuple[int, ...]] = []

    def take(self, at: int) -> tuple[int, tuple[int, int, bytes, int, int, int]]:
        """stream, (kind, offset, data, length, time, packet)"""
        if not 0 <= at - self._first < len(self._rows):
            self._convert(at)
        stream, kind, offset, start, length, time, packet = self._rows[at - self._first]
        data = self._content.bytes(start, length) if kind == BYTES else b""
        return stream, (kind, offset, data, length, time, packet)

    def _convert(self, at: int) -> None:
        """Twice as many as before where they were all needed."""
        follows = self._rows and at == self._first + len(self._rows)
        part = slice(at, at + (min(2 * len(self._rows), MOST_CONVERTED) if follows else 1))
        piece = self._piece
        columns = (piece.stream, piece.kind, piece.offset, piece.start, piece.length, piece.time, piece.packet)
        self._first, self._rows = at, list(zip(*(column[part].tolist() for column in columns), strict=True))


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
