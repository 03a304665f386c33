"""Reads ranges of streams again from the recordings that hold them. The first copy of a byte wins, as in reassembly; a
range whose bytes are gone stays empty."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import SYN, Bytes, Endpoints, Flows, Packets, Segments
from kafkascope.capture.files.packets import read_packets
from kafkascope.capture.files.source import Input
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.errors import InputError
from kafkascope.limits import MAX_EARLY_TOTAL_BYTES, MAX_SEARCHED_TOTAL_BYTES, MAX_UNFINISHED_BYTES, MAX_WAITING_BYTES

# No run leaves more than it may hold in memory.
_MOST_BYTES = MAX_WAITING_BYTES + MAX_UNFINISHED_BYTES + MAX_SEARCHED_TOTAL_BYTES + MAX_EARLY_TOTAL_BYTES
_WORD = 1 << 32
_FAR = 1 << 62

Reopen = Callable[[str], Input | None]


class ReopenTracker:
    """A `Reopen` that records the outcome: `lost` are connections with bytes that could not be read again, `restored`
    are exchanges whose frame without a partner was read again."""

    def __init__(self, find: Reopen) -> None:
        self._find = find
        self.lost: set[str] = set()
        self.restored: set[str] = set()

    def __call__(self, uri: str) -> Input | None:
        return self._find(uri)


@dataclass(slots=True)
class _Range:
    low: int
    high: int
    place: int
    data: Bytes
    have: npt.NDArray[np.bool_]
    missing: int

    def fill(self, first: int, last: int, data: Bytes) -> int:
        """Adds the bytes that are missing; how many those were."""
        new = ~self.have[first - self.low : last - self.low]
        self.data[first - self.low : last - self.low][new] = data[new]
        self.have[first - self.low : last - self.low] = True
        new_bytes = int(new.sum())
        self.missing -= new_bytes
        return new_bytes


@dataclass(slots=True)
class _Stream:
    """The ranges of one direction of one connection, without overlaps; `base` is the sequence number of offset 0."""

    flow: int
    direction: int
    base: int
    ranges: list[_Range] = field(default_factory=list)
    lows: list[int] = field(default_factory=list)

    def sort(self) -> None:
        self.ranges.sort(key=lambda range_: range_.low)
        self.lows = [range_.low for range_ in self.ranges]

    def over(self, low: int, high: int) -> Iterator[_Range]:
        for at in range(max(bisect_right(self.lows, low) - 1, 0), bisect_left(self.lows, high)):
            yield self.ranges[at]


_Layer = tuple[dict[int, _Stream], npt.NDArray[np.int64]]


class RereadRanges:
    """The ranges to read again: first `add` all of them, then `fetch`, then `take` their bytes."""

    def __init__(self, ends: list[Endpoints]) -> None:
        self._ends = ends
        self._streams: dict[int, _Stream] = {}
        self.missing = 0
        self.packets_read = 0

    def add(self, stream: int, flow: int, base: int, low: int, high: int, place: int) -> None:
        """No byte of the range is in a packet before `place`."""
        if low < high and self.missing + high - low <= _MOST_BYTES:
            known = self._streams.setdefault(stream, _Stream(flow, stream & 1, base))
            size = high - low
            known.ranges.append(_Range(low, high, place, np.zeros(size, np.uint8), np.zeros(size, np.bool_), size))
            self.missing += size

    def take(self, stream: int, low: int, high: int) -> bytes | None:
        """The bytes of a range, None if one of them was not found."""
        if low >= high:
            return b""
        for range_ in self._streams[stream].over(low, high) if stream in self._streams else ():
            if range_.low <= low and high <= range_.high and range_.have[low - range_.low : high - range_.low].all():
                return range_.data[low - range_.low : high - range_.low].tobytes()
        return None

    def fetch(self, files: Iterable[tuple[str, int]], reopen: Reopen) -> None:
        """`files` are (uri, number of its first packet), in order. A file may have more packets now than the numbers up
        to the next file allow: a range whose place is in a later file takes nothing from it."""
        files = list(files)
        for stream in self._streams.values():
            stream.sort()
        ends = [*(first for _, first in files[1:]), _FAR]
        for (uri, first), end in zip(files, ends, strict=False):
            # No range that is still missing begins before its place.
            place = min((range_.place for range_ in self._ranges() if range_.missing), default=_FAR)
            if place >= end:
                continue
            source = reopen(uri)
            if source is not None:
                try:
                    self._file(source, first, end)
                except (InputError, OSError):
                    continue

    def _ranges(self) -> Iterable[_Range]:
        return (range_ for stream in self._streams.values() for range_ in stream.ranges)

    def _file(self, source: Input, first: int, end: int) -> None:
        flows = Flows(list(self._ends))
        reader = SegmentReader(flows)
        layers = self._layers(end)
        place = min((range_.place for range_ in self._ranges() if range_.missing), default=_FAR)
        for packets in read_packets(source):
            packets = after(packets, place - first)
            if len(packets.start):
                self.packets_read += len(packets.start)
                segments = reader.feed(replace(packets, first=packets.first + first))
                # Flows without ranges are not remembered.
                reader.release(np.arange(len(self._ends), len(flows.ends), dtype=np.int64))
                for layer in layers:
                    self._take_from(segments, layer, end)
                if not any(range_.missing and range_.place < end for range_ in self._ranges()):
                    return

    def _layers(self, end: int) -> list[_Layer]:
        """Tables of the missing ranges: (base, lowest, highest, place) of each flow and direction. Two connections that
        used the same ports one after the other are in two tables."""
        layers: list[_Layer] = []
        for stream in self._streams.values():
            missing = [range_ for range_ in stream.ranges if range_.missing and range_.place < end]
            if not missing:
                continue
            at = 2 * stream.flow + stream.direction
            layer = next((layer for layer in layers if at not in layer[0]), None)
            if layer is None:
                layer = ({}, np.full((2 * len(self._ends), 4), _FAR, np.int64))
                layers.append(layer)
            low, high = min(range_.low for range_ in missing), max(range_.high for range_ in missing)
            layer[0][at] = stream
            layer[1][at] = ((stream.base + low) % _WORD, low, high, min(range_.place for range_ in missing))
        return layers

    def _take_from(self, segments: Segments, layer: _Layer, end: int) -> None:
        streams, table = layer
        mine = np.flatnonzero((segments.flow < len(self._ends)) & (segments.length > 0))
        at = 2 * segments.flow[mine].astype(np.int64) + segments.direction[mine]
        sequence = segments.sequence[mine] + (segments.flags[mine] & SYN != 0)
        apart = (sequence - table[at, 0]) % _WORD
        apart[apart >= _WORD // 2] -= _WORD
        offset = table[at, 1] + apart
        behind = offset + segments.length[mine]
        hit = (offset < table[at, 2]) & (behind > table[at, 1]) & (segments.packet[mine] >= table[at, 3])
        for row in np.flatnonzero(hit).tolist():
            low, high, segment = int(offset[row]), int(behind[row]), int(mine[row])
            start, packet = int(segments.start[segment]) - low, int(segments.packet[segment])
            for range_ in streams[int(at[row])].over(low, high):
                first, last = max(low, range_.low), min(high, range_.high)
                if first < last and range_.missing and range_.place <= packet and range_.place < end:
                    filled = range_.fill(first, last, segments.data[start + first : start + last])
                    self.missing -= filled


def after(packets: Packets, count: int) -> Packets:
    """The packets after the first `count` of the file."""
    skipped = min(max(count - packets.first, 0), len(packets.start))
    if not skipped:
        return packets
    columns: dict[str, Any] = {
        name: getattr(packets, name)[skipped:] for name in ("start", "captured", "original", "time_ns", "link")
    }
    return replace(packets, first=packets.first + skipped, **columns)
