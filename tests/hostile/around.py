"""Wraps an IP packet as a recorder has it: in every link layer and tunnel that is read, and in headers that claim to be
one."""

import struct
from collections.abc import Callable
from random import Random

from tests.support.packet_build import ethernet, ipv4, ipv6, udp, vxlan

LINKS = (0, 1, 12, 14, 101, 108, 113, 228, 229, 276)
_TAGS = (0x8100, 0x88A8, 0x9100, 0x9200)
_OTHER_TYPES = (0x8847, 0x8864, 0x88E5, 0x0806, 0x05DC, 0x86DD, 0x0800)
OUTER, OUTER6 = ("192.168.0.1", "192.168.0.2"), ("fd00::1", "fd00::2")
_IP_IN_IP, _IPV6_IN_IP, _UDP, _GRE = 4, 41, 17, 47


def ether_type(packet: bytes) -> int:
    return 0x86DD if packet[:1] and packet[0] >> 4 == 6 else 0x0800


def in_ethernet(packet: bytes, random: Random) -> bytes:
    tags = [(random.choice(_TAGS), random.randrange(4096)) for _ in range(random.choice((0, 0, 0, 1, 2, 9)))]
    if random.random() < 0.1:
        # 802.3 with LLC and SNAP: the type comes after a length.
        snap = struct.pack(">BBB3xH", 0xAA, 0xAA, 3, ether_type(packet))
        return ethernet(snap + packet, tags=tags, kind=min(len(packet) + 8, 1500))
    kind = ether_type(packet) if random.random() < 0.95 else random.choice(_OTHER_TYPES)
    if random.random() < 0.25:
        kind, packet = random.choice((mpls, mpls, pppoe))(packet, random)
    return ethernet(packet, tags=tags, kind=kind)


def mpls(packet: bytes, random: Random) -> tuple[int, bytes]:
    """(type, packet). Some labels or none that is the last, then IP, or Ethernet with a control word or without."""
    labels = [random.randrange(1 << 20) << 12 | 0x40 for _ in range(random.choice((1, 1, 2, 3, 40)))]
    if random.random() < 0.95:
        labels[-1] |= 0x100
    if random.random() < 0.4:
        control = struct.pack(">I", random.choice((0, 1, 0x1000_0000, 0xFFFF_FFFF)))
        packet = random.choice((b"", control)) + ethernet(packet, kind=ether_type(packet))
    return random.choice((0x8847, 0x8848)), struct.pack(f">{len(labels)}I", *labels) + packet


def pppoe(packet: bytes, random: Random) -> tuple[int, bytes]:
    """(type, packet). A session, mostly; the protocol in two bytes or one, IP's, labels before it, or another."""
    number = 0x57 if ether_type(packet) == 0x86DD else 0x21
    protocol = random.choice(
        (struct.pack(">H", number),) * 4 + (bytes([number]), b"\x02\x81", b"\x00\xfd", b"\xc0\x21", b"\x00", b"")
    )
    if protocol == b"\x02\x81":
        packet = mpls(packet, random)[1]
    first, code = random.choice((0x11,) * 9 + (0x21,)), random.choice((0,) * 9 + (0xA7,))
    size = random.choice((len(protocol) + len(packet),) * 4 + (0, 0xFFFF)) & 0xFFFF
    return 0x8864, struct.pack(">BBHH", first, code, 1, size) + protocol + packet


def linked(packet: bytes, link: int, random: Random) -> bytes:
    if link == 1:
        return in_ethernet(packet, random)
    if link == 113:
        return bytes(14) + struct.pack(">H", ether_type(packet)) + packet
    if link == 276:
        return struct.pack(">H", ether_type(packet)) + bytes(18) + packet
    if link in (0, 108):
        family = random.choice((10, 24, 28, 30)) if ether_type(packet) == 0x86DD else 2
        return struct.pack(random.choice("<>") + "I", family) + packet
    return packet


def _outer(payload: bytes, protocol: int, random: Random) -> bytes:
    if random.random() < 0.7:
        return ipv4(*OUTER, payload, protocol=protocol, options=bytes(random.choice((0, 0, 4, 40))))
    extensions = random.choice(([], [], [(0, b"\0" + bytes(6))], [(60, b"\1" + bytes(14)), (43, b"\0" + bytes(6))]))
    return ipv6(*OUTER6, payload, protocol=protocol, extensions=extensions)


def ip_in_ip(packet: bytes, random: Random) -> bytes:
    return _outer(packet, _IPV6_IN_IP if ether_type(packet) == 0x86DD else _IP_IN_IP, random)


def gre(packet: bytes, random: Random) -> bytes:
    flags = random.choice((0, 0x8000, 0x2000, 0x1000, 0xB000, 0x4000, 0x0001))
    more = bytes(4 * sum(bool(flags & bit) for bit in (0x8000, 0x2000, 0x1000)))
    if random.random() < 0.3:
        return _outer(_erspan(random) + in_ethernet(packet, random), _GRE, random)
    if random.random() < 0.3:
        return _outer(struct.pack(">HH", flags, 0x6558) + more + in_ethernet(packet, random), _GRE, random)
    kind = random.choice((ether_type(packet),) * 8 + (0x88BE, 0x22EB))
    return _outer(struct.pack(">HH", flags, kind) + more + packet, _GRE, random)


def _erspan(random: Random) -> bytes:
    """GRE's header and ERSPAN's: types I to III with every flag, of any version and frame type, or cut."""
    version = random.choice((1, 2, 2, 2, 15)) << 28 | 0x10064
    frame, granularity = random.choice((0, 0, 0, 2, 31)), random.choice((0, 0, 1, 7))
    third = struct.pack(">IIHH", version, 1, 0, frame << 10 | granularity)
    made = random.choice(
        (struct.pack(">HH", 0, 0x88BE),
         struct.pack(">HHI", 0x1000, 0x88BE, 7) + struct.pack(">II", version >> 28 << 28 | 1, 1),
         struct.pack(">HHI", 0x1000, 0x22EB, 7) + third + bytes(8 * (granularity & 1))),
    )  # fmt: skip
    return made if random.random() < 0.9 else made[: random.randrange(len(made) + 1)]


def in_vxlan(packet: bytes, random: Random) -> bytes:
    return _outer(vxlan(in_ethernet(packet, random), port=random.choice((4789, 8472))), _UDP, random)


def geneve(packet: bytes, random: Random) -> bytes:
    options = random.choice((0, 0, 1, 7, 63))
    inside = random.random() < 0.5
    kind = 0x6558 if inside else ether_type(packet)
    head = struct.pack(">BBHI", options, 0, kind, 42) + bytes(4 * (options if random.random() < 0.8 else 1))
    return _outer(udp(50_000, 6081, head + (in_ethernet(packet, random) if inside else packet)), _UDP, random)


def named(packet: bytes, random: Random) -> bytes:
    """What is named and not read: GTP-U and VXLAN-GPE."""
    gtp = udp(2152, 2152, struct.pack(">BBHI", 0x30, random.choice((0xFF, 0xFF, 1)), len(packet), 7) + packet)
    gpe = udp(50_000, 4790, struct.pack(">BxxBI", random.choice((0x0C, 0)), 3, 42) + in_ethernet(packet, random))
    return _outer(random.choice((gtp, gpe)), _UDP, random)


TUNNELS: tuple[Callable[[bytes, Random], bytes], ...] = (ip_in_ip, gre, gre, in_vxlan, in_vxlan, geneve, geneve, named)


def tunnelled(packet: bytes, random: Random, depth: int) -> bytes:
    for _ in range(depth):
        if len(packet) < 60_000:
            packet = random.choice(TUNNELS)(packet, random)
    return packet
