"""A lake in, its streams groups out as a report tells them: totals, moves, lost members, statuses, and who held each
task when."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nlargest

from kafkascope.lake.home import Lake
from kafkascope.report.summaries.mart_rows import Row, rows
from kafkascope.report.summaries.scope import MINUTE_US, Scope, both, of_groups
from kafkascope.report.summaries.share import natural
from kafkascope.report.summaries.streams_lanes import TaskLane, TaskLanes

MOST_GROUPS = 6
MOST_LINES = 50
MOST_MOVES = 50
MOST_LOST = 50
MOST_STATUSES = 20

HEALTH = (
    "group_id minute_at state group_epoch topology_epoch members joined left lost fenced tasks active_tasks"
    " standby_tasks warmup_tasks moves pause_total_ms pause_max_ms unheld_ms standbys_missing shutdown_requests errors"
).split()
MOVES = "group_id subtopology_id partition from_member_id to_member_id released_at taken_at pause_ms cause warm".split()
LOST = "group_id member_id client_id last_seen_at noticed_at silent_ms how active_tasks standby_tasks".split()
STATUSES = "group_id name detail from_at to_at members".split()


@dataclass(slots=True)
class Totals:
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
class Status:
    name: str
    detail: str
    from_at: int
    to_at: int | None
    members: int


@dataclass(frozen=True, slots=True)
class StreamsGroup:
    """`members` are names by member id, those with a colour of their own first."""

    group_id: str
    totals: Totals
    members: dict[str, str]
    lanes: tuple[TaskLane, ...]
    lanes_left_out: int
    moves: tuple[Move, ...]
    moves_left_out: int
    lost: tuple[Lost, ...]
    lost_left_out: int
    statuses: tuple[Status, ...]
    statuses_left_out: int


@dataclass(frozen=True, slots=True)
class StreamsLine:
    """A group in less trouble, in a line."""

    group_id: str
    totals: Totals


@dataclass(frozen=True, slots=True)
class StreamsGroups:
    shown: tuple[StreamsGroup, ...]
    others: tuple[StreamsLine, ...]
    left_out: int

    @property
    def count(self) -> int:
        return len(self.shown) + len(self.others) + self.left_out


@dataclass(slots=True)
class _Parts:
    moves: list[Row] = field(default_factory=list)
    moved: int = 0
    lost: list[Row] = field(default_factory=list)
    lost_left_out: int = 0
    statuses: list[Row] = field(default_factory=list)
    statuses_left_out: int = 0


def streams_groups_in(lake: Lake, scope: Scope, groups: Iterable[str], recorded_until: int | None) -> StreamsGroups:
    """`recorded_until` is when the last recording ends."""
    totals = _totals(lake, scope, groups)
    for one in totals.values():
        # The minute in which it was last seen may not be over.
        one.last_at = max(one.first_at, one.last_at if recorded_until is None else min(one.last_at, recorded_until))
    order = sorted(totals, key=lambda name: (*(-number for number in totals[name].trouble), name))
    shown = order[:MOST_GROUPS]
    parts = _parts(lake, scope, shown)
    lanes = TaskLanes(lake, scope, {name: totals[name].last_at for name in shown})
    found = tuple(_group(name, totals[name], parts[name], lanes) for name in shown)
    others = tuple(StreamsLine(name, totals[name]) for name in order[MOST_GROUPS : MOST_GROUPS + MOST_LINES])
    return StreamsGroups(found, others, len(order) - len(found) - len(others))


def _totals(lake: Lake, scope: Scope, groups: Iterable[str]) -> dict[str, Totals]:
    found: dict[str, Totals] = {}
    where = both(of_groups(groups), scope.minute("minute_at"))
    for row in rows(lake, "streams_group_health", HEALTH, where):
        at = row["minute_at"]
        one = found.get(row["group_id"])
        if one is None:
            one = found[row["group_id"]] = Totals(at, at)
        one.first_at, one.last_at = min(one.first_at, at), max(one.last_at, at + MINUTE_US)
        for name in _SUMS:
            setattr(one, name, getattr(one, name) + (row[name] or 0))
        one.pause_max_ms = max(one.pause_max_ms, row["pause_max_ms"] or 0)
        one.most_members = max(one.most_members, row["members"] or 0)
        one.tasks = max(one.tasks, row["tasks"] or 0)
        if at >= one.at:
            one.at = at
            one.members, one.standbys_missing = row["members"] or 0, row["standbys_missing"]
            one.state, one.group_epoch = row["state"], row["group_epoch"]
            one.topology_epoch = row["topology_epoch"]
    return found


def _parts(lake: Lake, scope: Scope, groups: Iterable[str]) -> dict[str, _Parts]:
    found: defaultdict[str, _Parts] = defaultdict(_Parts)
    of_these = of_groups(groups)
    for row in rows(lake, "streams_moves", MOVES, both(of_these, scope.over("released_at", "taken_at"))):
        one = found[row["group_id"]]
        one.moved += 1
        one.moves.append(row)
        if len(one.moves) >= 4 * MOST_MOVES:
            one.moves = _longest(one.moves)
    for row in rows(lake, "streams_lost_members", LOST, both(of_these, scope.over("last_seen_at", "noticed_at"))):
        one = found[row["group_id"]]
        if len(one.lost) < MOST_LOST:
            one.lost.append(row)
        else:
            one.lost_left_out += 1
    for row in rows(lake, "streams_statuses", STATUSES, both(of_these, scope.over("from_at", "to_at"))):
        one = found[row["group_id"]]
        if len(one.statuses) < MOST_STATUSES:
            one.statuses.append(row)
        else:
            one.statuses_left_out += 1
    return found


def _longest(moves: list[Row]) -> list[Row]:
    return nlargest(MOST_MOVES, moves, key=lambda row: row["pause_ms"])


def _group(group_id: str, totals: Totals, parts: _Parts, lanes: TaskLanes) -> StreamsGroup:
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
        Lost(row["client_id"] or named(row["member_id"]), *(row[name] for name in (LOST[1], *LOST[3:])))
        for row in sorted(parts.lost, key=lambda row: int(row["last_seen_at"]))
    ]
    statuses = [
        Status(*(row[name] for name in STATUSES[1:]))
        for row in sorted(parts.statuses, key=lambda row: int(row["from_at"]))
    ]
    shown, left_out = lanes.of(group_id)
    first, last = lanes.reach(group_id)
    if first is not None and last is not None:
        totals.first_at, totals.last_at = first, last
    return StreamsGroup(
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
