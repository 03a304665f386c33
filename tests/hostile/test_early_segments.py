"""Finding the place of an early segment takes a bounded number of steps, whatever order the segments come in."""

from io import BytesIO

import numpy as np
import pytest

from kafkascope import limits
from kafkascope.capture.base.flow import (
    Flows,
    PieceKind,
    Pieces,
)
from kafkascope.capture.files.packets import read_packets
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.capture.resume.reread import RereadRanges
from kafkascope.capture.resume.tcp import _hold, early_of
from kafkascope.capture.tcp.reassembly import Reassembler
from kafkascope.capture.tcp.reassembly_kernel import LOOKS_GIVEN_BACK, MOST_LOOKED_AT
from kafkascope.capture.tcp.stream_table import (
    EXPRESS_DISTANCE,
    FAR_DISTANCE,
    LOCAL,
    Early,
    Stream,
    StreamCount,
    Tables,
    grown,
    make_tables,
)
from tests.hostile.early_segments import ORDERS, packets

SEGMENTS = 30_000
# Along the far lane 16, then 16 along the other one and 16 from there, on the average; and the first two once more for
# what is put on a lane. A walk from the head takes thousands.
MOST_STEPS = 100


def reassembled(recording: bytes) -> tuple[Reassembler, list[Pieces]]:
    flows = Flows()
    segments, reassembler = SegmentReader(flows), Reassembler(flows)
    return reassembler, [reassembler.feed(segments.feed(batch)) for batch in read_packets(BytesIO(recording))]


def nodes_of(tables: Tables, stream: int) -> list[int]:
    nodes: list[int] = []
    at = int(tables.streams[stream, Stream.HEAD])
    while at >= 0 and len(nodes) <= len(tables.nodes):
        nodes.append(at)
        at = int(tables.nodes[at, Early.FOLLOWING])
    return nodes


def assert_lanes(tables: Tables, stream: int) -> None:
    """Each lane leads along the nodes that are on it, in the order of the list, and few are far apart."""
    nodes = nodes_of(tables, stream)
    assert len(nodes) == tables.streams[stream, Stream.HELD_COUNT]
    assert np.all(np.diff(tables.nodes[nodes, Early.OFFSET]) > 0)
    along = nodes
    for number, (column, apart) in enumerate(((Early.EXPRESS, EXPRESS_DISTANCE), (Early.FAR, FAR_DISTANCE))):
        along = [node for node in along if tables.nodes[node, column] != LOCAL]
        lane: list[int] = []
        at = int(tables.lanes[stream, number])
        while at >= 0 and len(lane) <= len(along):
            lane.append(at)
            at = int(tables.nodes[at, column])
        assert lane == along
        if len(nodes) > 4_000:
            assert len(nodes) // apart // 4 < len(lane) < len(nodes) // apart * 4
    on_far = tables.nodes[nodes, Early.FAR] != LOCAL
    assert np.all(tables.nodes[nodes, Early.EXPRESS][on_far] != LOCAL)


@pytest.mark.parametrize("name", ORDERS)
def test_steps_do_not_grow_with_what_waits(name: str) -> None:
    reassembler, pieces = reassembled(ORDERS[name](SEGMENTS))
    tables = reassembler._tables
    assert tables.streams[: 2 * len(reassembler.connections), Stream.HELD_COUNT].max() > SEGMENTS // 100
    assert tables.counts[StreamCount.WALKED] < MOST_STEPS * SEGMENTS
    for stream in range(2 * len(reassembler.connections)):
        assert_lanes(tables, stream)
    pieces.append(reassembler.finish())
    assert np.all(tables.lanes[: 2 * len(reassembler.connections)] == -1)
    connection = reassembler.connections[0]
    if name not in ("repeated", "covered"):
        length = {"shuffled": 8}.get(name, 1)
        assert sum(int((piece.kind == PieceKind.BYTES).sum()) for piece in pieces) == SEGMENTS
        assert sum(sum(each.bytes_seen) for each in reassembler.connections) == length * SEGMENTS
    elif name == "repeated":
        assert connection.retransmitted_bytes + connection.duplicated_bytes > SEGMENTS // 2
    else:
        assert connection.gap_bytes[0] == connection.bytes_seen[0] + 2


def test_restored_segments_are_on_the_lanes() -> None:
    """Whatever first and last node the state of an earlier run names."""
    tables = make_tables(limits.MAX_OTHER_CONNECTIONS)
    early = [(PieceKind.GAP, 10 * number, 10 * number + 5, 0, number) for number in range(1, 5_000)]
    tables.counts[StreamCount.WANT_NODES] = len(early)
    tables = grown(tables, 1)
    tables.streams[0] = -1
    tables.streams[0, [Stream.HEAD, Stream.TAIL]] = tables.free[tables.counts[StreamCount.FREE] - 1]
    assert _hold(tables, 0, early, lambda packet: packet, RereadRanges([]), bytearray()) == []
    assert_lanes(tables, 0)
    assert early_of(tables, 0) == [list(segment) for segment in early]


def test_looking_for_a_connection_to_forget_is_bounded() -> None:
    """All of them wait for bytes: none can be forgotten."""
    count, more = limits.MAX_OTHER_CONNECTIONS, 100
    flows = Flows()
    segments, reassembler = SegmentReader(flows), Reassembler(flows)
    client = np.arange(count + more)
    hands = []
    for first, last in ((0, count), (count, count + more)):
        clients = np.repeat(client[first:last], 2)
        for batch in read_packets(BytesIO(packets(clients, np.tile([0, 2], last - first)))):
            reassembler.feed(segments.feed(batch))
        hands.append(int(reassembler._tables.counts[StreamCount.HAND]))
    assert reassembler._tables.counts[StreamCount.CONNECTIONS] == count + more
    assert hands[0] == 0
    assert 0 < hands[1] <= MOST_LOOKED_AT + LOOKS_GIVEN_BACK * more
