"""Ranges of streams in, their bytes out, read again from the recordings that have them. The first copy of a byte wins,
as in reassembly; a range whose bytes are no longer to be had stays empty."""

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

# No run leaves more than it may hold.
_MOST_BYTES = MAX_WAITING_BYTES + MAX_UNFINISHED_BYTES + MAX_SEARCHED_TOTAL_BYTES + MAX_EARLY_TOTAL_BYTES
_WORD = 1 << 32
_FAR = 1 << 62

Reopen = Callable[[str], Input | None]


class Reopening:
    """A `Reopen` that remembers what came of it: `lost` are connections of which something could not be read again,
    `restored` exchanges whose frame without a partner was."""

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
        """How many bytes are new; those that were there stay."""
        new = ~self.have[first - self.low : last - self.low]
        self.data[first - self.low : last - self.low][new] = data[new]
        self.have[first - self.low : last - self.low] = True
        found = int(new.sum())
        self.missing -= found
        return found


@dataclass(slots=True)
class _Stream:
    """Ranges of one direction of one connection, none over another; `base` is the sequence number of offset 0."""

    flow: int
    direction: int
    base: int
    ranges: list[_Range] = field(default_factory=list)
    lows: list[int] = field(default_factory=list)

    def sort(self) -> None:
        self.ranges.sort(key=lambda one: one.low)
        self.lows = [one.low for one in self.ranges]

    def over(self, low: int, high: int) -> Iterator[_Range]:
        for at in range(max(bisect_right(self.lows, low) - 1, 0), bisect_left(self.lows, high)):
            yield self.ranges[at]


_Layer = tuple[dict[int, _Stream], npt.NDArray[np.int64]]


class Wanted:
    """First all that is wanted, then `fetch`, then `take` what was found."""

    def __init__(self, ends: list[Endpoints]) -> None:
        self._ends = ends
        self._streams: dict[int, _Stream] = {}
        self.missing = 0
        self.packets_read = 0

    def want(self, stream: int, flow: int, base: int, low: int, high: int, place: int) -> None:
        """No byte of it lies in a packet before `place`."""
        if low < high and self.missing + high - low <= _MOST_BYTES:
            known = self._streams.setdefault(stream, _Stream(flow, stream & 1, base))
            size = high - low
            known.ranges.append(_Range(low, high, place, np.zeros(size, np.uint8), np.zeros(size, np.bool_), size))
            self.missing += size

    def take(self, stream: int, low: int, high: int) -> bytes | None:
        """None where a byte of it was not found."""
        if low >= high:
            return b""
        for one in self._streams[stream].over(low, high) if stream in self._streams else ():
            if one.low <= low and high <= one.high and one.have[low - one.low : high - one.low].all():
                return one.data[low - one.low : high - one.low].tobytes()
        return None

    def fetch(self, files: Iterable[tuple[str, int]], reopen: Reopen) -> None:
        """`files` are (uri, number of its first packet), in their order. A file may have more packets than there are
        numbers before the next one's: of those that begin in a later file none is taken from it."""
        files = list(files)
        for stream in self._streams.values():
            stream.sort()
        ends = [*(first for _, first in files[1:]), _FAR]
        for (uri, first), end in zip(files, ends, strict=False):
            # Nothing that is still missing begins before its place.
            place = min((one.place for one in self._ranges() if one.missing), default=_FAR)
            if place >= end:
                continue
            source = reopen(uri)
            if source is not None:
                try:
                    self._file(source, first, end)
                except (InputError, OSError):
                    continue

    def _ranges(self) -> Iterable[_Range]:
        return (one for stream in self._streams.values() for one in stream.ranges)

    def _file(self, source: Input, first: int, end: int) -> None:
        flows = Flows(list(self._ends))
        reader = SegmentReader(flows)
        layers = self._layers(end)
        place = min((one.place for one in self._ranges() if one.missing), default=_FAR)
        for packets in read_packets(source):
            packets = after(packets, place - first)
            if len(packets.start):
                self.packets_read += len(packets.start)
                segments = reader.feed(replace(packets, first=packets.first + first))
                # Flows that nobody asks for are not remembered.
                reader.release(np.arange(len(self._ends), len(flows.ends), dtype=np.int64))
                for layer in layers:
                    self._take_from(segments, layer, end)
                if not any(one.missing and one.place < end for one in self._ranges()):
                    return

    def _layers(self, end: int) -> list[_Layer]:
        """Tables of what to look for: (base, lowest, highest, place) of each flow and direction. Two connections that
        had the same ports one after the other stand in two tables."""
        layers: list[_Layer] = []
        for stream in self._streams.values():
            wanted = [one for one in stream.ranges if one.missing and one.place < end]
            if not wanted:
                continue
            at = 2 * stream.flow + stream.direction
            layer = next((layer for layer in layers if at not in layer[0]), None)
            if layer is None:
                layer = ({}, np.full((2 * len(self._ends), 4), _FAR, np.int64))
                layers.append(layer)
            low, high = min(one.low for one in wanted), max(one.high for one in wanted)
            layer[0][at] = stream
            layer[1][at] = ((stream.base + low) % _WORD, low, high, min(one.place for one in wanted))
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
            for one in streams[int(at[row])].over(low, high):
                first, last = max(low, one.low), min(high, one.high)
                if first < last and one.missing and one.place <= packet and one.place < end:
                    found = one.fill(first, last, segments.data[start + first : start + last])
                    self.missing -= found


def after(packets: Packets, count: int) -> Packets:
    """Without those of the first `count` packets of the file."""
    skipped = min(max(count - packets.first, 0), len(packets.start))
    if not skipped:
        return packets
    columns: dict[str, Any] = {
        name: getattr(packets, name)[skipped:] for name in ("start", "captured", "original", "time_ns", "link")
    }
    return replace(packets, first=packets.first + skipped, **columns)
