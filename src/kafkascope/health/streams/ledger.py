"""Tracks who holds each task of a streams group, and emits intervals, moves and unheld tasks. A task has at most one
active holder at a time.

An active task has no holder from the time its holder ended until the next member reports it. That pause is the cost of
a move. It counts as unheld only while the group has members, or if it just lost its last one: a group that was shut
down needn't hold anything.
"""

from dataclasses import dataclass, field, replace

from kafkascope.health.streams.events import Role, task_parts
from kafkascope.health.streams.rows import StreamsMove, StreamsTask, StreamsTimeline, UnheldTask

_HEARTBEAT_INTERVAL_MS = 5_000  # group.streams.heartbeat.interval.ms by default; every response has it


@dataclass(slots=True)
class Hold:
    """A task held by a member: since when, and after whom."""

    role: Role
    from_at: int
    from_known: bool
    source: str
    exchange_id: str | None
    previous_member_id: str | None = None
    pause_ms: int | None = None
    warm: bool | None = None


@dataclass(slots=True)
class Member:
    """A member as the events show it; `held` is None until an event reports what it holds."""

    member_id: str
    from_at: int
    joined: bool
    client_id: str | None = None
    process_id: str | None = None
    endpoint: str | None = None
    epoch: int | None = None
    held: dict[str, Hold] | None = None
    connection_id: str | None = None
    last_request_at: int | None = None
    closed_at: int | None = None
    interval_us: int | None = None
    codes: tuple[tuple[int, str], ...] = ()
    copies: dict[str, tuple[int, int]] = field(default_factory=dict)  # earlier standbys and warm-ups: end, row index

    def patience_us(self) -> int:
        """Twice its heartbeat interval: the time it takes to learn of a change and to report it."""
        return 2 * (self.interval_us or _HEARTBEAT_INTERVAL_MS * 1000)


@dataclass(slots=True)
class UnheldGap:
    """Since when a task has no holder, and why."""

    from_at: int
    cause: str
    exchange_id: str | None
    known: bool = False


@dataclass(slots=True)
class TaskState:
    """Who holds a task, who held it last, and its open gap."""

    owner: Member | None = None
    last_owner: str | None = None
    released_at: int = 0
    released_by: str = "new"
    gap: UnheldGap | None = None


class Ledger:
    """Takes changes of holders, and adds rows to `timeline`."""

    __slots__ = ("members", "tasks", "timeline")

    timeline: StreamsTimeline
    members: dict[str, Member]
    tasks: dict[str, TaskState]

    def __init__(self, timeline: StreamsTimeline) -> None:
        self.timeline, self.members, self.tasks = timeline, {}, {}

    def know(self, task: str, at: int, exchange_id: str | None) -> TaskState:
        """Registers a task. One that nobody has held yet is unheld from now on."""
        state = self.tasks.get(task)
        if state is None:
            state = self.tasks[task] = TaskState()
            if self.members:
                state.gap = UnheldGap(at, "new", exchange_id)
        return state

    def take(
        self,
        member: Member,
        task: str,
        role: Role,
        at: int,
        known: bool,
        source: str,
        exchange_id: str | None,
    ) -> None:
        """The member holds the task from `at` on."""
        assert member.held is not None
        hold = member.held[task] = Hold(role, at, known, source, exchange_id)
        state = self.tasks.get(task)
        if state is None:  # first seen in this report: nothing shows that it was unheld before
            state = self.tasks[task] = TaskState()
        if role != "active":
            return
        if state.owner is not None and state.owner is not member:  # its report of releasing it isn't in the recording
            self.drop(state.owner, task, at, "revoked", exchange_id)
        self._close_gap(task, state, at, "taken", True)
        warm = self._promote(member, task, at if state.last_owner is None else state.released_at)
        if state.last_owner is not None:
            hold.previous_member_id = state.last_owner
            hold.pause_ms = (at - state.released_at) // 1000
            hold.warm = warm
            self.timeline.moves.append(
                StreamsMove(
                    self.timeline.group_id,
                    *task_parts(task),
                    state.last_owner,
                    member.member_id,
                    state.released_at,
                    at,
                    hold.pause_ms,
                    state.released_by,
                    warm,
                    exchange_id,
                )
            )
        state.owner = member

    def _promote(self, member: Member, task: str, released_at: int) -> bool:
        """Returns if the member had a copy of the task's state to start from. The coordinator makes it close a standby
        before it grants the task as active, so the copy may have ended slightly before its owner released it, or
        after."""
        ended_at, place = member.copies.pop(task, (0, -1))
        if place < 0 or ended_at < released_at - member.patience_us():
            return False
        self.timeline.tasks[place] = replace(self.timeline.tasks[place], ended_by="promoted")
        return True

    def drop(self, member: Member, task: str, at: int, ended_by: str, exchange_id: str | None) -> None:
        """The member no longer holds the task. `at` may be in the past, but not before the member took it."""
        assert member.held is not None
        hold = member.held.pop(task)
        at = max(at, hold.from_at)
        if hold.role != "active":
            member.copies[task] = (at, len(self.timeline.tasks))
        self.row(member, task, hold, at, ended_by, exchange_id)
        state = self.tasks.get(task)
        if state is None:
            return
        if state.owner is member and hold.role == "active":
            state.owner = None
            state.last_owner, state.released_at, state.released_by = member.member_id, at, ended_by
            state.gap = UnheldGap(at, ended_by, exchange_id)

    def row(
        self, member: Member, task: str, hold: Hold, to_at: int | None, ended_by: str | None, exchange_id: str | None
    ) -> None:
        subtopology_id, partition = task_parts(task)
        self.timeline.tasks.append(
            StreamsTask(
                self.timeline.group_id,
                member.member_id,
                member.process_id,
                member.client_id,
                subtopology_id,
                partition,
                hold.role,
                hold.from_at,
                to_at,
                ended_by,
                hold.from_known,
                hold.source,
                hold.previous_member_id,
                hold.pause_ms,
                hold.warm,
                hold.exchange_id,
                exchange_id,
            )
        )

    def group_filled(self, at: int, exchange_id: str | None) -> None:
        """The first member joined: from now on every task should be held."""
        for state in self.tasks.values():
            if state.owner is None and state.gap is None:
                state.gap = UnheldGap(at, state.released_by, exchange_id)

    def close_gaps(self, at: int, ended_by: str | None) -> None:
        for task, state in self.tasks.items():
            if state.gap is not None:
                self._close_gap(task, state, at, ended_by, state.gap.known)

    def prove_gaps(self) -> None:
        """A description listed all members, and none of them holds these tasks."""
        for state in self.tasks.values():
            if state.gap is not None:
                state.gap.known = True

    def forget(self) -> None:
        """The recording has a hole: who held what before it is no longer valid."""
        self.tasks.clear()

    def _close_gap(self, task: str, state: TaskState, at: int, ended_by: str | None, known: bool) -> None:
        gap, state.gap = state.gap, None
        if gap is None or (ended_by is not None and at <= gap.from_at):
            return
        subtopology_id, partition = task_parts(task)
        self.timeline.unheld.append(
            UnheldTask(
                self.timeline.group_id,
                subtopology_id,
                partition,
                gap.from_at,
                None if ended_by is None else at,
                gap.cause,
                ended_by,
                known,
                gap.exchange_id,
            )
        )
