"""Counts the packets, bytes and frames of each file of a recording. A frame counts in the file of the packet that it
begins in, so the counts don't depend on who reads the files, or in which order."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from kafkascope.capture.base.flow import Connection, FrameKind, Frames, Int64s, PieceKind, Pieces
from kafkascope.capture.base.numbers import Numbers
from kafkascope.capture.exchanges.account import FrameCounts
from kafkascope.capture.exchanges.exchanges import Recordings
from kafkascope.columnar.compiling.jit import jit

_TLS, _UNKNOWN = "tls", "unknown"


@dataclass(slots=True)
class FileTally:
    packets: int = 0
    log_lines: int = 0
    frames: int = 0
    lost_bytes: int = 0
    lost_places: int = 0
    tls_bytes: int = 0
    tcp_bytes: int = 0
    first_ns: int | None = None
    last_ns: int | None = None

    def add_times(self, times: Int64s) -> None:
        if len(times):
            self.add_span(int(times.min()), int(times.max()))

    def add_span(self, first: int, last: int) -> None:
        self.first_ns = first if self.first_ns is None else min(self.first_ns, first)
        self.last_ns = last if self.last_ns is None else max(self.last_ns, last)

    def add(self, other: "FileTally") -> None:
        for field in fields(FileTally):
            if not field.name.endswith("_ns"):
                setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        self.add_times(np.array([time for time in (other.first_ns, other.last_ns) if time is not None], np.int64))


class FileTallies:
    """One tally for each of `recordings`, the first `earlier` of which an earlier run has read. What began there and is
    whole only now counts in the first file of this run; what the end of the recording decides, in the last."""

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings
        self._tallies: list[FileTally] = []
        self.earlier = 0
        # Connection to bytes by file, until its protocol is known.
        self._undecided: dict[int, dict[int, int]] = {}
        self._connections: Sequence[Connection] = ()

    def of(self, file: int) -> FileTally:
        """The tally of a file, by its index among the recordings."""
        while len(self._tallies) <= file:
            self._tallies.append(FileTally())
        return self._tallies[file]

    def add_pieces(self, pieces: Pieces, connections: Sequence[Connection]) -> None:
        """Called once the protocols of connections have been detected as far as possible."""
        self._connections = connections
        if len(pieces.kind):
            self._add_sizes(pieces)
        self._decide()

    def _add_sizes(self, pieces: Pieces) -> None:
        sizes = np.zeros(len(self._connections), np.int64)
        total, first, renewed = _sum_bytes(pieces.kind, pieces.stream, pieces.length, pieces.packet, sizes)
        if renewed:
            for stream in pieces.stream[pieces.kind == PieceKind.RENEWED].tolist():
                self._undecided.pop(stream >> 1, None)
        if total and self._is_of_last(first):
            self._add_bytes(len(self._recordings.uris) - 1, sizes)
        elif total:
            rows = np.flatnonzero(pieces.kind == PieceKind.BYTES)
            for file, some in self._by_file(rows, pieces.packet[rows]):
                self._add_bytes(file, np.bincount(pieces.stream[some] >> 1, pieces.length[some]).astype(np.int64))

    def _add_bytes(self, file: int, sizes: Int64s) -> None:
        tally = self.of(file)
        numbers = np.flatnonzero(sizes)
        for number, size in zip(numbers.tolist(), sizes[numbers].tolist(), strict=True):
            tally.tcp_bytes += size
            protocol = self._connections[number].protocol
            if protocol == _UNKNOWN:
                known = self._undecided.setdefault(number, {})
                known[file] = known.get(file, 0) + size
            elif protocol == _TLS:
                tally.tls_bytes += size

    def _decide(self) -> None:
        decided = [number for number in self._undecided if self._connections[number].protocol != _UNKNOWN]
        for number in decided:
            sizes = self._undecided.pop(number)
            if self._connections[number].protocol == _TLS:
                for file, size in sizes.items():
                    self.of(file).tls_bytes += size

    def add_frames(self, frames: Frames, counts: FrameCounts) -> None:
        if self._is_of_last(counts.first_packet):
            tally = self.of(len(self._recordings.uris) - 1)
            tally.frames += counts.frames
            tally.lost_places += counts.lost_places
            tally.lost_bytes += counts.lost_bytes
            return
        for file, rows in self._by_file(np.arange(len(frames.kind)), frames.packet):
            kinds, tally = frames.kind[rows], self.of(file)
            tally.frames += int((kinds < FrameKind.LOST).sum())
            tally.lost_places += int((frames.lost[rows] > 0).sum())
            tally.lost_bytes += int(frames.lost[rows].sum())

    def add_ended(self, other: "FileTallies") -> None:
        """Adds the tallies of a reading that read some connections of the same files to their end."""
        other._decide()
        for uri, tally in zip(other._recordings.uris, other._tallies, strict=False):
            self.of(self._recordings.uris.index(uri)).add(tally)

    def _is_of_last(self, packet: int) -> bool:
        """Whether a packet, and all that come after it, are of the last file."""
        return packet >= self._recordings.first_packets[len(self._recordings.uris) - 1]

    def _by_file(self, rows: Any, packets: Int64s) -> list[tuple[int, Any]]:
        """(file, the rows whose packet is in it)"""
        if not len(rows):
            return []
        last = len(self._recordings.uris) - 1
        files = np.where(packets < 0, last, self._recordings.place(packets)[0])
        return [(file, rows[files == file]) for file in np.unique(files).tolist()]

    def by_uri(self) -> dict[str, FileTally]:
        """The tallies of the files of this run."""
        self._decide()
        uris = self._recordings.uris
        tallies = {uri: FileTally() for uri in uris[self.earlier :]}
        for uri, tally in zip(uris, self._tallies, strict=False):
            # A run without files only ends what others began.
            target = tallies.get(uri) or next(iter(tallies.values()), None)
            if target is not None:
                target.add(tally)
        return tallies


@jit
def _sum_bytes(kind: Any, stream: Any, length: Any, packet: Any, sizes: Any) -> Numbers:
    """Sums bytes by connection into `sizes`, which has room for all. (all bytes, the first of their packets, how many
    connection numbers were reused)"""
    total = 0
    first = np.int64((1 << 63) - 1)
    renewed = 0
    for row in range(len(kind)):
        if kind[row] == PieceKind.BYTES:
            sizes[stream[row] >> 1] += length[row]
            total += length[row]
            first = min(first, packet[row])
        elif kind[row] == PieceKind.RENEWED:
            renewed += 1
    return total, first, renewed
