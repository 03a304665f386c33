"""A seed in, the packets of TCP connections out as a recording may have them, with the streams that they carry: lost,
late, twice, overlapping, cut, wrapped round, on reused ports, one direction behind the other. What is to be seen of
each stream is found byte by byte, by the rule alone that the first copy wins."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from kafkascope.capture.base.flow import ACK, FIN, RST, SYN, Endpoints, Flows, Segments

WORD = 1 << 32
Message = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class Packet:
    """`at` is the offset of its payload in the stream of its connection."""

    connection: int
    flow: int
    direction: int
    sequence: int
    flags: int
    payload: bytes
    wire_length: int
    time: int
    acknowledgement: int
    at: int
    again: bool = False


@dataclass(slots=True)
class Truth:
    """One direction of one connection as the recording shows it: None is a byte that is not there."""

    sent: bytes
    base: int = 0  # of the first byte shown
    shown: list[int | None] = field(default_factory=list)
    conflicts: int = 0
    repeated: int = 0
    single: int = 0  # of those, in packets of one byte, which may be taken for keep-alives
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Recording:
    packets: list[Packet]
    truths: list[tuple[Truth, Truth]]
    flows: Flows

    def segments(self, first: int = 0, last: int | None = None) -> Segments:
        return segments(self.packets[first:last], first)

    def batches(self, size: int) -> Iterator[Segments]:
        for first in range(0, len(self.packets), size):
            yield self.segments(first, first + size)


@dataclass(frozen=True, slots=True)
class Faults:
    """Chances of a packet, but for those that are of a whole recording."""

    lost_on_wire: float = 0.0  # sent again later
    lost_by_recorder: float = 0.0  # never seen
    twice: float = 0.0
    overlap: float = 0.0
    other_bytes: float = 0.0
    displaced: int = 0  # by how many places at the most
    behind: int = 0  # direction 1 comes this many places late
    snap_length: int | None = None
    keep_alive: float = 0.0
    no_start: bool = False
    one_direction: bool = False
    reset: bool = False
    no_end: bool = False


def endpoints(number: int) -> Endpoints:
    return Endpoints(b"\0" * 10 + b"\xff\xff\x0a\0\0\1", 40_000 + number, b"\0" * 10 + b"\xff\xff\x0a\0\0\2", 9092)


def segments(packets: Sequence[Packet], first: int = 0) -> Segments:
    lengths = [len(packet.payload) for packet in packets]
    # A byte in front, so that a start of 0 is not right by chance.
    data = np.frombuffer(bytearray(b"\xee" + b"".join(packet.payload for packet in packets)), np.uint8)
    starts = np.cumsum([1, *lengths])[:-1]
    return Segments(
        data=data,
        flow=np.array([packet.flow for packet in packets], np.int32),
        direction=np.array([packet.direction for packet in packets], np.uint8),
        sequence=np.array([packet.sequence for packet in packets], np.int64),
        flags=np.array([packet.flags for packet in packets], np.uint8),
        start=np.array(starts, np.int64),
        length=np.array(lengths, np.int32),
        wire_length=np.array([packet.wire_length for packet in packets], np.int32),
        time_ns=np.array([packet.time for packet in packets], np.int64),
        packet=np.arange(first, first + len(packets), dtype=np.int64),
        acknowledgement=np.array([packet.acknowledgement for packet in packets], np.int64),
    )


class _Wire:
    """One connection's packets in the order in which they leave: a sender that sends again, a receiver that
    acknowledges what it has."""

    def __init__(self, random: Random, number: int, flow: int, faults: Faults, time: int, used: set[int]) -> None:
        self.random = random
        self.number = number
        self.flow = flow
        self.faults = faults
        self.time = time
        wraps = random.random() < 0.5
        self.initial = [(WORD - random.randint(0, 3_000)) % WORD if wraps else random.randrange(WORD) for _ in range(2)]
        while used & set(self.initial):
            self.initial = [random.randrange(WORD) for _ in range(2)]
        used.update(self.initial)
        self.sent = [bytearray(), bytearray()]
        self.has = [bytearray(), bytearray()]  # which bytes the receiver has
        self.reached = [0, 0]
        self.packets: list[Packet] = []
        self.recent: tuple[list[tuple[int, int]], ...] = ([], [])  # (packet number, start) of segments
        self.waiting: list[tuple[int, int, int, int]] = []  # (packet number that brings it, direction, start, end)

    def put(self, direction: int, flags: int, at: int, payload: bytes = b"", *, again: bool = False) -> Packet:
        # More than a millisecond apart: what comes twice within that is one packet recorded twice.
        self.time += self.random.randint(1_100_000, 3_000_000)
        acknowledgement = (self.initial[1 - direction] + 1 + self.reached[1 - direction]) % WORD
        packet = Packet(
            self.number, self.flow, direction, (self.initial[direction] + 1 + at) % WORD, flags, payload, len(payload),
            self.time, acknowledgement if flags & ACK else -1, at, again,
        )  # fmt: skip
        self.packets.append(packet)
        return packet

    def syn(self) -> None:
        for direction, flags in ((0, SYN), (1, SYN | ACK)):
            packet = self.put(direction, flags, -1)
            self.packets[-1] = replace(packet, at=0)
        self.put(0, ACK, 0)

    def receive(self, direction: int, start: int, end: int) -> None:
        has = self.has[direction]
        has.extend(bytes(end - len(has)) if end > len(has) else b"")
        has[start:end] = b"\1" * (end - start)
        hole = has.find(0, self.reached[direction])
        self.reached[direction] = len(has) if hole < 0 else hole

    def send(self, direction: int, message: bytes) -> None:
        random = self.random
        at = len(self.sent[direction])
        self.sent[direction] += message
        end = len(self.sent[direction])
        size = random.choice((1, 7, 100, 536, 1448, 1448, 1448, 65_000))
        if len(message) > 200 * size:
            size = 1448
        while at < end:
            stop = min(end, at + random.randint(1, size) if size < 1448 else at + size)
            self.segment(direction, at, stop)
            at = stop
        if random.random() < 0.5:
            self.put(1 - direction, ACK, len(self.sent[1 - direction]))
        if random.random() < self.faults.keep_alive:
            garbage = random.choice((b"", b"\0"))
            self.put(direction, ACK, end - 1, garbage)

    def segment(self, direction: int, start: int, end: int, *, again: bool = False) -> None:
        self.put(direction, ACK, start, bytes(self.sent[direction][start:end]), again=again)
        self.recent[direction].append((len(self.packets), start))
        # No sender goes back behind what was acknowledged long ago.
        near = [at for number, at in self.recent[direction][-6:] if number > len(self.packets) - 9]
        back = min(start, self.random.choice(near) + self.random.randint(0, 50))
        if not again and self.random.random() < self.faults.lost_on_wire:
            due = len(self.packets) + self.random.randint(1, 12)
            overlaps = self.random.random() < self.faults.overlap
            self.waiting.append((due, direction, back if overlaps else start, end))
            if self.random.random() < 0.5:
                self.packets.pop()  # lost before the recorder
        else:
            self.receive(direction, start, end)
            if not again and self.random.random() < self.faults.overlap:
                self.waiting.append((len(self.packets) + self.random.randint(1, 9), direction, back, end))
        due_now = [item for item in self.waiting if item[0] <= len(self.packets)]
        self.waiting = [item for item in self.waiting if item[0] > len(self.packets)]
        for _, way, first, last in due_now:
            self.segment(way, first, last, again=True)

    def settle(self) -> None:
        for _, direction, start, end in self.waiting:
            self.segment(direction, start, end, again=True)
        self.waiting = []

    def end(self) -> None:
        if self.faults.reset:
            self.put(self.random.randrange(2), RST | ACK, 0)
            last = self.packets[-1]
            self.packets[-1] = replace(last, at=len(self.sent[last.direction]))
            at = self.packets[-1].at
            self.packets[-1] = replace(self.packets[-1], sequence=(self.initial[last.direction] + 1 + at) % WORD)
        elif not self.faults.no_end:
            for direction in self.random.sample((0, 1), 2):
                self.put(direction, FIN | ACK, len(self.sent[direction]))


def record(random: Random, conversations: Sequence[Sequence[Message]], faults: Faults, flow: int = 0) -> Recording:
    """Connections one after another on one flow."""
    packets: list[Packet] = []
    truths = []
    time = random.randint(0, 10**18)
    used: set[int] = set()
    for number, conversation in enumerate(conversations):
        wire = _Wire(random, number, flow, faults, time, used)
        wire.syn()
        for direction, message in conversation:
            wire.send(direction, message)
        wire.settle()
        wire.end()
        time = wire.time + 10**9
        packets += _as_recorded(random, wire, faults)
        truths.append((Truth(bytes(wire.sent[0])), Truth(bytes(wire.sent[1]))))
    for number, pair in enumerate(truths):
        _see([packet for packet in packets if packet.connection == number], pair)
    flows = Flows([endpoints(index) for index in range(flow + 1)])
    return Recording(packets, truths, flows)


def _as_recorded(random: Random, wire: _Wire, faults: Faults) -> list[Packet]:
    seen: list[tuple[float, Packet]] = []
    begun = [not faults.no_start] * 2
    for place, packet in enumerate(wire.packets):
        opening = packet.flags & SYN or (place < 3 and not packet.payload)
        begun[packet.direction] |= len(packet.payload) > 1
        if not begun[packet.direction]:
            continue
        if faults.one_direction and packet.direction == 1:
            continue
        ending = packet.flags & (FIN | RST)
        if not opening and not ending and random.random() < faults.lost_by_recorder:
            continue
        kept = packet
        if faults.snap_length is not None:
            kept = replace(kept, payload=kept.payload[: faults.snap_length])
        if kept.payload and kept.again and random.random() < faults.other_bytes:
            changed = bytearray(kept.payload)
            changed[random.randrange(len(changed))] ^= random.randint(1, 255)
            kept = replace(kept, payload=bytes(changed))
        # The start and the end keep their places: what comes before the SYN or after the RST is told elsewhere.
        moves = 0 if opening or ending else random.random() * faults.displaced
        late = faults.behind if packet.direction and not opening and not ending else 0
        seen.append((place + moves + late if not ending else len(wire.packets) + faults.behind + place, kept))
        if random.random() < faults.twice:
            twin = replace(kept, time=kept.time + random.randint(0, 400_000), again=True)
            seen.append((seen[-1][0] + 0.5, twin))
    return [packet for _, packet in sorted(seen, key=lambda item: item[0])]


NOTHING, CUT = -2, -1


def _see(packets: Iterable[Packet], truths: tuple[Truth, Truth]) -> None:
    """Fills in what the packets show, in their order. Behind a RST there is only what was known to be missing."""
    first: list[Packet | None] = [None, None]
    shown = [np.full(len(truth.sent), NOTHING, np.int16) for truth in truths]
    ends = [0, 0]
    acknowledged = [0, 0]
    closed = [False, False]
    given_up = [0, 0]
    for packet in packets:
        way, other = packet.direction, first[1 - packet.direction]
        first[way] = first[way] if packet.flags & RST else first[way] or packet
        if packet.acknowledgement >= 0 and other is not None and not closed[1 - way]:
            start = other.sequence + (1 if other.flags & SYN else 0) - other.at
            apart = (packet.acknowledgement - start) % WORD
            acknowledged[1 - way] = max(acknowledged[1 - way], apart if apart < WORD // 2 else 0)
        if packet.flags & RST:
            for side in (0, 1):
                until = max(acknowledged[side], packet.at if side == way else 0)
                closed[side] |= first[side] is not None and until - ends[side] <= 1
                given_up[side] = ends[side]
        if packet.flags & RST or closed[way]:
            continue
        truths[way].ended |= bool(packet.flags & FIN)
        if packet.wire_length or packet.flags & FIN:
            ends[way] = max(ends[way], packet.at + packet.wire_length)
        new = np.full(packet.wire_length, CUT, np.int16)
        new[: len(packet.payload)] = np.frombuffer(packet.payload, np.uint8)
        shown_before = shown[way][packet.at : packet.at + packet.wire_length]
        again = (shown_before >= 0) & (new >= 0)
        again[: max(0, _at(first[way]) - packet.at)] = False
        truths[way].repeated += int(again.sum())
        truths[way].single += int(again.sum()) if packet.wire_length == 1 else 0
        truths[way].conflicts += int((again & (shown_before != new)).sum())
        fresh = (shown_before == NOTHING) & (np.arange(packet.at, packet.at + packet.wire_length) >= given_up[way])
        shown_before[fresh] = new[fresh]
    for way, truth in enumerate(truths):
        if first[way] is not None:
            base = _at(first[way])
            end = max(ends[way], base)
            if not truth.ended and acknowledged[way] - end > 1:
                end = acknowledged[way]
            truth.base = base
            truth.shown = [byte if byte >= 0 else None for byte in shown[way][base:end].tolist()]


def _at(packet: Packet | None) -> int:
    return packet.at if packet is not None else 0


def random_faults(random: Random, connections: int) -> Faults:
    """All kinds mixed, each absent in about half of the recordings."""

    def maybe(most: float) -> float:
        return random.choice((0.0, random.random() * most))

    single = connections == 1
    return Faults(
        lost_on_wire=maybe(0.3),
        lost_by_recorder=maybe(0.2),
        twice=random.choice((0.0, 0.0, 0.1, 1.0)),
        overlap=maybe(0.4),
        other_bytes=maybe(0.5),
        displaced=random.choice((0, 0, 2, 8)),
        behind=random.choice((0, 0, 3, 10)),
        snap_length=random.choice((None, None, None, 60, 500)),
        keep_alive=0.0,
        no_start=single and random.random() < 0.2,
        one_direction=random.random() < 0.1,
        reset=random.random() < 0.2,
        no_end=random.random() < 0.2,
    )


def random_conversation(random: Random) -> list[Message]:
    sizes = (1, 4, 60, 300, 3_000, 9_000)
    return [(random.randrange(2), random.randbytes(random.choice(sizes))) for _ in range(random.randint(0, 14))]
