"""Reassembles IP fragments into datagrams. The store is bounded in bytes and in time, and drops the oldest datagram
first. Datagrams that stay incomplete are reported, and fragments that can't belong to one. The cost of a fragment
doesn't depend on how many wait."""

import struct
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkascope.capture.base.problems import Problems
from kafkascope.limits import MAX_FRAGMENT_BYTES, MAX_FRAGMENT_SECONDS

# Memory of a fragment and of a datagram besides their bytes, measured: a million empty ones count too.
_OVERHEAD, _DATAGRAM_OVERHEAD = 256, 1_024
# No fragmented datagram is longer (RFC 791, RFC 8200 4.5); a jumbo payload is never fragmented (RFC 2675, 3).
LONGEST_DATAGRAM = 65_535


@dataclass(frozen=True, slots=True)
class Datagram:
    """A reassembled datagram as one packet of link type raw IP, whose length on the wire was `original`."""

    packet: bytes
    original: int


class DatagramKey(NamedTuple):
    """Identifies a datagram. A tuple, because it is compared for each fragment."""

    version: int
    identification: int
    protocol: int
    addresses: tuple[int, int, int, int]


@dataclass(slots=True)
class _PartialDatagram:
    first_ns: int
    place: int
    offset: int
    cost: int = _DATAGRAM_OVERHEAD
    total: int | None = None
    covered: "_ByteRanges" = field(default_factory=lambda: _ByteRanges())
    pieces: dict[int, tuple[bytes, int]] = field(default_factory=dict)  # by offset: bytes, length on the wire


class FragmentStore:
    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        # Ordered: finding the first entry of a plain dict walks over all that were removed before it.
        self._waiting: OrderedDict[DatagramKey, _PartialDatagram] = OrderedDict()
        self._cost = 0

    def add(
        self,
        key: DatagramKey,
        position: int,
        more: bool,
        data: bytes,
        length: int,
        time_ns: int,
        place: int,
        offset: int,
    ) -> Datagram | None:
        """The whole datagram, if this fragment completes it. `position` is its place in the datagram; `place` and
        `offset` are its packet's number and place in the file."""
        if position + length > LONGEST_DATAGRAM:
            detail = f"a fragment ends at byte {position + length} of its IP datagram, {LONGEST_DATAGRAM} are possible"
            self._problems.add("fragments", detail, offset, len(data), place)
            return None
        waiting = self._waiting.get(key)
        if waiting is not None and time_ns - waiting.first_ns > MAX_FRAGMENT_SECONDS * 1_000_000_000:
            self._give_up(key)
            waiting = None
        if waiting is None:
            waiting = self._waiting[key] = _PartialDatagram(time_ns, place, offset)
            self._cost += waiting.cost
        known = waiting.pieces.get(position)
        if known is None or known[1] < length:
            # Of two fragments at one position the longer counts; where others overlap, the lower position does.
            waiting.pieces[position] = (data, length)
            waiting.covered.add(position, position + length)
            cost = len(data) + _OVERHEAD - (len(known[0]) + _OVERHEAD if known else 0)
            waiting.cost += cost
            self._cost += cost
        if not more:
            waiting.total = position + length
        if waiting.total is not None and waiting.covered.reaches(waiting.total):
            whole = _assemble(waiting.pieces, waiting.total)
            self._forget(key)
            return Datagram(_header(key, waiting.total) + whole, _header_bytes(key) + waiting.total)
        while self._cost > MAX_FRAGMENT_BYTES:
            self._give_up(next(iter(self._waiting)))
        return None

    def give_up_old(self, now_ns: int) -> None:
        limit = MAX_FRAGMENT_SECONDS * 1_000_000_000
        for key in [key for key, waiting in self._waiting.items() if now_ns - waiting.first_ns > limit]:
            self._give_up(key)

    def give_up_all(self) -> None:
        for key in list(self._waiting):
            self._give_up(key)

    def _forget(self, key: DatagramKey) -> _PartialDatagram:
        waiting = self._waiting.pop(key)
        self._cost -= waiting.cost
        return waiting

    def _give_up(self, key: DatagramKey) -> None:
        waiting = self._forget(key)
        lost = sum(len(data) for data, _ in waiting.pieces.values())
        detail = f"{len(waiting.pieces)} fragments of an IP datagram, the rest did not come"
        self._problems.add("fragments", detail, waiting.offset, lost, waiting.place)


class _ByteRanges:
    """The bytes of a datagram that have come, as ranges in order that neither overlap nor touch."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def reaches(self, total: int) -> bool:
        """Whether no byte is missing before `total`."""
        return bool(self._starts) and self._starts[0] == 0 and self._ends[0] >= total


def _assemble(pieces: dict[int, tuple[bytes, int]], total: int) -> bytes:
    """All bytes before the first that a snap length cut, from pieces that leave no gap before `total`."""
    out = bytearray()
    reached = 0
    for position in sorted(pieces):
        data, length = pieces[position]
        if position > reached:
            break
        if len(out) == reached:
            out += data[reached - position :]
        reached = max(reached, position + length)
    return bytes(out[:total])


def _header_bytes(key: DatagramKey) -> int:
    return 20 if key.version == 4 else 40


def _header(key: DatagramKey, total: int) -> bytes:
    """The datagram's header without options and fragment fields; a length that does not fit is 0, as with offload."""
    packed = struct.pack(">4q", *key.addresses)
    if key.version == 4:
        length = total + 20 if total + 20 <= LONGEST_DATAGRAM else 0
        return struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0, 64, key.protocol, 0) + packed[12:16] + packed[28:32]
    return struct.pack(">IHBB", 0x6000_0000, total, key.protocol, 64) + packed
