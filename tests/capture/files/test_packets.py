"""Recordings of every form into packets: what is whole is kept, what is broken is told, what is none is refused."""

import bz2
import os
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from io import BytesIO, FileIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from kafkascope.capture.files.packets import CHUNK_BYTES, FIRST_BATCH_BYTES, read_packets
from kafkascope.capture.files.source import FollowPolicy
from kafkascope.errors import InputError
from tests.support import tshark
from tests.support.hexes import hexes
from tests.support.packet_build import Talk, pcap, pcapng
from tests.support.recordings import SMALL_CHUNK, Drip, Seen, read, seen, segments

TALK = Talk(segment_bytes=300).open().say(0, b"request" * 60).say(1, b"answer" * 100).close()
PACKETS = TALK.packets
SEEN = [Seen(time_ns, 1, len(packet), packet) for time_ns, packet in PACKETS]
FORMS: dict[str, bytes] = {
    "pcap little microseconds": pcap(PACKETS),
    "pcap big microseconds": pcap(PACKETS, big=True),
    "pcap little nanoseconds": pcap(PACKETS, nano=True),
    "pcap big nanoseconds": pcap(PACKETS, big=True, nano=True),
    "modified pcap little": pcap(PACKETS, modified=True),
    "modified pcap big": pcap(PACKETS, modified=True, big=True),
    "pcapng": pcapng(PACKETS),
}
SNOOP = hexes("""
    736e6f6f70000000 00000002 00000004   # snoop, version 2, Ethernet (RFC 1761)
""")
forms = pytest.mark.parametrize("form", FORMS)


@forms
def test_reads_every_packet_with_its_time(form: str) -> None:
    assert read(FORMS[form]) == (SEEN, [])


def test_reads_a_pcap_written_by_hand() -> None:
    raw = hexes("""
        a1b2 3c4d 0002 0004      # big endian, nanoseconds; version 2.4
        00000000 00000000        # time zone and accuracy, both unused
        0000 0040                # snap length 64
        1000 0071                # frame checksum flags, link type 113
        5f5e 1000 3b9a c9ff      # 1600000000 s, 999999999 ns
        0000 0003 0000 05dc      # 3 bytes of 1500
        616263
    """)
    assert read(raw) == ([Seen(1_600_000_000_999_999_999, 113, 1500, b"abc")], [])


def test_reads_a_modified_pcap_written_by_hand() -> None:
    raw = hexes("""
        34cd b2a1 0200 0400      # little endian, the modified libpcap's; version 2.4
        00000000 00000000        # time zone and accuracy, both unused
        0000 0400                # snap length 262144
        0100 0000                # Ethernet
        0010 5e5f 3f42 0f00      # 1600000000 s, 999999 µs
        0300 0000 dc05 0000      # 3 bytes of 1500
        0200 0000 0008 04 00     # interface 2, IPv4, sent by us, padding
        616263
    """)
    assert read(raw) == ([Seen(1_600_000_000_999_999_000, 1, 1500, b"abc")], [])


def cooked(packet: bytes) -> bytes:
    return hexes("0004 0001 0006 0200000000010000") + packet[12:]


COOKED = [(time_ns, cooked(packet)) for time_ns, packet in PACKETS]


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("modified", [False, True])
def test_cooked_packets_whose_wire_length_lacks_the_cooked_header_are_read(modified: bool, size: int) -> None:
    """As `tcpdump -i any` of RHEL 7 writes them."""
    raw = pcap(COOKED, link=113, beyond=16, modified=modified)
    packets, problems = read(Drip(raw, size))
    assert ([(packet.time_ns, packet.data) for packet in packets], problems) == (COOKED, [])


@pytest.mark.parametrize("link", [1, 113])
def test_after_a_hole_records_of_that_kind_are_found_where_packets_are_cooked(link: int) -> None:
    raw = pcap(COOKED, link=link, beyond=16)
    at = raw.index(COOKED[4][1]) - 16
    packets, problems = read(raw[:at] + bytes(5_000) + raw[at:])
    if link == 113:
        assert [packet.data for packet in packets] == [packet for _, packet in COOKED]
        assert [(problem.kind, problem.offset, problem.lost_bytes) for problem in problems] == [
            ("broken record", at, 5_000)
        ]
    else:
        assert len(packets) < len(COOKED)


def test_files_of_other_kinds_joined_to_a_modified_one_are_read() -> None:
    raw = pcap(PACKETS, modified=True) + pcap(COOKED, link=113, beyond=16, big=True) + pcap(PACKETS, modified=True)
    packets, problems = read(raw)
    assert [packet.data for packet in packets] == [packet for _, packet in PACKETS + COOKED + PACKETS]
    assert [problem.kind for problem in problems] == ["joined files"] * 2


@pytest.mark.skipif(tshark.MISSING, reason=tshark.REASON)
def test_tshark_reads_the_same_of_modified_and_cooked_files(tmp_path: Path) -> None:
    files = [pcap(PACKETS, modified=True, big=big) for big in (False, True)]
    files += [pcap(COOKED, link=113, beyond=16, modified=modified) for modified in (False, True)]
    path = tmp_path / "a.pcap"
    for raw in files:
        path.write_bytes(raw)
        done = subprocess.run(
            ["tshark", "-n", "-r", path, "-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.len"],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        packets, problems = segments(raw)
        ours = [f"{packet.time_ns // 10**9}.{packet.time_ns % 10**9:09}\t{packet.wire_length}" for packet in packets]
        assert (ours, problems) == (done.stdout.splitlines(), [])
        assert len(ours) == len(PACKETS)


def test_a_small_file_that_grows_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "growing.pcap"
    whole = pcap(PACKETS)
    path.write_bytes(whole[:100])

    class Growing(FileIO):
        def readinto(self, view: Any) -> int:
            path.write_bytes(whole)
            return super().readinto(view) or 0

    with Growing(str(path)) as file:
        assert read(file) == (SEEN, [])


@forms
def test_a_file_cut_at_every_byte_yields_every_whole_packet_before_the_cut(form: str) -> None:
    raw = FORMS[form]
    ends = [raw.index(packet) + len(packet) for _, packet in PACKETS]
    header = 24 if form != "pcapng" else 28
    tail = 0 if form != "pcapng" else 4
    for cut in range(len(raw)):
        if cut < header:
            with pytest.raises(InputError):
                read(raw[:cut])
            continue
        packets, problems = read(raw[:cut])
        # A pcapng packet is whole when its padding and the length behind it are there.
        whole = sum(
            end + (-len(packet) % 4 if tail else 0) + tail <= cut
            for end, (_, packet) in zip(ends, PACKETS, strict=True)
        )
        assert packets == SEEN[:whole], cut
        at_record = cut == header or any(
            cut == end + (-len(packet) % 4 if tail else 0) + tail
            for end, (_, packet) in zip(ends, PACKETS, strict=True)
        )
        if form == "pcapng" and cut == raw.index(b"\x06\x00\x00\x00", header):
            at_record = True
        assert [problem.kind for problem in problems] == ([] if at_record else ["cut"]), cut
        assert all(problem.offset + problem.lost_bytes == cut for problem in problems)


@forms
@pytest.mark.parametrize("size", [1, 2, 3, 7, 61, 1000])
def test_chunks_of_any_size_give_the_same_as_the_whole_file(form: str, size: int) -> None:
    assert read(Drip(FORMS[form], size)) == (SEEN, [])


@forms
@pytest.mark.parametrize("chunk_bytes", [32, 500, 1000, 4096])
def test_a_buffer_that_is_too_small_grows(form: str, chunk_bytes: int) -> None:
    assert read(FORMS[form], chunk_bytes=chunk_bytes) == (SEEN, [])


def test_packets_handed_out_stay_as_they_were_while_reading_goes_on() -> None:
    batches = []
    for batch in read_packets(Drip(FORMS["pcap little nanoseconds"], 97), chunk_bytes=1024):  # type: ignore[arg-type]
        batches.append((batch, batch.data.tobytes()))
        assert all(before.data.tobytes() == copy for before, copy in batches)
    assert len(batches) > 5


def test_base_and_start_are_the_place_in_the_file() -> None:
    raw = FORMS["pcap little microseconds"]
    for batch in read_packets(BytesIO(raw), chunk_bytes=1024):
        for start, captured in zip(batch.start, batch.captured, strict=True):
            at = batch.base + int(start)
            assert raw[at : at + captured] == batch.data[start : start + captured].tobytes()


def test_time_may_run_backwards() -> None:
    stamps = [3_000_000_000, 1_000_000_000, 2_000_000_000]
    packets, problems = read(pcap([(stamp, b"x" * 60) for stamp in stamps]))
    assert ([packet.time_ns for packet in packets], problems) == (stamps, [])


def test_a_snap_length_leaves_the_length_on_the_wire() -> None:
    packets, _ = read(pcap([(0, bytes(range(200)))], snap_length=68))
    assert [(packet.data, packet.original) for packet in packets] == [(bytes(range(68)), 200)]


@pytest.mark.parametrize("big", [False, True])
def test_an_absurd_record_length_costs_that_record_alone(big: bool) -> None:
    raw = bytearray(pcap(PACKETS, big=big, nano=True))
    at = raw.index(PACKETS[2][1]) - 8
    raw[at : at + 4] = b"\xff\xff\xff\xf0"
    packets, problems = read(bytes(raw))
    assert packets == SEEN[:2] + SEEN[3:]
    assert [(problem.kind, problem.offset, problem.lost_bytes) for problem in problems] == [
        ("broken record", at - 8, 16 + len(PACKETS[2][1]))
    ]


def test_a_length_that_reaches_past_the_end_costs_that_record_alone() -> None:
    raw = bytearray(pcap(PACKETS, nano=True))
    at = raw.index(PACKETS[2][1]) - 8
    struct.pack_into("<I", raw, at, 500_000)
    packets, problems = read(bytes(raw))
    assert packets == SEEN[:2] + SEEN[3:]
    assert [problem.kind for problem in problems] == ["broken record"]


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_length_beyond_what_was_on_the_wire_costs_that_record_alone(size: int) -> None:
    raw = bytearray(pcap(PACKETS, nano=True))
    at = raw.index(PACKETS[2][1]) - 8
    struct.pack_into("<I", raw, at, len(PACKETS[2][1]) + len(PACKETS[3][1]) + 300)
    packets, problems = read(Drip(bytes(raw), size))
    assert packets == SEEN[:2] + SEEN[3:]
    assert [(problem.kind, problem.lost_bytes) for problem in problems] == [("broken record", 16 + len(PACKETS[2][1]))]


def test_a_wire_length_that_lies_costs_nothing() -> None:
    """Some writers put a smaller one there."""
    raw = bytearray(pcap(PACKETS, nano=True))
    for at in (2, len(PACKETS) - 1):
        struct.pack_into("<I", raw, raw.index(PACKETS[at][1]) - 4, 1)
    for size in (1, 100_000):
        packets, problems = read(Drip(bytes(raw), size))
        assert [packet.data for packet in packets] == [packet.data for packet in SEEN]
        assert problems == []


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_hole_in_the_file_costs_the_hole(size: int) -> None:
    raw = pcap(PACKETS, nano=True)
    at = raw.index(PACKETS[4][1]) - 16
    broken = raw[:at] + bytes(5_000) + raw[at:]
    packets, problems = read(Drip(broken, size) if size == 1 else broken)
    assert packets == SEEN
    assert [(problem.offset, problem.lost_bytes) for problem in problems] == [(at, 5_000)]


def test_absurd_lengths_allocate_nothing() -> None:
    read(FORMS["pcap little microseconds"])
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0xFFFF_FFFF, 1)
    for length in (1_048_577, 0x7FFF_FFFF, 0xFFFF_FFFF):
        raw = header + struct.pack("<IIII", 1, 1, length, length) + bytes(100)
        tracemalloc.start()
        packets, problems = read(raw, chunk_bytes=SMALL_CHUNK)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert packets == []
        assert [(problem.kind, problem.lost_bytes) for problem in problems] == [("broken record", 116)]
        assert peak < 20 * SMALL_CHUNK


def test_problems_of_one_kind_are_bounded() -> None:
    broken = struct.pack("<IIII", 0, 0, 0xFFFF_FFFF, 1)
    raw = pcap([])
    for _ in range(300):
        raw += broken + b"".join(pcap([(1_000_000_000, b"x" * 20)])[24:] for _ in range(3))
    packets, problems = read(raw)
    assert len(packets) == 900
    assert len(problems) == 100
    assert problems[-1].detail.endswith("; and 200 more of this kind")
    assert sum(problem.lost_bytes for problem in problems) == 300 * 16


def _directory(path: Path) -> Path:
    path.mkdir()
    return path


def _with(data: bytes) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        path.write_bytes(data)
        return path

    return make


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_with(b""), "it is empty"),
        (_with(b"hello\n" * 50), "this is text"),
        (_with(b"\x7fELF\x00\x00"), "first bytes match neither"),
        (_with(b"\xa1"), "first bytes match neither"),
        (_with(bz2.compress(FORMS["pcapng"])), "this is bzip2 data, which isn't read; decompress it first: bunzip2"),
        (_with(bz2.compress(b"")), "this is bzip2 data"),
        (_with(SNOOP), "this is a snoop file, which isn't read; convert it first: editcap -F pcap"),
        (_with(b"\xd4\xc3\xb2\xa1\x02\x00"), "the pcap header is cut: 6 bytes of 24"),
        (_with(b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00"), "the pcapng header is cut: 8 bytes of 28"),
        (_with(b"\x0a\x0d\x0d\x0a" + b"a" * 100), "the pcapng header is broken"),
        (_with(b"\x1f\x8b\x08\x00"), "gzip data is cut"),
        (_with(bytes.fromhex("28b52ffd0000")), "zstd data is cut"),
        (_with(bytes.fromhex("fd377a585a00")), "xz data is cut"),
        (_with(bytes.fromhex("04224d18")), "lz4 data is cut"),
        (_directory, "is a directory"),
        (lambda path: path, "no such file"),
    ],
)
def test_what_is_no_recording_is_refused_in_one_line(tmp_path: Path, make: Callable[[Path], Path], says: str) -> None:
    path = make(tmp_path / "broker.pcap")
    with pytest.raises(InputError) as caught:
        list(read_packets(path))
    message = str(caught.value)
    assert says in message
    assert message.startswith(str(path))
    assert "\n" not in message


def test_the_name_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "really.pcap"
    path.write_bytes(FORMS["pcapng"])
    assert read(path) == (SEEN, [])


def test_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(FORMS["pcapng"])))
    assert read("-") == (SEEN, [])


def test_a_pipe_hands_out_what_it_has_before_more_comes() -> None:
    raw = FORMS["pcap little nanoseconds"]
    half = raw.index(PACKETS[5][1]) + 10
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as end, os.fdopen(theirs, "wb", buffering=0) as file:
        file.write(raw[:half])
        batches = read_packets(end)
        assert len(next(batches).start) == 5
        file.write(raw[half:])
        file.close()
        assert sum(len(batch.start) for batch in batches) == len(PACKETS) - 5


def test_a_process_reads_a_pipe_on_its_standard_input() -> None:
    code = (
        "from kafkascope.capture.files.packets import read_packets as read; print(sum(len(p.start) for p in read('-')))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=FORMS["pcapng"], capture_output=True, timeout=120)
    assert (done.stdout.split(), done.stderr) == ([b"%d" % len(PACKETS)], b"")


@pytest.mark.parametrize("step", [7, 100, 5000])
@forms
def test_follow_goes_on_with_a_growing_file(tmp_path: Path, form: str, step: int) -> None:
    raw = FORMS[form]
    path = tmp_path / "growing"
    path.write_bytes(b"")
    left = [raw[start : start + step] for start in range(0, len(raw), step)]

    def pause(seconds: float) -> None:
        assert seconds > 0
        with path.open("ab") as file:
            file.write(left.pop(0))

    packets: list[Seen] = []
    for batch in read_packets(path, follow=True, pause=pause):
        packets += seen([batch])
        if not left:
            break
    assert packets == SEEN


def test_follow_ends_at_its_deadline(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(FORMS["pcapng"][:-3])
    packets, problems = read(path, follow=True, deadline=0.0, pause=lambda _: pytest.fail("the deadline is over"))
    assert packets == SEEN[:-1]
    assert [problem.kind for problem in problems] == ["cut"]


@pytest.mark.parametrize("how", ["replaced", "shortened"])
def test_follow_reads_a_file_to_its_end_when_another_takes_its_place(tmp_path: Path, how: str) -> None:
    raw = FORMS["pcapng"]
    path = tmp_path / "growing"
    path.write_bytes(raw[:-200])
    steps = ["grow", "change"]

    def pause(_: float) -> None:
        if steps.pop(0) == "grow":
            with path.open("ab") as file:
                file.write(raw[-200:])
        elif how == "replaced":
            path.rename(tmp_path / "old")
            path.write_bytes(b"the next")
        else:
            os.truncate(path, 10)

    waiting = FollowPolicy(None, pause)
    assert read(path, waiting=waiting) == (SEEN, [])
    assert (waiting.changed, steps) == (how, [])


def test_follow_waits_while_a_name_has_no_file(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(FORMS["pcapng"])
    pauses = iter(range(3))

    def pause(_: float) -> None:
        path.unlink(missing_ok=True)
        if next(pauses) == 2:
            path.write_bytes(b"the next")

    waiting = FollowPolicy(None, pause)
    assert read(path, waiting=waiting) == (SEEN, [])
    assert (waiting.changed, next(pauses, None)) == ("replaced", None)


def test_the_first_batches_of_a_large_file_are_small_and_grow(tmp_path: Path) -> None:
    """So that the first exchanges need not wait for megabytes."""
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap([(number, bytes(60_000)) for number in range(400)]))
    sizes = [len(batch.data) for batch in read_packets(path)]
    assert sizes[0] == FIRST_BATCH_BYTES < sizes[1] < sizes[2] < CHUNK_BYTES
    assert max(sizes) == CHUNK_BYTES
