"""What reading a recording holds is bounded by what it takes, and not by the bytes of the recording alone."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kafkascope import limits
from kafkascope.capture.base.flow import (
    Flows,
    FrameKind,
    PieceKind,
    Pieces,
    Segments,
)
from kafkascope.capture.exchanges.exchanges import Pairer, Recordings
from kafkascope.capture.exchanges.pairing import ROW_COST
from kafkascope.capture.frames.framing import PORTION_ROWS, Framer
from kafkascope.capture.query.tallies import (
    NAME_COST,
    OTHERS,
    Measure,
    Tallies,
)
from kafkascope.capture.tcp.reassembly import Reassembler
from kafkascope.capture.tcp.stream_table import (
    NODE_COST,
    StreamCount,
)
from tests.support.flows import endpoints
from tests.support.frames import connection
from tests.support.framing import apply_verdicts
from tests.support.full_recording import full_recording
from tests.support.hostile_recordings import (
    api_versions,
    in_turn,
    long_frames,
    many_connections,
    one_way,
    peak_bytes,
    short_connection,
    tiny_requests,
)
from tests.support.packet_build import Talk, ethernet, ipv4, pcap

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
GIGABYTE = 1_000_000_000
TINY = tiny_requests(400_000)


def pieces_of(data: bytes) -> Pieces:
    """Of a connection that opens and says this in one go."""
    kinds = np.array([PieceKind.OPEN, PieceKind.OPEN, PieceKind.BYTES, PieceKind.CLOSE], np.uint8)
    lengths = np.array([0, 0, len(data), 0])
    zeros = np.zeros(4, np.int64)
    streams = np.array([0, 1, 0, 0], np.int32)
    return Pieces(np.frombuffer(data, np.uint8), kinds, streams, zeros, zeros, lengths, zeros, zeros)


def test_tiny_frames_come_in_portions_and_few_of_them_wait() -> None:
    """MAX_WAITING_BYTES counts rows: so many tiny requests would take ten times their bytes."""
    known = connection(0)
    known.opener, known.client = 0, None
    framer = Framer([known])
    pairer = Pairer([known], Recordings(["x"], [0]))
    frames = exchanges = 0
    data = api_versions(1) + api_versions(2) + TINY
    for portion in framer.portions(pieces_of(data)):
        assert len(portion.kind) <= 2 * PORTION_ROWS + 64
        apply_verdicts(portion, [known])
        frames += int((portion.kind == FrameKind.FRAME).sum())
        exchanges += len(pairer.feed(portion))
        rows = pairer._waiting
        assert len(rows) * ROW_COST + len(pairer._waiting_bytes) <= limits.MAX_WAITING_BYTES
    assert frames == 400_002
    assert exchanges + len(pairer._waiting) == frames


def test_small_early_segments_are_charged_for_what_they_take() -> None:
    """MAX_EARLY_TOTAL_BYTES: segments of one byte, each after a byte that never comes, on many streams."""
    streams, turns = 300, 2_500
    reassembler = Reassembler(Flows([endpoints(number) for number in range(streams)]))
    flow = np.tile(np.arange(streams, dtype=np.int32), turns)
    count = len(flow)
    turn = np.repeat(np.arange(turns), streams)
    most = 0
    for start in range(0, count, 100_000):
        part = slice(start, start + 100_000)
        size = len(flow[part])
        ones, zeros = np.ones(size, np.int32), np.zeros(size, np.int64)
        sent = np.where(turn[part] == 0, 0, 1_000 + 2 * turn[part])
        flags = np.where(turn[part] == 0, 2, 16).astype(np.uint8)
        length = np.where(turn[part] == 0, 0, ones).astype(np.int32)
        reassembler.feed(
            Segments(
                np.zeros(1, np.uint8), flow[part], zeros.astype(np.uint8), sent, flags, zeros, length, length, zeros,
                zeros,
            )
        )  # fmt: skip
        tables = reassembler._tables
        most = max(most, len(tables.nodes) - int(tables.counts[StreamCount.FREE]))
        assert tables.counts[StreamCount.HELD_TOTAL] <= limits.MAX_EARLY_TOTAL_BYTES + NODE_COST + 1
    assert limits.MAX_EARLY_TOTAL_BYTES // (NODE_COST + 1) // 2 < most < count


def test_names_of_statistics_are_bounded() -> None:
    """MAX_TALLIED_BYTES: no call is lost, but those with further names are told together."""
    tallies = Tallies()
    longest = limits.MAX_TALLIED_BYTES // 8
    names = [f"{number:0{longest}}" for number in range(12)]
    for name in [*names, *names]:
        tallies.add(np.zeros(1, np.int64), [name], np.full((1, len(Measure)), -1, np.int64), None)
    assert sum(map(len, tallies)) + NAME_COST * len(list(tallies)) <= limits.MAX_TALLIED_BYTES
    calls = tallies.calls()
    assert len(calls) == 8
    assert sum(calls.values()) == 24
    assert calls[OTHERS] == 10


def tiny(path: Path) -> Path:
    return one_way(path, tiny_requests(2_000_000))


def both_ways(path: Path) -> Path:
    return many_connections(path, 3 * limits.MAX_CONNECTIONS, short_connection())


def requests_alone(path: Path) -> Path:
    talk = short_connection()
    talk.packets = [packet for packet in talk.packets if packet[1][36:38] == (9092).to_bytes(2, "big")]
    return many_connections(path, limits.MAX_CONNECTIONS, talk)


def unfinished(path: Path) -> Path:
    return long_frames(path, 3, limits.MAX_UNFINISHED_BYTES // 3)


def client_ids(path: Path) -> Path:
    return one_way(path, b"".join(api_versions(number, f"{number:01000}") for number in range(200_000)))


def scan(path: Path) -> Path:
    """MAX_UNUSED_FLOWS: SYNs that nobody answers."""
    talk = Talk().open()
    del talk.packets[1:]
    return many_connections(path, 4 * limits.MAX_UNUSED_FLOWS, talk)


def strangers(path: Path) -> Path:
    """MAX_OTHER_CONNECTIONS: what they say is not Kafka's."""
    return many_connections(path, 3 * limits.MAX_OTHER_CONNECTIONS, Talk().open().say(0, b"SSH-2.0-OpenSSH_9.2\r\n"))


def undecided(path: Path) -> Path:
    """MAX_UNDECIDED_BYTES and MAX_SEARCHED_TOTAL_BYTES: first frames that may be Kafka's for as long as they last."""
    first = (50_000_000).to_bytes(4, "big") + api_versions(1)[4:]
    return in_turn(path, 40, first, limits.MAX_UNDECIDED_BYTES)


def searched(path: Path) -> Path:
    """MAX_SEARCHED_BYTES and MAX_SEARCHED_TOTAL_BYTES: after a length that no frame has, nothing is a frame."""
    return in_turn(path, 16, api_versions(1) + api_versions(2) + b"\xff" * 4, limits.MAX_SEARCHED_BYTES)


def fragments(path: Path) -> Path:
    """MAX_FRAGMENT_BYTES: first fragments whose rest never comes."""
    parts = (ipv4("10.0.0.1", "10.0.0.2", bytes(1_400), identification=n, fragment=0x2000) for n in range(20_000))
    path.write_bytes(pcap((n, ethernet(part)) for n, part in enumerate(parts)))
    return path


@pytest.mark.skipif(not SOAK, reason="make soak")
@pytest.mark.parametrize("make", [scan, strangers, undecided, searched, fragments])
def test_peak_of_what_is_not_kafka_is_below_a_gigabyte(make: Callable[[Path], Path], tmp_path: Path) -> None:
    assert peak_bytes("read", "--stats", str(make(tmp_path / "x.pcap"))) <= GIGABYTE


@pytest.mark.skipif(not SOAK, reason="make soak")
@pytest.mark.parametrize("mode", [["--stats"], ["--json"], []], ids=["stats", "json", "lines"])
@pytest.mark.parametrize("make", [tiny, both_ways, requests_alone, unfinished, client_ids])
def test_peak_of_read_is_below_a_gigabyte(make: Callable[[Path], Path], mode: list[str], tmp_path: Path) -> None:
    assert peak_bytes("read", *mode, str(make(tmp_path / "x.pcap"))) <= GIGABYTE


@pytest.mark.parametrize("mode", ["--stats", pytest.param("--json", marks=pytest.mark.skipif(not SOAK, reason="soak"))])
def test_peak_with_every_cap_reached_at_once_is_below_a_gigabyte(mode: str, tmp_path: Path) -> None:
    assert peak_bytes("read", mode, str(full_recording(tmp_path / "x.pcap.zst"))) <= GIGABYTE
