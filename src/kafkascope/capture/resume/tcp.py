"""Saves and restores reassembly between two runs. Early segments are read again; of delivered bytes only the times are
kept, so a retransmission in the next run isn't compared with them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kafkascope.capture.base.flow import Connection, Int64s, PieceKind
from kafkascope.capture.resume.places import adjacent_merged
from kafkascope.capture.resume.reread import RereadRanges
from kafkascope.capture.resume.state import Carried, Ints
from kafkascope.capture.tcp.reassembly import ENDINGS, Reassembler
from kafkascope.capture.tcp.stream_table import (
    EXPRESS_DISTANCE,
    FAR_DISTANCE,
    KAFKA,
    LOCAL,
    MARKS,
    NODE_COST,
    PROTOCOLS,
    RINGS,
    Conn,
    Early,
    Ended,
    Stream,
    StreamCount,
    Tables,
    grown,
)

Place = Callable[[int], int]


def early_of(tables: Tables, stream: int) -> list[list[int]]:
    """(kind, offset, end, time, packet) of early segments, in the order of the stream."""
    segments = []
    at = int(tables.streams[stream, Stream.HEAD])
    while at >= 0:
        node = tables.nodes[at]
        segments.append(
            [int(node[column]) for column in (Early.KIND, Early.OFFSET, Early.END, Early.TIME, Early.PACKET)]
        )
        at = int(node[Early.FOLLOWING])
    return segments


def delivered_of(tables: Tables, stream: int) -> tuple[Ints, ...]:
    ring = stream & (RINGS - 1)
    if tables.ring_owner[ring] != stream:
        return ()
    marks = tables.marks[ring]
    return tuple((int(end), int(time)) for end, time in marks[marks[:, 0] >= 0].tolist())


def row_of(tables: Tables, stream: int) -> Ints:
    row = tables.streams[stream].tolist()
    row[Stream.HEAD] = row[Stream.TAIL] = -1
    return tuple(row)


def is_over(tables: Tables, number: int) -> bool:
    """Whether only trailing segments may still come."""
    row = tables.connections[number]
    both = tables.streams[2 * number, Stream.FIN_AT] >= 0 and tables.streams[2 * number + 1, Stream.FIN_AT] >= 0
    return bool(both or row[Conn.RESET_SEEN] or row[Conn.ENDED] == Ended.REUSED)


def has_unfinished(tables: Tables, number: int) -> bool:
    """Whether bytes are awaited, or are known to be lost and not reported yet."""
    for stream in tables.streams[2 * number : 2 * number + 2]:
        if stream[Stream.HEAD] >= 0 or stream[Stream.FIN_AT] > stream[Stream.NEXT]:
            return True
        if not stream[Stream.CLOSED] and stream[Stream.BASE] >= 0 and stream[Stream.ACKED] - stream[Stream.NEXT] > 1:
            return True
    return False


def add_early_ranges(carried: Carried, number: int, flow: int, place: Place, ranges: RereadRanges) -> None:
    for direction, stream in enumerate(carried.streams):
        known = ((low, high, packet) for kind, low, high, _, packet in stream.early if kind == PieceKind.BYTES)
        for low, high, packet in adjacent_merged(known, place):
            ranges.add(2 * number + direction, flow, stream.row[Stream.BASE], low, high, packet)


def restore(
    reassembler: Reassembler,
    carried: Sequence[Carried],
    flows: Sequence[int],
    places: Sequence[Place],
    ranges: RereadRanges,
) -> list[tuple[int, str]]:
    """Restores `carried[n]` as connection `n`, on `flows[n]`. Returns (connection, what couldn't be read again)."""
    tables = reassembler._tables
    tables.counts[StreamCount.WANT_CONNECTIONS] = len(carried)
    tables.counts[StreamCount.WANT_NODES] = sum(
        len(stream.early) for connection in carried for stream in connection.streams
    )
    tables = grown(tables, max(flows, default=-1) + 1)
    numbers = {
        (flow, connection.number): number for number, (flow, connection) in enumerate(zip(flows, carried, strict=True))
    }
    spill = bytearray()
    unread: list[tuple[int, str]] = []
    for number, (connection, flow, place) in enumerate(zip(carried, flows, places, strict=True)):
        reassembler.connections.append(connection_of(connection, number, flow))
        _fill(tables.connections[number], connection, flow, numbers.get((flow, connection.previous), -1))
        if connection.current:
            tables.current[flow] = number
        for direction, stream in enumerate(connection.streams):
            at = 2 * number + direction
            tables.streams[at] = stream.row
            if stream.delivered:
                ring = at & (RINGS - 1)
                tables.ring_owner[ring] = at
                tables.ring_low[ring] = stream.row[Stream.NEXT]
                tables.marks[ring, :, 0] = -1
                for end, time in stream.delivered:
                    tables.marks[ring, (end >> 10) & (MARKS - 1)] = end, time
            unread += [(number, unread_part) for unread_part in _hold(tables, at, stream.early, place, ranges, spill)]
    counts = tables.counts
    counts[StreamCount.CONNECTIONS] = len(carried)
    counts[StreamCount.WANT_CONNECTIONS] = counts[StreamCount.WANT_NODES] = 0
    counts[StreamCount.OTHERS] = sum(connection.protocol != PROTOCOLS[KAFKA] for connection in carried)
    counts[StreamCount.SPILL_USED] = counts[StreamCount.SPILL_LIVE] = len(spill)
    held = np.frombuffer(bytes(spill), np.uint8).copy()
    reassembler._tables = tables._replace(spill=held)
    return unread


def connection_of(carried: Carried, number: int = 0, flow: int = 0) -> Connection:
    """The connection as it was left."""
    first, second = (stream.row for stream in carried.streams)
    return Connection(
        number=number,
        flow=flow,
        ends=carried.ends,
        first_ns=carried.first_ns,
        last_ns=carried.last_ns,
        initial_sequence=(
            first[Stream.INITIAL] if first[Stream.INITIAL] >= 0 else None,
            second[Stream.INITIAL] if second[Stream.INITIAL] >= 0 else None,
        ),
        opened=carried.opened,
        closed=ENDINGS[carried.ended],
        closed_ns=carried.closed_ns if carried.closed_ns >= 0 else None,
        client=carried.client,
        protocol=carried.protocol,
        bytes_seen=[first[Stream.SEEN_BYTES], second[Stream.SEEN_BYTES]],
        gap_bytes=[first[Stream.GAP_BYTES], second[Stream.GAP_BYTES]],
        conflict_bytes=carried.conflict_bytes,
        retransmitted_bytes=carried.retransmitted_bytes,
        duplicated_bytes=carried.duplicated_bytes,
        opener=carried.opener,
    )


def _fill(row: Int64s, carried: Carried, flow: int, previous: int) -> None:
    values = {
        Conn.FLOW: flow,
        Conn.FIRST_NS: carried.first_ns,
        Conn.LAST_NS: carried.last_ns,
        Conn.OPENED: carried.opened,
        Conn.OPENER: -1 if carried.opener is None else carried.opener,
        Conn.ENDED: carried.ended,
        Conn.SEGMENTS: carried.segments,
        Conn.CONFLICTS: carried.conflict_bytes,
        Conn.RETRANSMITTED: carried.retransmitted_bytes,
        Conn.DUPLICATED: carried.duplicated_bytes,
        Conn.PREVIOUS: previous,
        Conn.DIRTY: 0,
        Conn.RESET_SEEN: carried.reset_seen,
        Conn.PROTOCOL: PROTOCOLS.index(carried.protocol),
        Conn.IS_NEW: 0,
        Conn.CLOSED_NS: carried.closed_ns,
    }
    for column, value in values.items():
        row[column] = value


def _hold(tables: Tables, stream: int, early: Any, place: Place, ranges: RereadRanges, spill: bytearray) -> list[str]:
    """Puts early segments back into their list. One whose bytes are gone becomes a gap."""
    state, counts = tables.streams[stream], tables.counts
    state[Stream.HEAD] = state[Stream.TAIL] = -1
    state[Stream.HELD_BYTES] = state[Stream.HELD_COUNT] = 0
    tables.lanes[stream] = -1
    lanes = ((Early.EXPRESS, EXPRESS_DISTANCE), (Early.FAR, FAR_DISTANCE))
    last = [-1, -1]
    unread = []
    for kind, low, high, time, packet in early:
        data = ranges.take(stream, low, high) if kind == PieceKind.BYTES else b""
        if data is None:
            unread.append(f"{high - low} bytes that came before others")
        counts[StreamCount.FREE] -= 1
        made = int(tables.free[counts[StreamCount.FREE]])
        node = tables.nodes[made]
        node[Early.KIND] = PieceKind.BYTES if data else PieceKind.GAP
        node[Early.OFFSET], node[Early.END], node[Early.TIME], node[Early.PACKET] = low, high, time, place(packet)
        node[Early.FOLLOWING] = -1
        node[Early.AT] = -1 - len(spill) if data else 0
        node[Early.EXPRESS], node[Early.FAR], node[Early.RUN] = LOCAL, LOCAL, -1
        for lane, (column, apart) in enumerate(lanes):
            if state[Stream.HELD_COUNT] % apart == 0:
                node[column] = -1
                if last[lane] < 0:
                    tables.lanes[stream, lane] = made
                else:
                    tables.nodes[last[lane], column] = made
                last[lane] = made
        if data:
            spill += data
            state[Stream.HELD_BYTES] += len(data)
            counts[StreamCount.HELD_TOTAL] += len(data)
        if state[Stream.HEAD] < 0:
            state[Stream.HEAD] = made
        else:
            tables.nodes[state[Stream.TAIL], Early.FOLLOWING] = made
        state[Stream.TAIL] = made
        state[Stream.HELD_COUNT] += 1
        counts[StreamCount.HELD_TOTAL] += NODE_COST
    return unread
