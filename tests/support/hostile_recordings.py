"""Recordings that make a reader hold as much as they can, and the peak memory of a process that reads them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kafkascope.codec.frame import encode_frame
from tests.support.packet_build import Talk, pcap

# Ethernet, then where IPv4 has its addresses and TCP its ports; a record of a pcap file has 16 bytes in front.
_RECORD, _HEAD, _SOURCE, _TARGET, _PORTS = 16, 24, 14 + 12, 14 + 16, 14 + 20
# For the whole life of the process, and not of those that started it.
_CHILD = """
import atexit, sys
def tell():
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print("peak", peak, file=sys.stderr)
atexit.register(tell)
from kafkascope.cli.main import run
sys.argv[0] = "kafkascope"
run()
"""


def peak_bytes(*arguments: str, timeout: float = 900) -> int:
    """Of the command line in a process of its own; what it prints is thrown away."""
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=timeout,
        env=os.environ | {"COLUMNS": "100"},
    )  # fmt: skip
    assert child.returncode in (0, 1, 3) and b"Traceback" not in child.stderr, child.stderr[-2_000:]
    return 1024 * int(child.stderr.rsplit(b"peak ", 1)[1])


def api_versions(correlation: int, client: str | None = "app") -> bytes:
    return encode_frame("ApiVersionsRequest", 0, {}, {"correlationId": correlation, "clientId": client})


def tiny_requests(count: int) -> bytes:
    """Requests of 14 bytes, each with a correlation id of its own."""
    rows = np.tile(np.frombuffer(api_versions(0, None), np.uint8), (count, 1))
    rows[:, 8:12] = np.arange(count, dtype=">i4").view(np.uint8).reshape(-1, 4)
    return rows.tobytes()


def one_way(path: Path, data: bytes) -> Path:
    """A client says this, and nobody answers."""
    talk = replace(Talk().open(), segment_bytes=60_000, step_ns=1_000)
    talk.say(0, api_versions(1) + api_versions(2)).say(0, data)
    path.write_bytes(pcap(talk.packets))
    return path


def many_connections(path: Path, count: int, talk: Talk) -> Path:
    """The same conversation again and again, each time from another client."""
    with path.open("wb") as file:
        file.write(pcap([]))
        for rows in connection_rows(count, talk):
            file.write(rows.tobytes())
    return path


def connection_rows(count: int, talk: Talk) -> Iterator[npt.NDArray[np.uint8]]:
    """The records of a pcap file for that, one conversation a row."""
    template = np.frombuffer(pcap(talk.packets)[_HEAD:], np.uint8)
    sizes = [_RECORD + len(packet) for _, packet in talk.packets]
    for first in range(0, count, 10_000):
        numbers = np.arange(first, min(first + 10_000, count))
        rows = np.tile(template, (len(numbers), 1))
        addresses = (0x0A010000 + numbers // 60_000).astype(">u4").view(np.uint8).reshape(-1, 4)
        ports = (1_024 + numbers % 60_000).astype(">u2").view(np.uint8).reshape(-1, 2)
        for start, (_, packet) in zip(np.cumsum([0, *sizes]).tolist(), talk.packets, strict=False):
            server_first = packet[_PORTS : _PORTS + 2] == talk.server[1].to_bytes(2, "big")
            address = start + _RECORD + (_TARGET if server_first else _SOURCE)
            port = start + _RECORD + _PORTS + (2 if server_first else 0)
            rows[:, address : address + 4] = addresses
            rows[:, port : port + 2] = ports
        yield rows


def short_connection() -> Talk:
    """Opened, one request with its response, closed."""
    response = encode_frame("ApiVersionsResponse", 0, {}, {"correlationId": 1})
    return Talk().open().say(0, api_versions(1)).say(1, response).close()


def long_frames(path: Path, count: int, size: int) -> Path:
    """Requests of `size` bytes on as many connections, packet by packet in turn: none is whole before the others."""
    body = encode_frame("ProduceRequest", 3, {}, {"correlationId": 9, "clientId": "app"}, length=False)
    first = api_versions(1) + api_versions(2) + size.to_bytes(4, "big") + body
    return in_turn(path, count, first, size - len(body))


def in_turn(path: Path, count: int, first: bytes, size: int) -> Path:
    """So many connections that say `first` and then zeros, packet by packet in turn."""
    talks = [
        replace(Talk(client=("10.0.0.1", 40_000 + n)).open(), segment_bytes=60_000, step_ns=1_000) for n in range(count)
    ]
    with path.open("wb") as file:
        file.write(pcap([]))
        for start in range(0, size, 1_200_000):
            for talk in talks:
                if start == 0:
                    talk.say(0, first)
                talk.say(0, bytes(min(1_200_000, size - start)))
                file.write(pcap(talk.packets)[_HEAD:])
                talk.packets.clear()
    return path
