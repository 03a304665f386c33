"""Reassembly between two runs: its tables in, numbers of one connection out, and back. What came too early is read
again; of what was delivered last only the times are kept, so bytes that differ when they come again are not counted
across the cut."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kafkascope.capture.base.flow import (
    Connection,
    Int64s,
    PieceKind,
)
from kafkascope.capture.resume.reread import Wanted
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
    """(kind, offset, end, time, packet) of what came too early, in the order of the stream."""
    found = []
    at = int(tables.streams[stream, Stream.HEAD])
    while at >= 0:
        node = tables.nodes[at]
        found.append([int(node[column]) for column in (Early.KIND, Early.OFFSET, Early.END, Early.TIME, Early.PACKET)])
        at = int(node[Early.FOLLOWING])
    return found


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
    """Nothing but what trails behind is to come."""
    row = tables.connections[number]
    both = tables.streams[2 * number, Stream.FIN_AT] >= 0 and tables.streams[2 * number + 1, Stream.FIN_AT] >= 0
    return bool(both or row[Conn.RESET_SEEN] or row[Conn.ENDED] == Ended.REUSED)


def has_unfinished(tables: Tables, number: int) -> bool:
    """Bytes are waited for, or known to be lost and not told yet."""
    for stream in tables.streams[2 * number : 2 * number + 2]:
        if stream[Stream.HEAD] >= 0 or stream[Stream.FIN_AT] > stream[Stream.NEXT]:
            return True
        if not stream[Stream.CLOSED] and stream[Stream.BASE] >= 0 and stream[Stream.ACKED] - stream[Stream.NEXT] > 1:
            return True
    return False


def want_early(one: Carried, number: int, flow: int, place: Place, wanted: Wanted) -> None:
    for direction, stream in enumerate(one.streams):
        for low, high, packet in _joined(stream.early, place):
            wanted.want(2 * number + direction, flow, stream.row[Stream.BASE], low, high, packet)


def _joined(early: Sequence[Ints], place: Place) -> list[tuple[int, int, int]]:
    """Neighbours as one."""
    found: list[tuple[int, int, int]] = []
    for kind, low, high, _, packet in early:
        if kind == PieceKind.BYTES:
            if found and found[-1][1] == low:
                found[-1] = (found[-1][0], high, min(found[-1][2], place(packet)))
            else:
                found.append((low, high, place(packet)))
    return found


def restore(
    reassembler: Reassembler, carried: Sequence[Carried], flows: Sequence[int], places: Sequence[Place], wanted: Wanted
) -> list[tuple[int, str]]:
    """Connection `n` is `carried[n]`, on `flows[n]`. (connection, what could not be read again)"""
    tables = reassembler._tables
    tables.counts[StreamCount.WANT_CONNECTIONS] = len(carried)
    tables.counts[StreamCount.WANT_NODES] = sum(len(stream.early) for one in carried for stream in one.streams)
    tables = grown(tables, max(flows, default=-1) + 1)
    numbers = {(flow, one.number): number for number, (flow, one) in enumerate(zip(flows, carried, strict=True))}
    spill = bytearray()
    unread: list[tuple[int, str]] = []
    for number, (one, flow, place) in enumerate(zip(carried, flows, places, strict=True)):
        reassembler.connections.append(connection_of(one, number, flow))
        _fill(tables.connections[number], one, flow, numbers.get((flow, one.previous), -1))
        if one.current:
            tables.current[flow] = number
        for direction, stream in enumerate(one.streams):
            at = 2 * number + direction
            tables.streams[at] = stream.row
            if stream.delivered:
                ring = at & (RINGS - 1)
                tables.ring_owner[ring] = at
                tables.ring_low[ring] = stream.row[Stream.NEXT]
                tables.marks[ring, :, 0] = -1
                for end, time in stream.delivered:
                    tables.marks[ring, (end >> 10) & (MARKS - 1)] = end, time
            unread += [(number, said) for said in _hold(tables, at, stream.early, place, wanted, spill)]
    counts = tables.counts
    counts[StreamCount.CONNECTIONS], counts[StreamCount.WANT_CONNECTIONS], counts[StreamCount.WANT_NODES] = (
        len(carried),
        0,
        0,
    )
    counts[StreamCount.OTHERS] = sum(one.protocol != PROTOCOLS[KAFKA] for one in carried)
    counts[StreamCount.SPILL_USED] = counts[StreamCount.SPILL_LIVE] = len(spill)
    held = np.frombuffer(bytes(spill), np.uint8).copy()
    reassembler._tables = tables._replace(spill=held)
    return unread


def connection_of(one: Carried, number: int = 0, flow: int = 0) -> Connection:
    """As it was left."""
    first, second = (stream.row for stream in one.streams)
    return Connection(
        number=number,
        flow=flow,
        ends=one.ends,
        first_ns=one.first_ns,
        last_ns=one.last_ns,
        initial_sequence=(
            first[Stream.INITIAL] if first[Stream.INITIAL] >= 0 else None,
            second[Stream.INITIAL] if second[Stream.INITIAL] >= 0 else None,
        ),
        opened=one.opened,
        closed=ENDINGS[one.ended],
        closed_ns=one.closed_ns if one.closed_ns >= 0 else None,
        client=one.client,
        protocol=one.protocol,
        bytes_seen=[first[Stream.SEEN_BYTES], second[Stream.SEEN_BYTES]],
        gap_bytes=[first[Stream.GAP_BYTES], second[Stream.GAP_BYTES]],
        conflict_bytes=one.conflict_bytes,
        retransmitted_bytes=one.retransmitted_bytes,
        duplicated_bytes=one.duplicated_bytes,
        opener=one.opener,
    )


def _fill(row: Int64s, one: Carried, flow: int, previous: int) -> None:
    values = {
        Conn.FLOW: flow,
        Conn.FIRST_NS: one.first_ns,
        Conn.LAST_NS: one.last_ns,
        Conn.OPENED: one.opened,
        Conn.OPENER: -1 if one.opener is None else one.opener,
        Conn.ENDED: one.ended,
        Conn.SEGMENTS: one.segments,
        Conn.CONFLICTS: one.conflict_bytes,
        Conn.RETRANSMITTED: one.retransmitted_bytes,
        Conn.DUPLICATED: one.duplicated_bytes,
        Conn.PREVIOUS: previous,
        Conn.DIRTY: 0,
        Conn.RESET_SEEN: one.reset_seen,
        Conn.PROTOCOL: PROTOCOLS.index(one.protocol),
        Conn.IS_NEW: 0,
        Conn.CLOSED_NS: one.closed_ns,
    }
    for column, value in values.items():
        row[column] = value


def _hold(tables: Tables, stream: int, early: Any, place: Place, wanted: Wanted, spill: bytearray) -> list[str]:
    """The early segments back into their list. One that is gone leaves the gap that it would have ended."""
    state, counts = tables.streams[stream], tables.counts
    state[Stream.HEAD] = state[Stream.TAIL] = -1
    state[Stream.HELD_BYTES] = state[Stream.HELD_COUNT] = 0
    tables.lanes[stream] = -1
    lanes = ((Early.EXPRESS, EXPRESS_DISTANCE), (Early.FAR, FAR_DISTANCE))
    last = [-1, -1]
    unread = []
    for kind, low, high, time, packet in early:
        data = wanted.take(stream, low, high) if kind == PieceKind.BYTES else b""
        if data is None:
            unread.append(f"{high - low} bytes that came before others")
        counts[StreamCount.FREE] -= 1
        made = int(tables.free[counts[StreamCount.FREE]])
        node = tables.nodes[made]
        node[Early.KIND] = PieceKind.BYTES if data else PieceKind.GAP
        node[Early.OFFSET], node[Early.END], node[Early.TIME], node[Early.PACKET], node[Early.FOLLOWING] = (
            low,
            high,
            time,
            place(packet),
            -1,
        )
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
