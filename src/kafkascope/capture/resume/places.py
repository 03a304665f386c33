"""Converts packet numbers of a run to places that outlive it and back, and notes which packets held late bytes."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import Int64s, PieceKind, Pieces
from kafkascope.capture.exchanges.exchanges import Recordings
from kafkascope.capture.frames.frame_table import Partial
from kafkascope.capture.resume.state import NOWHERE, PACKET_BITS, Carried

_PACKET = (1 << PACKET_BITS) - 1
# Late pieces that are kept until those that nothing depends on are dropped.
MOST_LATE = 65_536


class PlaceWriter:
    """Converts packet numbers to places. `files` are all from the first that is needed to the last one read: bytes
    after a place may be in any of them."""

    def __init__(self, recordings: Recordings, packets: Sequence[int]) -> None:
        self._starts = recordings.first_packets
        first = min((packet for packet in packets if packet >= 0), default=None)
        self._first = len(self._starts) if first is None else bisect_right(self._starts, first) - 1
        self.files = tuple(enumerate(recordings.uris))[self._first :]

    def __call__(self, packet: int) -> int:
        if packet < 0:
            return NOWHERE
        file = bisect_right(self._starts, packet) - 1
        return (file - self._first) << PACKET_BITS | (packet - self._starts[file])


class PlaceReader:
    """Puts the recordings of an earlier run before those of this one; `reader` converts places to packet numbers."""

    def __init__(self, carried: Sequence[Carried], recordings: Recordings) -> None:
        orders: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for connection in carried:
            for order, uri in connection.files:
                orders[uri] = max(order, orders.get(uri, 0))
                sizes[uri] = max(sizes.get(uri, 0), 1)
            for place in _places(connection):
                uri = connection.files[place >> PACKET_BITS][1]
                sizes[uri] = max(sizes[uri], (place & _PACKET) + 1)
        self.uris = sorted(orders, key=lambda uri: (orders[uri], uri))
        self.firsts: dict[str, int] = {}
        self.end = 0
        for uri in self.uris:
            self.firsts[uri] = self.end
            recordings.uris.append(uri)
            recordings.first_packets.append(self.end)
            self.end += sizes[uri]

    def reader(self, carried: Carried) -> Callable[[int], int]:
        firsts = [self.firsts[uri] for _, uri in carried.files]
        return lambda place: -1 if place == NOWHERE else firsts[place >> PACKET_BITS] + (place & _PACKET)


def _places(carried: Carried) -> list[int]:
    places = [carried.place, *(row[6] for row in carried.waiting), *(row[8] for row in carried.waiting)]
    for stream in carried.streams:
        places += [stream.place, *(early[4] for early in stream.early)]
        if stream.state:
            places.append(stream.state[Partial.PACKET])
        if stream.search is not None:
            places += [stream.search.packet, stream.search.place, *(mark[2] for mark in stream.search.marks)]
    if carried.pieces is not None:
        places += [entry[5] for entry in carried.pieces.entries]
    return [place for place in places if place != NOWHERE]


class LatePieces:
    """Pieces whose bytes were in an earlier packet than the bytes before them in their stream."""

    def __init__(self, needed: Callable[[], Int64s]) -> None:
        self._needed = needed
        self._rows: npt.NDArray[np.int64] = np.empty((0, 4), np.int64)  # (stream, offset, end, packet)
        self._most = MOST_LATE

    def note(self, pieces: Pieces, first: int) -> None:
        """`first` is the first packet of the batch, of which no frames are made yet."""
        if len(self._rows):
            renewed = pieces.stream[pieces.kind == PieceKind.RENEWED] >> 1
            if len(renewed):
                self._rows = self._rows[~np.isin(self._rows[:, 0] >> 1, renewed)]
        if len(self._rows) > self._most:
            needed = self._needed()
            self._rows = self._rows[self._rows[:, 2] > needed[self._rows[:, 0]]]
            self._most = max(MOST_LATE, 2 * len(self._rows))
        latest = np.maximum(np.maximum.accumulate(pieces.packet), first)
        late = np.flatnonzero((pieces.packet < latest) & (pieces.kind == PieceKind.BYTES))
        if len(late):
            offset = pieces.offset[late]
            rows = np.stack([pieces.stream[late], offset, offset + pieces.length[late], pieces.packet[late]], axis=1)
            self.add(rows.astype(np.int64))

    def add(self, rows: npt.NDArray[np.int64]) -> None:
        self._rows = np.concatenate([self._rows, rows])

    def by_stream(self) -> dict[int, npt.NDArray[np.int64]]:
        order = self._rows[np.argsort(self._rows[:, 0], kind="stable")]
        streams, starts = np.unique(order[:, 0], return_index=True)
        return dict(zip(streams.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else {}


def earliest(late: npt.NDArray[np.int64] | None, low: int, high: int, packet: int) -> int:
    """The first packet with any of these bytes of a stream; `packet` holds the first byte."""
    if late is None:
        return packet
    over = late[(late[:, 1] < high) & (late[:, 2] > low)]
    return min(packet, int(over[:, 3].min())) if len(over) else packet


def adjacent_merged(ranges: Iterable[tuple[int, int, int]], place: Callable[[int], int]) -> list[tuple[int, int, int]]:
    """(start, end, packet) of byte ranges in order; adjacent ones become one, with the earliest packet."""
    merged: list[tuple[int, int, int]] = []
    for low, high, packet in ranges:
        if merged and merged[-1][1] == low:
            merged[-1] = (merged[-1][0], high, min(merged[-1][2], place(packet)))
        else:
            merged.append((low, high, place(packet)))
    return merged
