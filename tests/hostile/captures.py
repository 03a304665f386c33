"""pcap files: TCP that was edited, in any link layer and tunnel, of either byte order and clock, packed or not."""

import gzip
import lzma
import struct
from collections.abc import Callable, Iterable
from random import Random

import cramjam

from tests.hostile.around import LINKS, linked, tunnelled
from tests.hostile.packets import SIZES, Packet, edited
from tests.support.mutations import append_junk, delete_bytes, flip_bit, insert_bytes, set_byte

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
    "lz4": lambda data: bytes(cramjam.lz4.compress(data)),
}
_MORE = bytes.fromhex("02000000 0008 04 00")  # interface 2, IPv4, sent by us
_BYTE_EDITS = (flip_bit, flip_bit, set_byte, set_byte, insert_bytes, delete_bytes, append_junk)


def make(random: Random) -> bytes:
    return file_of(around(edited(random), random), random)


def around(packets: Iterable[Packet], random: Random) -> list[tuple[int, Packet]]:
    """(link type, packet). One encapsulation for all, so that a connection stays one; or another for some."""
    link = random.choice((1, 1, 1, 101, 113, *LINKS))
    depth = random.choice((0, 0, 0, 0, 1, 1, 2, 4, 5))
    seed, apart = random.random(), random.choice((0.0, 0.0, 0.05))
    made = []
    for packet in packets:
        own = Random(seed) if random.random() >= apart else random
        data = linked(tunnelled(packet.data, own, depth), link, own)
        more = len(data) - len(packet.data)
        made.append((link, Packet(packet.time_ns, data, min(packet.original + more, 2**32 - 1))))
    return made


def file_of(packets: list[tuple[int, Packet]], random: Random) -> bytes:
    """With records whose headers lie, or bytes that changed, in one file of four."""
    order, nano = random.choice("<<>"), random.random() < 0.5
    link = packets[0][0] if packets and random.random() < 0.95 else random.choice((*LINKS, 147, 0xFFFF))
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    if random.random() < 0.08:
        magic, nano = 0xA1B2CD34, False  # of a modified libpcap, whose records have eight bytes more
    # As RHEL 7 writes cooked packets: the bytes of their header are not among those on the wire. And one byte too many.
    beyond = random.choice((0, 0, 0, 16, 17)) if link == 113 else 0
    snap = random.choice((262_144, 262_144, 0, 96, 0xFFFF_FFFF))
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    lies = random.choice((0.0, 0.0, 0.0, 0.1))
    for _, packet in packets:
        seconds, rest = divmod(packet.time_ns, 10**9)
        wire = max(packet.original - beyond, 0)
        head = [seconds % 2**32, rest if nano else rest // 1000, len(packet.data), wire]
        if random.random() < lies:
            head[random.randrange(4)] = random.choice(SIZES)
        parts.append(struct.pack(order + "IIII", *head) + (_MORE if magic == 0xA1B2CD34 else b"") + packet.data)
    data = b"".join(parts)
    if random.random() < 0.15:
        data = bytes_edited(data, random)
    return packed(data, random) if random.random() < 0.1 else data


def bytes_edited(data: bytes, random: Random) -> bytes:
    for _ in range(random.choice((1, 1, 2, 6))):
        if random.random() < 0.4 and len(data) > 40:
            # Most fields of headers are 32 bits, at multiples of four.
            at = random.randrange(len(data) // 4) * 4
            data = data[:at] + random.choice(SIZES).to_bytes(4, random.choice(("big", "little"))) + data[at + 4 :]
        elif random.random() < 0.2:
            data = data[: random.randrange(len(data) + 1)]
        else:
            data = random.choice(_BYTE_EDITS)(data, (), random)
    return data


def packed(data: bytes, random: Random) -> bytes:
    """In every compression that is read, whole or damaged, one frame or two."""
    pack = PACKED[random.choice(sorted(PACKED))]
    cut = random.choice((0, 0, len(data) // 2))
    made = pack(data[:cut]) + pack(data[cut:]) if cut else pack(data)
    return bytes_edited(made, random) if random.random() < 0.6 else made
