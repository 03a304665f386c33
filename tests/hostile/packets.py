"""IP packets of recorded and of generated Kafka traffic, and edits of their TCP: what a wire, a recorder and an
attacker do to a connection."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from kafkascope.capture.base.flow import ACK, FIN, RST, SYN
from tests.captures import NAMES, capture
from tests.support.parts import pcap_records, random_pcap

_RECORDED, _GENERATED = 40, 40
_LONGEST_TALK, _MOST_BYTES = 60, 24_000
WORD = 1 << 32
# Where numbers of 32 bits change their meaning: 0, the sign, half of the sequence space, and the ends of windows.
STEPS = (
    1,
    -1,
    2,
    4,
    8,
    100,
    -100,
    1_448,
    -1_448,
    65_535,
    1 << 23,
    1 << 24,
    1 << 30,
    1 << 31,
    (1 << 31) - 1,
    -(1 << 31),
)
SIZES = (
    0,
    1,
    3,
    4,
    8,
    20,
    39,
    40,
    60,
    65_535,
    65_536,
    1 << 20,
    (1 << 20) + 1,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    WORD - 1,
)


@dataclass(slots=True)
class Packet:
    """`data` is an IP packet as far as it was recorded, `original` its length on the wire."""

    time_ns: int
    data: bytes
    original: int

    @property
    def tcp_at(self) -> int:
        """Where the TCP header begins; -1 where there is none that can be edited."""
        if len(self.data) >= 40 and self.data[0] >> 4 == 4 and self.data[9] == 6:
            at = (self.data[0] & 15) * 4
        elif len(self.data) >= 60 and self.data[0] >> 4 == 6 and self.data[6] == 6:
            at = 40
        else:
            return -1
        return at if len(self.data) >= at + 20 else -1

    @property
    def payload_at(self) -> int:
        return min(self.tcp_at + (self.data[self.tcp_at + 12] >> 4) * 4, len(self.data)) if self.tcp_at >= 0 else -1

    def with_bytes(self, at: int, new: bytes) -> "Packet":
        return replace(self, data=self.data[:at] + new + self.data[at + len(new) :])

    def with_payload(self, payload: bytes) -> "Packet":
        """IP's own length follows where it fits."""
        data = self.data[: self.payload_at] + payload
        at, size = (2, len(data)) if data[0] >> 4 == 4 else (4, len(data) - 40)
        data = data[:at] + struct.pack(">H", size if 0 <= size < 65_536 else 0) + data[at + 2 :]
        return replace(self, data=data, original=len(data))

    def moved(self, apart: int) -> "Packet":
        (sequence,) = struct.unpack_from(">I", self.data, self.tcp_at + 4)
        return self.with_bytes(self.tcp_at + 4, struct.pack(">I", (sequence + apart) % WORD))


Edit = Callable[[list[Packet], Random], None]


def base(random: Random) -> list[Packet]:
    """The packets of one or two connections, or of some more that have every fault."""
    if random.random() < 0.5:
        talks = _recorded()
        made = list(random.choice(talks))
        if random.random() < 0.2:
            made = sorted(made + list(random.choice(talks)), key=lambda packet: packet.time_ns)
        return made
    return list(_generated(random.randrange(_GENERATED)))


@cache
def _recorded() -> tuple[tuple[Packet, ...], ...]:
    """The first packets of connections, some from the middle of one."""
    talks: list[tuple[Packet, ...]] = []
    for name in NAMES:
        data = capture(name)
        (link,) = struct.unpack_from("<I", data, 20)
        skip = {1: 14, 113: 16, 276: 20, 101: 0}[link]
        by_flow: dict[frozenset[bytes], list[Packet]] = {}
        for record in pcap_records(data)[1]:
            seconds, rest, _, original = struct.unpack_from("<IIII", record)
            packet = Packet(seconds * 10**9 + rest * 1000, record[16 + skip :], original - skip)
            if (at := packet.tcp_at) >= 0:
                ends = packet.data[12:20] if packet.data[0] >> 4 == 4 else packet.data[8:40]
                half = len(ends) // 2
                sides = (ends[:half] + packet.data[at : at + 2], ends[half:] + packet.data[at + 2 : at + 4])
                by_flow.setdefault(frozenset(sides), []).append(packet)
        for number, packets in enumerate(list(by_flow.values())[: _RECORDED // len(NAMES)]):
            talks.append(_shortened(packets[number % 3 * 5 :] or packets))
    return tuple(talks)


@cache
def _generated(number: int) -> tuple[Packet, ...]:
    records = pcap_records(random_pcap(number, talks=2, longest=4, other_bytes=True))[1]
    made = []
    for record in records:
        seconds, nanos, _, original = struct.unpack_from("<IIII", record)
        made.append(Packet(seconds * 10**9 + nanos, record[30:], original - 14))
    return _shortened(made)


def _shortened(packets: list[Packet]) -> tuple[Packet, ...]:
    size = 0
    for number, packet in enumerate(packets):
        size += len(packet.data)
        if size > _MOST_BYTES or number >= _LONGEST_TALK:
            return tuple(packets[:number])
    return tuple(packets)


def pick(packets: list[Packet], random: Random, *, full: bool = False) -> int:
    """The place of a TCP packet, with a payload where `full` asks for one; -1 where there is none."""
    candidates = [
        place
        for place, packet in enumerate(packets)
        if packet.tcp_at >= 0 and (not full or packet.payload_at < len(packet.data))
    ]
    return random.choice(candidates) if candidates else -1


def move_sequence(packets: list[Packet], random: Random) -> None:
    if (at := pick(packets, random)) >= 0:
        packets[at] = packets[at].moved(random.choice((*STEPS, random.randrange(WORD))))


def move_acknowledgement(packets: list[Packet], random: Random) -> None:
    if (at := pick(packets, random)) >= 0:
        packet = packets[at]
        (number,) = struct.unpack_from(">I", packet.data, packet.tcp_at + 8)
        new = random.choice((number + random.choice(STEPS), random.randrange(WORD), 0, WORD - 1)) % WORD
        packets[at] = packet.with_bytes(packet.tcp_at + 8, struct.pack(">I", new))


def change_flags(packets: list[Packet], random: Random) -> None:
    if (at := pick(packets, random)) >= 0:
        packet = packets[at]
        flags = packet.data[packet.tcp_at + 13] ^ random.choice((FIN, SYN, RST, ACK, SYN | ACK, 0xFF, RST | FIN))
        packets[at] = packet.with_bytes(packet.tcp_at + 13, bytes([flags]))


def send_again(packets: list[Packet], random: Random) -> None:
    """Later or earlier, as it was, shifted, with other bytes, longer or shorter: overlaps of every kind."""
    if (at := pick(packets, random, full=True)) < 0:
        return
    packet = packets[at]
    payload = packet.data[packet.payload_at :]
    for _ in range(random.choice((1, 1, 2, 5, 17))):
        cut = random.randint(0, len(payload))
        shift, again = random.choice(
            ((0, payload), (cut, payload[cut:]), (0, payload[:cut]), (-cut, random.randbytes(cut) + payload),
             (random.randint(-200, 200), payload), (cut, payload + payload[:cut]), (0, random.randbytes(len(payload))),
             (cut, random.randbytes(random.randint(0, 400)))),
        )  # fmt: skip
        place = random.randint(max(0, at - 5), min(len(packets), at + 10))
        packets.insert(place, packet.moved(shift).with_payload(again))


def send_early(packets: list[Packet], random: Random) -> None:
    """Segments with holes between them, then one over several of them, soon or in a later batch, or none ever."""
    if (at := pick(packets, random, full=True)) < 0:
        return
    packet = packets[at]
    payload = packet.data[packet.payload_at :]
    step = random.choice((1, 2, 8, 20, 1_448, 1 << 20))
    early = [
        packet.moved(step * (number + 1) + len(payload)).with_payload(payload[: max(step // 2, 1)])
        for number in range(random.choice((1, 3, 16, 40, 120)))
    ]
    if random.random() < 0.5:
        random.shuffle(early)
    over = packet.moved(len(payload)).with_payload(random.randbytes(min(step * len(early), 3_000)))
    packets.insert(random.choice((at, len(packets))), over)
    packets[at:at] = early


def reorder(packets: list[Packet], random: Random) -> None:
    if len(packets) > 1:
        low = random.randrange(len(packets))
        high = min(len(packets), low + random.choice((2, 3, 10)))
        part = packets[low:high]
        random.shuffle(part)
        packets[low:high] = part


def drop(packets: list[Packet], random: Random) -> None:
    low = random.randrange(len(packets) + 1)
    del packets[low : low + random.choice((1, 1, 2, 8))]


def reuse_ports(packets: list[Packet], random: Random) -> None:
    """All of it again on the same ports, with other sequence numbers or with the same."""
    apart = random.choice((0, 1, 1 << 31, random.randrange(WORD)))
    later = random.choice((0, 1, 10**6, 60 * 10**9, 700 * 10**9))
    again = [
        replace(packet.moved(apart) if packet.tcp_at >= 0 else packet, time_ns=packet.time_ns + later)
        for packet in packets
    ]
    packets[random.choice((len(packets), random.randint(0, len(packets)))) :] = again[: 2 * _LONGEST_TALK]


def cut_by_snap_length(packets: list[Packet], random: Random) -> None:
    """Of one packet or of all; the length on the wire stays, or lies."""
    kept = random.choice((0, 19, 20, 33, 40, 41, 44, 54, 60, 96, 200))
    low = random.randrange(len(packets) + 1)
    for at in range(low, random.choice((low + 1, len(packets))) if low < len(packets) else low):
        packets[at] = replace(packets[at], data=packets[at].data[:kept])
        if random.random() < 0.2:
            packets[at] = replace(packets[at], original=random.choice(SIZES))


def offload(packets: list[Packet], random: Random) -> None:
    """IP's length is 0 as with segmentation offload, so the record tells it; or it is any other number."""
    if (at := pick(packets, random)) >= 0:
        packet = packets[at]
        place = 2 if packet.data[0] >> 4 == 4 else 4
        size = random.choice((0, 0, 0, 20, 40, len(packet.data) + 1, 65_535, random.randrange(65_536)))
        packets[at] = replace(packet.with_bytes(place, struct.pack(">H", size)), original=random.choice(SIZES))


def edit_headers(packets: list[Packet], random: Random) -> None:
    if (at := pick(packets, random)) >= 0:
        packet = packets[at]
        place = random.choice((0, 6, 7, 9, packet.tcp_at + 12, random.randrange(packet.payload_at + 1)))
        packets[at] = packet.with_bytes(place, bytes([random.choice((0, 0xF, 0x40, 0x45, 0x4F, 0x60, 0xF0, 0xFF, 44))]))


def split(packets: list[Packet], random: Random) -> None:
    """One segment in small ones."""
    if (at := pick(packets, random, full=True)) < 0:
        return
    packet = packets[at]
    payload = packet.data[packet.payload_at :]
    size = max(random.choice((1, 2, 3, 5, 100)), len(payload) // 40)
    packets[at : at + 1] = [
        packet.moved(start).with_payload(payload[start : start + size]) for start in range(0, len(payload), size)
    ]


def edit_frame(packets: list[Packet], random: Random) -> None:
    """A length, API key, version, correlation id or client id at the start of a segment; or any byte of it."""
    if (at := pick(packets, random, full=True)) < 0:
        return
    packet = packets[at]
    size = len(packet.data) - packet.payload_at
    place = packet.payload_at + random.choice((0, 0, 4, 6, 8, 12, random.randrange(size)))
    new = random.choice(
        (struct.pack(">I", random.choice((*SIZES, max(size - 4, 0), size, 8, 104_857_600, 104_857_601))),
         struct.pack(">H", random.choice((0, 1, 3, 18, 36, 58, 75, 0xFFFF, random.randrange(100)))),
         random.randbytes(random.choice((1, 4, 40))), b"\xff\xff", b"\x80\x80\x80\x80\x80\x80"),
    )  # fmt: skip
    packets[at] = replace(packet, data=(packet.data[:place] + new + packet.data[place + len(new) :]))


def swap_ends(packets: list[Packet], random: Random) -> None:
    """A segment that goes the other way."""
    if (at := pick(packets, random)) >= 0:
        packet = packets[at]
        low, size = (12, 4) if packet.data[0] >> 4 == 4 else (8, 16)
        data, tcp = packet.data, packet.tcp_at
        data = data[:low] + data[low + size : low + 2 * size] + data[low : low + size] + data[low + 2 * size :]
        packets[at] = replace(packet, data=data).with_bytes(tcp, data[tcp + 2 : tcp + 4] + data[tcp : tcp + 2])


def change_times(packets: list[Packet], random: Random) -> None:
    low = random.randrange(len(packets) + 1)
    apart = random.choice((-1, 1, -(10**9), 10**12, -(10**18), 2**61))
    for at in range(low, len(packets)):
        packets[at] = replace(packets[at], time_ns=abs(packets[at].time_ns + apart))


EDITS: tuple[Edit, ...] = (
    move_sequence, move_sequence, move_acknowledgement, change_flags, change_flags, send_again, send_again, send_early,
    reorder, drop, reuse_ports, cut_by_snap_length, cut_by_snap_length, offload, edit_headers, split, edit_frame,
    edit_frame, swap_ends, change_times,
)  # fmt: skip


def edited(random: Random) -> list[Packet]:
    packets = base(random)
    for _ in range(random.choice((1, 2, 3, 5, 8))):
        random.choice(EDITS)(packets, random)
    return packets[: 6 * _LONGEST_TALK]
