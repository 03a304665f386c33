"""Counts what was read from a recording, what was lost and why."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import Connection, FrameKind, Frames, Problem
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.capture.base.problems import merged
from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.pairing import STATUSES
from kafkascope.capture.frames.headers import Frame
from kafkascope.columnar.compiling.jit import jit

# Problems of one kind are counted, and the first few are kept to be shown.
MOST_KEPT = 5


class FrameCounts(NamedTuple):
    """The counts of one batch. `first_packet` is the earliest packet that any of its frames begins in."""

    frames: int
    lost_places: int
    lost_bytes: int
    first_packet: int


def count_frames(frames: Frames) -> FrameCounts:
    """Counts the frames of a batch that has at least one."""
    return FrameCounts(*_count_frames(frames.kind, frames.lost, frames.packet))


@dataclass(slots=True)
class Account:
    """`kept` are (file, problem). `forgotten` are connections that are no longer among `connections`, in the form of
    `protocols`."""

    files: int = 0
    file: str = ""
    packets: int = 0
    log_lines: int = 0
    log_lines_unread: int = 0
    log_lines_without_time: int = 0
    bytes_read: int = 0
    frames: int = 0
    lost_bytes: int = 0
    lost_places: int = 0
    lost_answers: int = 0
    exchanges: int = 0
    exchange_bytes: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    statuses: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    problem_bytes: Counter[str] = field(default_factory=Counter)
    kept: dict[str, list[tuple[str, Problem]]] = field(default_factory=dict)
    connections: list[Connection] = field(default_factory=list)
    forgotten: dict[str, tuple[int, int]] = field(default_factory=dict)

    def begin(self, file: str) -> None:
        self.files += 1
        self.file = file

    def add_problems(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.problem_bytes[problem.kind] += problem.lost_bytes
            kept = self.kept.setdefault(problem.kind, [])
            # A reader counts packets per batch; here the counts of a file are merged.
            for number, (file, before) in enumerate(kept):
                whole = merged(before, problem) if file == self.file else None
                if whole is not None:
                    kept[number] = (file, whole)
                    break
            else:
                self.problems[problem.kind] += 1 + problem.more
                if len(kept) < MOST_KEPT:
                    kept.append((self.file, problem))

    def add_times(self, times: npt.NDArray[np.int64]) -> None:
        if len(times):
            self.add_span(int(times.min()), int(times.max()))

    def add_span(self, first: int, last: int) -> None:
        self.first_ns = first if self.first_ns is None else min(self.first_ns, first)
        self.last_ns = last if self.last_ns is None else max(self.last_ns, last)

    def add_frames(self, counts: FrameCounts) -> None:
        self.frames += counts.frames
        self.lost_places += counts.lost_places
        self.lost_bytes += counts.lost_bytes

    def add_ended(self, other: "Account") -> None:
        """Adds the results of another reading that read some of the connections to their end."""
        self.frames += other.frames
        self.lost_places += other.lost_places
        self.lost_bytes += other.lost_bytes
        self.lost_answers += other.lost_answers

    def add_batch(self, batch: ExchangeBatch) -> None:
        self.exchanges += len(batch)
        counts = np.zeros(len(STATUSES), np.int64)
        size = _count_batch(batch.rows, batch.request, batch.response, batch.status, counts)
        for status, count in zip(STATUSES, counts.tolist(), strict=True):
            if count:
                self.statuses[status] += count
        if batch.sized:
            self.exchange_bytes += size

    def protocols(self) -> dict[str, tuple[int, int]]:
        """Protocol to (connections, bytes)."""
        protocols = dict(self.forgotten)
        for connection in self.connections:
            number, size = protocols.get(connection.protocol, (0, 0))
            protocols[connection.protocol] = (number + 1, size + sum(connection.bytes_seen))
        return protocols


@jit
def _count_frames(kind: Any, lost: Any, packet: Any) -> Numbers:
    frames = 0
    places = 0
    size = 0
    first = packet[0]
    for row in range(len(kind)):
        first = min(first, packet[row])
        if kind[row] < FrameKind.LOST:
            frames += 1
        # The rest of a frame that was recorded in part is lost.
        if lost[row]:
            places += 1
            size += lost[row]
    return frames, places, size, first


@jit
def _count_batch(rows: Any, request: Any, response: Any, status: Any, counts: Any) -> Number:
    """Counts exchanges by status into `counts`; returns their bytes."""
    size = np.int64(0)
    for index in range(len(status)):
        counts[status[index]] += 1
        if request[index] >= 0:
            size += rows[request[index], Frame.SIZE]
        if response[index] >= 0:
            size += rows[response[index], Frame.SIZE]
    return size
