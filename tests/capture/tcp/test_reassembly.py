"""Streams out of segments: what the recording shows of every byte, whatever happened to the packets on the way."""

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from kafkascope import limits
from kafkascope.capture.base.flow import (
    ACK,
    FIN,
    RST,
    SYN,
    Flows,
    PieceKind,
    Pieces,
    ProtocolVerdict,
    Segments,
)
from kafkascope.capture.tcp.reassembly import Reassembler
from kafkascope.capture.tcp.stream_table import (
    StreamCount,
)
from tests.support.flows import Packet, Recording, endpoints, random_conversation, random_faults, record, segments

RECORDINGS = 10_000 if os.environ.get("KAFKASCOPE_SOAK") else 2_000
CHUNKS = 8
Shown = dict[int, list[int | None]]


def shown(pieces: Iterable[Pieces]) -> tuple[Shown, dict[int, list[int]]]:
    """Each stream's bytes, None in gaps, and the kinds of rows that say something else. Offsets leave nothing out."""
    streams: Shown = defaultdict(list)
    marks: dict[int, list[int]] = defaultdict(list)
    for batch in pieces:
        for row, kind in enumerate(batch.kind):
            stream = int(batch.stream[row])
            assert batch.offset[row] == len(streams[stream])
            length = int(batch.length[row])
            if kind == PieceKind.BYTES:
                assert length > 0
                streams[stream] += content(batch, row)
            elif kind == PieceKind.GAP:
                assert length > 0
                streams[stream] += [None] * length
            else:
                assert length == 0
                marks[stream].append(int(kind))
    return streams, marks


def content(pieces: Pieces, row: int) -> bytes:
    start, length = int(pieces.start[row]), int(pieces.length[row])
    behind = start - len(pieces.data)
    data = pieces.data[start : start + length] if behind < 0 else pieces.waited[behind : behind + length]
    assert len(data) == length
    return data.tobytes()


def run(recording: Recording, size: int) -> tuple[Reassembler, list[Pieces]]:
    reassembler = Reassembler(recording.flows)
    pieces = [reassembler.feed(batch) for batch in recording.batches(size)]
    return reassembler, [*pieces, reassembler.finish()]


def rows(pieces: Iterable[Pieces]) -> list[tuple[object, ...]]:
    return [
        (
            int(p.kind[i]), int(p.stream[i]), int(p.offset[i]), int(p.length[i]), int(p.time_ns[i]), int(p.packet[i]),
            content(p, i) if p.kind[i] == PieceKind.BYTES else b"",
        )
        for p in pieces
        for i in range(len(p.kind))
    ]  # fmt: skip


def random_recording(seed: int) -> Recording:
    random = Random(seed)
    conversations = [random_conversation(random) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    return record(random, conversations, random_faults(random, len(conversations)))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_streams_are_what_the_recording_shows(chunk: int) -> None:
    for seed in range(chunk, RECORDINGS, CHUNKS):
        recording = random_recording(seed)
        reassembler, pieces = run(recording, max(1, len(recording.packets)))
        streams, _ = shown(pieces)
        seen = [truth for truth in recording.truths if truth[0].shown or truth[1].shown]
        connections = [c for c in reassembler.connections if sum(c.bytes_seen) + sum(c.gap_bytes)]
        assert len(connections) == len(seen), f"seed {seed}"
        for connection, truths in zip(connections, seen, strict=True):
            for direction, truth in enumerate(truths):
                assert streams[2 * connection.number + direction] == truth.shown, f"seed {seed}"
                assert connection.bytes_seen[direction] == sum(byte is not None for byte in truth.shown), f"seed {seed}"
                assert connection.gap_bytes[direction] == truth.shown.count(None), f"seed {seed}"
            if not sum(connection.gap_bytes) and connection.opened:
                again = connection.retransmitted_bytes + connection.duplicated_bytes
                single = sum(truth.single for truth in truths)
                assert 0 <= sum(truth.repeated for truth in truths) - again <= single, f"seed {seed}"
                conflicts = sum(truth.conflicts for truth in truths)
                assert 0 <= conflicts - connection.conflict_bytes <= single, f"seed {seed}"


def test_batches_of_any_size_give_the_same_pieces() -> None:
    for seed in range(60):
        recording = random_recording(seed)
        whole = run(recording, max(1, len(recording.packets)))
        for size in (1, 3, 20):
            parts = run(recording, size)
            assert rows(parts[1]) == rows(whole[1]), f"seed {seed}, {size} at a time"
            assert parts[0].connections == whole[0].connections, f"seed {seed}, {size} at a time"


CLIENT, BROKER = 0, 1
MILLISECOND = 1_000_000


def seg(
    direction: int, sequence: int, payload: bytes = b"", flags: int = ACK, *, acknowledges: int = -1, wire: int = 0,
    time: int = 0, flow: int = 0,
) -> Packet:  # fmt: skip
    size = wire or len(payload)
    return Packet(0, flow, direction, sequence % 2**32, flags, payload, size, time, acknowledges, 0)


def opened(client: int = 1000, broker: int = 5000, time: int = 0) -> list[Packet]:
    """After which the client's first byte has the number `client`, the broker's `broker`."""
    return [
        seg(CLIENT, client - 1, flags=SYN, time=time),
        seg(BROKER, broker - 1, flags=SYN | ACK, acknowledges=client, time=time),
    ]


def play(*packets: Packet) -> tuple[Reassembler, list[Pieces], Shown, dict[int, list[int]]]:
    flows = max(packet.flow for packet in packets) + 1
    reassembler, pieces = run(Recording(list(packets), [], Flows([endpoints(n) for n in range(flows)])), 1000)
    return reassembler, pieces, *shown(pieces)


def text(bytes_and_gaps: list[int | None]) -> str:
    return "".join("_" if byte is None else chr(byte) for byte in bytes_and_gaps)


def test_in_order_bytes_are_not_copied() -> None:
    batch = segments([*opened(), seg(CLIENT, 1000, b"hello"), seg(CLIENT, 1005, b"world")])
    pieces = Reassembler(Flows([endpoints(0)])).feed(batch)
    assert np.shares_memory(pieces.data, batch.data)


def test_first_copy_wins_and_the_other_is_counted_and_placed() -> None:
    packets = [*opened(), seg(CLIENT, 1000, b"abcdef"), seg(CLIENT, 1002, b"cXYf", time=300 * MILLISECOND)]
    reassembler, pieces, streams, _ = play(*packets)
    assert text(streams[0]) == "abcdef"
    assert reassembler.connections[0].conflict_bytes == 2
    problem = next(problem for batch in pieces for problem in batch.problems)
    assert (problem.kind, problem.place) == ("conflict", 3)
    assert problem.detail == "connection 0, direction 0: 2 bytes at 2 differ from those seen first"


def test_conflict_between_segments_that_wait_is_counted() -> None:
    packets = [*opened(), seg(CLIENT, 1003, b"def"), seg(CLIENT, 1001, b"bcDEFghi"), seg(CLIENT, 1000, b"a")]
    reassembler, _, streams, _ = play(*packets)
    assert text(streams[0]) == "abcdefghi"
    assert reassembler.connections[0].conflict_bytes == 3


def test_packet_recorded_twice_is_told_from_a_retransmission() -> None:
    twice = [seg(CLIENT, 1000, b"abc"), seg(CLIENT, 1000, b"abc", time=MILLISECOND // 2)]
    again = seg(CLIENT, 1000, b"abc", time=250 * MILLISECOND)
    connection = play(*opened(), *twice, again)[0].connections[0]
    assert (connection.duplicated_bytes, connection.retransmitted_bytes) == (3, 3)
    assert connection.bytes_seen == [3, 0]


@pytest.mark.parametrize("later", [0, 250 * MILLISECOND, -5_000 * MILLISECOND, 5_000 * MILLISECOND])
def test_connection_recorded_twice_one_behind_the_other_is_one(later: int) -> None:
    """Two recordings of it, by clocks that differ."""
    whole = [
        *opened(), seg(CLIENT, 1000, b"abc", time=5), seg(BROKER, 5000, b"xyz", time=6),
        seg(CLIENT, 1003, flags=FIN | ACK, time=7), seg(BROKER, 5003, flags=FIN | ACK, time=8),
    ]  # fmt: skip
    again = [replace(packet, time=packet.time + later) for packet in whole]
    reassembler, _, streams, marks = play(*whole, *again)
    assert len(reassembler.connections) == 1
    assert (text(streams[0]), text(streams[1])) == ("abc", "xyz")
    assert marks == {0: [PieceKind.OPEN, PieceKind.CLOSE], 1: [PieceKind.OPEN, PieceKind.CLOSE]}


def test_reused_ports_make_a_new_connection() -> None:
    packets = [*opened(), seg(CLIENT, 1000, b"old"), *opened(90_000, 95_000), seg(CLIENT, 90_000, b"new")]
    reassembler, _, streams, marks = play(*packets)
    assert [connection.closed for connection in reassembler.connections] == ["reused", None]
    assert (text(streams[0]), text(streams[2])) == ("old", "new")
    assert marks[0] == [PieceKind.OPEN, PieceKind.CLOSE]


@pytest.mark.parametrize(("broker", "later"), [(77_000, 2), (5_000, 70_000 * MILLISECOND)])
def test_same_initial_sequence_after_the_end_is_a_new_connection(broker: int, later: int) -> None:
    """The broker's is another, or it is long ago: that is chance."""
    packets = [
        *opened(), seg(CLIENT, 1000, flags=RST, time=1),
        *opened(1_000, broker, time=later), seg(CLIENT, 1000, b"new", time=later + 1),
    ]  # fmt: skip
    reassembler, _, streams, marks = play(*packets)
    assert [connection.closed for connection in reassembler.connections] == ["reset", None]
    assert reassembler.connections[1].opener == 0
    assert text(streams[2]) == "new"
    assert marks[0] == [PieceKind.OPEN, PieceKind.RESET]


def test_bytes_behind_a_reset_are_counted() -> None:
    packets = [*opened(), seg(CLIENT, 1000, b"abc"), seg(BROKER, 5000, flags=RST), seg(CLIENT, 1003, b"late")]
    _, pieces, streams, _ = play(*packets, seg(CLIENT, 1000, b"abc"))
    assert text(streams[0]) == "abc"
    assert [(problem.kind, problem.lost_bytes) for piece in pieces for problem in piece.problems] == [("after_fin", 4)]


def test_late_segments_of_the_connection_before_are_left_out() -> None:
    """Its FIN and a retransmission come behind the SYN that reuses its ports."""
    before = [*opened(), seg(CLIENT, 1000, b"old"), seg(BROKER, 5000, b"answer")]
    syn, answer = opened(90_000, 95_000_000)
    late = [seg(BROKER, 5000, b"answer"), seg(BROKER, 5006, flags=FIN | ACK)]
    reassembler, _, streams, marks = play(*before, syn, *late, answer, seg(BROKER, 95_000_000, b"new"))
    assert len(reassembler.connections) == 2
    assert text(streams[3]) == "new"
    assert marks[3] == [PieceKind.OPEN]


def test_end_waits_for_the_bytes_before_it() -> None:
    packets = [*opened(), seg(CLIENT, 1003, flags=FIN | ACK), seg(CLIENT, 1000, b"abc")]
    reassembler, pieces, streams, _ = play(*packets)
    assert text(streams[0]) == "abc"
    assert [row[0] for row in rows(pieces) if row[1] == 0] == [PieceKind.OPEN, PieceKind.BYTES, PieceKind.CLOSE]
    assert reassembler.connections[0].closed == "fin"


@pytest.mark.parametrize(
    ("ends", "closed", "at"),
    [
        ([seg(CLIENT, 1000, flags=FIN | ACK, time=5), seg(BROKER, 5000, flags=FIN | ACK, time=8)], "fin", 5),
        ([seg(CLIENT, 1000, flags=FIN | ACK, time=5), seg(BROKER, 5000, flags=RST, time=8)], "fin", 5),
        ([seg(BROKER, 5000, flags=RST, time=6), seg(CLIENT, 1000, flags=RST, time=8)], "reset", 6),
        ([seg(CLIENT, 1003, flags=FIN | ACK, time=5), seg(CLIENT, 1000, b"abc", time=8)], "fin", 5),
        ([seg(CLIENT, 1000, b"abc", time=8)], None, None),
    ],
)
def test_time_of_the_end_is_that_of_the_first_fin_or_reset(
    ends: list[Packet], closed: str | None, at: int | None
) -> None:
    reassembler, *_ = play(*opened(), *ends, seg(BROKER, 5000, flags=ACK, time=9))
    only = reassembler.connections[0]
    assert (only.closed, only.closed_ns, only.last_ns) == (closed, at, 9)


def test_bytes_after_the_end_are_left_out_and_told() -> None:
    packets = [*opened(), seg(CLIENT, 1000, b"abc", FIN | ACK), seg(CLIENT, 1003, b"more")]
    _, pieces, streams, _ = play(*packets)
    assert text(streams[0]) == "abc"
    assert [problem.kind for batch in pieces for problem in batch.problems] == ["after_fin"]


def test_snap_length_leaves_a_gap() -> None:
    packets = [*opened(), seg(CLIENT, 1000, b"abc", wire=10), seg(CLIENT, 1010, b"xyz", wire=5)]
    reassembler, _, streams, _ = play(*packets)
    assert text(streams[0]) == "abc_______xyz__"
    assert reassembler.connections[0].gap_bytes == [9, 0]


def test_keep_alive_is_no_byte() -> None:
    packets = [
        *opened(),
        seg(CLIENT, 1000, b"abc"),
        seg(CLIENT, 1002, b"\0"),
        seg(CLIENT, 1002),
        seg(CLIENT, 1003, b"d"),
    ]
    reassembler, _, streams, _ = play(*packets)
    assert text(streams[0]) == "abcd"
    connection = reassembler.connections[0]
    assert (connection.conflict_bytes, connection.retransmitted_bytes, connection.duplicated_bytes) == (0, 0, 0)


def test_keep_alive_before_anything_else_costs_no_byte() -> None:
    _, _, streams, _ = play(seg(CLIENT, 999), seg(CLIENT, 1000, b"abc"))
    assert text(streams[0]) == "abc"


def test_zero_window_probe_is_a_byte() -> None:
    _, _, streams, _ = play(*opened(), seg(CLIENT, 1000, b"a"), seg(CLIENT, 1000, b"abc"))
    assert text(streams[0]) == "abc"


def test_syn_may_carry_bytes() -> None:
    _, _, streams, _ = play(seg(CLIENT, 999, b"abc", SYN), seg(CLIENT, 1003, b"def"))
    assert text(streams[0]) == "abcdef"


def test_sequence_numbers_wrap() -> None:
    packets = [*opened(2**32 - 2), seg(CLIENT, 2**32 - 2, b"abcd"), seg(CLIENT, 2, b"ef"), seg(CLIENT, 2**32 - 1, b"b")]
    _, _, streams, _ = play(*packets)
    assert text(streams[0]) == "abcdef"


def test_start_in_the_middle_and_one_direction_alone() -> None:
    reassembler, _, streams, marks = play(seg(CLIENT, 7_000, b"abc"), seg(CLIENT, 7_003, b"def"))
    assert text(streams[0]) == "abcdef"
    assert marks == {}
    connection = reassembler.connections[0]
    assert (connection.opened, connection.opener, connection.initial_sequence) == (False, None, (None, None))


def test_lost_syn_shows_in_its_answer() -> None:
    reassembler, _, streams, _ = play(opened()[1], seg(CLIENT, 1000, b"abc"))
    assert text(streams[0]) == "abc"
    connection = reassembler.connections[0]
    assert (connection.opened, connection.opener, connection.initial_sequence) == (True, CLIENT, (999, 4999))


def test_reset_far_from_the_stream_is_not_believed() -> None:
    packets = [*opened(), seg(CLIENT, 1000, b"abc"), seg(CLIENT, 2_000_000_000, flags=RST), seg(CLIENT, 1003, b"def")]
    reassembler, _, streams, _ = play(*packets)
    assert text(streams[0]) == "abcdef"
    assert reassembler.connections[0].closed is None


def test_reused_ports_without_a_syn_are_found_by_two_segments() -> None:
    far = 2_000_000_000
    packets = [
        *opened(),
        seg(CLIENT, 1000, b"old"),
        seg(CLIENT, far, b"abc"),
        seg(CLIENT, far + 3, b"def"),
        seg(CLIENT, far + 6, b"g"),
    ]
    _, pieces, streams, _ = play(*packets)
    assert (text(streams[0]), text(streams[2])) == ("old", "defg")
    assert [problem.kind for batch in pieces for problem in batch.problems] == ["stray"]


def test_acknowledged_gap_is_given_up_while_the_connection_goes_on() -> None:
    """Bytes that the broker has are not sent again: what came behind them need not wait for the recording's end."""
    lost = [*opened(), seg(CLIENT, 1000, b"abc"), seg(CLIENT, 1010, b"xyz")]
    answers = [seg(BROKER, 5000 + n, b"r", acknowledges=1013) for n in range(80)]
    reassembler = Reassembler(Flows([endpoints(0)]))
    streams, _ = shown([reassembler.feed(segments([*lost, *answers]))])
    assert text(streams[0]) == "abc_______xyz"


def test_gap_that_nobody_acknowledged_is_waited_for() -> None:
    lost = [*opened(), seg(CLIENT, 1000, b"abc"), seg(CLIENT, 1010, b"xyz")]
    answers = [seg(BROKER, 5000 + n, b"r", acknowledges=1003) for n in range(80)]
    late = seg(CLIENT, 1003, b"defghij", time=20_000 * MILLISECOND)
    _, _, streams, _ = play(*lost, *answers, late)
    assert text(streams[0]) == "abcdefghijxyz"


def test_lost_tail_shows_in_what_was_acknowledged() -> None:
    packets = [*opened(), seg(CLIENT, 1000, b"abc"), seg(BROKER, 5000, b"r", acknowledges=1010)]
    _, _, streams, _ = play(*packets)
    assert text(streams[0]) == "abc_______"


def test_early_segments_are_bounded() -> None:
    """A gap that never closes, in one stream and in many: what waits is delivered behind the gap at the limit."""
    payload = bytes(65_000)
    flows = Flows([endpoints(n) for n in range(40)])
    reassembler = Reassembler(flows)
    delivered = sent = most = 0
    for turn in range(60):
        packets = [seg(CLIENT, 1000 + 1 + turn * 65_000, payload, flow=flow) for flow in range(40)]
        if turn == 0:
            packets = [packet for flow in range(40) for packet in (replace(opened()[0], flow=flow),)] + packets
        pieces = reassembler.feed(segments(packets))
        delivered += int(pieces.length[pieces.kind == PieceKind.BYTES].sum())
        sent += 40 * 65_000
        most = max(most, sent - delivered)
    assert sent > 2 * limits.MAX_EARLY_TOTAL_BYTES
    assert limits.MAX_EARLY_TOTAL_BYTES // 2 < most <= limits.MAX_EARLY_TOTAL_BYTES + 65_000
    assert sum(connection.gap_bytes[0] for connection in reassembler.connections) > 0


def test_many_small_early_segments_are_bounded() -> None:
    reassembler = Reassembler(Flows([endpoints(0)]))
    packets = [seg(CLIENT, 1000 + 2 * n, b"x") for n in range(1, limits.MAX_EARLY_SEGMENTS + 500)]
    pieces = reassembler.feed(segments([*opened(), *packets]))
    waiting = len(packets) - int((pieces.kind == PieceKind.BYTES).sum())
    assert waiting <= limits.MAX_EARLY_SEGMENTS


def test_more_connections_than_the_limit_are_counted() -> None:
    reassembler = Reassembler(Flows([endpoints(0), endpoints(1)]))
    reassembler.feed(segments(opened()))
    reassembler._tables.counts[StreamCount.CONNECTIONS] = limits.MAX_CONNECTIONS
    pieces = reassembler.feed(segments([seg(CLIENT, 1, b"abc", flow=1)]))
    assert len(pieces.kind) == 0
    assert [problem.kind for problem in pieces.problems] == ["too_many_connections"]


def syns(first: int, count: int) -> Segments:
    """A flood: each SYN of a flow of its own."""
    segment = segments([opened()[0]])
    columns: dict[str, Any] = {
        name: np.repeat(getattr(segment, name), count)
        for name in ("direction", "sequence", "flags", "start", "length", "wire_length", "time_ns", "packet")
    }
    flow = np.arange(first, first + count, dtype=np.int32)
    return Segments(data=segment.data, flow=flow, **columns)


def test_flood_of_connections_without_bytes_is_forgotten_and_counted() -> None:
    most = limits.MAX_OTHER_CONNECTIONS
    flows = Flows([endpoints(0)] * (6 * most))
    reassembler = Reassembler(flows)
    batches = [reassembler.feed(syns(turn * most // 2, most // 2)).problems for turn in range(12)]
    assert len(reassembler.connections) == most
    assert len(reassembler._tables.connections) <= 2 * most
    assert reassembler.forgotten == {"unknown": (5 * most, 0)}
    assert [len(problems) for problems in batches] == [0, 0] + [1] * 10
    assert batches[-1][0].kind == "forgotten"
    assert [connection.number for connection in reassembler.connections] == list(range(most))
    # Every flow that lost its connection may be another's.
    assert len(reassembler.take_released_flows()) == 5 * most > limits.MAX_UNUSED_FLOWS


def test_connections_with_kafka_are_never_forgotten() -> None:
    most = limits.MAX_OTHER_CONNECTIONS
    reassembler = Reassembler(Flows([endpoints(0)] * (3 * most)))
    reassembler.feed(segments([replace(packet, flow=number) for number in range(9) for packet in opened()]))
    reassembler.apply_verdicts(
        [ProtocolVerdict(2, "kafka", 0), ProtocolVerdict(3, "tls"), ProtocolVerdict(7, "kafka", 0)]
    )
    kafka = [reassembler.connections[number] for number in (2, 7)]
    reassembler.feed(syns(9, most))
    reassembler.feed(syns(9 + most, most))
    assert [reassembler.connections[number] for number in (2, 7)] == kafka
    assert reassembler.connections[2] is kafka[0]
    assert reassembler.forgotten["tls"] == (1, 0)
    # It goes on where it was.
    pieces = reassembler.feed(segments([seg(CLIENT, 1000, b"abc", flow=7)]))
    assert pieces.stream.tolist() == [14]


def test_bytes_that_nobody_looked_at_are_not_forgotten() -> None:
    """In one batch, before anybody can say what they are."""
    most = limits.MAX_OTHER_CONNECTIONS
    reassembler = Reassembler(Flows([endpoints(0)] * (2 * most + 1)))
    talk = segments([*opened(), seg(CLIENT, 1000, b"abc")])
    flood = syns(1, 2 * most)
    names = ("flow", "direction", "sequence", "flags", "start", "length", "wire_length", "time_ns", "packet")
    joined: dict[str, Any] = {name: np.concatenate([getattr(talk, name), getattr(flood, name)]) for name in names}
    reassembler.feed(Segments(data=talk.data, **joined))
    assert reassembler.connections[0].bytes_seen == [3, 0]
    assert (reassembler.connections[0].flow, reassembler.connections[1].flow) == (0, 2 * most - 1)


def test_number_of_a_forgotten_connection_begins_anew() -> None:
    most = limits.MAX_OTHER_CONNECTIONS
    reassembler = Reassembler(Flows([endpoints(0)] * (most + 2)))
    reassembler.feed(segments([*opened(), seg(CLIENT, 1000, b"old")]))
    reassembler.feed(syns(1, most - 1))
    pieces = reassembler.feed(
        segments([replace(packet, flow=most) for packet in (*opened(2000, 7000), seg(CLIENT, 2000, b"new"))])
    )
    assert (pieces.kind.tolist(), pieces.stream.tolist()) == (
        [PieceKind.RENEWED, PieceKind.OPEN, PieceKind.OPEN, PieceKind.BYTES],
        [0, 0, 1, 0],
    )
    assert reassembler.connections[0].flow == most
    assert reassembler.connections[0].bytes_seen == [3, 0]
    assert reassembler.forgotten == {"unknown": (1, 3)}


def test_bytes_from_before_the_recording_were_never_seen_whatever_is_in_fresh_memory() -> None:
    """They come again, and nothing says when they came first: memory that was never written to least of all."""

    def sent(sequence: int, time: int) -> Packet:
        return Packet(0, 0, 0, sequence, ACK, b"x" * 50, 50, time, 0, 0)

    reassembler = Reassembler(Flows([endpoints(0)]))
    reassembler._tables.marks[:] = 2_000_000
    reassembler.feed(segments([sent(1_000, 1_000_000)]))
    reassembler.feed(segments([sent(900, 2_000_000)]))
    (connection,) = reassembler.connections
    assert (connection.retransmitted_bytes, connection.duplicated_bytes) == (50, 0)
