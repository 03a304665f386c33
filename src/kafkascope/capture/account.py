"""What was read, what was lost and why: counted while a recording is read, told at its end."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kafkascope.capture.exchanges import ExchangeBatch
from kafkascope.capture.flow import LOST, Connection, Frames, Problem
from kafkascope.capture.headers import SIZE
from kafkascope.capture.pairing import STATUSES
from kafkascope.capture.problems import joined

# Problems of one kind are counted, and the first few kept to show.
MOST_KEPT = 5


@dataclass(slots=True)
class Account:
    """`kept` has the file beside each problem. `forgotten` are connections that are no longer among `connections`, as
    `protocols` has them."""

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
            # Packets are counted for each piece of a file; the file has them together.
            for number, (file, before) in enumerate(kept):
                whole = joined(before, problem) if file == self.file else None
                if whole is not None:
                    kept[number] = (file, whole)
                    break
            else:
                self.problems[problem.kind] += 1
                if len(kept) < MOST_KEPT:
                    kept.append((self.file, problem))

    def add_times(self, times: npt.NDArray[np.int64]) -> None:
        if len(times):
            first, last = int(times.min()), int(times.max())
            self.first_ns = first if self.first_ns is None else min(self.first_ns, first)
            self.last_ns = last if self.last_ns is None else max(self.last_ns, last)

    def add_frames(self, frames: Frames) -> None:
        lost = frames.kind == LOST
        self.frames += int((frames.kind < LOST).sum())
        self.lost_places += int(lost.sum())
        self.lost_bytes += int(frames.lost[lost].sum())

    def add_ended(self, other: "Account") -> None:
        """What was found when some of the connections were told to their end."""
        self.frames += other.frames
        self.lost_places += other.lost_places
        self.lost_bytes += other.lost_bytes
        self.lost_answers += other.lost_answers

    def add_batch(self, batch: ExchangeBatch) -> None:
        self.exchanges += len(batch)
        for status, count in enumerate(np.bincount(batch.status, minlength=len(STATUSES)).tolist()):
            if count:
                self.statuses[STATUSES[status]] += count
        if batch.sized:
            for rows in (batch.request, batch.response):
                self.exchange_bytes += int(batch.rows[rows[rows >= 0], SIZE].sum())

    def protocols(self) -> dict[str, tuple[int, int]]:
        """Protocol to (connections, bytes)."""
        found = dict(self.forgotten)
        for connection in self.connections:
            number, size = found.get(connection.protocol, (0, 0))
            found[connection.protocol] = (number + 1, size + sum(connection.bytes_seen))
        return found
