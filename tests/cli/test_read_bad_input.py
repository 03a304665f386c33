"""`read` of what is broken or no recording: one line that names the place, every whole packet kept, the exit code of
docs/read.md, never a traceback; the same for lines, statistics and JSON."""

import bz2
import gzip
import json
import lzma
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import cramjam
import pytest

from kafkascope.codec.records.lz4_frame import with_right_checksum
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from tests.cli.test_read import consumer, producer
from tests.support.cli import COMMAND, Answer, Cli, is_one_line_error, process
from tests.support.packet_build import Stamped, Talk, enhanced, ethernet, interface, merged, pcap, section

PACKETS: list[Stamped] = list(merged([consumer(), producer()]))
EXCHANGES = 9
HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(194)
LOG = '[2026-11-15 09:30:00,123] DEBUG Completed request:{"requestHeader":{"requestApiKey":12}} (kafka)\n'
BLOCKS = [enhanced(packet, time_ns // 1000) for time_ns, packet in PACKETS]
NG = section() + interface() + b"".join(BLOCKS)
PLAIN = pcap(PACKETS)
ways = pytest.mark.parametrize("way", [[], ["--stats"], ["--json"], ["--stats", "--json"]], ids=" ".join)


def records(packets: list[Stamped]) -> bytes:
    return pcap(packets)[24:]


def count_of(answer: Answer, way: list[str]) -> int:
    """How many exchanges are in the answer."""
    if way == ["--json"]:
        return len(answer.out.splitlines())
    if "--json" in way:
        return sum(row["calls"] for row in json.loads(answer.out)["apis"])
    return int(answer.err.split(" exchange")[0].rsplit(maxsplit=1)[1]) if way else len(answer.out.splitlines()) - 1


SEGMENT = encode_records([new_batch([Record(7, 1_767_268_800_000, b"key", b"value")])])
OLD_SEGMENT = encode_records([new_batch([Record(7, 1_767_268_800_000, b"key", b"value")], magic=1)])
SNOOP = b"snoop\0\0\0" + bytes.fromhex("00000002 00000004") + bytes(40)
REFUSED: list[tuple[str, bytes, str]] = [
    ("empty", b"", "is empty: nothing was recorded"),
    ("a text", b"hello\nworld\n", "it is text without a line of a broker's request log"),
    ("output of tcpdump", b"10:06:17.643 IP 10.0.0.1.9092 > 10.0.0.7.40001: Flags [S]\n" * 9, "as tcpdump -w writes"),
    ("a program", b"\x7fELF\x02\x01\x01" + bytes(99), "it starts neither as pcap nor as pcapng"),
    ("a pcap header that is cut", PLAIN[:10], "the pcap header is cut: 10 bytes of 24"),
    ("a pcapng header that is cut", NG[:20], "the pcapng header is cut: 20 bytes of 28"),
    ("a pcapng header that is none", NG[:8] + b"abcd" + NG[12:], "the pcapng header is broken"),
    ("gzip that is cut at its start", gzip.compress(PLAIN)[:14], "the gzip data is cut, and nothing of it can be"),
    ("gzip that is broken at its start", gzip.compress(PLAIN)[:10] + bytes(99), "the gzip data is broken"),
    ("xz that is cut at its start", lzma.compress(PLAIN)[:14], "cut, and nothing of it can be decompressed"),
    ("zstd that is cut at its start", bytes(cramjam.zstd.compress(PLAIN))[:14], "the zstd data is cut"),
    ("lz4 that is cut at its start", bytes(cramjam.lz4.compress(PLAIN))[:14], "the lz4 data is cut"),
    ("a text in gzip", gzip.compress(b"hello\n" * 99), "(inside gzip)"),
    ("bzip2", bz2.compress(PLAIN), "is bzip2 data, which isn't read; decompress it first: bunzip2 FILE"),
    ("segment", SEGMENT, "is a segment of a log directory; list it with kafkascope log FILE"),
    ("old segment", OLD_SEGMENT, "is a segment of a log directory; list it with kafkascope log FILE"),
    ("snoop", SNOOP, "is a snoop file, which isn't read; convert it first: editcap -F pcap FILE converted.pcap"),
    ("snoop in gzip", gzip.compress(SNOOP), "(inside gzip) is a snoop file"),
    ("a program in xz", lzma.compress(b"\x7fELF\x02\x01\x01" + bytes(99)), "nor as pcapng (inside xz)"),
]  # fmt: skip


@ways
@pytest.mark.parametrize(("content", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_is_no_recording_is_refused_with_3(
    cli: Cli, tmp_path: Path, content: bytes, message: str, way: list[str]
) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(content)
    result = cli("read", str(path), *way)
    assert (result.code, result.out) == (3, ""), result
    assert is_one_line_error(result.err), result.err
    assert str(path) in result.err and message in result.err, result.err
    piped = cli("read", "-", *way, stdin=content)
    assert (piped.code, piped.out) == (3, "")
    assert is_one_line_error(piped.err) and "standard input" in piped.err, piped.err


@ways
def test_what_cannot_be_opened_is_refused_with_3(cli: Cli, tmp_path: Path, way: list[str]) -> None:
    for path, message in ((tmp_path, "is a directory; a recording is a file"), (tmp_path / "no", "no such file")):
        result = cli("read", str(path), *way)
        assert (result.code, result.out) == (3, "")
        assert is_one_line_error(result.err) and message in result.err and str(path) in result.err


def test_a_file_without_permission_is_refused_with_3(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(PLAIN)
    assert cli("read", str(path)).code == 0
    path.chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)  # root may read everything: be nobody
    try:
        result = cli("read", str(path))
    finally:
        if root:
            os.seteuid(0)
    assert (result.code, result.out) == (3, "")
    assert is_one_line_error(result.err) and f"{path}: permission denied" in result.err


ABSURD = struct.pack("<IIII", 1_700_000_000, 0, 0x7FFF_FFFF, 0x7FFF_FFFF)
JUNK = Random(1).randbytes(500)
HALF = len(PACKETS) // 2


@ways
@pytest.mark.parametrize("at", [0, 1, HALF, len(PACKETS)])
@pytest.mark.parametrize("junk", [ABSURD, ABSURD + JUNK, bytes(3_000)], ids=["length", "length and junk", "hole"])
def test_every_packet_around_an_absurd_record_is_kept(
    cli: Cli, tmp_path: Path, at: int, junk: bytes, way: list[str]
) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(PACKETS[:at]) + junk + records(PACKETS[at:]))
    result = cli("read", str(path), *way)
    assert result.code == 0
    assert count_of(result, way) == EXCHANGES
    start, *rest = result.err.splitlines()
    assert start.startswith(f"{len(PACKETS)} packets read: {EXCHANGES} exchanges")
    place = f"{len(pcap(PACKETS[:at])):,}"
    (line,) = rest
    assert line.startswith(f"  broken record at byte {place}: ") and " lost" in line, line


@ways
@pytest.mark.parametrize("length", [0, 33, 40, 400, 0x7FFF_FFF0])
@pytest.mark.parametrize("at", [0, HALF, len(BLOCKS) - 1])
def test_every_packet_of_a_pcapng_with_lying_blocks_is_kept(
    cli: Cli, tmp_path: Path, at: int, length: int, way: list[str]
) -> None:
    path = tmp_path / "a.pcapng"
    lying = BLOCKS[at][:4] + struct.pack("<I", length) + BLOCKS[at][8:]
    before = section() + interface() + b"".join(BLOCKS[:at])
    path.write_bytes(before + lying + b"".join(BLOCKS[at + 1 :]))
    result = cli("read", str(path), *way)
    assert result.code == 0
    assert count_of(result, way) == EXCHANGES
    assert result.err.startswith(f"{len(PACKETS)} packets read: ")
    assert f"  broken block at byte {len(before):,}: the length in front of it is wrong\n" in result.err


@pytest.mark.parametrize("what", ["section", "interface"])
def test_a_pcapng_whose_first_blocks_lie_is_read(cli: Cli, tmp_path: Path, what: str) -> None:
    path = tmp_path / "a.pcapng"
    raw = bytearray(NG)
    at = 4 if what == "section" else len(section()) + 4
    raw[at : at + 4] = b"\xff\xff\xff\x7f"
    path.write_bytes(raw)
    result = cli("read", str(path), "--json")
    assert (result.code, len(result.out.splitlines())) == (0, EXCHANGES)
    assert f"broken block at byte {at - 4}" in result.err


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
    "lz4": lambda data: bytes(cramjam.lz4.compress(data)),
}
# Random payloads beside the traffic, so that a cut or broken place leaves whole blocks before it.
NOISE = Random(2)
LONG = pcap([*PACKETS, *((PACKETS[-1][0] + n, ethernet(NOISE.randbytes(900), kind=0x9000)) for n in range(1, 1500))])


@ways
@pytest.mark.parametrize("broken", [False, True], ids=["cut", "broken"])
@pytest.mark.parametrize("form", PACK)
def test_what_lies_before_a_cut_or_broken_place_of_compressed_data_is_read(
    cli: Cli, tmp_path: Path, form: str, broken: bool, way: list[str]
) -> None:
    data = bytearray(PACK[form](LONG))
    middle = len(data) * 3 // 4
    if broken:
        data[middle : middle + 64] = bytes(64)
    else:
        del data[middle:]
    path = tmp_path / "a"
    path.write_bytes(data)
    result = cli("read", str(path), *way)
    assert result.code == 0
    assert count_of(result, way) == EXCHANGES
    if not broken:
        assert f": the {form} data is cut; copy it again" in result.err, result.err
    assert result.err.count("\n") <= 3


def test_a_broken_place_of_compressed_data_is_told(cli: Cli, tmp_path: Path) -> None:
    """Of those whose checks every decoder makes."""
    for form in ("gzip", "xz"):
        data = bytearray(PACK[form](LONG))
        data[len(data) // 2] ^= 0xFF
        path = tmp_path / form
        path.write_bytes(data)
        result = cli("read", str(path))
        assert result.code == 0
        assert f"the {form} data is broken" in result.err, result.err


def test_a_request_log_whose_compressed_data_is_cut_says_so(cli: Cli) -> None:
    from tests.captures import HERE

    data = (HERE / "share" / "request-1.log.xz").read_bytes()
    result = cli("read", "-", "--json", stdin=data[: len(data) // 2])
    assert result.code == 0 and result.out
    assert "compression: the xz data is cut" in result.err


def test_lz4_with_blocks_of_four_megabytes_is_known_for_what_it_holds(cli: Cli, tmp_path: Path) -> None:
    """Nothing comes out of a block before all of it is there."""
    noise = pcap([*PACKETS, *((PACKETS[-1][0], ethernet(bytes(60_000), kind=0x9000)) for _ in range(80))])
    head = with_right_checksum(bytes.fromhex("04224d18 60 70 00"))  # version 1, blocks for themselves, of up to 4 MiB
    blocks = [noise[start : start + (4 << 20)] for start in range(0, len(noise), 4 << 20)]
    stored = b"".join(struct.pack("<I", 0x8000_0000 | len(block)) + block for block in blocks)
    path = tmp_path / "a.lz4"
    path.write_bytes(head + stored + bytes(4))
    for result in (cli("read", str(path), "--json"), cli("read", "-", "--json", stdin=path.read_bytes())):
        assert (result.code, len(result.out.splitlines())) == (0, EXCHANGES)


NOTHING: list[tuple[str, bytes, str]] = [
    ("no packet", pcap([]), "no Kafka in it (no packet)"),
    ("no TCP", pcap([(1, ethernet(bytes(40), kind=0x0806))]), "(1 packet, none of a TCP stream with bytes)"),
    (
        "HTTP",
        pcap(Talk().open().say(0, b"GET / HTTP/1.1\r\n\r\n").say(1, b"HTTP/1.1 200 OK\r\n\r\n").close().packets),
        "no Kafka in it (1 HTTP of 1 connection)",
    ),
    (
        "TLS",
        pcap(Talk().open().say(0, HELLO).say(1, HELLO).close().packets),
        "no Kafka in it (1 TLS of 1 connection); TLS cannot be read from a capture. Record on a plain listener",
    ),
    (
        "another link type",
        pcap(PACKETS, link=147),
        "27 packets of a link type that isn't read (147)",
    ),
    ("packets in part", pcap(PACKETS, snap_length=62), "recorded in part, 550 B lost; record whole packets: tcpdump"),
    ("a request log without a request", LOG.encode(), "no readable request in it (1 log line"),
]


@ways
@pytest.mark.parametrize(("content", "message"), [case[1:] for case in NOTHING], ids=[case[0] for case in NOTHING])
def test_a_recording_without_kafka_says_what_it_is_with_1(
    cli: Cli, tmp_path: Path, content: bytes, message: str, way: list[str]
) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(content)
    result = cli("read", str(path), *way)
    assert (result.code, result.out) == (1, ""), result
    assert is_one_line_error(result.err), result.err
    assert str(path) in result.err and message in result.err, result.err


@ways
@pytest.mark.parametrize("content", [case[1] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_the_others_are_read_where_one_of_several_files_is_bad(
    cli: Cli, tmp_path: Path, content: bytes, way: list[str]
) -> None:
    good, bad = tmp_path / "good.pcap", tmp_path / "bad.pcap"
    good.write_bytes(PLAIN)
    bad.write_bytes(content)
    for files in ([good, bad], [bad, good], [tmp_path / "nowhere", good]):
        result = cli("read", *map(str, files), *way)
        assert result.code == 3
        errors = [line for line in result.err.splitlines() if line.startswith("kafkascope: ")]
        assert len(errors) == 1 and str(files[0] if files[0] != good else bad) in errors[0]
        assert count_of(Answer(0, result.out, result.err.replace(errors[0], "")), way) == EXCHANGES


def test_an_exchange_is_found_beside_a_bad_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(PLAIN)
    name = json.loads(cli("read", str(path), "--json").out.splitlines()[0])["exchange_id"]
    result = cli("read", str(tmp_path), str(path), "--exchange", name)
    assert result.code == 3 and name in result.out
    assert is_one_line_error(result.err) and "is a directory" in result.err


def test_an_id_that_is_not_there_may_be_in_a_file_that_cannot_be_read(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(PLAIN)
    for files in ([tmp_path, path], [tmp_path, tmp_path / "nowhere"]):
        result = cli("read", *map(str, files), "--exchange", "f" * 24)
        assert (result.code, result.out) == (3, "")
        assert "is a directory" in result.err.splitlines()[0]
        assert "no exchange id starts with ffff" in result.err.splitlines()[-1]


def test_several_files_that_are_all_bad_have_a_line_each(cli: Cli, tmp_path: Path) -> None:
    result = cli("read", str(tmp_path / "no"), str(tmp_path))
    assert (result.code, result.out) == (3, "")
    assert [line.split(": ")[0] for line in result.err.splitlines()] == ["kafkascope"] * 2


def test_problems_of_several_files_name_theirs(cli: Cli, tmp_path: Path) -> None:
    good, cut = tmp_path / "good.pcap", tmp_path / "cut.pcap"
    good.write_bytes(PLAIN)
    cut.write_bytes(PLAIN[:-10])
    result = cli("read", str(good), str(cut))
    assert result.code == 0
    assert f" of {cut}: the file ends inside a record" in result.err
    assert "of 2 files read" in result.err


@pytest.mark.parametrize("form", ["plain", "gzip", "xz"])
def test_following_is_advised_for_plain_files_alone(cli: Cli, tmp_path: Path, form: str) -> None:
    """Whether the capture is cut and then packed, or its packing is cut."""
    pack = PACK.get(form, bytes)
    for data in (pack(PLAIN[:-10]), pack(LONG)[: len(pack(LONG)) * 3 // 4]):
        path = tmp_path / "a"
        path.write_bytes(data)
        result = cli("read", str(path))
        assert result.code == 0 and "cut at byte" in result.err
        assert ("--follow waits for the rest" in result.err) == (form == "plain"), result.err
        piped = process("read", "-", stdin=data)
        assert piped.returncode == 0 and b"cut at byte" in piped.stderr and b"--follow" not in piped.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--between", "noon", "-"], "--between: 'noon' isn't a time; write it as 2026-11-15T09:30:00"),
        (["--between", "-", "2026-13-40"], "'2026-13-40' isn't a time"),
        (["--between", "2026-01-01"], "--between"),
        (["--between", "2026-01-02", "2026-01-01"], "--between: the end 2026-01-01 isn't after the start 2026-01-02"),
        (["--slow", "-5ms"], "'-5ms' isn't a duration"),
        (["--port", "70000"], "70000"),
        (["--exchange", ""], "an exchange id has up to 24 hex digits"),
        (["--where", "api = 'x'"], "use == instead of = (character 5)"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line_with_2(cli: Cli, tmp_path: Path, arguments: list[str], message: str) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(PLAIN)
    result = cli("read", str(path), *arguments)
    assert (result.code, result.out) == (2, "")
    assert is_one_line_error(result.err) and message in result.err, result.err


def test_an_empty_pipe_is_refused_with_3() -> None:
    done = process("read", "-")
    assert (done.returncode, done.stdout) == (3, b"")
    message = "kafkascope: standard input is empty; tcpdump needs -w - to write packets to a pipe\n"
    assert done.stderr.decode() == message


def test_a_closed_standard_input_is_refused_with_3() -> None:
    done = subprocess.run(["bash", "-c", '"$0" read - <&-', COMMAND], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, "")
    assert is_one_line_error(done.stderr) and "standard input is closed" in done.stderr


@pytest.mark.parametrize("way", ["", "--json"])
def test_a_reader_that_has_seen_enough_ends_it_without_a_word(way: str) -> None:
    from tests.captures import HERE

    capture = HERE / "clients" / "capture.pcap.xz"
    script = 'set -o pipefail; "$0" read "$1" "$1" "$1" $2 | head -1'
    done = subprocess.run(
        ["bash", "-c", script, COMMAND, str(capture), way], capture_output=True, text=True, timeout=120
    )
    assert len(done.stdout.splitlines()) == 1
    assert (done.returncode, done.stderr) == (0, "")
