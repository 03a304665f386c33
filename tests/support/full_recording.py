"""A recording that fills every bound of its reader at once, in zstd with the widest window that is read."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from kafkascope import limits
from kafkascope.codec.frame import encode_frame
from tests.support.hostile_recordings import api_versions, connection_rows
from tests.support.packet_build import Stamped, Talk, ethernet, ipv4, pcap

_FILE_HEAD = 24
_BLOCK = 131_072
# Of a first packet: the record's head, Ethernet's, then IP's.
_SOURCE, _PORT = 16 + 14 + 12, 16 + 14 + 20
HELLO = api_versions(1) + api_versions(2)
SEGMENT = 60_000


class WideZstd:
    """A zstd frame with a window of 128 MiB (RFC 8878). Blocks are raw, or one letter many times."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._file.write(bytes.fromhex("28b52ffd") + bytes([0, 17 << 3]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._file.write(b"\1\0\0")
        self._file.close()

    def write(self, data: bytes) -> None:
        for start in range(0, len(data), _BLOCK):
            block = data[start : start + _BLOCK]
            self._file.write((len(block) << 3).to_bytes(3, "little") + block)

    def packets(self, packets: list[Stamped]) -> None:
        """Those that end in many zeros take little."""
        for packet in packets:
            record = pcap([packet])[_FILE_HEAD:]
            trimmed = record.rstrip(b"\0")
            self.write(trimmed)
            zeros = len(record) - len(trimmed)
            if zeros:
                self._file.write((zeros << 3 | 2).to_bytes(3, "little") + b"\0")
        packets.clear()


class Client:
    """One connection, whose packets go to the file at once."""

    def __init__(self, file: WideZstd, number: int, talks: Talk | None = None) -> None:
        self._file = file
        self.talk = talks or replace(
            Talk(client=("10.9.0.1", 1_024 + number)), segment_bytes=SEGMENT, step_ns=1_000, packets=[]
        )

    def open(self) -> Self:
        self.talk.open()
        return self.say(HELLO)

    def say(self, data: bytes) -> Self:
        self.talk.say(0, data)
        self._file.packets(self.talk.packets)
        return self

    def skip(self, count: int) -> Self:
        """Bytes that nobody recorded."""
        self.talk.sequences[0] += count
        return self


def produce(size: int) -> bytes:
    """How a request of `size` bytes begins; the rest is zeros."""
    body = encode_frame("ProduceRequest", 3, {}, {"correlationId": 9, "clientId": "app"}, length=False)
    return size.to_bytes(4, "big") + body


def full_recording(path: Path, connections: int = limits.MAX_CONNECTIONS) -> Path:
    """All that is held is there when the long frames end, one after the other, and once more each."""
    longest = limits.MAX_FRAME_BYTES
    sizes = [longest, longest][: limits.MAX_UNFINISHED_BYTES // longest]
    sizes.append(limits.MAX_UNFINISHED_BYTES - sum(sizes) - (1 << 20))
    with WideZstd(path) as file:
        file.write(pcap([]))
        long = [Client(file, number).open() for number in range(len(sizes))]
        searched = [Client(file, 100 + number).open() for number in range(8)]
        early = [Client(file, 200 + number).open() for number in range(200)]
        for rows in named_connections(connections - 300):
            file.write(rows.tobytes())
        parts = (ipv4("10.0.0.1", "10.0.0.2", bytes(1_400), identification=n, fragment=0x2000) for n in range(3_000))
        file.packets([(n, ethernet(part)) for n, part in enumerate(parts)])
        for client in searched:
            client.say(b"\xff" * 4 + bytes(limits.MAX_SEARCHED_TOTAL_BYTES // 8 - (1 << 16)))
        for client in early:
            client.skip(10).say(bytes(limits.MAX_EARLY_TOTAL_BYTES // 200 - 2_000))
        for client, size in zip(long, sizes, strict=True):
            first = produce(size)
            client.say(first + bytes(size + 4 - len(first) - 1))
        for client in long:
            client.say(b"\0")
        for client, size in zip(long, sizes, strict=True):
            first = produce(size)
            client.say(first + bytes(size + 4 - len(first)))
    return path


def named_connections(count: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Open ones, with two requests each that nobody answers, and a client id of its own each."""
    name = "c" * 1_000
    talk = Talk().open().say(0, api_versions(1, name)).say(0, api_versions(2, name))
    record = pcap(talk.packets)[_FILE_HEAD:]
    places = [record.index(name.encode()), record.rindex(name.encode())]
    for rows in connection_rows(count, talk):
        ends = np.concatenate([rows[:, _SOURCE + 2 : _SOURCE + 4], rows[:, _PORT : _PORT + 2]], axis=1)
        letters = ord("a") + np.concatenate([ends >> 4, ends & 15], axis=1)
        for at in places:
            rows[:, at : at + 8] = letters
        yield rows
