"""A batch of pieces as a whole: before it is split, what that takes; behind it, what the kernel found
connections to speak. One look of a kernel each, for a small recording has little else to do."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from kafkascope.capture.base.checked import writable
from kafkascope.capture.base.flow import (
    Connection,
    PieceKind,
    Pieces,
    plain,
)
from kafkascope.capture.base.numbers import Numbers
from kafkascope.capture.frames.detect.start import (
    HINTED,
    IS_TLS,
    UNKNOWN,
    Opening,
)
from kafkascope.capture.frames.frame_table import (
    FrameCount,
    Piece,
    Tables,
)
from kafkascope.columnar.compiling.jit import jit

_UINT8, _INT32, _INT64 = np.dtype(np.uint8), np.dtype(np.int32), np.dtype(np.int64)


def survey(pieces: Pieces) -> tuple[Piece, int, int, list[int], Any]:
    """(columns, streams are numbered below this even number, bytes in all, connections that begin, room for links)"""
    kind, stream = plain(pieces.kind, _UINT8), plain(pieces.stream, _INT32)
    length = plain(pieces.length, _INT64)
    links = np.empty(len(kind), np.int32)
    highest, total, begun = look_over(kind, stream, length, links)
    piece = Piece(
        kind, stream, plain(pieces.offset, _INT64), plain(pieces.start, _INT64), length,
        plain(pieces.time_ns, _INT64), plain(pieces.packet, _INT64), writable(pieces.data), writable(pieces.waited),
    )  # fmt: skip
    return piece, (highest | 1) + 1, total, links[:begun].tolist(), links


@jit
def look_over(kinds: Any, streams: Any, lengths: Any, begun: Any) -> Numbers:
    """(highest stream or -1, bytes, how many connections of `begun` begin)"""
    highest = np.int64(-1)
    total = np.int64(0)
    count = np.int64(0)
    for i in range(len(kinds)):
        highest = max(highest, np.int64(streams[i]))
        if kinds[i] == PieceKind.BYTES:
            total += lengths[i]
        elif kinds[i] == PieceKind.OPEN:
            begun[count] = streams[i] >> 1
            count += 1
    return highest, total, count


def note_starters(
    tables: Tables, connections: Sequence[Connection], ports: Collection[int], begun: Sequence[int]
) -> None:
    """What the kernel must know of connections that begin."""
    for number in set(begun):
        connection = connections[number]
        opener = connection.opener
        hinted = ports and (connection.ends.port_a in ports or connection.ends.port_b in ports)
        tables.starters[number] = UNKNOWN if opener is None else opener | HINTED if hinted else opener


def tell_sure(tables: Tables, connections: Sequence[Connection], numbers: Sequence[int]) -> None:
    """The kernel's own finds, to the connections."""
    for number in numbers:
        if number < 0:
            connections[~number].protocol = "tls"
        else:
            connection = connections[number]
            connection.protocol, connection.client = "kafka", tables.starters.item(number) & 1


def take_sure(tables: Tables, room: Any) -> list[int]:
    """Connections that the kernel found to speak Kafka in this batch, or -1 and below (`~connection`) TLS. Nothing of
    it waits any more."""
    found = sure(tables.waiting, tables.first, tables.counts, room)
    numbers: list[int] = room[:found].tolist()
    return numbers


def sure_so_far(tables: Tables) -> list[int]:
    """The same in the midst of a batch: what waits goes on waiting."""
    waiting = tables.waiting[: tables.counts[FrameCount.WAITING]]
    how = tables.first[waiting, Opening.SURE]
    numbers: list[int] = np.where(how == IS_TLS, ~waiting, waiting)[how > 0].tolist()
    return numbers


@jit
def sure(waiting: Any, first: Any, count: Any, numbers: Any) -> Numbers:
    found = np.int64(0)
    for i in range(count[FrameCount.WAITING]):
        connection = waiting[i]
        # One that was renewed stands here twice.
        if first[connection, Opening.SURE]:
            numbers[found] = ~connection if first[connection, Opening.SURE] == IS_TLS else connection
            found += 1
        first[connection, :] = 0
    count[FrameCount.WAITING] = 0
    count[FrameCount.LEFT] = 0
    return found
