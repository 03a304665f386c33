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

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from kafkascope.health.share.counted import COUNTED_OUTCOMES, MINUTE_US, AcknowledgeTimes, PlaceMinute, counts_of
from kafkascope.health.share.events import Delivery
from kafkascope.health.share.limit import DEFAULT_DELIVERY_LIMIT
from kafkascope.health.state import decoded, encoded

_Place = tuple[str | None, int]
# After every time.
_NEVER = (1 << 63) - 1


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
    by_count: dict[int, int] = field(default_factory=dict)
    outcomes: list[int] = field(default_factory=lambda: [0] * len(COUNTED_OUTCOMES))
    renewals: int = 0
    times: AcknowledgeTimes | None = None
    lags: dict[_Place, int] = field(default_factory=dict)
    progress: set[_Place] = field(default_factory=set)
    archived: int = 0


def share_group_health(
    deliveries: Iterable[Delivery], events: Iterable[ShareGroupEvent], *, delivery_limit: int | None = None
) -> Iterator[ShareGroupHealth]:
    """Both of one group; deliveries in any order. `delivery_limit` is the group's, if known; otherwise it's
    inferred from what was archived."""
    group_id = ""

    def named(rows: Iterable[Delivery | ShareGroupEvent]) -> Iterator[Delivery | ShareGroupEvent]:
        nonlocal group_id
        for row in rows:
            group_id = row.group_id or group_id
            yield row

    counts = list(counts_of(named(deliveries)))  # type: ignore[arg-type]
    rows = list(chain(counts, named(events)))
    yield from group_minutes(group_id, rows, delivery_limit=delivery_limit)  # type: ignore[arg-type]


def group_minutes(
    group_id: str,
    rows: Iterable[ShareGroupEvent | PlaceMinute | AcknowledgeTimes],
    *,
    delivery_limit: int | None = None,
) -> Iterator[ShareGroupHealth]:
    """Of one group: its events in time order, and the sums of its deliveries in any. Memory goes with its minutes and
    partitions, not with its deliveries."""
    walk = GroupWalk(group_id, delivery_limit=delivery_limit)
    for row in rows:
        walk.feed(row)
    return (row for _, row in walk.finish())


class GroupWalk:
    """Of one group. Minutes that no later row changes are taken at a mark, and come with the number of marks before;
    what of a minute depends on the limit of deliveries is decided in the end."""

    def __init__(self, group_id: str, state: object = None, *, delivery_limit: int | None = None) -> None:
        """`state` is what an earlier walk left: `ValueError` for one that none leaves."""
        self._group_id, self._limit = group_id, delivery_limit
        self._group = _Group() if state is None else _resumed(state)
        self._taken: list[tuple[int, int, _Minute, list[str]]] = []
        self._marks = 0

    def feed(self, row: ShareGroupEvent | PlaceMinute | AcknowledgeTimes) -> None:
        if isinstance(row, ShareGroupEvent):
            self._group.hear(row)
        elif isinstance(row, PlaceMinute):
            self._group.count(row)
        else:
            self._group.minutes[row.minute].times = row

    def mark(self, unsettled: int | None) -> None:
        """`unsettled` is the first minute of a delivery that isn't settled yet; None if all are. The last minute isn't
        complete either."""
        last = self._group.last // MINUTE_US
        self._take(last if unsettled is None else min(last, unsettled))
        self._marks += 1

    def state(self) -> object:
        """For JSON, at a mark."""
        return encoded(self._group, _Group)

    @property
    def near(self) -> int:
        """From which delivery count on a delivery is near the limit. A higher count shows a higher limit."""
        return max((self._limit or self._group.archived_at or self._group.highest) - 1, 2)

    def finish(self) -> Iterator[tuple[int, ShareGroupHealth]]:
        self._take(None)
        near = self.near
        for marks, number, minute, still in self._taken:
            yield marks, _row(self._group_id, number, minute, still, near)

    def _take(self, end: int | None) -> None:
        """Minutes before `end`, or all."""
        group = self._group
        numbers = [number for number in sorted(group.minutes) if end is None or number < end]
        still = _standing_still(group, numbers)
        for number in numbers:
            stands = sorted(group.names[place] for place in still.get(number, ()))
            self._taken.append((self._marks, number, group.minutes.pop(number), stands))
        if end is not None:
            group.forget(end)


class _Group:
    """What was seen of a group so far. `lags` are start offset and lag by partition and minute."""

    minutes: dict[int, _Minute]
    names: dict[_Place, str]
    # Changes of the deliveries held, by the minute at whose start they count.
    held: dict[_Place, dict[int, int]]
    lags: dict[_Place, dict[int, tuple[int | None, int | None]]]
    archived_at: int
    highest: int
    # From when to when there is a recording.
    first: int
    last: int
    assigned: dict[str | None, int]
    alive: dict[int, dict[str | None, bool]]
    with_topic: set[_Place]

    def __init__(self) -> None:
        self.minutes, self.names = defaultdict(_Minute), {}
        self.held, self.lags = defaultdict(lambda: defaultdict(int)), defaultdict(dict)
        self.archived_at, self.highest = 0, DEFAULT_DELIVERY_LIMIT
        self.first, self.last = _NEVER, 0
        self.assigned, self.alive, self.with_topic = {}, defaultdict(dict), set()

    def covers(self, minute: int) -> bool:
        """A minute that the recording has a part of can't count as one without progress."""
        return self.first <= minute * MINUTE_US and self.last >= (minute + 1) * MINUTE_US

    def hear(self, event: ShareGroupEvent) -> None:
        self._see(event.at_us, event.at_us)
        if event.kind == "seen" or event.error_code:
            return
        number = event.at_us // MINUTE_US
        minute = self.minutes[number]
        if event.kind == "heartbeat":
            _heartbeat(event, minute, self.assigned, self.alive[number])
        elif event.kind == "described":
            minute.heard = True
            minute.state, minute.members, minute.assignments = event.state, event.members, event.assigned
            minute.group_epoch, minute.assignment_epoch = event.group_epoch, event.assignment_epoch
        elif event.kind == "offsets":
            place = (event.topic_id, event.partition)
            self._name(place, event.topic)
            lag = event.lag if event.lag is not None and event.lag >= 0 else None
            self.lags[place][number] = (event.start_offset, lag)
            if lag is not None:
                minute.lags[place] = lag

    def count(self, row: PlaceMinute) -> None:
        place = (row.topic_id, row.partition)
        self._name(place, row.topic)
        count = row.delivery_count or 0
        self.highest = max(self.highest, count)
        if row.at_limit:
            self.archived_at = max(self.archived_at, count)
        if row.minute is None or row.first_at is None or row.last_at is None:
            return
        self._see(row.first_at, row.last_at)
        minute = self.minutes[row.minute]
        if row.acquired:
            minute.acquired += row.acquired
            minute.by_count[count] = minute.by_count.get(count, 0) + row.acquired
        minute.outcomes = [so_far + more for so_far, more in zip(minute.outcomes, row.outcomes, strict=True)]
        minute.renewals += row.renewals
        minute.archived += row.archived
        if row.progress:
            minute.progress.add(place)
        if row.held:
            self.held[place][row.minute + 1] += row.held

    def forget(self, end: int) -> None:
        """Of minutes before `end` stays what later ones begin with."""
        for place, changes in list(self.held.items()):
            before = [minute for minute in changes if minute <= end]
            held = sum(changes.pop(minute) for minute in before)
            if held:
                changes[end] = held
            elif not changes:
                del self.held[place]
        for observed in self.lags.values():
            for minute in sorted(minute for minute in observed if minute < end)[:-1]:
                del observed[minute]
        for minute in [minute for minute in self.alive if minute < end]:
            del self.alive[minute]

    def _see(self, first: int, last: int) -> None:
        self.first, self.last = min(self.first, first), max(self.last, last)

    def _name(self, place: _Place, topic: str | None) -> None:
        if place not in self.names or (topic is not None and place not in self.with_topic):
            self.names[place] = f"{topic or place[0]}-{place[1]}"
        if topic is not None:
            self.with_topic.add(place)


def _resumed(state: object) -> _Group:
    group = decoded(state, _Group)
    if any(len(minute.outcomes) != len(COUNTED_OUTCOMES) for minute in group.minutes.values()):
        raise ValueError("a minute counts other outcomes")
    if not {*group.held, *group.lags} <= group.names.keys():
        raise ValueError("a partition has no name")
    held: dict[_Place, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for place, changes in group.held.items():
        held[place].update(changes)
    group.held = held
    group.minutes = defaultdict(_Minute, group.minutes)
    group.lags, group.alive = defaultdict(dict, group.lags), defaultdict(dict, group.alive)
    return group


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


def _standing_still(group: _Group, minutes: Iterable[int]) -> dict[int, list[_Place]]:
    """Of these minutes, in order, those that the recording covers, at whose start records were held or lag was known,
    and in which nothing of the partition was finished."""
    still: dict[int, list[_Place]] = defaultdict(list)
    covered = [minute for minute in minutes if group.covers(minute)]
    for place in {**group.held, **group.lags}:
        changes = sorted(group.held.get(place, {}).items())
        observed = group.lags.get(place, {})
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
            if (number > 0 or lags) and not moved and place not in group.minutes[minute].progress:
                still[minute].append(place)
    return still


def _row(group_id: str, number: int, minute: _Minute, still: list[str], near: int) -> ShareGroupHealth:
    again = {count: records for count, records in sorted(minute.by_count.items()) if count > 1}
    accepted, released, rejected, expired, disconnected, session_closed, moved = minute.outcomes
    times = minute.times or AcknowledgeTimes(number, None, None, None)
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
        accepted,
        released,
        rejected,
        expired,
        disconnected,
        session_closed,
        moved,
        minute.renewals,
        times.p50_us,
        times.p95_us,
        times.max_us,
        sum(minute.lags.values()) if minute.lags else None,
        len(minute.lags),
        still,
        sum(records for count, records in again.items() if count >= near),
        minute.archived,
    )
