"""Aggregates the timeline of a streams group into rows of `streams_group_health`, one per minute with events.

States and counts are those at the end of the minute, or of the recording for the last one; sums and lists cover the
minute. The rows are made from the finished timeline, because a crash is detected only later: its pause belongs to the
minute in which the member fell silent.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Generic, TypeVar

from kafkascope.health.streams.events import StreamsEvent
from kafkascope.health.streams.rows import StreamsTask, StreamsTimeline
from kafkascope.health.streams.timeline import MINUTE_US, SESSION_TIMEOUT_MS, timeline_of

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class StreamsGroupHealth:
    """One group in one minute."""

    group_id: str
    minute_at: int
    state: str | None  # as last described; Empty once the last member has left
    group_epoch: int | None
    assignment_epoch: int | None
    topology_epoch: int | None
    members: int
    member_epoch_min: int | None
    member_epoch_max: int | None
    joined: int
    left: int
    lost: int
    fenced: int
    lost_member_ids: tuple[str, ...]
    endpoints: tuple[str, ...]
    tasks: int  # known so far
    active_tasks: int
    standby_tasks: int
    warmup_tasks: int
    moves: int
    pause_total_ms: int
    pause_max_ms: int
    unheld_tasks: int
    unheld_ms: int  # sum over all tasks, within the minute
    unheld_task_ids: tuple[str, ...]  # those of the minute
    standbys_missing: int | None  # None if the configured number is unknown
    warmups_dropped: int  # ended in the minute without becoming active
    warmup_oldest_ms: int | None
    statuses: tuple[str, ...]
    status_details: tuple[str, ...]
    heartbeats: int
    errors: int
    shutdown_requests: int
    heartbeat_interval_ms: int | None


def rows_of(
    events: Iterable[StreamsEvent], session_timeout_ms: int = SESSION_TIMEOUT_MS
) -> Iterator[StreamsGroupHealth]:
    """The rows of one group, by minute."""
    timeline = timeline_of(events, session_timeout_ms)
    if timeline is not None:
        yield from health_of(timeline)


def health_of(timeline: StreamsTimeline) -> Iterator[StreamsGroupHealth]:
    """The same rows, from a finished timeline."""
    sweep = _Sweep(timeline)
    for minute in sorted(timeline.minutes):
        yield sweep.row(minute)


class _Window(Generic[Row]):
    """Rows with a start and an end; returns those that overlap each successive minute."""

    __slots__ = ("_at", "_open", "_rows")

    def __init__(self, rows: Iterable[tuple[int, int | None, Row]]) -> None:
        self._rows = sorted(rows, key=itemgetter(0))
        self._open: list[tuple[int, int | None, Row]] = []
        self._at = 0

    def within(self, start: int, end: int) -> list[tuple[int, int | None, Row]]:
        reach = bisect_left(self._rows, end, lo=self._at, key=itemgetter(0))
        self._open += self._rows[self._at : reach]
        self._at = reach
        self._open = [row for row in self._open if row[1] is None or row[1] >= start]
        return self._open


class _Sweep:
    """Walks the timeline forwards once. A row that ends in the minute's last instant or later is there at its end."""

    def __init__(self, timeline: StreamsTimeline) -> None:
        self.timeline = timeline
        self.tasks = _Window((row.from_at, row.to_at, row) for row in timeline.tasks)
        self.members = _Window((row.from_at, row.to_at, row) for row in timeline.members)
        self.unheld = _Window((row.from_at, row.to_at, row) for row in timeline.unheld if row.known)
        self.statuses = _Window((row.from_at, row.to_at, row) for row in timeline.statuses)
        self.moves = _Window((row.taken_at, row.taken_at, row) for row in timeline.moves)
        self.lost = _Window((row.last_seen_at, row.last_seen_at, row) for row in timeline.lost)
        self.changes = sorted(timeline.changes, key=lambda change: change.at)
        self.at = 0
        self.described_at = self.gone_at = 0
        self.now: dict[str, dict[str, int | str | None]] = {}
        self.known: dict[str, set[int]] = {}

    def row(self, minute: int) -> StreamsGroupHealth:
        timeline, start = self.timeline, minute * MINUTE_US
        end = start + MINUTE_US
        last = min(end, timeline.last_at + 1)  # an open interval extends past the recording's last instant
        while self.at < len(self.changes) and self.changes[self.at].at < end:
            change = self.changes[self.at]
            self.now.setdefault(change.what, {})[change.key] = change.value
            self.described_at = change.at if change.what == "state" else self.described_at
            self.at += 1

        spans = self.members.within(start, end)
        there = [span for _, to_at, span in spans if to_at is None or to_at >= last]
        self.gone_at = max([self.gone_at, *(to_at for _, to_at, _ in spans if to_at is not None and to_at < end)])
        emptied = not there and self.gone_at > self.described_at
        ended = [span.ended_by for _, to_at, span in spans if to_at is not None and to_at < end]
        epochs = [
            epoch for span in there if isinstance(epoch := self.now.get("member_epoch", {}).get(span.member_id), int)
        ]

        intervals = self.tasks.within(start, end)
        held = [task for _, to_at, task in intervals if to_at is None or to_at >= last]
        roles = Counter(task.role for task in held)
        warmups = [task.from_at for task in held if task.role == "warmup"]
        dropped = [
            task
            for _, to_at, task in intervals
            if task.role == "warmup" and to_at is not None and to_at < end and task.ended_by != "promoted"
        ]
        gaps = self.unheld.within(start, end)
        for _, _, task in intervals:
            self.known.setdefault(task.subtopology_id, set()).add(task.partition)
        for _, _, gap in gaps:
            self.known.setdefault(gap.subtopology_id, set()).add(gap.partition)

        moves = [move for _, _, move in self.moves.within(start, end)]
        pauses = [move.pause_ms for move in moves]
        statuses = [status for _, _, status in self.statuses.within(start, end)]
        heartbeats, _, errors, shutdowns = timeline.minutes[minute]
        return StreamsGroupHealth(
            group_id=timeline.group_id,
            minute_at=start,
            state="Empty" if emptied else self._text("state"),
            group_epoch=self._number("group_epoch"),
            assignment_epoch=self._number("assignment_epoch"),
            topology_epoch=self._number("topology_epoch"),
            members=len(there),
            member_epoch_min=min(epochs, default=None),
            member_epoch_max=max(epochs, default=None),
            joined=sum(span.joined and span.from_at >= start for _, _, span in spans),
            left=ended.count("left"),
            lost=ended.count("lost"),
            fenced=ended.count("fenced"),
            lost_member_ids=tuple(row.member_id for _, _, row in self.lost.within(start, end)),
            endpoints=tuple(sorted(span.endpoint for span in there if span.endpoint)),
            tasks=sum(map(len, self.known.values())),
            active_tasks=roles["active"],
            standby_tasks=roles["standby"],
            warmup_tasks=roles["warmup"],
            moves=sum(move.from_member_id != move.to_member_id for move in moves),
            pause_total_ms=sum(pauses),
            pause_max_ms=max(pauses, default=0),
            unheld_tasks=sum(to_at is None or to_at >= last for _, to_at, _ in gaps),
            unheld_ms=sum(min(to_at or last, last) - max(from_at, start) for from_at, to_at, _ in gaps) // 1000,
            unheld_task_ids=tuple(sorted({f"{gap.subtopology_id}_{gap.partition}" for _, _, gap in gaps})),
            standbys_missing=self._standbys_missing(held) if there else 0,
            warmups_dropped=len(dropped),
            warmup_oldest_ms=(last - min(warmups)) // 1000 if warmups else None,
            statuses=tuple(dict.fromkeys(status.name for status in statuses)),
            status_details=tuple(dict.fromkeys(status.detail for status in statuses)),
            heartbeats=heartbeats,
            errors=errors,
            shutdown_requests=shutdowns,
            heartbeat_interval_ms=self._number("interval"),
        )

    def _standbys_missing(self, held: list[StreamsTask]) -> int | None:
        goals = self.now.get("standby_goal")
        if goals is None:
            return None
        counts = Counter((task.subtopology_id, task.partition) for task in held if task.role == "standby")
        return sum(
            max(0, goal - counts[subtopology, partition])
            for subtopology, goal in goals.items()
            if isinstance(goal, int)
            for partition in self.known.get(subtopology, ())
        )

    def _number(self, name: str) -> int | None:
        value = self.now.get(name, {}).get("")
        return value if isinstance(value, int) else None

    def _text(self, name: str) -> str | None:
        value = self.now.get(name, {}).get("")
        return value if isinstance(value, str) else None
