"""Writes packets to a pcapng file that any reader accepts: one little-endian section, times in nanoseconds."""

import struct
from typing import BinaryIO

from kafkascope.capture.files.link import ETHERNET
from kafkascope.capture.files.pcapng_blocks import BYTE_ORDER, INTERFACE, PACKET, SECTION

_LENGTH_NOT_SAID = -1
_NAME, _RESOLUTION = 2, 9
_NANOSECONDS = 9


class PcapngWriter:
    """`write(time_ns, packet)` writes to the first interface, which exists from the start."""

    def __init__(self, file: BinaryIO, *, link: int = ETHERNET, snap_length: int = 0, name: str | None = None) -> None:
        self._file = file
        self._interfaces = 0
        self._block(SECTION, struct.pack("<IHHq", BYTE_ORDER, 1, 0, _LENGTH_NOT_SAID))
        self.add_interface(link=link, snap_length=snap_length, name=name)

    def add_interface(self, *, link: int = ETHERNET, snap_length: int = 0, name: str | None = None) -> int:
        """The number of the interface, for `write`. A snap length of 0 means none."""
        options = _option(_NAME, name.encode()) if name else b""
        options += _option(_RESOLUTION, bytes([_NANOSECONDS])) + bytes(4)
        self._block(INTERFACE, struct.pack("<HHI", link, 0, snap_length) + options)
        self._interfaces += 1
        return self._interfaces - 1

    def write(self, time_ns: int, packet: bytes, *, interface: int = 0, original: int | None = None) -> None:
        """`original` is the length of the packet on the wire, if `packet` is only its beginning."""
        if not 0 <= interface < self._interfaces:
            raise ValueError(f"unknown interface {interface}; {self._interfaces} have been added")
        wire = len(packet) if original is None else original
        head = struct.pack("<IIIII", interface, time_ns >> 32, time_ns & 0xFFFF_FFFF, len(packet), wire)
        self._block(PACKET, head + packet)

    def _block(self, kind: int, body: bytes) -> None:
        padding = -len(body) % 4
        length = 12 + len(body) + padding
        self._file.write(struct.pack("<II", kind, length) + body + bytes(padding) + struct.pack("<I", length))


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
