"""Bytes of streams in, packets and whole recordings out: every layer by hand, none of it through the readers."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from ipaddress import ip_address

from kafkascope.capture.files.writer import PcapngWriter

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
TCP, UDP, GRE = 6, 17, 47
_LINK_FOR_VERSION = {4: 0x0800, 6: 0x86DD}

Stamped = tuple[int, bytes]


def tcp(
    source: int, target: int, sequence: int = 0, acknowledgement: int = 0, flags: int = ACK, payload: bytes = b"",
    options: bytes = b"",
) -> bytes:  # fmt: skip
    options += bytes(-len(options) % 4)
    offset = (20 + len(options)) // 4
    head = struct.pack(
        ">HHIIBBHHH", source, target, sequence % 2**32, acknowledgement % 2**32, offset << 4, flags, 65_535, 0, 0
    )
    return head + options + payload


def udp(source: int, target: int, payload: bytes) -> bytes:
    return struct.pack(">HHHH", source, target, 8 + len(payload), 0) + payload


def ipv4(
    source: str, target: str, payload: bytes, *, protocol: int = TCP, options: bytes = b"", total: int | None = None,
    identification: int = 0, fragment: int = 0,
) -> bytes:  # fmt: skip
    """`fragment` is the field itself: flags, and the offset in units of eight bytes."""
    header = 20 + len(options)
    length = header + len(payload) if total is None else total
    head = struct.pack(">BBHHHBBH", 0x40 | header // 4, 0, length % 65_536, identification, fragment, 64, protocol, 0)
    head += ip_address(source).packed + ip_address(target).packed + options
    return head[:10] + struct.pack(">H", _checksum(head)) + head[12:] + payload


def ipv4_fragments(
    source: str, target: str, payload: bytes, size: int, *, protocol: int = TCP, identification: int = 7
) -> list[bytes]:
    """`size` bytes of the payload each, a multiple of eight."""
    return [
        ipv4(
            source, target, payload[start : start + size], protocol=protocol, identification=identification,
            fragment=start // 8 | (0x2000 if start + size < len(payload) else 0),
        )
        for start in range(0, len(payload), size)
    ]  # fmt: skip


def ipv6(
    source: str, target: str, payload: bytes, *, protocol: int = TCP, extensions: Iterable[tuple[int, bytes]] = (),
    length: int | None = None,
) -> bytes:  # fmt: skip
    """`extensions` are headers with their numbers, each without its first byte: that is the number of the next."""
    kinds = [kind for kind, _ in extensions] + [protocol]
    chained = b"".join(bytes([after]) + rest for after, (_, rest) in zip(kinds[1:], extensions, strict=True))
    body = chained + payload
    size = len(body) if length is None else length
    return (
        struct.pack(">IHBB", 0x6000_0000, size, kinds[0], 64)
        + ip_address(source).packed
        + ip_address(target).packed
        + body
    )


def ip(source: str, target: str, payload: bytes, *, protocol: int = TCP) -> bytes:
    made = ipv4 if ip_address(source).version == 4 else ipv6
    return made(source, target, payload, protocol=protocol)


def ethernet(packet: bytes, *, tags: Iterable[tuple[int, int]] = (), kind: int | None = None) -> bytes:
    """`tags` are (type, VLAN number), the outermost first."""
    marks = b"".join(struct.pack(">HH", tag, number) for tag, number in tags)
    inner = kind if kind is not None else _LINK_FOR_VERSION[packet[0] >> 4]
    return bytes.fromhex("020000000002 020000000001") + marks + struct.pack(">H", inner) + packet


def vxlan(frame: bytes, *, number: int = 42, port: int = 4789) -> bytes:
    """UDP and what follows; `frame` is an Ethernet frame."""
    return udp(50_000, port, struct.pack(">II", 0x0800_0000, number << 8) + frame)


def _checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@dataclass(slots=True)
class Talk:
    """One TCP connection between two ends, as packets in Ethernet: `packets` grow with what is said and done.

    Direction 0 is the client, 1 the server. Every packet comes `step_ns` after the one before it."""

    client: tuple[str, int] = ("10.0.0.1", 40_000)
    server: tuple[str, int] = ("10.0.0.2", 9092)
    sequences: list[int] = field(default_factory=lambda: [1000, 5000])
    time_ns: int = 1_700_000_000_000_000_000
    step_ns: int = 1_000_000
    segment_bytes: int = 1448
    packets: list[Stamped] = field(default_factory=list)

    def open(self) -> "Talk":
        self._add(0, SYN)
        self.sequences[0] += 1
        self._add(1, SYN | ACK)
        self.sequences[1] += 1
        return self._add(0, ACK)

    def say(self, direction: int, data: bytes) -> "Talk":
        for start in range(0, len(data), self.segment_bytes):
            piece = data[start : start + self.segment_bytes]
            self._add(direction, ACK | PSH, piece)
            self.sequences[direction] += len(piece)
        return self

    def close(self) -> "Talk":
        for direction in (0, 1):
            self._add(direction, FIN | ACK)
            self.sequences[direction] += 1
        return self._add(0, ACK)

    def reset(self, direction: int) -> "Talk":
        return self._add(direction, RST | ACK)

    def _add(self, direction: int, flags: int, payload: bytes = b"") -> "Talk":
        source, target = (self.client, self.server) if direction == 0 else (self.server, self.client)
        acknowledged = 0 if flags == SYN else self.sequences[1 - direction]
        segment = tcp(source[1], target[1], self.sequences[direction], acknowledged, flags, payload)
        self.packets.append((self.time_ns, ethernet(ip(source[0], target[0], segment))))
        self.time_ns += self.step_ns
        return self


def pcapng(packets: Iterable[Stamped], *, link: int = 1) -> bytes:
    file = BytesIO()
    writer = PcapngWriter(file, link=link)
    for time_ns, packet in packets:
        writer.write(time_ns, packet)
    return file.getvalue()


def pcap(
    packets: Iterable[Stamped], *, link: int = 1, big: bool = False, nano: bool = False, snap_length: int = 262_144,
    modified: bool = False, beyond: int = 0,
) -> bytes:  # fmt: skip
    """`modified` as Kuznetsov's libpcap writes it. The lengths on the wire are `beyond` bytes too short."""
    order = ">" if big else "<"
    unit = 1 if nano else 1000
    magic = 0xA1B2CD34 if modified else 0xA1B23C4D if nano else 0xA1B2C3D4
    more = struct.pack(order + "iHBB", 2, 0x0800, 4, 0) if modified else b""  # interface, protocol, sent by us
    out = bytearray(struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap_length, link))
    for time_ns, packet in packets:
        kept = packet[:snap_length]
        seconds, rest = divmod(time_ns, 1_000_000_000)
        out += struct.pack(order + "IIII", seconds, rest // unit, len(kept), len(packet) - beyond) + more + kept
    return bytes(out)


def block(kind: int, body: bytes, *, big: bool = False, length: int | None = None, end: int | None = None) -> bytes:
    """A pcapng block; `length` and `end` are what it says in front and behind where they are to lie."""
    order = ">" if big else "<"
    body += bytes(-len(body) % 4)
    true = 12 + len(body)
    stated = true if length is None else length
    return struct.pack(order + "II", kind, stated) + body + struct.pack(order + "I", true if end is None else end)


def section(*, big: bool = False) -> bytes:
    return block(0x0A0D0D0A, struct.pack((">" if big else "<") + "IHHq", 0x1A2B3C4D, 1, 0, -1), big=big)


def interface(link: int = 1, snap_length: int = 0, options: bytes = b"", *, big: bool = False) -> bytes:
    return block(1, struct.pack((">" if big else "<") + "HHI", link, 0, snap_length) + options, big=big)


def enhanced(
    packet: bytes, stamp: int = 0, number: int = 0, *, original: int | None = None, big: bool = False
) -> bytes:
    order = ">" if big else "<"
    wire = len(packet) if original is None else original
    head = struct.pack(order + "IIIII", number, stamp >> 32, stamp & 0xFFFF_FFFF, len(packet), wire)
    return block(6, head + packet, big=big)


def merged(talks: Iterable[Talk]) -> Iterator[Stamped]:
    """All packets of several connections in the order of their times."""
    return iter(sorted((packet for talk in talks for packet in talk.packets), key=lambda stamped: stamped[0]))
