"""Holds the pieces of a connection without a verdict yet. Small ones stay grouped until they are needed one by one: an
object for each takes longer than reading its packet."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kafkascope.capture.base.flow import PieceKind
from kafkascope.capture.base.numbers import Numbers
from kafkascope.capture.frames.detect.resync import PieceGroup, Run
from kafkascope.columnar.compiling.jit import jit

# Fewer bytes prove nothing.
TOO_LITTLE = 4
# Bytes and pieces of both directions up to which every piece of some size is a reason for another look; then each
# growth by a quarter. The pieces are read the same way whenever their protocol is recognized.
LOOKED_AT_OFTEN = 65_536
LOOKED_AT_PIECES = 32
SOME_SIZE = 128


def is_due(size: int, pieces: int, looked: int, looked_pieces: int) -> bool:
    """If this many bytes and pieces justify another look."""
    if pieces <= LOOKED_AT_PIECES and size - looked >= SOME_SIZE:
        return True
    if 4 * size >= 5 * looked:
        return True
    return size <= LOOKED_AT_OFTEN and 4 * pieces >= 5 * looked_pieces


@jit
def _looked_at(kinds: Any, lengths: Any, size: int, pieces: int, looked: int, looked_pieces: int) -> Numbers:
    for index in range(len(kinds) - 1):
        pieces += 1
        if kinds[index] == PieceKind.BYTES:
            size += lengths[index]
        if size < TOO_LITTLE:
            continue
        if (
            (pieces <= LOOKED_AT_PIECES and size - looked >= SOME_SIZE)
            or 4 * size >= 5 * looked
            or (size <= LOOKED_AT_OFTEN and 4 * pieces >= 5 * looked_pieces)
        ):
            looked = size
            looked_pieces = pieces
    return looked, looked_pieces


def looked_at(kinds: Any, lengths: Any, size: int, pieces: int, looked: int, looked_pieces: int) -> tuple[int, int]:
    """Bytes and pieces at the last look, if one was due before the last of these pieces: later looks come when they
    would come if the pieces came one by one."""
    at, count = _looked_at(kinds, lengths, size, pieces, looked, looked_pieces)
    return int(at), int(count)


class Entry(NamedTuple):
    """A piece, or a group of them; their bytes are in a run."""

    kind: int
    direction: int
    offset: int
    run: Run | None
    start: int
    length: int
    time: int
    packet: int
    group: PieceGroup | None = None

    def pieces(self) -> Iterator["Entry"]:
        """One by one."""
        group = self.group
        if group is None:
            yield self
            return
        offset, start = self.offset, self.start
        columns = (group.kinds.tolist(), group.lengths.tolist(), group.times.tolist(), group.packets.tolist())
        for kind, length, time, packet in zip(*columns, strict=True):
            yield Entry(kind, self.direction, offset, self.run, start, length, time, packet)
            offset += length
            start += length if kind == PieceKind.BYTES else 0


class Broken:
    """Pieces from one gap to another, and the runs between them: each too short for anything."""

    __slots__ = ("data", "group", "offset")

    def __init__(self, offset: int, data: bytes, group: PieceGroup) -> None:
        self.offset = offset
        self.data = data
        self.group = group

    def runs(self) -> Iterator[Run]:
        offset, start, run = self.offset, 0, None
        group = self.group
        columns = (group.kinds.tolist(), group.lengths.tolist(), group.times.tolist(), group.packets.tolist())
        for kind, length, time, packet in zip(*columns, strict=True):
            if kind == PieceKind.BYTES:
                run = run or Run(offset, aligned=False)
                run.add(self.data[start : start + length], time, packet)
                start += length
            elif run is not None:
                yield run
                run = None
            offset += length
