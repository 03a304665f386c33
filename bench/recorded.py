"""Lengthens a recorded capture by repeating its traffic, each time with addresses and times of its own, so that no
connection is met twice. What a process does once is then little beside what it does for every packet."""

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.captures import capture

_FILE_HEADER, _RECORD, _SECONDS_AT = 24, 16, 0
# After the record's own header: Ethernet's, then where IPv4 has its two addresses.
_ADDRESSES = (_RECORD + 14 + 12, _RECORD + 14 + 16)
ETHERNET, IPV4 = 1, 0x0800
# Between one time and the next.
_PAUSE_SECONDS = 60

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


def lengthened(name: str, size: int, folder: Path) -> Path:
    """A file of about that size; its packets are the capture's own, Ethernet and IPv4."""
    once = np.frombuffer(capture(name), np.uint8)
    header, packets = once[:_FILE_HEADER], once[_FILE_HEADER:]
    assert header[20] == ETHERNET
    starts = _starts(packets)
    seconds = _words(packets, starts + _SECONDS_AT)
    lasting = int(seconds[-1]) - int(seconds[0]) + _PAUSE_SECONDS
    path = folder / f"{name}-long.pcap"
    with path.open("wb") as file:
        file.write(header.tobytes())
        for turn in range(max(1, round(size / len(packets)))):
            again = packets.copy()
            _put(again, starts + _SECONDS_AT, (seconds + turn * lasting).astype("<u4"))
            # 127.0.0.1 the first time, then 127.0.0.2 and so on.
            own = np.full(len(starts), (127 << 24) + 1 + turn, ">u4")
            for at in _ADDRESSES:
                _put(again, starts + at, own)
            file.write(again.tobytes())
    return path


def _starts(packets: Bytes) -> Ints:
    data = packets.tobytes()
    starts = []
    at = 0
    while at < len(data):
        starts.append(at)
        assert struct.unpack_from(">H", data, at + _RECORD + 12)[0] == IPV4
        at += _RECORD + struct.unpack_from("<I", data, at + 8)[0]
    return np.array(starts)


def _words(data: Bytes, at: Ints) -> Ints:
    words: Ints = data[at[:, None] + np.arange(4)].copy().view("<u4")[:, 0].astype(np.int64)
    return words


def _put(data: Bytes, at: Ints, words: npt.NDArray[np.uint32]) -> None:
    data[at[:, None] + np.arange(4)] = words.view(np.uint8).reshape(-1, 4)
