"""After a broken record of a pcap file reading goes on where records follow one another, whatever one time says; what
merely looks like records is none."""

import struct
from random import Random

import pytest

from tests.support.packet_build import Talk, pcap
from tests.support.recordings import Drip, Seen, read

TALK = Talk(segment_bytes=300).open().say(0, b"request" * 60).say(1, b"answer" * 100).close()
PACKETS = TALK.packets
SEEN = [Seen(time_ns, 1, len(packet), packet) for time_ns, packet in PACKETS]
RAW = pcap(PACKETS, nano=True)
AT = [RAW.index(packet) - 16 for _, packet in PACKETS]  # where records begin
MONTHS = 200 * 86_400
FORMS = [(big, nano) for big in (False, True) for nano in (False, True)]
forms = pytest.mark.parametrize(("big", "nano"), FORMS)
sizes = pytest.mark.parametrize("size", [1, 100_000])


def later(packets: list[tuple[int, bytes]], seconds: int) -> list[tuple[int, bytes]]:
    return [(time_ns + seconds * 1_000_000_000, packet) for time_ns, packet in packets]


def seen(packets: list[tuple[int, bytes]], link: int = 1) -> list[Seen]:
    return [Seen(time_ns, link, len(packet), packet) for time_ns, packet in packets]


def with_time(raw: bytes, record: int, seconds: int) -> bytes:
    return raw[: AT[record]] + struct.pack("<I", seconds) + raw[AT[record] + 4 :]


@sizes
@pytest.mark.parametrize("seconds", [0, 1, 0xA1B2C3D4, 0xFFFF_FFFF])
def test_a_wrong_time_before_a_broken_record_costs_nothing_more(seconds: int, size: int) -> None:
    junk = Random(6).randbytes(300)
    raw = with_time(RAW, 3, seconds)
    raw = raw[: AT[4]] + junk + raw[AT[4] :]
    packets, problems = read(Drip(raw, size))
    assert [packet.data for packet in packets] == [packet.data for packet in SEEN]
    assert [(problem.kind, problem.offset, problem.lost_bytes) for problem in problems] == [
        ("broken record", AT[4], 300)
    ]


@sizes
def test_a_wrong_time_does_not_hide_the_last_two_records(size: int) -> None:
    raw = with_time(RAW, len(AT) - 3, 0x7000_0000)
    packets, problems = read(Drip(raw[: AT[-2]] + b"\xff" * 40 + raw[AT[-2] :], size))
    assert [packet.data for packet in packets] == [packet.data for packet in SEEN]
    assert [problem.lost_bytes for problem in problems] == [40]


@sizes
def test_what_has_another_time_and_true_records_inside_is_no_record(size: int) -> None:
    false = struct.pack("<IIII", 0x7000_0000, 5, 400, 400)
    packets, problems = read(Drip(RAW[: AT[2]] + false + RAW[AT[2] :], size))
    assert packets == SEEN
    assert [(problem.offset, problem.lost_bytes) for problem in problems] == [(AT[2], 16)]


@sizes
def test_a_few_records_of_another_time_are_none(size: int) -> None:
    few = pcap(later(PACKETS[:5], MONTHS), nano=True)[24:]
    raw = RAW + b"\xff" * 16 + few + b"\xff" * 100
    packets, problems = read(Drip(raw, size))
    assert packets == SEEN
    assert [problem.lost_bytes for problem in problems] == [len(raw) - len(RAW)]


def test_records_are_waited_for_until_they_show_whether_they_follow_one_another() -> None:
    large = [(time_ns, bytes(200_000)) for time_ns, _ in PACKETS]
    raw = RAW + b"\xff" * 16 + pcap(large, nano=True)[24:]
    for size in (70_001, 10_000_000):
        packets, problems = read(Drip(raw, size))
        assert packets == SEEN + seen(large)
        assert [problem.lost_bytes for problem in problems] == [16]


@sizes
def test_times_that_are_all_wrong_lose_no_packet(size: int) -> None:
    raw = RAW
    for record in range(len(PACKETS)):
        raw = with_time(raw, record, (record * 977_777_777) % 2**32)
    packets, problems = read(Drip(raw, size))
    assert ([packet.data for packet in packets], problems) == ([packet.data for packet in SEEN], [])


@sizes
def test_nanoseconds_in_a_file_that_says_microseconds_lose_no_packet(size: int) -> None:
    packets, problems = read(Drip(struct.pack("<I", 0xA1B2C3D4) + RAW[4:], size))
    assert ([packet.data for packet in packets], problems) == ([packet.data for packet in SEEN], [])


@sizes
def test_records_of_months_later_are_found_behind_a_broken_one(size: int) -> None:
    rest = later(PACKETS, MONTHS)
    raw = RAW + struct.pack("<IIII", 0, 0, 0xFFFF_FFFF, 1) + pcap(rest, nano=True)[24:]
    packets, problems = read(Drip(raw, size))
    assert packets == SEEN + seen(rest)
    assert [(problem.kind, problem.offset, problem.lost_bytes) for problem in problems] == [
        ("broken record", len(RAW), 16)
    ]


@forms
def test_a_file_without_its_first_part_gives_every_whole_record(big: bool, nano: bool) -> None:
    """The header of a file and the rest from anywhere on, as a ring buffer or a broken copy leaves it."""
    raw = pcap(PACKETS, big=big, nano=nano)
    starts = [raw.index(packet) - 16 for _, packet in PACKETS]
    for cut in range(25, starts[-4], 7):
        packets, problems = read(raw[:24] + raw[cut:])
        whole = sum(start < cut for start in starts)
        assert packets == SEEN[whole:], cut
        assert sum(problem.lost_bytes for problem in problems) == (0 if cut in starts else starts[whole] - cut)


@sizes
@forms
def test_files_behind_one_another_are_read_with_the_settings_of_each(big: bool, nano: bool, size: int) -> None:
    for number, (other_big, other_nano) in enumerate(FORMS):
        rest = later(PACKETS, number * MONTHS)
        first = pcap(PACKETS, big=big, nano=nano)
        second = pcap(rest, big=other_big, nano=other_nano, link=113)
        packets, problems = read(Drip(first + second + first, size))
        assert packets == SEEN + seen(rest, 113) + SEEN
        assert [(problem.kind, problem.offset, problem.lost_bytes) for problem in problems] == [
            ("joined files", len(first), 0),
            ("joined files", len(first) + len(second), 0),
        ]


@sizes
def test_a_file_without_packets_may_stand_before_between_and_behind_others(size: int) -> None:
    empty = pcap([], big=True)
    packets, problems = read(Drip(empty + RAW + empty + empty + RAW + empty, size))
    assert packets == SEEN + SEEN
    assert [problem.kind for problem in problems] == ["joined files"] * 5


@sizes
def test_a_file_that_is_cut_costs_little_of_the_one_behind_it(size: int) -> None:
    rest = later(PACKETS, MONTHS)
    for cut in (10, 60):
        packets, problems = read(Drip(RAW[:-cut] + pcap(rest, nano=True), size))
        kept = [packet for packet in packets if packet in seen(rest)]
        assert packets[: len(SEEN) - 1] == SEEN[:-1]
        assert kept == seen(rest)[len(rest) - len(kept) :]
        assert len(kept) >= len(rest) - 2
        assert "broken record" in {problem.kind for problem in problems}


@sizes
@forms
def test_a_header_behind_broken_bytes_is_found(big: bool, nano: bool, size: int) -> None:
    rest = later(PACKETS[:3], MONTHS)
    raw = RAW + b"\xff" * 100 + pcap(rest, big=big, nano=nano, link=113)
    packets, problems = read(Drip(raw, size))
    assert packets == SEEN + seen(rest, 113)
    assert [(problem.kind, problem.lost_bytes) for problem in problems] == [("broken record", 100), ("joined files", 0)]


def nonsense(big: bool) -> dict[str, bytes]:
    order = ">" if big else "<"
    random = Random(7)
    return {
        "zeros": bytes(20_000),
        "ones": b"\xff" * 20_000,
        "text": b"1700000000 some text of a log, 16 words\n" * 500,
        "random": random.randbytes(200_000),
        "sparse": bytes(random.choice((0, 0, 0, 0, 1, 4, 16, 255)) for _ in range(200_000)),
        **{f"numbers {n}": struct.pack(f"{order}I", n) * 5_000 for n in (1, 4, 8, 16, 1024, 1_000_000, 1_700_000_000)},
        "counting": struct.pack(f"{order}5000I", *range(5_000)),
        "times": struct.pack(f"{order}5000I", *range(1_700_000_000, 1_700_005_000)),
        # Lengths of 0 lead from one to the next as well.
        "empty records": struct.pack(f"{order}IIII", 1_700_000_000, 5, 0, 0) * 1_000,
        "headers": pcap([], big=big) * 100,
    }


@forms
@pytest.mark.parametrize("what", nonsense(False))
def test_what_is_no_record_gives_none(what: str, big: bool, nano: bool) -> None:
    """Behind a record with an absurd length, where nothing was read yet and where something was."""
    broken = struct.pack("<IIII", 0xFFFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFFF) + nonsense(big)[what]
    for known in (PACKETS, []):
        raw = pcap(known, big=big, nano=nano) + broken
        packets, problems = read(raw)
        assert packets == SEEN[: len(known)]
        assert [(problem.kind, problem.lost_bytes) for problem in problems] == [("broken record", len(broken))]


INNER = pcap([(time_ns + MONTHS * 1_000_000_000, b"inner" * 9) for time_ns, _ in PACKETS], nano=True)


@sizes
@pytest.mark.parametrize("header", [0, 24])
@pytest.mark.parametrize("length", [0xFFFF_FFFF, 300, 600_000])
def test_a_recording_inside_a_packet_is_left_there(length: int, header: int, size: int) -> None:
    """Also where the record around it is broken: records of the time of the others are looked for first."""
    packet = b"outer" * 10 + INNER[header:] + b"outer"
    outer = [*PACKETS[:3], (PACKETS[3][0], packet), *PACKETS[3:]]
    raw = pcap(outer, nano=True)
    assert read(Drip(raw, size)) == (seen(outer), [])
    broken = bytearray(raw)
    struct.pack_into("<I", broken, raw.index(packet) - 8, length)
    packets, problems = read(Drip(bytes(broken), size))
    if length == 300:
        assert packets[:3] + packets[4:] == SEEN
        assert packets[3].data == packet[:300]
    else:
        assert packets == SEEN
    assert [problem.kind for problem in problems] == ["broken record"]


@sizes
@pytest.mark.parametrize("header", [0, 24])
def test_a_recording_inside_the_last_packet_is_left_there_where_it_is_cut(header: int, size: int) -> None:
    packet = b"outer" * 10 + INNER[header:] + b"outer"
    raw = pcap([*PACKETS, (PACKETS[-1][0], packet)], nano=True)
    for cut in (1, 5, 7, 100, 300):
        packets, problems = read(Drip(raw[:-cut], size))
        assert packets == SEEN
        assert [(problem.kind, problem.lost_bytes) for problem in problems] == [("cut", 16 + len(packet) - cut)]


def damaged(random: Random, raw: bytes, starts: list[int]) -> tuple[bytes, int, int]:
    """The file with one place damaged, and that place as it was: (from, to)."""
    start = random.randrange(starts[1], starts[-8])
    end = min(start + random.choice((1, 4, 16, 100, 700)), starts[-8])
    junk = random.choice((random.randbytes(end - start), bytes(end - start), b"", random.randbytes(50)))
    broken = raw[:start] + junk + raw[end:]
    if len(broken) < len(raw):
        # A record that lost bytes takes as many of what follows.
        end = max(end, min(at for at in starts if at > start) + len(raw) - len(broken))
    return broken, start, end


@pytest.mark.parametrize("part", range(4))
@forms
def test_damage_costs_the_records_that_it_touches(big: bool, nano: bool, part: int) -> None:
    """Whole records before and behind it are read, and nothing comes twice or from nowhere."""
    for case in range(part, 240, 4):
        random = Random(case)
        packets = [
            (1_700_000_000_000_000_000 + number * 7_000_000, random.randbytes(random.randrange(60, 300)))
            for number in range(40)
        ]
        raw = pcap(packets, big=big, nano=nano)
        starts = [raw.index(packet) - 16 for _, packet in packets]
        broken, start, end = damaged(random, raw, starts)
        if random.random() < 0.5:
            # A wrong time in front of the damage.
            record = sum(at <= start for at in starts) - 1
            if starts[record] + 4 <= start:
                broken = broken[: starts[record]] + random.randbytes(4) + broken[starts[record] + 4 :]
        recovered, _ = read(broken)
        assert recovered == read(Drip(broken, random.choice((1, 5, 50))), chunk_bytes=512)[0]
        touched = {
            packet
            for at, (_, packet) in zip(starts, packets, strict=True)
            if at < max(end, start + 1) and at + 16 + len(packet) > start
        }
        data = [packet.data for packet in recovered]
        expected = [packet for _, packet in packets if packet not in touched]
        assert [packet for packet in data if packet in set(expected)] == expected, (case, start, end)
        assert len(data) <= len(packets), (case, start, end)


def test_a_large_file_in_pieces_gives_the_same_as_whole() -> None:
    """Long enough that places are decided before the end is there, and some only after a megabyte more."""
    random = Random(8)
    packets = [(1_700_000_000_000_000_000 + n * 50_000, random.randbytes(1_400)) for n in range(1_000)]
    inner = later(packets[:150], -MONTHS)
    first = [*packets[:300], (packets[300][0], pcap(inner, nano=True)), *packets[300:600]]
    second = later(packets, MONTHS)
    raw = bytearray(pcap(first, nano=True) + b"\xff" * 5_000 + pcap(second, nano=True)[24:])
    struct.pack_into("<I", raw, raw.index(first[300][1]) - 8, 0xFFFF_FFFF)
    raw += random.randbytes(10_000) + pcap(packets, big=True, link=113)
    expected = seen(packets[:600] + second) + seen(packets, 113)
    for size, chunk in ((len(raw), 8 << 20), (len(raw), 65_536), (70_001, 1 << 20), (4_999, 200_000)):
        recovered, problems = read(Drip(bytes(raw), size), chunk_bytes=chunk)
        assert recovered == expected
        assert [(problem.kind, problem.lost_bytes) for problem in problems] == [
            ("broken record", 16 + len(first[300][1])),
            ("broken record", 5_000),
            ("broken record", 10_000),
            ("joined files", 0),
        ]
