"""pcapng block by block: every kind that carries packets, every clock, and lengths that lie."""

import struct
from collections.abc import Iterator

import pytest

from kafkascope import limits
from tests.support.hexes import hexes
from tests.support.packet_build import block, enhanced, interface, section
from tests.support.recordings import Drip, Seen, read

PACKET = bytes(range(61))


def option(code: int, value: bytes, *, big: bool = False) -> bytes:
    return struct.pack((">" if big else "<") + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def test_reads_a_file_written_by_hand() -> None:
    raw = hexes("""
        0a0d0d0a 1c000000        # section header, 28 bytes
        4d3c2b1a 0100 0000       # little endian, version 1.0
        ffffffffffffffff         # section length not said
        1c000000
        01000000 20000000        # interface, 32 bytes
        0100 0000 40000000       # link type 1, snap length 64
        0900 0100 09000000       # if_tsresol 9: nanoseconds
        0000 0000                # end of options
        20000000
        06000000 28000000        # enhanced packet, 40 bytes
        00000000                 # interface 0
        15cd5b07 ffffffff        # time 123456789 * 2**32 + 4294967295
        05000000 09000000        # 5 bytes of 9
        6162636465 000000        # "abcde", padded
        28000000
    """)
    assert read(raw) == ([Seen((123456789 << 32) + 0xFFFFFFFF, 1, 9, b"abcde")], [])


@pytest.mark.parametrize("big", [False, True])
def test_reads_all_three_blocks_that_carry_packets(big: bool) -> None:
    order = ">" if big else "<"
    old = struct.pack(order + "HHIIII", 0, 7, 0, 5_000_000, len(PACKET), 99) + PACKET
    simple = struct.pack(order + "I", len(PACKET)) + PACKET
    raw = section(big=big) + interface(big=big)
    raw += enhanced(PACKET, 4_000_000, big=big) + block(2, old, big=big) + block(3, simple, big=big)
    assert read(raw) == (
        [
            Seen(4_000_000_000, 1, 61, PACKET),
            Seen(5_000_000_000, 1, 99, PACKET),
            Seen(5_000_000_000, 1, 61, PACKET),  # a simple packet has no time: that of the one before
        ],
        [],
    )


def test_a_simple_packet_is_as_long_as_the_snap_length_lets_it_be() -> None:
    raw = section() + interface(snap_length=10) + block(3, struct.pack("<I", 61) + PACKET[:12])
    assert read(raw)[0] == [Seen(0, 1, 61, PACKET[:10])]


@pytest.mark.parametrize(
    ("resolution", "stamp", "time_ns"),
    [
        (None, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
        (0, 1_700_000_000, 1_700_000_000_000_000_000),
        (3, 1_700_000_000_123, 1_700_000_000_123_000_000),
        (6, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
        (9, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        (10, 1_700_000_000_012_345_678, 170_000_000_001_234_567),
        (18, 1_234_567_890_123_456_789, 1_234_567_890),
        (127, 5, 0),
        (0x80, 1_700_000_000, 1_700_000_000_000_000_000),
        (0x80 | 10, (1_700_000_000 << 10) + 512, 1_700_000_000_500_000_000),
        (0x80 | 32, (4_000_000_000 << 32) + (1 << 31), 4_000_000_000_500_000_000),
        (0x80 | 40, (1_000 << 40) + (3 << 38), 1_000_750_000_000),
        (0x80 | 63, 3 << 62, 1_500_000_000),
        (0xFF, 5, 0),
    ],
)
def test_every_time_resolution(resolution: int | None, stamp: int, time_ns: int) -> None:
    options = b"" if resolution is None else option(9, bytes([resolution])) + bytes(4)
    assert read(section() + interface(options=options) + enhanced(PACKET, stamp))[0][0].time_ns == time_ns


@pytest.mark.parametrize("big", [False, True])
def test_a_time_offset_is_added_in_seconds(big: bool) -> None:
    options = option(14, (-5).to_bytes(8, "big" if big else "little", signed=True), big=big) + bytes(4)
    raw = section(big=big) + interface(options=options, big=big) + enhanced(PACKET, 7_000_000, big=big)
    assert read(raw)[0][0].time_ns == 2_000_000_000


def test_interfaces_have_their_own_link_type_and_clock() -> None:
    nano = option(9, b"\x09") + bytes(4)
    raw = section() + interface(1) + interface(113, options=nano) + interface(276)
    raw += enhanced(PACKET, 3_000_000, 1) + enhanced(PACKET, 3_000_000, 0) + enhanced(PACKET, 1, 2)
    assert [(packet.time_ns, packet.link) for packet in read(raw)[0]] == [
        (3_000_000, 113),
        (3_000_000_000, 1),
        (1000, 276),
    ]


def test_sections_of_either_byte_order_follow_one_another() -> None:
    raw = b"".join(
        section(big=big) + interface(link, big=big) + enhanced(PACKET, 9, big=big)
        for big, link in ((False, 1), (True, 101), (True, 113), (False, 0))
    )
    assert read(raw) == ([Seen(9000, link, 61, PACKET) for link in (1, 101, 113, 0)], [])


def test_a_section_forgets_the_interfaces_of_the_one_before() -> None:
    raw = section() + interface(1) + section() + enhanced(PACKET) + interface(12) + enhanced(PACKET)
    packets, problems = read(raw)
    assert [packet.link for packet in packets] == [12]
    assert [(problem.kind, problem.offset) for problem in problems] == [("bad packet", 28 + 20 + 28)]


def test_blocks_that_are_not_known_are_skipped() -> None:
    names, statistics, secrets, custom, future = (block(kind, b"?" * 37) for kind in (4, 5, 10, 0xBAD, 0x1234_5678))
    raw = section() + names + interface() + statistics + secrets + enhanced(PACKET) + custom + future + enhanced(PACKET)
    packets, problems = read(raw)
    assert (len(packets), problems) == (2, [])


def test_a_packet_longer_than_its_block_costs_itself_alone() -> None:
    liar = block(6, struct.pack("<IIIII", 0, 0, 0, 62, 62) + bytes(60))
    packets, problems = read(section() + interface() + liar + enhanced(PACKET))
    assert [packet.data for packet in packets] == [PACKET]
    assert [(problem.kind, problem.offset, problem.lost_bytes) for problem in problems] == [
        ("bad packet", 48, len(liar))
    ]


def test_packet_blocks_too_short_for_their_headers_cost_themselves_alone() -> None:
    short = [block(kind, bytes(size)) for kind, size in ((6, 16), (2, 8), (3, 0), (1, 4))]
    packets, problems = read(section() + interface() + b"".join(short) + enhanced(PACKET))
    assert [packet.data for packet in packets] == [PACKET]
    assert [problem.kind for problem in problems] == ["bad packet"] * 3 + ["bad interface"]


def lying() -> Iterator[tuple[str, bytes]]:
    body = struct.pack("<IIIII", 0, 0, 0, len(PACKET), len(PACKET)) + PACKET
    for length in (0, 8, 95, 97, 60, 92, 100, 1000, 100_000, limits.MAX_BLOCK_BYTES, 0x7FFF_FFFC, 0xFFFF_FFFC):
        yield f"front {length}", block(6, body, length=length)


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize(("what", "liar"), [*lying()], ids=[name for name, _ in lying()])
def test_a_block_whose_first_length_alone_lies_is_kept(what: str, liar: bytes, size: int) -> None:
    parts = [enhanced(PACKET, 1), enhanced(PACKET, 2), enhanced(PACKET, 3)]
    for at in range(4):
        blocks = [*parts[:at], liar, *parts[at:]]
        raw = section() + interface() + b"".join(blocks)
        packets, problems = read(Drip(raw, size))
        assert [packet.time_ns for packet in packets] == [*(1000, 2000, 3000)[:at], 0, *(1000, 2000, 3000)[at:]], what
        assert [(problem.kind, problem.lost_bytes) for problem in problems] == [("broken block", 0)]
        assert problems[0].offset == raw.index(liar)


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_block_whose_lengths_both_lie_costs_itself_alone(size: int) -> None:
    body = struct.pack("<IIIII", 0, 0, 0, len(PACKET), len(PACKET)) + PACKET
    for length in (0, 95, 60, 100, 1000, limits.MAX_BLOCK_BYTES, 0xFFFF_FFFC):
        liar = block(6, body, length=length, end=4711)
        raw = section() + interface() + enhanced(PACKET, 1) + liar + enhanced(PACKET, 2) + enhanced(PACKET, 3)
        packets, problems = read(Drip(raw, size))
        assert [packet.time_ns for packet in packets] == [1000, 2000, 3000], length
        assert [(problem.kind, problem.lost_bytes) for problem in problems] == [("broken block", len(liar))]


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("length", [0, 24, 27, 32, 1000, limits.MAX_BLOCK_BYTES, 0xFFFF_FFFC])
def test_a_section_or_interface_whose_length_lies_does_not_hide_its_packets(length: int, big: bool) -> None:
    packets = enhanced(PACKET, 1, big=big) + enhanced(PACKET, 2, big=big)
    for at in (4, len(section()) - 4, len(section()) + 4, len(section() + interface()) - 4):
        raw = bytearray(section(big=big) + interface(big=big) + packets)
        raw[at : at + 4] = length.to_bytes(4, "big" if big else "little")
        for size in (1, 10_000):
            recovered, problems = read(Drip(bytes(raw), size))
            assert [packet.time_ns for packet in recovered] == [1000, 2000], (at, size)
            assert [problem.kind for problem in problems] == ["broken block"]


def test_a_block_whose_second_length_alone_lies_is_kept() -> None:
    body = struct.pack("<IIIII", 0, 0, 2, len(PACKET), len(PACKET)) + PACKET
    liar = block(6, body, end=4711)
    for raw in (enhanced(PACKET, 1) + liar + enhanced(PACKET, 3), enhanced(PACKET, 1) + liar):
        packets, problems = read(section() + interface() + raw)
        assert [packet.time_ns for packet in packets] == [1000, 2000, 3000][: len(packets)]
        assert len(packets) == raw.count(PACKET)
        assert [(problem.kind, problem.lost_bytes) for problem in problems] == [("broken block", 0)]


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_first_length_that_reaches_to_a_later_block_hides_no_block(size: int) -> None:
    body = struct.pack("<IIIII", 0, 0, 0, len(PACKET), len(PACKET)) + PACKET
    for count in (2, 3):
        liar = block(6, body, length=count * len(enhanced(PACKET)))
        raw = section() + interface() + liar + enhanced(PACKET, 1) + enhanced(PACKET, 2) + enhanced(PACKET, 3)
        packets, problems = read(Drip(raw, size))
        assert [packet.time_ns for packet in packets] == [0, 1000, 2000, 3000]
        assert [(problem.kind, problem.lost_bytes) for problem in problems] == [("broken block", 0)]


def test_blocks_inside_a_packet_whose_second_length_lies_stay_there() -> None:
    inner = section(big=True) + interface(113, big=True) + enhanced(b"inner" * 12, 9, big=True)
    body = struct.pack("<IIIII", 0, 0, 1, len(inner), len(inner)) + inner
    packets, problems = read(section() + interface() + block(6, body, end=4711) + enhanced(PACKET, 2))
    assert [packet.data for packet in packets] == [inner, PACKET]
    assert [problem.lost_bytes for problem in problems] == [0]


def test_a_hole_is_searched_through_to_the_next_section_of_the_other_byte_order() -> None:
    raw = section() + interface() + enhanced(PACKET, 1) + bytes(1003)
    raw += section(big=True) + interface(big=True) + enhanced(PACKET, 2, big=True)
    packets, problems = read(raw)
    assert [packet.time_ns for packet in packets] == [1000, 2000]
    assert [problem.lost_bytes for problem in problems] == [1003]


def test_a_long_hole_spans_buffers() -> None:
    hole = bytes(3_000_001)
    raw = section() + interface() + enhanced(PACKET, 1) + hole + enhanced(PACKET, 2)
    packets, problems = read(raw, chunk_bytes=100_000)
    assert [packet.time_ns for packet in packets] == [1000, 2000]
    assert [problem.lost_bytes for problem in problems] == [len(hole)]


def test_a_large_block_that_is_skipped_may_be_larger_than_the_buffer() -> None:
    raw = section() + block(10, bytes(1_000_000)) + interface() + enhanced(PACKET)
    packets, problems = read(raw, chunk_bytes=4096)
    assert (len(packets), problems) == (1, [])


def test_interfaces_of_one_section_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkascope.capture.files.pcapng.MAX_INTERFACES", 20)
    raw = section() + interface() * 21 + enhanced(PACKET, 1, 19) + enhanced(PACKET, 2, 20)
    packets, problems = read(raw)
    assert [packet.time_ns for packet in packets] == [1000]
    assert [problem.kind for problem in problems] == ["bad interface", "bad packet"]


def test_options_that_lie_about_their_length_are_left_alone() -> None:
    raw = section() + interface(options=struct.pack("<HH", 9, 60_000) + b"\x09\x00\x00\x00") + enhanced(PACKET, 1)
    assert read(raw)[0][0].time_ns == 1000
