"""Summarizes share groups: totals, partitions, members, and activity over time."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import rows
from kafkascope.report.summaries.buckets import Buckets, buckets_of
from kafkascope.report.summaries.scope import Scope, both, of_groups
from kafkascope.report.summaries.share_pictures import OUTCOMES, Ints, Pictures, draw
from kafkascope.report.summaries.share_survey import MemberTotals, PartitionTotals, ShareGroupTotals, survey

# A page with more groups is searched, not read.
MOST_GROUPS = 6
MOST_LINES = 50
_MOST_STEPS = 160
_MOST_PLACES = 20
MOST_MEMBERS = 16
MOST_RUNS = 40
_MOST_STILL = 10

_HEALTH = (
    "group_id minute_at state members lag lag_partitions group_epoch acknowledge_p95_us acknowledge_max_us"
    " near_limit standing_still"
).split()


@dataclass(slots=True)
class Health:
    """As last seen, except acknowledgement times, which are the worst minute's, and `standing_still`, the partitions
    that stalled in any minute."""

    state: str | None = None
    members: int | None = None
    lag: int | None = None
    lag_partitions: int = 0
    lag_at: int | None = None
    group_epoch: int | None = None
    acknowledge_p95_us: int | None = None
    acknowledge_max_us: int | None = None
    near_limit: int = 0
    standing_still: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Held:
    """The most records that a member held in a step, by their later outcome. `first` and `last` are inclusive."""

    first: int
    last: int
    records: dict[str, int]


@dataclass(frozen=True, slots=True)
class MemberLane:
    member: MemberTotals
    held: tuple[Held, ...]


@dataclass(frozen=True, slots=True)
class ShareGroupSummary:
    """`ended` counts records by outcome and step, `again` redelivered ones by partition and step."""

    group_id: str
    first_at: int
    last_at: int
    acquired: int
    redelivered: int
    archived: int
    outcomes: dict[str, int]
    counts: tuple[tuple[int, int], ...]
    health: Health
    buckets: Buckets
    ended: dict[str, list[int]]
    places: tuple[PartitionTotals, ...]
    places_left_out: int
    again: list[list[int]]
    members: tuple[MemberLane, ...]
    members_left_out: int


@dataclass(frozen=True, slots=True)
class ShareLine:
    """A group in less trouble, as a row of a table."""

    group_id: str
    acquired: int
    redelivered: int
    archived: int
    outcomes: dict[str, int]


@dataclass(frozen=True, slots=True)
class ShareGroups:
    shown: tuple[ShareGroupSummary, ...]
    others: tuple[ShareLine, ...]
    left_out: int

    @property
    def count(self) -> int:
        return len(self.shown) + len(self.others) + self.left_out


def share_groups_in(lake: Lake, scope: Scope, groups: Collection[str]) -> ShareGroups:
    surveys = [group for group in survey(lake, scope, groups).values() if group.first_at is not None]
    surveys.sort(key=lambda group: (*(-number for number in group.trouble), group.group_id))
    shown = surveys[:MOST_GROUPS]
    pictures = {group.group_id: _picture(group, scope) for group in shown}
    draw(lake, scope, pictures)
    health = _health(lake, scope, pictures)
    drawn = tuple(_group(group, pictures[group.group_id], health[group.group_id]) for group in shown)
    others = tuple(map(_line, surveys[MOST_GROUPS : MOST_GROUPS + MOST_LINES]))
    return ShareGroups(drawn, others, len(surveys) - len(drawn) - len(others))


def _line(group: ShareGroupTotals) -> ShareLine:
    outcomes, places = group.outcomes, group.places.values()
    return ShareLine(
        group.group_id,
        sum(place.acquired for place in places),
        sum(place.redelivered for place in places),
        sum(place.archived for place in places),
        {name: outcomes[name] for name in OUTCOMES if outcomes[name]},
    )


def _picture(group: ShareGroupTotals, scope: Scope) -> Pictures:
    first, last = scope.clip(group.first_at or 0, group.last_at or 0)
    places = sorted(group.places.values(), key=lambda place: (-place.redelivered, -place.acquired, place.name))
    members = sorted(group.members.values(), key=lambda member: (-member.trouble, -member.records, member.member_id))
    return Pictures(
        buckets_of(first, last, _MOST_STEPS),
        sorted((place.name for place in places[:_MOST_PLACES]), key=natural),
        [(member.member_id, member.client_id) for member in sorted(members[:MOST_MEMBERS], key=_by_time)],
    )


def natural(name: str) -> list[tuple[int, int | str]]:
    """Sorts `orders-2` before `orders-10`."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", name) if part]


def _by_time(member: MemberTotals) -> tuple[int, str]:
    return member.first_at or 0, member.member_id


def _health(lake: Lake, scope: Scope, groups: Iterable[str]) -> dict[str, Health]:
    by_group = {group_id: Health() for group_id in groups}
    where = both(of_groups(by_group), scope.minute("minute_at"))
    seen: dict[tuple[str, str], int] = {}
    for row in rows(lake, "share_group_health", _HEALTH, where):
        health, at = by_group[row["group_id"]], row["minute_at"]
        for name in ("state", "members", "lag", "group_epoch"):
            if row[name] is not None and at >= seen.get((row["group_id"], name), at):
                seen[row["group_id"], name] = at
                setattr(health, name, row[name])
                if name == "lag":
                    health.lag_partitions, health.lag_at = row["lag_partitions"] or 0, at
        for name in ("acknowledge_p95_us", "acknowledge_max_us"):
            if row[name] is not None:
                setattr(health, name, max(getattr(health, name) or 0, row[name]))
        health.near_limit += row["near_limit"] or 0
        more = [name for name in row["standing_still"] or () if name not in health.standing_still]
        health.standing_still = sorted([*health.standing_still, *more], key=natural)[:_MOST_STILL]
    return by_group


def _group(group: ShareGroupTotals, picture: Pictures, health: Health) -> ShareGroupSummary:
    line = _line(group)
    members = {(member.member_id, member.client_id): member for member in group.members.values()}
    return ShareGroupSummary(
        group.group_id,
        group.first_at or 0,
        group.last_at or 0,
        line.acquired,
        line.redelivered,
        line.archived,
        line.outcomes,
        tuple(sorted(group.counts.items())),
        health,
        picture.buckets,
        {name: row.tolist() for name, row in zip(OUTCOMES, picture.ended, strict=True) if row.any()},
        tuple(group.places[name] for name in picture.places),
        len(group.places) - len(picture.places),
        picture.again.tolist(),
        tuple(MemberLane(members[key], _runs(held)) for key, held in zip(picture.members, picture.held, strict=True)),
        len(members) - len(picture.members),
    )


def _runs(held: Ints) -> tuple[Held, ...]:
    """Merges neighbouring steps of a lane that changes too often to draw."""
    together = 1
    while len(merged := runs(held, together)) > MOST_RUNS:
        together *= 2
    return tuple(merged)


def runs(held: Ints, together: int) -> list[Held]:
    """Merges neighbouring steps with the same outcomes."""
    merged: list[Held] = []
    steps = held.shape[1]
    starts = np.arange(0, steps, together)
    most = np.maximum.reduceat(held, starts, axis=1)
    for at in np.flatnonzero(most.any(axis=0)).tolist():
        first, end = at * together, min((at + 1) * together, steps) - 1
        records = {name: int(count) for name, count in zip(OUTCOMES, most[:, at], strict=True) if count}
        last = merged[-1] if merged else None
        if last is not None and last.last == first - 1 and last.records.keys() == records.keys():
            higher = {name: max(count, last.records[name]) for name, count in records.items()}
            merged[-1] = Held(last.first, end, higher)
        else:
            merged.append(Held(first, end, records))
    return merged
