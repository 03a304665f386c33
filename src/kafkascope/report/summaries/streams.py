"""Summarizes Streams groups: totals, moves, lost members, statuses, and which member had each task when."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nlargest

from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import Row, rows
from kafkascope.report.summaries.scope import MINUTE_US, Scope, both, of_groups
from kafkascope.report.summaries.share import natural
from kafkascope.report.summaries.streams_lanes import TaskLane, TaskLanes

_MOST_GROUPS = 6
_MOST_LINES = 50
MOST_MOVES = 50
MOST_LOST = 50
MOST_STATUSES = 20

_HEALTH = (
    "group_id minute_at state group_epoch topology_epoch members joined left lost fenced tasks active_tasks"
    " standby_tasks warmup_tasks moves pause_total_ms pause_max_ms unheld_ms standbys_missing shutdown_requests errors"
).split()
_MOVES = (
    "group_id subtopology_id partition from_member_id to_member_id released_at taken_at pause_ms cause warm".split()
)
_LOST = "group_id member_id client_id last_seen_at noticed_at silent_ms how active_tasks standby_tasks".split()
_STATUSES = "group_id name detail from_at to_at members".split()


@dataclass(slots=True)
class StreamsGroupTotals:
    """Sums and maxima over the minutes; states and counts as last seen."""

    first_at: int
    last_at: int
    at: int = -1
    state: str | None = None
    group_epoch: int | None = None
    topology_epoch: int | None = None
    members: int = 0
    most_members: int = 0
    tasks: int = 0
    joined: int = 0
    left: int = 0
    lost: int = 0
    fenced: int = 0
    moves: int = 0
    pause_total_ms: int = 0
    pause_max_ms: int = 0
    unheld_ms: int = 0
    standbys_missing: int | None = None
    shutdown_requests: int = 0

    @property
    def trouble(self) -> tuple[int, int, int]:
        return self.lost + self.fenced, self.unheld_ms, self.moves


_SUMS = "joined left lost fenced moves pause_total_ms unheld_ms shutdown_requests".split()


@dataclass(frozen=True, slots=True)
class Move:
    task: str
    from_member: str
    to_member: str
    released_at: int
    taken_at: int
    pause_ms: int
    cause: str
    warm: bool


@dataclass(frozen=True, slots=True)
class Lost:
    member: str
    member_id: str
    last_seen_at: int
    noticed_at: int
    silent_ms: int
    how: str
    active_tasks: int
    standby_tasks: int


@dataclass(frozen=True, slots=True)
class StatusInterval:
    name: str
    detail: str
    from_at: int
    to_at: int | None
    members: int


@dataclass(frozen=True, slots=True)
class StreamsGroupSummary:
    """`members` maps member ids to names, those with a colour of their own first."""

    group_id: str
    totals: StreamsGroupTotals
    members: dict[str, str]
    lanes: tuple[TaskLane, ...]
    lanes_left_out: int
    moves: tuple[Move, ...]
    moves_left_out: int
    lost: tuple[Lost, ...]
    lost_left_out: int
    statuses: tuple[StatusInterval, ...]
    statuses_left_out: int


@dataclass(frozen=True, slots=True)
class StreamsLine:
    """A group in less trouble, as a row of a table."""

    group_id: str
    totals: StreamsGroupTotals


@dataclass(frozen=True, slots=True)
class StreamsGroups:
    shown: tuple[StreamsGroupSummary, ...]
    others: tuple[StreamsLine, ...]
    left_out: int

    @property
    def count(self) -> int:
        return len(self.shown) + len(self.others) + self.left_out


@dataclass(slots=True)
class _GroupDetails:
    moves: list[Row] = field(default_factory=list)
    moved: int = 0
    lost: list[Row] = field(default_factory=list)
    lost_left_out: int = 0
    statuses: list[Row] = field(default_factory=list)
    statuses_left_out: int = 0


def streams_groups_in(lake: Lake, scope: Scope, groups: Iterable[str], recorded_until: int | None) -> StreamsGroups:
    """`recorded_until` is when the last recording ends."""
    totals = _totals(lake, scope, groups)
    for group in totals.values():
        # The minute in which the group was last seen may be incomplete.
        group.last_at = max(
            group.first_at, group.last_at if recorded_until is None else min(group.last_at, recorded_until)
        )
    order = sorted(totals, key=lambda name: (*(-number for number in totals[name].trouble), name))
    shown = order[:_MOST_GROUPS]
    parts = _parts(lake, scope, shown)
    lanes = TaskLanes(lake, scope, {name: totals[name].last_at for name in shown})
    drawn = tuple(_group(name, totals[name], parts[name], lanes) for name in shown)
    others = tuple(StreamsLine(name, totals[name]) for name in order[_MOST_GROUPS : _MOST_GROUPS + _MOST_LINES])
    return StreamsGroups(drawn, others, len(order) - len(drawn) - len(others))


def _totals(lake: Lake, scope: Scope, groups: Iterable[str]) -> dict[str, StreamsGroupTotals]:
    by_group: dict[str, StreamsGroupTotals] = {}
    where = both(of_groups(groups), scope.minute("minute_at"))
    for row in rows(lake, "streams_group_health", _HEALTH, where):
        at = row["minute_at"]
        totals = by_group.get(row["group_id"])
        if totals is None:
            totals = by_group[row["group_id"]] = StreamsGroupTotals(at, at)
        totals.first_at, totals.last_at = min(totals.first_at, at), max(totals.last_at, at + MINUTE_US)
        for name in _SUMS:
            setattr(totals, name, getattr(totals, name) + (row[name] or 0))
        totals.pause_max_ms = max(totals.pause_max_ms, row["pause_max_ms"] or 0)
        totals.most_members = max(totals.most_members, row["members"] or 0)
        totals.tasks = max(totals.tasks, row["tasks"] or 0)
        if at >= totals.at:
            totals.at = at
            totals.members, totals.standbys_missing = row["members"] or 0, row["standbys_missing"]
            totals.state, totals.group_epoch = row["state"], row["group_epoch"]
            totals.topology_epoch = row["topology_epoch"]
    return by_group


def _parts(lake: Lake, scope: Scope, groups: Iterable[str]) -> dict[str, _GroupDetails]:
    by_group: defaultdict[str, _GroupDetails] = defaultdict(_GroupDetails)
    of_chosen = of_groups(groups)
    for row in rows(lake, "streams_moves", _MOVES, both(of_chosen, scope.over("released_at", "taken_at"))):
        group = by_group[row["group_id"]]
        group.moved += 1
        group.moves.append(row)
        if len(group.moves) >= 4 * MOST_MOVES:
            group.moves = _longest(group.moves)
    for row in rows(lake, "streams_lost_members", _LOST, both(of_chosen, scope.over("last_seen_at", "noticed_at"))):
        group = by_group[row["group_id"]]
        if len(group.lost) < MOST_LOST:
            group.lost.append(row)
        else:
            group.lost_left_out += 1
    for row in rows(lake, "streams_statuses", _STATUSES, both(of_chosen, scope.over("from_at", "to_at"))):
        group = by_group[row["group_id"]]
        if len(group.statuses) < MOST_STATUSES:
            group.statuses.append(row)
        else:
            group.statuses_left_out += 1
    return by_group


def _longest(moves: list[Row]) -> list[Row]:
    return nlargest(MOST_MOVES, moves, key=lambda row: row["pause_ms"])


def _group(group_id: str, totals: StreamsGroupTotals, parts: _GroupDetails, lanes: TaskLanes) -> StreamsGroupSummary:
    names = lanes.members(group_id)

    def named(member_id: str) -> str:
        return names.get(member_id, member_id)

    moves = [
        Move(
            f"{row['subtopology_id']}_{row['partition']}",
            named(row["from_member_id"]),
            named(row["to_member_id"]),
            row["released_at"],
            row["taken_at"],
            row["pause_ms"],
            row["cause"],
            bool(row["warm"]),
        )
        for row in _longest(parts.moves)
    ]
    moves.sort(key=lambda move: (move.released_at, natural(move.task)))
    lost = [
        Lost(row["client_id"] or named(row["member_id"]), *(row[name] for name in (_LOST[1], *_LOST[3:])))
        for row in sorted(parts.lost, key=lambda row: int(row["last_seen_at"]))
    ]
    statuses = [
        StatusInterval(*(row[name] for name in _STATUSES[1:]))
        for row in sorted(parts.statuses, key=lambda row: int(row["from_at"]))
    ]
    shown, left_out = lanes.of(group_id)
    first, last = lanes.reach(group_id)
    if first is not None and last is not None:
        totals.first_at, totals.last_at = first, last
    return StreamsGroupSummary(
        group_id,
        totals,
        names,
        shown,
        left_out,
        tuple(moves),
        parts.moved - len(moves),
        tuple(lost),
        parts.lost_left_out,
        tuple(statuses),
        parts.statuses_left_out,
    )
