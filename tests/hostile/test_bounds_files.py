"""What files of strangers may cost: fragments, logs, compressed data, records and blocks, each against its cap."""

import gzip
import json
import lzma
import os
import struct
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import cramjam
import pytest

from kafkascope import limits
from kafkascope.capture.base.problems import Problems
from kafkascope.capture.files.decompress import Decompressor
from kafkascope.capture.files.source import Source
from kafkascope.capture.net.fragments import LONGEST_DATAGRAM, DatagramKey, FragmentStore
from kafkascope.capture.reader import Reading
from kafkascope.errors import InputError
from tests.capture.request_log.test_reader import heartbeat, line
from tests.hostile.child import run
from tests.support.packet_build import ipv4, pcap, tcp
from tests.support.recordings import segments

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
soak = pytest.mark.skipif(not SOAK, reason="make soak")
MIB = 1 << 20
KEY = DatagramKey(4, 7, 6, (0, 1, 0, 2))
SECOND = 1_000_000_000


def steps(work: Callable[[], Any]) -> int:
    """Calls of functions, C's too, and of generators: what the work counts, on any machine."""
    count = 0

    def note(_frame: Any, _event: str, _argument: Any) -> None:
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("length", [8, 24], ids=["side by side", "overlapping"])
def test_a_fragment_costs_the_same_however_many_wait(length: int) -> None:
    """8,000 wait for the one that never comes, and one of them comes again and again."""
    store = FragmentStore(Problems())
    for number in range(2, 8_000):
        store.add(KEY, 8 * number, number < 7_999, bytes(length), length, SECOND, 0, 0)

    def again() -> None:
        for number in range(1_000):
            assert store.add(KEY, 8 * (number + 5), True, bytes(length), length, SECOND, 0, 0) is None

    assert steps(again) < 40 * 1_000
    whole = store.add(KEY, 0, True, bytes(24), 24, SECOND, 0, 0)
    assert whole is not None and len(whole.packet) == 20 + 8 * 7_999 + length


def test_waiting_fragments_take_what_their_cap_says() -> None:
    """Of many datagrams, of one byte each."""
    code = """
store = FragmentStore(Problems())
for number in range(60_000):
    data = bytes([number & 255, number >> 8])
    key = DatagramKey(6, number, 6, (1 << 60, number << 40, 1 << 61, 1 << 62))
    store.add(key, 8, True, data, 2, 10**18 + number, number, number)
print(len(store._waiting))
"""
    imports = "from kafkascope.capture.net.fragments import *\nfrom kafkascope.capture.base.problems import Problems"
    ran = run(imports, code)
    assert 1_000 < int(ran.output) < limits.MAX_FRAGMENT_BYTES // 1_024
    assert ran.peak < 2 * limits.MAX_FRAGMENT_BYTES


def ipv6_jumbo(says: int, extension: bytes, content: bytes) -> bytes:
    """A packet whose jumbo option (RFC 2675) says so many bytes."""
    protocol = 44 if extension else 6
    head = struct.pack(">IHBB", 6 << 28, 0, 0, 64) + bytes(15) + b"\1" + bytes(15) + b"\2"
    return head + struct.pack(">BBBBI", protocol, 0, 0xC2, 4, says) + extension + content


def test_fragments_that_say_four_gigabytes_are_a_problem_of_their_packet() -> None:
    packets = [
        ipv6_jumbo(0xFFFF_FFF0, struct.pack(">BBHI", 6, 0, place, 7), b"X" * 16) for place in (1, 8, 1)
    ]  # the first with more to follow, the last, the first again
    found_segments, problems = segments(pcap([(5, packet) for packet in packets], link=101))
    assert found_segments == []
    assert [(problem.kind, problem.place) for problem in problems] == [
        ("fragments", 0),
        ("fragments", 1),
        ("fragments", 2),
    ]
    assert f"{LONGEST_DATAGRAM} are possible" in problems[0].detail


@pytest.mark.parametrize("says", [17 * MIB, 1 << 31, 0xFFFF_FFFF])
def test_a_segment_that_no_wire_carries_is_malformed(says: int) -> None:
    packets = [ipv6_jumbo(says, b"", tcp(7, 8, payload=b"abc")), ipv4("10.0.0.1", "10.0.0.2", tcp(7, 8, payload=b"x"))]
    found_segments, problems = segments(pcap([(5, packet) for packet in packets], link=101))
    assert [segment.payload for segment in found_segments] == [b"x"]
    assert [problem.kind for problem in problems] == ["malformed"]


def test_problems_of_one_kind_are_listed_up_to_their_cap() -> None:
    packets = [ipv6_jumbo(1 << 20, struct.pack(">BBHI", 6, 0, 1, number), b"X" * 16) for number in range(5_000)]
    _, problems = segments(pcap([(5, packet) for packet in packets], link=101))
    assert len(problems) == limits.MAX_PROBLEMS
    assert "and 4900 more of this kind" in problems[-1].detail
    assert sum(problem.lost_bytes for problem in problems) == 16 * 5_000


def read_log(data: bytes) -> tuple[int, list[tuple[str, str, int, int, int]]]:
    """(exchanges, problems: kind, detail, line, offset, bytes)"""
    reading = Reading(BytesIO(data))
    count = sum(len(batch) for batch in reading.batches())
    rows = [row for kept in reading.account.kept.values() for _, row in kept]
    return count, [(row.kind, row.detail, row.place, row.offset, row.lost_bytes) for row in rows]


GOOD = line(heartbeat()).encode()


def test_a_line_beyond_the_cap_is_named_and_reading_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkascope.capture.request_log.lines.MAX_LINE_BYTES", 3 * MIB)
    for extra, kept in ((0, True), (1, False)):
        long = GOOD + b" " * (3 * MIB - len(GOOD) + extra)
        count, problems = read_log(b"\n".join([GOOD, long, GOOD, GOOD]))
        assert count == 3 + kept
        offset = len(GOOD) + 1
        assert [row[:1] + row[2:] for row in problems] == ([] if kept else [("long line", 1, offset, 3 * MIB + 1)])
        if not kept:
            assert problems[0][1].startswith(f"line 2 has {3 * MIB + 1} bytes, more than the ")


def test_parts_of_a_line_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkascope.capture.request_log.lines.MAX_LINE_BYTES", 100_000)
    stamp = b"2026-11-15T09:30:00.123456789Z stdout "
    parts = b"".join(stamp + b"P x\n" for _ in range(5_000)) + stamp + b"F x\n"
    count, problems = read_log(stamp + b"F " + GOOD + b"\n" + parts + stamp + b"F " + GOOD)
    assert count == 2
    assert [row[:1] + row[2:4] for row in problems] == [("long line", 1, len(stamp) + len(GOOD) + 3)]
    # Those of names that no runtime has share one place.
    docker = b"".join(json.dumps({"log": "x", "stream": str(n)}).encode() + b"\n" for n in range(5_000))
    assert [row[0] for row in read_log(GOOD + b"\n" + docker)[1]] == ["long line"]


def zstd_of(head: bytes, letter: bytes, blocks: int) -> bytes:
    """A frame of one raw block and many that repeat one letter 131,072 times (RFC 8878): four bytes each."""
    out = bytes.fromhex("28b52ffd") + bytes([0, 7 << 3]) + (len(head) << 3).to_bytes(3, "little") + head
    repeat = (131_072 << 3 | 2).to_bytes(3, "little") + letter
    return out + repeat * (blocks - 1) + (131_072 << 3 | 3).to_bytes(3, "little") + letter


def test_a_log_without_line_ends_takes_the_memory_of_its_longest_line(tmp_path: Path) -> None:
    """A gigabyte out of 33 KB, with a deadline that only what is not linear misses."""
    path = tmp_path / "log.zst"
    path.write_bytes(zstd_of(GOOD + b"\n", b"x", 8_192) + bytes(cramjam.zstd.compress(b"\n" + GOOD + b"\n")))
    code = """
reading = Reading(sys.argv[1])
found = sum(len(batch) for batch in reading.batches())
print(found, reading.account.log_lines, reading.account.kept["long line"][0][1].lost_bytes)
"""
    imports = "import sys, io\nfrom kafkascope.capture.reader import Reading\n"
    imports += "list(Reading(io.BytesIO(sys.argv[2].encode())).batches())"
    ran = run(imports, code, str(path), GOOD.decode(), timeout=240)
    assert ran.output == f"2 3 {8_192 * 131_072}"
    assert ran.peak < 4 * limits.MAX_LINE_BYTES


@soak
def test_the_dearest_json_in_a_line_of_the_cap_takes_less_than_a_gigabyte(tmp_path: Path) -> None:
    path = tmp_path / "log"
    inside = b'{},{"":0},' * ((limits.MAX_LINE_BYTES - 200_000) // 10)
    entry = b'{"requestHeader":{"requestApiKey":3,"requestApiVersion":9},"request":{"topics":[' + inside + b"0]}}"
    path.write_bytes(b"Completed request:" + entry + b"\n" + GOOD + b"\n")
    ran = run(
        "import sys\nfrom kafkascope.capture.reader import Reading",
        "print(sum(map(len, Reading(sys.argv[1]).batches())))",
        str(path),
    )
    assert ran.output == "1"
    assert ran.peak < 800 * MIB, ran.peak / MIB


NESTED = b'{"a":' * 100_000
ODD_LINES = {
    "deep": b"Completed request:" + b"[" * 200_000,
    "deep outside": NESTED + b'"Completed request:"',
    "million digits": GOOD.replace(b'"correlationId":', b'"correlationId":' + b"9" * 1_000_000),
    "not a number": GOOD.replace(b'"totalTimeMs":', b'"totalTimeMs":NaN,"x":'),
    "infinite": GOOD.replace(b'"totalTimeMs":', b'"totalTimeMs":1e400,"x":'),
    "zeros": GOOD[: len(GOOD) // 2] + bytes(1000) + GOOD[len(GOOD) // 2 :],
    "cut by rotation": GOOD[: len(GOOD) // 2],
    "utf-16": GOOD.decode().encode("utf-16"),
    "not utf-8": GOOD.replace(b"{", b"{\xff\xfe\xed\xa0\x80", 1),
}


@pytest.mark.parametrize("name", ODD_LINES)
def test_an_odd_line_costs_itself(name: str) -> None:
    assert read_log(b"\n".join([GOOD, ODD_LINES[name], GOOD])) == (2, [])


def unpack(data: bytes) -> tuple[int, str | None]:
    """(bytes, problem)"""
    unpacked = Decompressor(Source(BytesIO(data)))
    buffer = memoryview(bytearray(MIB))
    total = 0
    while count := unpacked.fill(buffer):
        total += count
    return total, unpacked.problem


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
    "lz4": lambda data: bytes(cramjam.lz4.compress(data)),
}


@pytest.mark.parametrize("form", ["zstd", "lz4"])
def test_readers_of_many_files_give_their_memory_back(form: str) -> None:
    """Read to the end or not; without the collector, which cannot see all that they hold."""
    imports = """
import cramjam, gc, io, sys
from kafkascope.capture.files.decompress import Decompressor
from kafkascope.capture.files.source import Source
gc.disable()
data = bytes(getattr(cramjam, sys.argv[1]).compress(bytes(300_000)))
buffer = memoryview(bytearray(65_536))
def read(most):
    unpacked = Decompressor(Source(io.BytesIO(data)))
    while most and unpacked.fill(buffer):
        most -= 1
for _ in range(10):
    read(1), read(99)
"""
    ran = run(imports, "for _ in range(200):\n    read(1), read(99)", form)
    assert ran.peak < 16 * MIB


@pytest.mark.parametrize("exponent", [18, 21, 31])
def test_a_zstd_frame_with_a_wide_window_is_refused_and_what_came_before_is_kept(exponent: int) -> None:
    wide = bytes.fromhex("28b52ffd") + bytes([0, exponent << 3]) + bytes.fromhex("010000")
    before = PACK["zstd"](bytes(1000))
    says = f"{1 << 10 + exponent} bytes, more than the {limits.MAX_WINDOW_BYTES} allowed"
    assert unpack(before + wide + before) == (1000, f"the zstd data needs a window of {says}; compress it again")
    with pytest.raises(InputError, match="needs a window of"):
        list(Reading(BytesIO(wide)).batches())
    widest = bytes.fromhex("28b52ffd") + bytes([0, 17 << 3]) + bytes.fromhex("010000")
    assert unpack(before + widest + before) == (2000, None)


def test_an_xz_stream_with_a_wide_dictionary_is_refused() -> None:
    for bits, problem in (
        (27, None),
        (28, f"the xz data needs a dictionary of more than {limits.MAX_WINDOW_BYTES} bytes; compress it again"),
    ):
        packed = lzma.compress(b"abc", filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << bits}])
        assert unpack(packed) == (0 if problem else 3, problem)


MEMBERS = {
    **{form: pack(b"") for form, pack in PACK.items()},
    "skippable": struct.pack("<II", 0x184D2A50, 0),
}


@pytest.mark.parametrize("form", MEMBERS)
def test_members_by_the_thousand_cost_alike(form: str) -> None:
    end = PACK.get(form, PACK["zstd"])(b"end")
    counts = []
    for members in (1_000, 4_000):
        data = MEMBERS[form] * members + end
        results: list[tuple[int, str | None]] = []
        counts.append(steps(lambda data=data, results=results: results.append(unpack(data))))  # type: ignore[misc]
        assert results == [(3, None)]
    assert counts[1] < 5 * counts[0]


def test_a_skippable_frame_of_four_gigabytes_is_cut_where_the_file_ends() -> None:
    assert unpack(PACK["zstd"](b"abc") + struct.pack("<II", 0x184D2A50, 0xFFFF_FFFF) + bytes(500)) == (
        3, "the zstd data is cut",
    )  # fmt: skip


def pcapng_block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


SECTION = pcapng_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
FILES = {
    "MAX_PACKET_BYTES": pcap([(5, b"x")])
    + struct.pack("<IIII", 6, 0, limits.MAX_PACKET_BYTES + 1, 1 << 31)
    + bytes(3 * MIB),
    "MAX_BLOCK_BYTES": SECTION + struct.pack("<II", 6, limits.MAX_BLOCK_BYTES + 4) + bytes(3 * MIB),
    "MAX_INTERFACES": SECTION + pcapng_block(1, struct.pack("<HHI", 101, 0, 0)) * (limits.MAX_INTERFACES + 9),
}


@pytest.mark.parametrize("cap", FILES)
def test_a_file_beyond_a_cap_is_a_problem_and_takes_little_memory(cap: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(FILES[cap])
    code = "print(*(problem.kind for packets in read_packets(sys.argv[1]) for problem in packets.problems))"
    imports = (
        "import sys, io\nfrom kafkascope.capture.files.packets import read_packets\nlist(read_packets(sys.argv[2]))"
    )
    (tmp_path / "small").write_bytes(pcap([(5, b"x")]) if cap == "MAX_PACKET_BYTES" else SECTION)
    ran = run(imports, code, str(tmp_path / "file"), str(tmp_path / "small"))
    expected = {
        "MAX_PACKET_BYTES": "broken record",
        "MAX_BLOCK_BYTES": "broken block",
        "MAX_INTERFACES": "bad interface",
    }
    assert expected[cap] in ran.output
    assert ran.peak < 96 * MIB
