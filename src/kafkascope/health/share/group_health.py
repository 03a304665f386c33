"""Aggregates the health of a share group by the minute, one `ShareGroupHealth` row per minute with events. Unseen
values are None, never 0.

The kinds of `ShareGroupEvent`, in time order, and the fields that each sets besides `at_us`, `order` and `group_id`:

- `heartbeat`: a ShareGroupHeartbeat, at the request's time: member, `member_epoch` of the request (−1 leaves), and of
  the response `group_epoch` (its member epoch), `assigned` (partitions in its assignment, None is unchanged),
  `error_code`.
- `described`: a group of a ShareGroupDescribe response: `state`, `group_epoch`, `assignment_epoch`, `members`,
  `assigned` (partitions over all members), `error_code`.
- `offsets`: a partition of a DescribeShareGroupOffsets response: topic, partition, `start_offset`, `lag` (−1 is
  unknown).
- `seen`: the recording continues until here.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkascope.health.share.book import DEFAULT_DELIVERY_LIMIT, FOREVER
from kafkascope.health.share.events import Delivery

MINUTE_US = 60_000_000

_Place = tuple[str | None, int]


class ShareGroupEvent(NamedTuple):
    kind: str
    at_us: int
    order: int = 0
    group_id: str = ""
    exchange_id: str | None = None
    member_id: str | None = None
    member_epoch: int | None = None
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    state: str | None = None
    members: int | None = None
    assigned: int | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int = -1
    start_offset: int | None = None
    lag: int | None = None
    error_code: int | None = None


@dataclass(frozen=True, slots=True)
class ShareGroupHealth:
    """Counts are of records. An acquisition counts in its own minute, an outcome in the minute in which the delivery
    ended."""

    group_id: str
    minute_at: int
    state: str | None
    members: int | None
    assignments: int | None
    group_epoch: int | None
    assignment_epoch: int | None
    acquired: int
    redelivered: int
    redeliveries: dict[int, int]  # delivery count, from 2 on, to records acquired with it
    accepted: int
    released: int
    rejected: int
    expired: int
    disconnected: int
    session_closed: int
    moved: int
    renewals: int  # of deliveries that ended in this minute
    acknowledge_p50_us: int | None
    acknowledge_p95_us: int | None
    acknowledge_max_us: int | None
    lag: int | None
    lag_partitions: int
    standing_still: list[str]  # topic-partition
    near_limit: int
    archived: int


@dataclass(slots=True)
class _Minute:
    state: str | None = None
    members: int | None = None
    assignments: int | None = None
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    heard: bool = False
    acquired: int = 0
    by_count: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    outcomes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    renewals: int = 0
    # Latency of each acknowledged range, and its number of records; an array, since a minute may have millions
    latencies: "array[int]" = field(default_factory=lambda: array("q"))
    ranges: "array[int]" = field(default_factory=lambda: array("q"))
    lags: dict[_Place, int] = field(default_factory=dict)
    progress: set[_Place] = field(default_factory=set)
    archived: int = 0


def share_group_health(
    deliveries: Iterable[Delivery], events: Iterable[ShareGroupEvent], *, delivery_limit: int | None = None
) -> Iterator[ShareGroupHealth]:
    """Takes events and deliveries of one group, deliveries in any order. `delivery_limit` is the group's, if known;
    otherwise it's inferred from what was archived."""
    minutes: dict[int, _Minute] = defaultdict(_Minute)
    names: dict[_Place, str] = {}
    held: dict[_Place, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    span = _Span()
    behind = _told(events, minutes, names, span)
    archived_at = 0
    highest = DEFAULT_DELIVERY_LIMIT
    topics: dict[_Place, str] = {}
    for row in deliveries:
        acquired_at, outcome_at, topic = row.acquired_at, row.outcome_at, row.topic
        place = (row.topic_id, row.partition)
        if acquired_at is not None:
            span.see(acquired_at)
            _hold(acquired_at, outcome_at, held[place])
        if outcome_at is not None:
            span.see(outcome_at)
        span.group_id = row.group_id
        _count(row, place, minutes)
        # There are millions of rows and few names: make each name once.
        if place not in names or (topic is not None and topics.get(place) != topic):
            names[place] = f"{topic or row.topic_id}-{row.partition}"
            topics[place] = topic or ""
        # Archived without being rejected, it was at the limit; a higher count proves a higher limit.
        count = row.delivery_count or 0
        if count > highest:
            highest = count
        if row.archived and row.outcome != "rejected":
            archived_at = max(archived_at, count)
    still = _standing_still(minutes, held, behind, span)
    near = max((delivery_limit or archived_at or highest) - 1, 2)
    for minute in sorted(minutes):
        stands = sorted(names[place] for place in still.get(minute, ()))
        yield _row(span.group_id, minute, minutes[minute], stands, near)


class _Span:
    """The time that is recorded: a minute that it covers only in part can't count as one without progress."""

    __slots__ = ("first", "group_id", "last")

    def __init__(self) -> None:
        self.first = FOREVER
        self.last = 0
        self.group_id = ""

    def see(self, at_us: int) -> None:
        if at_us < self.first:
            self.first = at_us
        if at_us > self.last:
            self.last = at_us

    def covers(self, minute: int) -> bool:
        return self.first <= minute * MINUTE_US and self.last >= (minute + 1) * MINUTE_US


def _told(
    events: Iterable[ShareGroupEvent], minutes: dict[int, _Minute], names: dict[_Place, str], span: _Span
) -> dict[_Place, dict[int, tuple[int | None, int | None]]]:
    """Fills in what descriptions and heartbeats report; returns start offset and lag by partition and minute."""
    assigned: dict[str | None, int] = {}
    alive: dict[int, dict[str | None, bool]] = defaultdict(dict)
    behind: dict[_Place, dict[int, tuple[int | None, int | None]]] = defaultdict(dict)
    for event in events:
        span.see(event.at_us)
        span.group_id = event.group_id or span.group_id
        number = event.at_us // MINUTE_US
        if event.kind == "seen" or event.error_code:
            continue
        minute = minutes[number]
        if event.kind == "heartbeat":
            _heartbeat(event, minute, assigned, alive[number])
        elif event.kind == "described":
            minute.heard = True
            minute.state, minute.members, minute.assignments = event.state, event.members, event.assigned
            minute.group_epoch, minute.assignment_epoch = event.group_epoch, event.assignment_epoch
        elif event.kind == "offsets":
            place = (event.topic_id, event.partition)
            names[place] = f"{event.topic or event.topic_id}-{event.partition}"
            lag = event.lag if event.lag is not None and event.lag >= 0 else None
            behind[place][number] = (event.start_offset, lag)
            if lag is not None:
                minute.lags[place] = lag
    return behind


def _heartbeat(
    event: ShareGroupEvent, minute: _Minute, assigned: dict[str | None, int], alive: dict[str | None, bool]
) -> None:
    member = event.member_id
    leaves = event.member_epoch == -1
    alive[member] = not leaves
    if leaves:
        assigned.pop(member, None)
    elif event.assigned is not None:
        assigned[member] = event.assigned
    if minute.heard:
        # A description includes members that this recording doesn't show.
        return
    here = [name for name, there in alive.items() if there]
    minute.members = len(here)
    minute.state = "Stable" if here else None
    assignments = [assigned[name] for name in here if name in assigned]
    minute.assignments = sum(assignments) if len(assignments) == len(here) else None
    if event.group_epoch is not None and not leaves:
        minute.group_epoch = max(minute.group_epoch or 0, event.group_epoch)


def _count(row: Delivery, place: _Place, minutes: dict[int, _Minute]) -> None:
    records = row.last_offset - row.first_offset + 1
    acquired_at, outcome_at, outcome = row.acquired_at, row.outcome_at, row.outcome
    if acquired_at is not None:
        minute = minutes[acquired_at // MINUTE_US]
        minute.acquired += records
        minute.by_count[row.delivery_count or 0] += records
    if outcome_at is None:
        return
    minute = minutes[outcome_at // MINUTE_US]
    minute.outcomes[outcome] += records
    minute.renewals += row.renewals
    if row.archived:
        minute.archived += records
    if outcome in ("accepted", "rejected") or row.archived:
        minute.progress.add(place)
    if acquired_at is not None and outcome in ("accepted", "released", "rejected"):
        minute.latencies.append(max(0, outcome_at - acquired_at))
        minute.ranges.append(records)


def _hold(acquired_at: int, outcome_at: int | None, changes: dict[int, int]) -> None:
    """Marks the minutes that began while the delivery was held, as a change at the first and after the last."""
    begin = acquired_at // MINUTE_US + 1
    if outcome_at is None:
        changes[begin] += 1
    elif begin < (after := outcome_at // MINUTE_US + 1):
        changes[begin] += 1
        changes[after] -= 1


def _standing_still(
    minutes: dict[int, _Minute],
    held: dict[_Place, dict[int, int]],
    behind: dict[_Place, dict[int, tuple[int | None, int | None]]],
    span: _Span,
) -> dict[int, list[_Place]]:
    """Minutes that the recording covers whole, that began with records held or a known lag, and in which nothing of the
    partition was finished."""
    still: dict[int, list[_Place]] = defaultdict(list)
    covered = [minute for minute in sorted(minutes) if span.covers(minute)]
    for place in {**held, **behind}:
        changes = sorted(held.get(place, {}).items())
        observed = behind.get(place, {})
        number = index = 0
        before: tuple[int | None, int | None] = (None, None)
        tellings = sorted(observed)
        observation = 0
        for minute in covered:
            while index < len(changes) and changes[index][0] <= minute:
                number += changes[index][1]
                index += 1
            while observation < len(tellings) and tellings[observation] < minute:
                before = observed[tellings[observation]]
                observation += 1
            start, lag = observed.get(minute, before)
            lags = bool(before[1]) and bool(lag)
            moved = start is not None and before[0] is not None and start > before[0]
            if (number > 0 or lags) and not moved and place not in minutes[minute].progress:
                still[minute].append(place)
    return still


def _row(group_id: str, number: int, minute: _Minute, still: list[str], near: int) -> ShareGroupHealth:
    outcomes = minute.outcomes
    again = {count: records for count, records in sorted(minute.by_count.items()) if count > 1}
    return ShareGroupHealth(
        group_id,
        number * MINUTE_US,
        minute.state,
        minute.members,
        minute.assignments,
        minute.group_epoch,
        minute.assignment_epoch,
        minute.acquired,
        sum(again.values()),
        again,
        outcomes.get("accepted", 0),
        outcomes.get("released", 0),
        outcomes.get("rejected", 0),
        outcomes.get("lock_expired", 0),
        outcomes.get("disconnected", 0),
        outcomes.get("session_closed", 0),
        outcomes.get("moved", 0),
        minute.renewals,
        *_percentiles(sorted(zip(minute.latencies, minute.ranges, strict=True))),
        sum(minute.lags.values()) if minute.lags else None,
        len(minute.lags),
        still,
        sum(records for count, records in again.items() if count >= near),
        minute.archived,
    )


def _percentiles(latencies: list[tuple[int, int]]) -> tuple[int | None, int | None, int | None]:
    """Median, 95th percentile and maximum of latencies in ascending order, where each record counts once. A percentile
    is the smallest latency that its share of the records didn't exceed."""
    if not latencies:
        return None, None, None
    total = sum(records for _, records in latencies)
    percentiles: list[int | None] = []
    for percent in (50, 95):
        so_far = 0
        for micros, records in latencies:
            so_far += records
            if so_far * 100 >= total * percent:
                percentiles.append(micros)
                break
    return percentiles[0], percentiles[1], latencies[-1][0]
