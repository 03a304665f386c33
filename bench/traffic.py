"""Generates a capture of a busy broker from a size and a seed: made once, kept in `.cache/bench`, the same bytes each
time.

Ethernet and IPv4, MTU 1500, 200 connections of eight roles, 48 (API, version) pairs with their responses, half of the
frames under 500 bytes, one connection with 40 % of the bytes, one packet of a hundred lost, late or sent again.
Three of five requests are of versions that Wireshark knows, so that it has work to do.

    python -m bench.traffic --megabytes 1000 --out busy.pcap
"""

import argparse
import json
import os
import struct
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import traffic_kernel as kernel
from bench.traffic_pool import BYTES_OF_ROLE, CONNECTIONS_OF_ROLE, ROLES, Pool, make_pool

FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "bench"
# Of what the same seed gives: a change of any kernel, value or share is a new one.
_EDITION = 1
_SEED = 20
CONNECTIONS = 200
_HEAVY_SHARE = 0.4
# Entered in the middle: no SYN, no ApiVersions.
_MIDDLE = 10
# What one connection with all the bytes may be.
ONLY = {"follower": len(ROLES) - 1, "consumer": 2}
_SHORT_CONNECTIONS, _SHORT_EXCHANGES, _SHORT_MEGABYTES = 7_000, 5, 150
_BYTES_A_SECOND = 20_000_000
_STEP_NS = 1_000_000_000
# Room for one step.
_MOST_ROWS, _MOST_BYTES = 400_000, 120_000_000
FIRST_NS = 1_763_200_000_000_000_000
_NANOSECONDS_MAGIC = 0xA1B23C4D


@dataclass(frozen=True, slots=True)
class Made:
    """What was put into a capture. Frames, exchanges and their bytes are those that were sent, recorded or not."""

    path: str
    seed: int
    file_bytes: int
    packets: int
    connections: int
    api_versions: int
    frames: int
    small_frames: int
    exchanges: int
    silent: int
    frame_bytes: int
    heaviest_bytes: int
    lost: int
    again: int
    unrecorded: int
    late: int
    seconds: float

    @property
    def troubled(self) -> int:
        return self.lost + self.again + self.unrecorded + self.late

    def line(self) -> str:
        small, heavy = self.small_frames / self.frames, self.heaviest_bytes / self.frame_bytes
        return (
            f"{self.file_bytes / 1e9:.2f} GB, seed {self.seed}, {self.packets:,} packets, {self.frames:,} frames of"
            f" {self.frame_bytes // self.frames:,} bytes, {small:.0%} under 500 bytes, {self.exchanges:,} exchanges,"
            f" {self.api_versions} API versions, {self.connections:,} connections, {heavy:.0%} of the bytes on one;\n"
            f"{self.troubled / self.packets:.2%} of packets: {self.lost:,} recorded only when retransmitted,"
            f" {self.late:,} reordered, {self.again:,} recorded twice, {self.unrecorded:,} never recorded"
        )


def busy(megabytes: int, seed: int = _SEED, *, clean: bool = False) -> Made:
    """200 connections that go on from the first second to the last; `clean` without loss and reordering."""
    name = f"{'clean' if clean else 'busy'}-{megabytes}mb-seed{seed}-v{_EDITION}.pcap"
    traffic = _kept(FOLDER / name, megabytes, seed, clean=clean)
    if not clean:
        check(traffic)
    return traffic


def elephant(megabytes: int, seed: int = _SEED, *, role: str = "follower") -> Made:
    """One connection with all the bytes."""
    name = f"{role}-{megabytes}mb-seed{seed}-v{_EDITION}.pcap"
    return _kept(FOLDER / name, megabytes, seed, only=role)


def short_lived(seed: int = _SEED) -> Made:
    """7,000 connections of five exchanges each."""
    path = FOLDER / f"short-seed{seed}-v{_EDITION}.pcap"
    return _kept(path, _SHORT_MEGABYTES, seed, short=True)


def check(traffic: Made) -> None:
    """AssertionError where a busy capture is not what this file promises."""
    assert traffic.connections == CONNECTIONS and traffic.api_versions >= 30
    assert 0.45 <= traffic.small_frames / traffic.frames <= 0.6
    assert 0.37 <= traffic.heaviest_bytes / traffic.frame_bytes <= 0.43
    assert 0.008 <= traffic.troubled / traffic.packets <= 0.012 and traffic.unrecorded


def first_part(traffic: Made, megabytes: int) -> Path:
    """The packets of its first megabytes, as a file beside it."""
    whole = Path(traffic.path)
    part = whole.with_name(f"{whole.stem}-first{megabytes}mb.pcap")
    if not part.is_file():
        with whole.open("rb") as file:
            data = file.read(megabytes * 1_000_000)
        end = 24
        while end + kernel.RECORD_BYTES <= len(data):
            after = end + kernel.RECORD_BYTES + int.from_bytes(data[end + 8 : end + 12], "little")
            if after > len(data):
                break
            end = after
        part.write_bytes(memoryview(data)[:end])
    return part


def _kept(
    path: Path, megabytes: int, seed: int, *, only: str | None = None, short: bool = False, clean: bool = False
) -> Made:
    facts = path.with_suffix(".json")
    if path.is_file() and facts.is_file():
        return Made(**json.loads(facts.read_text()))
    traffic = _write_capture(path, megabytes, seed, only=only, short=short, clean=clean)
    facts.write_text(json.dumps(asdict(traffic), indent=1))
    return traffic


def _write_capture(
    path: Path, megabytes: int, seed: int, *, only: str | None = None, short: bool = False, clean: bool = False
) -> Made:
    start = perf_counter()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            traffic = Traffic(_pool(seed), seed, only=only, short=short, clean=clean)
            size = file.write(struct.pack("<IHHiIII", _NANOSECONDS_MAGIC, 2, 4, 0, 0, 262_144, 1))
            while size < megabytes * 1_000_000 and not traffic.is_over():
                size += file.write(traffic.step())
            size += file.write(traffic.finish())
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    return traffic.made(str(path), size, perf_counter() - start)


@lru_cache(maxsize=1)
def _pool(seed: int) -> Pool:
    return make_pool(seed)


class Traffic:
    """The connections and where each of them is; a step is a second of them."""

    def __init__(
        self, pool: Pool, seed: int, *, only: str | None = None, short: bool = False, clean: bool = False
    ) -> None:
        self._pool, self._seed = pool, seed
        count = _SHORT_CONNECTIONS if short else CONNECTIONS if only is None else 1
        rng = np.array([seed], np.uint64)
        connections = _connections(count, short=short, rng=rng)
        if only is not None:
            connections[0, kernel.ROLE] = ONLY[only]
        counts, by_pair, by_connection = (np.zeros(n, np.int64) for n in (kernel.COUNTS, len(pool.pairs), count))
        streams = _streams(connections, rng)
        self._state = kernel.State(connections, streams, rng, counts, by_pair, by_connection, clean)
        rows, used = np.zeros((_MOST_ROWS, kernel.COLUMNS), np.int64), np.zeros(1, np.int64)
        self._step = kernel.Step(rows, used, np.zeros(_MOST_BYTES, np.uint8))
        self._end = 0
        self._ends = _ends(count)
        self._out = np.zeros(_MOST_BYTES + _MOST_ROWS * (kernel.RECORD_BYTES + kernel.HEADERS), np.uint8)
        self._now, self._packets = FIRST_NS, 0

    def is_over(self) -> bool:
        return bool((self._state.connections[:, kernel.PHASE] == kernel.CLOSED).all())

    def step(self) -> memoryview:
        self._now += _STEP_NS
        self._end = kernel.plan(self._now, self._pool.frames, self._state, self._step, self._end)
        return self._write(self._now)

    def finish(self) -> memoryview:
        """What is still on its way, and the end of every connection that is open."""
        connections = self._state.connections
        for number in np.flatnonzero(connections[:, kernel.PHASE] != kernel.CLOSED).tolist():
            now = max(self._now, int(connections[number, kernel.LAST_RESPONSE_NS]))
            kernel.close(self._step, self._state.streams, number, now)
        return self._write(np.iinfo(np.int64).max)

    def _write(self, until: int) -> memoryview:
        rows = self._step.rows[: self._step.used[0]]
        order = np.argsort(rows[:, kernel.TIME], kind="stable")
        now = int(np.searchsorted(rows[order, kernel.TIME], until))
        size, packets = kernel.write(rows, order[:now], self._step.buffer, self._state.streams, self._ends, self._out)
        self._packets += packets
        self._carry(rows[np.sort(order[now:])])
        return self._out[:size].data

    def _carry(self, later: npt.NDArray[np.int64]) -> None:
        """Packets of a later step move to the front, with their bytes."""
        rows, used, buffer = self._step
        lengths = later[:, kernel.LENGTH]
        spans = [buffer[at : at + size] for at, size in zip(later[:, kernel.START], lengths, strict=True) if size]
        kept = np.concatenate(spans) if spans else np.zeros(0, np.uint8)
        later[:, kernel.START] = np.cumsum(lengths) - lengths
        buffer[: len(kept)] = kept
        rows[: len(later)] = later
        used[0], self._end = len(later), len(kept)

    def made(self, path: str, size: int, seconds: float) -> Made:
        counts = self._state.counts.tolist()
        return Made(
            path=path,
            seed=self._seed,
            file_bytes=size,
            packets=self._packets,
            connections=int((self._state.by_connection > 0).sum()),
            api_versions=int((self._state.by_pair > 0).sum()),
            frames=counts[kernel.FRAMES],
            small_frames=counts[kernel.SMALL],
            exchanges=counts[kernel.EXCHANGES],
            silent=counts[kernel.SILENT],
            frame_bytes=counts[kernel.FRAME_BYTES],
            heaviest_bytes=int(self._state.by_connection.max()),
            lost=counts[kernel.LOST_COUNT],
            again=counts[kernel.AGAIN_COUNT],
            unrecorded=counts[kernel.UNRECORDED_COUNT],
            late=counts[kernel.LATE_COUNT],
            seconds=seconds,
        )


def _connections(count: int, *, short: bool, rng: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    out = np.zeros((count, kernel.CONNECTION_COLUMNS), np.int64)
    roles = [role for role, many in enumerate(CONNECTIONS_OF_ROLE) for _ in range(many)]
    out[:, kernel.ROLE] = [roles[number % len(roles)] for number in range(count)]
    within = _SHORT_MEGABYTES * 1_000_000 / _BYTES_A_SECOND * 1e9 if short else 300_000_000
    begin = np.array([int(kernel.chance(rng) * within) for _ in range(count)], np.int64)
    out[:, kernel.NEXT_NS] = out[:, kernel.SCHEDULE_NS] = FIRST_NS + begin
    out[:, kernel.LEFT] = _SHORT_EXCHANGES if short else -1
    out[:, kernel.CORRELATION] = 1
    weights = np.array(BYTES_OF_ROLE)[out[:, kernel.ROLE]]
    light = _BYTES_A_SECOND * (1 - _HEAVY_SHARE)
    out[:, kernel.RATE] = 100_000 if short else light * weights / weights.sum()
    if not short:
        out[0, kernel.ROLE] = len(ROLES) - 1
        out[0, kernel.RATE] = _BYTES_A_SECOND * (_HEAVY_SHARE if count > 1 else 1)
        out[1:][-_MIDDLE:, kernel.PHASE] = kernel.SPEAKS
        out[1:][-_MIDDLE:, kernel.CORRELATION] = 5_000
    return out


def _streams(connections: npt.NDArray[np.int64], rng: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Sequence numbers count on past 32 bits here; the wire has the rest of them."""
    out = np.zeros((2 * len(connections), kernel.STREAM_COLUMNS), np.int64)
    first = np.array([int(kernel.chance(rng) * (1 << 32)) for _ in range(len(out))], np.int64) + 1
    for column in (kernel.SENT, kernel.EMITTED, kernel.RECEIVED, kernel.HIGHEST):
        out[:, column] = first
    return out


def _ends(count: int) -> npt.NDArray[np.uint8]:
    """By stream: MAC, IPv4 address and port of who sends it; clients, then one of three brokers."""
    out = np.zeros((2 * count, 12), np.uint8)
    for number in range(count):
        client = bytes((10, 1, number // 200 % 200, 10 + number % 200))
        broker = bytes((10, 0, 0, 1 + number % 3))
        out[2 * number] = list(b"\x02\x00" + client + client + (32_768 + number % 28_000).to_bytes(2, "big"))
        out[2 * number + 1] = list(b"\x02\x00" + broker + broker + (9_092).to_bytes(2, "big"))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.traffic", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=150)
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("--short", action="store_true", help="7,000 short connections instead of 200 long ones")
    parser.add_argument("--clean", action="store_true", help="without loss and reordering")
    parser.add_argument("--out", type=Path, help=f"where; otherwise a name of its own in {FOLDER.name}")
    options: Any = parser.parse_args()
    if options.out:
        traffic = _write_capture(options.out, options.megabytes, options.seed, short=options.short, clean=options.clean)
    else:
        traffic = (
            short_lived(options.seed) if options.short else busy(options.megabytes, options.seed, clean=options.clean)
        )
    print(traffic.path)
    print(traffic.line())
    print(f"written in {traffic.seconds:.1f} s, {traffic.file_bytes / traffic.seconds / 1e6:,.0f} MB/s")


if __name__ == "__main__":
    main()
