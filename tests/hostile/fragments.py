"""Captures of IP fragments, version 4 and 6, jumbo, in any order, overlapping, doubled, lost, late, in tunnels, with
offsets, lengths and identifications that lie."""

import struct
from dataclasses import replace
from random import Random

from tests.hostile.around import OUTER6
from tests.hostile.captures import around, file_of
from tests.hostile.packets import SIZES, Packet, edited
from tests.support.packet_build import ipv6

_MORE = 0x2000
_LONGEST = 4_000


def make(random: Random) -> bytes:
    packets: list[Packet] = []
    for packet in edited(random)[:40]:
        if 28 <= len(packet.data) <= _LONGEST and packet.data[0] >> 4 == 4 and random.random() < 0.7:
            packets += _fragments(packet, random)
        else:
            packets.append(packet)
    for _ in range(random.choice((0, 1, 2, 5))):
        _edit(packets, random)
    return file_of(around(packets[:400], random), random)


def _fragments(packet: Packet, random: Random) -> list[Packet]:
    """What follows the IP header in pieces; as version 6 in one of two, with a jumbo length now and then."""
    header, identification = (packet.data[0] & 15) * 4, random.choice((7, 7, random.randrange(65_536)))
    payload = packet.data[header:]
    size = random.choice((8, 16, 24, 200, 1_000))
    size = max(size, len(payload) // 40 // 8 * 8 + 8)
    ends = [packet.data[12:16], packet.data[16:20]]
    jumbo = random.random() < 0.2
    old = random.random() < 0.5
    made = []
    for start in range(0, len(payload), size):
        piece, more = payload[start : start + size], start + size < len(payload)
        if old:
            fragment = start // 8 | (_MORE if more else 0)
            head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(piece), identification, fragment, 64, packet.data[9], 0)
            data = head + b"".join(ends) + piece
        else:
            data = _version_6(piece, start, more, identification, packet.data[9], jumbo, random)
        made.append(Packet(packet.time_ns, data, len(data)))
    return made


def _version_6(
    piece: bytes, start: int, more: bool, identification: int, protocol: int, jumbo: bool, random: Random
) -> bytes:
    part = (44, struct.pack(">BHI", 0, start | more, identification))
    if not jumbo:
        return ipv6(*OUTER6, piece, protocol=protocol, extensions=[part])
    # RFC 2675: the length is in an option of the first extension header, and 0 in its own place.
    length = random.choice((len(piece) + 16, 65_536, *SIZES)) % 2**32
    option = (0, struct.pack(">BBBI", 0, 0xC2, 4, length))
    return ipv6(*OUTER6, piece, protocol=protocol, extensions=[option, part], length=0)


def _edit(packets: list[Packet], random: Random) -> None:
    if not packets:
        return
    at = random.randrange(len(packets))
    packet = packets[at]
    kind = random.randrange(7)
    if kind == 0:
        random.shuffle(packets)
    elif kind == 1:
        packets.insert(random.randint(0, len(packets)), packet)
    elif kind == 2:
        del packets[at]
    elif kind == 3 and len(packet.data) > 28:
        place = 6 if packet.data[0] >> 4 == 4 else 42
        number = random.choice((0, 1, 8, 0x1FFF, 0x2000, 0x3FFF, 0xFFF8, 0xFFF9, random.randrange(65_536)))
        packets[at] = packet.with_bytes(place, struct.pack(">H", number))
    elif kind == 4:
        packets[at] = replace(packet, data=packet.data + random.randbytes(random.choice((1, 8, 100))))
    elif kind == 5:
        packets[at] = replace(packet, data=packet.data[: random.randrange(len(packet.data) + 1)])
    else:
        apart = random.choice((29, 30, 31, 1_000)) * 10**9
        packets[at:] = [replace(later, time_ns=later.time_ns + apart) for later in packets[at:]]
