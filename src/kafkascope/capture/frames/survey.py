"""Surveys a batch of pieces before it is split, and takes the kernel's verdicts after. Each is one kernel call: a small
recording has little else to do."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from kafkascope.capture.base.checked import writable
from kafkascope.capture.base.flow import Connection, PieceKind, Pieces, ProtocolVerdict, plain
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.capture.frames.detect.start import HINTED, IS_TLS, UNKNOWN, Opening
from kafkascope.capture.frames.frame_table import FrameCount, PieceColumns, Tables
from kafkascope.columnar.compiling.jit import jit

_UINT8, _INT32, _INT64 = np.dtype(np.uint8), np.dtype(np.int32), np.dtype(np.int64)


def survey(pieces: Pieces) -> tuple[PieceColumns, int, int, list[int], Any]:
    """(columns, streams are numbered below this even number, bytes in all, connections that open, room for links)"""
    kind, stream = plain(pieces.kind, _UINT8), plain(pieces.stream, _INT32)
    length = plain(pieces.length, _INT64)
    links = np.empty(len(kind), np.int32)
    highest, total, opened = summarize(kind, stream, length, links)
    columns = PieceColumns(
        kind, stream, plain(pieces.offset, _INT64), plain(pieces.start, _INT64), length,
        plain(pieces.time_ns, _INT64), plain(pieces.packet, _INT64), writable(pieces.data), writable(pieces.waited),
    )  # fmt: skip
    return columns, (highest | 1) + 1, total, links[:opened].tolist(), links


@jit
def summarize(kinds: Any, streams: Any, lengths: Any, opened: Any) -> Numbers:
    """(highest stream or -1, bytes, how many connections open, which `opened` gets)"""
    highest = np.int64(-1)
    total = np.int64(0)
    count = np.int64(0)
    for i in range(len(kinds)):
        highest = max(highest, np.int64(streams[i]))
        if kinds[i] == PieceKind.BYTES:
            total += lengths[i]
        elif kinds[i] == PieceKind.OPEN:
            opened[count] = streams[i] >> 1
            count += 1
    return highest, total, count


def note_openers(
    tables: Tables, connections: Sequence[Connection], ports: Collection[int], opened: Sequence[int]
) -> None:
    """Records for the kernel who opened these connections, and whether one of `ports` hints at Kafka."""
    for number in set(opened):
        connection = connections[number]
        opener = connection.opener
        hinted = ports and (connection.ends.port_a in ports or connection.ends.port_b in ports)
        tables.starters[number] = UNKNOWN if opener is None else opener | HINTED if hinted else opener


def take_verdicts(tables: Tables, room: Any) -> list[ProtocolVerdict]:
    """The verdicts that the kernel reached in this batch. It waits for no more pieces of it."""
    count = collect_verdicts(tables.waiting, tables.first, tables.counts, room)
    return _verdicts(tables, room[:count].tolist())


def verdicts_so_far(tables: Tables) -> list[ProtocolVerdict]:
    """The same in the middle of a batch: connections that wait for more pieces go on waiting."""
    waiting = tables.waiting[: tables.counts[FrameCount.WAITING]]
    protocols = tables.first[waiting, Opening.SURE]
    return _verdicts(tables, np.where(protocols == IS_TLS, ~waiting, waiting)[protocols > 0].tolist())


def _verdicts(tables: Tables, numbers: Sequence[int]) -> list[ProtocolVerdict]:
    """`numbers` are Kafka connections, and the complement of each TLS connection."""
    return [
        ProtocolVerdict(number, "kafka", tables.starters.item(number) & 1)
        if number >= 0
        else ProtocolVerdict(~number, "tls")
        for number in numbers
    ]


@jit
def collect_verdicts(waiting: Any, first: Any, counts: Any, numbers: Any) -> Number:
    """How many `numbers` there are: Kafka connections, and the complement of each TLS connection."""
    count = np.int64(0)
    for i in range(counts[FrameCount.WAITING]):
        connection = waiting[i]
        # A connection that was renewed is listed twice.
        if first[connection, Opening.SURE]:
            numbers[count] = ~connection if first[connection, Opening.SURE] == IS_TLS else connection
            count += 1
        first[connection, :] = 0
    counts[FrameCount.WAITING] = 0
    counts[FrameCount.LEFT] = 0
    return count
