"""The tables that the reassembly kernels share, as plain arrays: connections, streams, segments that came too early,
and what was delivered last. A stream is one direction of a connection: 2 * connection + direction."""

import os
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from kafkascope.capture.base.buffer_pool import BufferPool
from kafkascope.capture.base.flow import Bytes, Int32s, Int64s, Uint8s
from kafkascope.columnar.compiling.jit import jit


class Conn(IntEnum):
    """The columns of `connections`."""

    FLOW = 0
    FIRST_NS = 1
    LAST_NS = 2
    OPENED = 3
    OPENER = 4
    ENDED = 5
    SEGMENTS = 6
    CONFLICTS = 7
    RETRANSMITTED = 8
    DUPLICATED = 9
    PREVIOUS = 10  # the connection that had the flow before, -1 if none
    DIRTY = 11  # changed since Python last read it
    RESET_SEEN = 12
    PROTOCOL = 13  # its place in `PROTOCOLS`, or RETIRED
    IS_NEW = 14  # 1: it took the number of another since Python last read it
    CLOSED_NS = 15  # time of its first FIN or RST, -1 before


PROTOCOLS = ("unknown", "kafka", "tls", "http", "other")
KAFKA = 1
# A Kafka connection that has ended and has nothing left to report: a new connection may take its number.
RETIRED = len(PROTOCOLS)


class Ended(IntEnum):
    """How a connection ended: `Conn.ENDED`."""

    NOT_YET = 0
    FIN = 1
    RESET = 2
    REUSED = 3


class Stream(IntEnum):
    """The columns of `streams`; -1 means none in all of them but the counts."""

    BASE = 0  # the 32-bit sequence number of offset 0
    INITIAL = 1  # the sequence number of its SYN
    NEXT = 2  # offset of the next byte to deliver
    FIN_AT = 3  # offset of its FIN
    HEAD = 4  # first and last of the early segments, in the order of their offsets
    TAIL = 5
    HELD_BYTES = 6
    HELD_COUNT = 7
    ACKED = 8  # the other side has everything before this offset
    CERTAIN = 9  # what was acknowledged when the wait for it began, and when that was
    CERTAIN_COUNT = 10
    CERTAIN_NS = 11
    SOFT = 12  # 1: offset 0 comes from a segment without bytes, which may have been a keep-alive
    CLOSED = 13  # 1: its CLOSE or RESET was delivered
    STRAY = 14  # the sequence number after a segment far from all others
    SEEN_BYTES = 15
    GAP_BYTES = 16
    PLACED = 17  # conflicts that were reported one by one


class Early(IntEnum):
    """The columns of `nodes`, the early segments. `AT` is in the batch's data, or -1 - its place in the spill. `OFFSET`
    is -1 if the node is free, `LISTED` 1 if it is among the `fresh`. `EXPRESS` is the next node of the express lane, -1
    after the last one, and `LOCAL` if the node isn't on the lane; `FAR` is the same for the far lane, which links some
    nodes of the express lane. `RUN` is a later node that this one reaches without a hole, -1 if none is known. Columns
    that a walk reads are adjacent, so that a node mostly takes one cache line."""

    KIND = 0
    OFFSET = 1
    END = 2
    FOLLOWING = 3
    EXPRESS = 4
    FAR = 5
    RUN = 6
    AT = 7
    TIME = 8
    PACKET = 9
    LISTED = 10


# Memory of an early segment besides its bytes: its node, and as much again while the nodes grow.
NODE_COST = 176
LOCAL = -2
# One early segment in this many is on the express lane, and on the far one: 512 and 32 of `MAX_EARLY_SEGMENTS`. Both
# are powers of two.
EXPRESS_DISTANCE, FAR_DISTANCE = 16, 256


class StreamCount(IntEnum):
    """The places of `counts`."""

    CONNECTIONS = 0
    ROWS = 1
    FREE = 2
    FRESH = 3
    DIRTIES = 4
    HELD_TOTAL = 5
    STRAYS = 6
    AFTER_FIN_BYTES = 7
    REFUSED = 8
    CONFLICT_ROWS = 9
    SPILL_USED = 10
    SPILL_LIVE = 11
    WANT_ROWS = 12
    WANT_NODES = 13
    WANT_CONNECTIONS = 14
    OTHERS = 15  # connections that are not known to be Kafka, or are retired
    MOST_OTHERS = 16  # from this many on, each new connection takes the number of one of them
    HAND = 17  # where the search for the next one to forget begins
    LOOKS = 18  # how many were examined for that recently
    RANDOM = 19  # state of the generator that chooses nodes for the express lane
    WALKED = 20  # early segments visited to find the place of others


# The bytes delivered last are kept for this many streams at a time and this many bytes each, to compare
# retransmissions with: a window of 32 KiB in flight between two machines of one data center.
RINGS = 1_024
RING_BYTES = 32_768
MARKS = 32
_RINGS = BufferPool()
# Room at first: the kernel returns for more.
_CONNECTIONS, _NODES, _FLOWS = 128, 64, 512


class Tables(NamedTuple):
    current: Int64s  # flow to connection
    connections: Int64s
    streams: Int64s
    lanes: Int64s  # stream to the first node of its express lane and of its far lane, -1 if there is none
    nodes: Int64s
    free: Int64s  # nodes to use, a stack
    fresh: Int64s  # nodes whose bytes are in the batch
    dirty: Int64s  # connections that changed
    counts: Int64s
    forgotten: Int64s  # protocol, or RETIRED, to (connections, bytes)
    spill: Bytes
    ring_owner: Int64s
    ring_low: Int64s  # the first offset that is kept
    marks: Int64s  # (end, time) of deliveries
    ring: Bytes


class Segment(NamedTuple):
    """The columns of `Segments`, in types that the kernels are compiled for once."""

    flow: Int32s
    direction: Uint8s
    sequence: Int64s
    flags: Uint8s
    start: Int64s
    length: Int32s
    wire_length: Int32s
    time: Int64s
    packet: Int64s
    acknowledgement: Int64s  # empty if the reader has none


class Output(NamedTuple):
    """The columns of `Pieces`, and (stream, offset, bytes, packet) of conflicts."""

    kind: Uint8s
    stream: Int32s
    offset: Int64s
    start: Int64s
    length: Int64s
    time: Int64s
    packet: Int64s
    conflicts: Int64s


def make_tables(most_others: int) -> Tables:
    """Empty tables with some room."""
    count = np.zeros(len(StreamCount), np.int64)
    count[StreamCount.MOST_OTHERS] = most_others
    # Secret, so that no recording can choose which of its segments are on a lane; and not 0, which would stay 0.
    count[StreamCount.RANDOM] = int.from_bytes(os.urandom(7), "big") + 1
    # Reused memory: for a small recording, clearing fresh pages would take the longest part.
    ring = _RINGS.take(RINGS * RING_BYTES)
    spill = np.empty(0, np.uint8)
    tables = Tables(
        current=np.empty(_FLOWS, np.int64),
        connections=np.empty((_CONNECTIONS, len(Conn)), np.int64),
        streams=np.empty((2 * _CONNECTIONS, len(Stream)), np.int64),
        lanes=np.empty((2 * _CONNECTIONS, 2), np.int64),
        nodes=np.empty((_NODES, len(Early)), np.int64),
        free=np.empty(_NODES, np.int64),
        fresh=np.empty(_NODES, np.int64),
        dirty=np.empty(_CONNECTIONS, np.int64),
        counts=count,
        forgotten=np.zeros((len(PROTOCOLS) + 1, 2), np.int64),
        spill=spill,
        ring_owner=np.empty(RINGS, np.int64),
        ring_low=np.empty(RINGS, np.int64),
        marks=np.empty((RINGS, MARKS, 2), np.int64),
        ring=ring,
    )
    _begin(count, tables.current, tables.nodes, tables.free, tables.ring_owner)
    return tables


@jit
def _begin(count: Any, current: Any, nodes: Any, free: Any, ring_owner: Any) -> None:
    """No flow has a connection, all nodes are free, and no ring has an owner."""
    current[:] = -1
    ring_owner[:] = -1
    for node in range(len(nodes)):
        nodes[node, Early.OFFSET] = -1
        nodes[node, Early.LISTED] = 0
        free[node] = node
    count[StreamCount.FREE] = len(nodes)


def make_output(rows: int) -> Output:
    return Output(
        np.empty(rows, np.uint8), np.empty(rows, np.int32), np.empty(rows, np.int64), np.empty(rows, np.int64),
        np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty((rows, 4), np.int64),
    )  # fmt: skip


def longer(array: Any, length: int, fill: int | None = None) -> Any:
    """The same array with room for `length` rows, and at least twice as many as before."""
    if len(array) >= length:
        return array
    made = np.empty((max(length, 2 * len(array), 64), *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    if fill is not None:
        made[len(array) :] = fill
    return made


def grown(tables: Tables, flows: int) -> Tables:
    """The tables with the room that the kernel asked for, and for flows numbered below `flows`."""
    count = tables.counts
    connections_needed = int(count[StreamCount.CONNECTIONS] + count[StreamCount.WANT_CONNECTIONS])
    missing = max(0, int(count[StreamCount.WANT_NODES] - count[StreamCount.FREE]))
    if connections_needed <= len(tables.connections) and not missing and flows <= len(tables.current):
        return tables
    connections = longer(tables.connections, connections_needed)
    nodes_before = len(tables.nodes)
    nodes = longer(tables.nodes, nodes_before + missing)
    free = longer(tables.free, len(nodes))
    added = len(nodes) - nodes_before
    free[count[StreamCount.FREE] : count[StreamCount.FREE] + added] = np.arange(nodes_before, len(nodes))
    nodes[nodes_before:, Early.OFFSET] = -1
    nodes[nodes_before:, Early.LISTED] = 0
    count[StreamCount.FREE] += added
    return tables._replace(
        current=longer(tables.current, flows, -1),
        connections=connections,
        streams=longer(tables.streams, 2 * len(connections)),
        lanes=longer(tables.lanes, 2 * len(connections)),
        nodes=nodes,
        free=free,
        fresh=longer(tables.fresh, len(nodes)),
        dirty=longer(tables.dirty, len(connections)),
    )
