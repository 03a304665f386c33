"""IP fragments put together again, in any order, doubled, overlapping, cut and bounded."""

import struct
from collections.abc import Callable
from itertools import permutations

import pytest

from kafkascope import limits
from tests.support.packet_build import (
    ethernet,
    ipv4,
    ipv4_fragments,
    ipv6,
    pcap,
    pcapng,
    tcp,
    vxlan,
)
from tests.support.recordings import Drip, Segment, segments

SOURCE, TARGET = "10.0.0.1", "10.0.0.2"
SOURCE6, TARGET6 = "fd00::1", "fd00::2"


def parsed(packet: bytes, link: int = 101, **options: int) -> list[Segment]:
    """The segments of a recording with this packet alone, and no problem."""
    found_segments, problems = segments(pcap([(5, packet)], link=link, nano=True, **options))  # type: ignore[arg-type]
    assert problems == []
    return found_segments


PAYLOAD = bytes(range(256)) * 10
FRAGMENTED: dict[str, Callable[[], list[bytes]]] = {
    "ipv4": lambda: ipv4_fragments(SOURCE, TARGET, tcp(7, 8, 99, payload=PAYLOAD), 1000),
    "ipv6": lambda: ipv6_fragments(tcp(7, 8, 99, payload=PAYLOAD), 1000),
    "around vxlan": lambda: ipv4_fragments(
        "192.168.0.1", "192.168.0.2",
        vxlan(ethernet(ipv4(SOURCE, TARGET, tcp(7, 8, 99, payload=PAYLOAD)))), 1000, protocol=17,
    ),
    "inside vxlan": lambda: [
        ipv4("192.168.0.1", "192.168.0.2", vxlan(ethernet(piece)), protocol=17)
        for piece in ipv4_fragments(SOURCE, TARGET, tcp(7, 8, 99, payload=PAYLOAD), 1000)
    ],
}  # fmt: skip


def ipv6_fragments(payload: bytes, size: int) -> list[bytes]:
    return [
        ipv6(
            SOURCE6, TARGET6, payload[start : start + size],
            extensions=[(44, struct.pack(">BHI", 0, start | (start + size < len(payload)), 7))],
        )
        for start in range(0, len(payload), size)
    ]  # fmt: skip


@pytest.mark.parametrize("name", FRAGMENTED)
def test_fragments_in_any_order_become_the_segment_at_the_last_one(name: str) -> None:
    pieces = FRAGMENTED[name]()
    assert len(pieces) == 3
    for order in permutations(pieces):
        found_segments, problems = segments(pcapng([(index, piece) for index, piece in enumerate(order)], link=101))
        assert problems == []
        (segment,) = found_segments
        assert (segment.source_port, segment.target_port, segment.sequence) == (7, 8, 99)
        assert (segment.payload, segment.wire_length) == (PAYLOAD, len(PAYLOAD))
        assert (segment.packet, segment.time_ns) == (2, 2)


def test_fragments_within_fragments_become_the_segment() -> None:
    inner = ipv4_fragments(SOURCE, TARGET, tcp(7, 8, payload=PAYLOAD), 1000)
    outer = [
        piece
        for number, packet in enumerate(inner)
        for piece in ipv4_fragments(
            "192.168.0.1", "192.168.0.2", vxlan(ethernet(packet)), 400, protocol=17, identification=number
        )
    ]
    found_segments, problems = segments(pcapng([(0, piece) for piece in outer], link=101))
    assert ([segment.payload for segment in found_segments], problems) == ([PAYLOAD], [])


def test_fragments_spread_over_batches_and_among_other_packets_keep_the_order() -> None:
    pieces = FRAGMENTED["ipv4"]()
    others = [ipv4(SOURCE, TARGET, tcp(1, 2, number)) for number in range(4)]
    packets = [others[0], pieces[0], others[1], pieces[2], others[2], pieces[1], others[3]]
    raw = pcapng([(number, packet) for number, packet in enumerate(packets)], link=101)
    for source in (raw, Drip(raw, 1), Drip(raw, 900)):
        found_segments, problems = segments(source)
        assert [segment.packet for segment in found_segments] == [0, 2, 4, 5, 6]
        assert (found_segments[3].payload, problems) == (PAYLOAD, [])


def test_doubled_and_overlapping_fragments_are_put_together() -> None:
    data = tcp(7, 8, payload=PAYLOAD)
    size = len(data)
    packets = [
        ipv4(SOURCE, TARGET, data[start:end], identification=3, fragment=start // 8 | (0x2000 if end < size else 0))
        for start, end in ((0, 1000), (0, 1000), (0, 400), (800, 1800), (1600, size))
    ]
    found_segments, problems = segments(pcapng([(0, packet) for packet in packets], link=101))
    assert ([segment.payload for segment in found_segments], problems) == ([PAYLOAD], [])


def test_a_whole_packet_with_a_fragment_header_leaves_waiting_fragments_alone() -> None:
    pieces = FRAGMENTED["ipv6"]()
    alone = ipv6(SOURCE6, TARGET6, tcp(1, 2, payload=b"alone"), extensions=[(44, struct.pack(">BHI", 0, 0, 7))])
    found_segments, problems = segments(pcapng([(0, packet) for packet in (pieces[0], alone, *pieces[1:])], link=101))
    assert ([segment.payload for segment in found_segments], problems) == ([b"alone", PAYLOAD], [])


def test_a_fragment_cut_by_the_snap_length_cuts_the_segment_there() -> None:
    packets = FRAGMENTED["ipv4"]()
    found_segments, problems = segments(pcap([(0, packet) for packet in packets], link=101, snap_length=520))
    assert [(problem.kind, problem.lost_bytes) for problem in problems] == [("snap length", len(PAYLOAD) - 480)]
    (segment,) = found_segments
    assert (segment.payload, segment.wire_length) == (PAYLOAD[:480], len(PAYLOAD))


def test_fragments_whose_rest_never_comes_are_told() -> None:
    pieces = FRAGMENTED["ipv4"]()
    found_segments, problems = segments(pcapng([(0, pieces[0]), (1, pieces[2])], link=101))
    assert found_segments == []
    assert [(problem.kind, problem.place, problem.lost_bytes) for problem in problems] == [("fragments", 0, 1580)]


def test_fragments_wait_only_so_long() -> None:
    pieces = FRAGMENTED["ipv4"]()
    late = limits.MAX_FRAGMENT_SECONDS * 1_000_000_000 + 1
    for last, count in ((late - 1, 1), (late, 0)):
        found_segments, problems = segments(pcapng([(0, pieces[0]), (1, pieces[1]), (last, pieces[2])], link=101))
        assert len(found_segments) == count
        assert len(problems) == (0 if count else 2)


def test_the_fragment_store_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkascope.capture.net.fragments.MAX_FRAGMENT_BYTES", 20_000)
    first = [ipv4_fragments(SOURCE, TARGET, tcp(7, 8, payload=PAYLOAD), 1000, identification=i) for i in range(50)]
    packets = [pieces[0] for pieces in first] + [piece for pieces in first for piece in pieces[1:]]
    found_segments, problems = segments(pcapng([(0, packet) for packet in packets], link=101))
    assert len(found_segments) < 20
    assert problems
    assert {problem.kind for problem in problems} == {"fragments"}


def test_more_fragments_than_the_kernel_sets_aside_at_once() -> None:
    packets = [
        piece
        for number in range(1500)
        for piece in ipv4_fragments(SOURCE, TARGET, tcp(7, 8, number, payload=bytes(20)), 24, identification=number)
    ]
    found_segments, problems = segments(pcapng([(0, packet) for packet in packets], link=101))
    assert ([segment.sequence for segment in found_segments], problems) == (list(range(1500)), [])
