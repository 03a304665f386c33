"""pcapng files: sections of both byte orders, interfaces with their options and clocks, every kind of packet block,
blocks that hold none, and lengths, counts and options that lie."""

import struct
from random import Random

from tests.hostile.around import LINKS
from tests.hostile.captures import around, bytes_edited, packed
from tests.hostile.packets import SIZES, Packet, edited
from tests.support.packet_build import block, section

_OPTIONS = (0, 1, 2, 9, 9, 14, 14, 12, 0xBAD, 0xFFFF)
_OTHER_BLOCKS = (4, 5, 9, 10, 0xBAD, 0x4000_0BAD, 0, 0xFFFF_FFFF, 0x0A0D0D0A)


def make(random: Random) -> bytes:
    packets = around(edited(random), random)
    lies = random.choice((0.0, 0.0, 0.02, 0.2))
    parts: list[bytes] = []
    while True:
        count = random.choice((len(packets), len(packets), random.randint(0, len(packets))))
        parts += _section(packets[:count], random, lies)
        packets = packets[count:]
        if not packets:
            break
    data = b"".join(parts)
    if random.random() < 0.15:
        data = bytes_edited(data, random)
    return packed(data, random) if random.random() < 0.1 else data


def _section(packets: list[tuple[int, Packet]], random: Random, lies: float) -> list[bytes]:
    big = random.random() < 0.5
    made = [section(big=big) if random.random() >= lies else _lying(0x0A0D0D0A, random.randbytes(16), big, random)]
    links = [packets[0][0] if packets else 1, *(random.choice(LINKS) for _ in range(random.choice((0, 0, 1, 20))))]
    for number, link in enumerate(links):
        snap = random.choice((0, 0, 262_144, 60)) if number else random.choice((0, 0, 0, 262_144, 60))
        body = struct.pack(_order(big) + "HHI", link, 0, snap) + _options(random, big)
        made.append(_block(1, body, big, random, lies))
    for link, packet in packets:
        which = links.index(link) if random.random() >= lies else random.choice((len(links), 0xFFFF, 0xFFFF_FFFF))
        made.append(_packet(packet, which, big, random, lies))
        if random.random() < 0.05:
            made.append(
                _block(random.choice(_OTHER_BLOCKS), random.randbytes(random.choice((0, 8, 40))), big, random, 0)
            )
    return made


def _packet(packet: Packet, which: int, big: bool, random: Random, lies: float) -> bytes:
    order, kind = _order(big), random.choice((6, 6, 6, 2, 3))
    stamp = packet.time_ns // 1000 if random.random() < 0.95 else random.choice((0, 2**63, 2**64 - 1))
    captured = len(packet.data) if random.random() >= lies else random.choice(SIZES)
    original = packet.original if random.random() >= lies else random.choice(SIZES)
    if kind == 3:
        return _block(3, struct.pack(order + "I", original) + packet.data, big, random, lies)
    place = struct.pack(order + ("HH" if kind == 2 else "I"), *((which & 0xFFFF, 0) if kind == 2 else (which,)))
    head = place + struct.pack(order + "IIII", stamp >> 32, stamp & 0xFFFF_FFFF, captured, original)
    options = _options(random, big) if random.random() < 0.1 else b""
    return _block(kind, head + packet.data + bytes(-len(packet.data) % 4) + options, big, random, lies)


def _options(random: Random, big: bool) -> bytes:
    """Resolutions of every base and exponent, offsets of every sign; sizes that do not fit."""
    made = b""
    for _ in range(random.choice((0, 0, 1, 3))):
        code = random.choice(_OPTIONS)
        value = random.randbytes(random.choice((0, 1, 1, 8, 8, 5, 40)))
        if code == 9 and random.random() < 0.7:
            value = bytes([random.choice((0, 3, 6, 9, 12, 18, 19, 63, 127, 128, 138, 160, 191, 192, 255))])
        size = len(value) if random.random() < 0.9 else random.choice((0, 1, 3, 0x7FFF, 0xFFFF))
        made += struct.pack(_order(big) + "HH", code, size) + value + bytes(-len(value) % 4)
    return made


def _block(kind: int, body: bytes, big: bool, random: Random, lies: float) -> bytes:
    if random.random() >= lies:
        return block(kind, body, big=big)
    return _lying(kind, body, big, random)


def _lying(kind: int, body: bytes, big: bool, random: Random) -> bytes:
    true = 12 + len(body) + -len(body) % 4
    length, end = (random.choice((true, true, true - 4, true + 4, true + 1, *SIZES)) for _ in range(2))
    return block(kind, body, big=big, length=length, end=end)


def _order(big: bool) -> str:
    return ">" if big else "<"
