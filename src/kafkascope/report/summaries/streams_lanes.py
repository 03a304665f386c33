"""Reads which member had each Streams task in which role, and when no member did. Of many tasks, those in most trouble
are kept; of many short intervals, those long enough to be seen."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import Row, batches, rows
from kafkascope.report.summaries.buckets import step_for
from kafkascope.report.summaries.scope import Scope, both, of_groups
from kafkascope.report.summaries.share import natural

MOST_LANES = 40
_MOST_STEPS = 400
# Intervals per task, and per group. With more, they are too short to be seen.
_MOST_PIECES = 600
MOST_DRAWN = 1_000
_MOST_NAMED = 500

_TASKS = (
    "group_id member_id client_id subtopology_id partition role from_at to_at ended_by pause_ms previous_member_id warm"
).split()
_UNHELD = "group_id subtopology_id partition from_at to_at ended_by known".split()
_REACH = "group_id subtopology_id partition member_id client_id".split()

_Task = tuple[str, int]


@dataclass(frozen=True, slots=True)
class TaskInterval:
    """`role` is `active`, `standby` or `warmup`, or `unheld` while no member was active. `to_at` is None if the
    interval goes on after the recording."""

    role: str
    member_id: str | None
    from_at: int
    to_at: int | None
    ended_by: str | None
    pause_ms: int | None = None
    moved: bool = False
    warm: bool | None = None


@dataclass(frozen=True, slots=True)
class TaskLane:
    task: str
    pieces: tuple[TaskInterval, ...]
    too_short: int


@dataclass(slots=True)
class _GroupTasks:
    first_at: int | None = None
    last_at: int | None = None
    clients: dict[str, str | None] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    tasks: Counter[_Task] = field(default_factory=Counter)  # to its trouble
    chosen: list[_Task] = field(default_factory=list)
    pieces: defaultdict[_Task, list[TaskInterval]] = field(default_factory=lambda: defaultdict(list))
    dropped: Counter[_Task] = field(default_factory=Counter)

    def see(self, *times: int | None) -> None:
        for at in times:
            if at is not None:
                self.first_at = at if self.first_at is None else min(self.first_at, at)
                self.last_at = at if self.last_at is None else max(self.last_at, at)


class TaskLanes:
    """Reads in two passes: the tasks and how long they last, then the intervals of the tasks that are shown. `groups`
    maps ids to when each was last seen: a task still held reaches until then."""

    def __init__(self, lake: Lake, scope: Scope, groups: Mapping[str, int]) -> None:
        self._groups: dict[str, _GroupTasks] = {group_id: _GroupTasks() for group_id in groups}
        self._scope = scope
        if not self._groups:
            return
        where = both(of_groups(self._groups), scope.over("from_at", "to_at"))
        for batch in batches(lake, "streams_tasks", [*_REACH, "from_at", "to_at"], where):
            self._survey(pa.Table.from_batches([batch]))
        for row in rows(lake, "streams_unheld", _UNHELD, where):
            group, task = self._groups[row["group_id"]], (row["subtopology_id"], row["partition"])
            group.tasks[task] += 1
            group.see(row["from_at"], row["to_at"])
        for group_id, group in self._groups.items():
            if group.first_at is not None and group.last_at is not None:
                group.see(groups[group_id])
                group.first_at, group.last_at = scope.clip(group.first_at, group.last_at)
            worst = sorted(group.tasks, key=lambda task: (-group.tasks[task], _task_order(task)))
            group.chosen = sorted(worst[:MOST_LANES], key=_task_order)
        for row in rows(lake, "streams_tasks", _TASKS, where):
            self._add(row["group_id"], (row["subtopology_id"], row["partition"]), _piece(row))
        for row in rows(lake, "streams_unheld", _UNHELD, where):
            # If the recording may miss members, one of those may have had the task.
            if row["known"]:
                piece = TaskInterval("unheld", None, row["from_at"], row["to_at"], row["ended_by"])
                self._add(row["group_id"], (row["subtopology_id"], row["partition"]), piece)

    def _survey(self, table: pa.Table) -> None:
        reached = table.group_by(_REACH, use_threads=False).aggregate(
            [("from_at", "min"), ("from_at", "max"), ("to_at", "max"), ("from_at", "count")]
        )
        for row in reached.to_pylist():
            group = self._groups[row["group_id"]]
            # A task that changes hands often has many intervals.
            group.tasks[row["subtopology_id"], row["partition"]] += row["from_at_count"]
            group.see(row["from_at_min"], row["from_at_max"], row["to_at_max"])
            member = row["member_id"]
            if member in group.clients or len(group.clients) < _MOST_NAMED:
                group.clients[member] = group.clients.get(member) or row["client_id"]
                group.since[member] = min(group.since.get(member, row["from_at_min"]), row["from_at_min"])

    def _add(self, group_id: str, task: _Task, piece: TaskInterval) -> None:
        group = self._groups[group_id]
        if task not in group.chosen:
            return
        if len(group.pieces[task]) >= _MOST_PIECES:
            group.dropped[task] += 1
        else:
            group.pieces[task].append(piece)

    def reach(self, group_id: str) -> tuple[int | None, int | None]:
        group = self._groups[group_id]
        return group.first_at, group.last_at

    def members(self, group_id: str) -> dict[str, str]:
        """Names by member id, in order of appearance: the client id, with the start of the member id where two members
        share a client id."""
        group = self._groups[group_id]
        names = Counter(client or "" for client in group.clients.values())
        named = {}
        for member in sorted(group.clients, key=lambda member_id: (group.since[member_id], member_id)):
            client = group.clients[member] or ""
            named[member] = client if client and names[client] == 1 else f"{client} {member[:6]}".strip()
        return named

    def of(self, group_id: str) -> tuple[tuple[TaskLane, ...], int]:
        group = self._groups[group_id]
        step = step_for((group.last_at or 0) - (group.first_at or 0), _MOST_STEPS)
        lanes = tuple(self._lane(group, task, step) for task in group.chosen)
        while sum(len(lane.pieces) for lane in lanes) > MOST_DRAWN:
            step *= 2
            lanes = tuple(self._lane(group, task, step) for task in group.chosen)
        return lanes, len(group.tasks) - len(lanes)

    def _lane(self, group: _GroupTasks, task: _Task, step: int) -> TaskLane:
        last = group.last_at or 0
        pieces: list[TaskInterval] = []
        ends: dict[str, int] = {}
        short = group.dropped[task]
        for piece in sorted(group.pieces[task], key=lambda piece: (piece.from_at, piece.role)):
            end = last if piece.to_at is None else piece.to_at
            if end - piece.from_at < step and end // step == ends.get(piece.role):
                short += 1
                continue
            ends[piece.role] = end // step
            pieces.append(piece)
        return TaskLane(f"{task[0]}_{task[1]}", tuple(pieces), short)


def _task_order(task: _Task) -> tuple[list[tuple[int, int | str]], int]:
    return natural(task[0]), task[1]


def _piece(row: Row) -> TaskInterval:
    previous = row["previous_member_id"]
    return TaskInterval(
        row["role"],
        row["member_id"],
        row["from_at"],
        row["to_at"],
        row["ended_by"],
        row["pause_ms"],
        previous is not None and previous != row["member_id"],
        row["warm"],
    )
