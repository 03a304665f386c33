"""Row types of the marts about streams groups: tasks, moves, unheld tasks, lost members, statuses.

Times are microseconds since 1970, UTC; an end of None lies behind the recording. Durations are whole milliseconds.
"""

from dataclasses import dataclass, field

from kafkascope.health.streams.events import Role


@dataclass(frozen=True, slots=True)
class StreamsTask:
    """One task held by one member in one role over an interval: a row of `streams_tasks`.

    `pause_ms`, `previous_member_id` and `warm` are of active tasks that somebody held before: how long nobody did, who
    was the last, and whether the member had it as a standby or warm-up until then.
    """

    group_id: str
    member_id: str
    process_id: str | None
    client_id: str | None
    subtopology_id: str
    partition: int
    role: Role
    from_at: int
    to_at: int | None
    ended_by: str | None
    from_known: bool  # False: it was held at `from_at`, and may have been before
    source: str  # heartbeat or describe
    previous_member_id: str | None
    pause_ms: int | None
    warm: bool | None
    from_exchange_id: str | None
    to_exchange_id: str | None


@dataclass(frozen=True, slots=True)
class StreamsMove:
    """An active task that came to a member from another one, or back to the same after a pause."""

    group_id: str
    subtopology_id: str
    partition: int
    from_member_id: str
    to_member_id: str
    released_at: int
    taken_at: int
    pause_ms: int
    cause: str  # what ended it at the member before
    warm: bool
    exchange_id: str | None


@dataclass(frozen=True, slots=True)
class UnheldTask:
    """A task that no member held as active, while the group had members.

    `known` is False where the recording may not see every member: nobody took the task in it, and no description came
    that showed the task with nobody.
    """

    group_id: str
    subtopology_id: str
    partition: int
    from_at: int
    to_at: int | None
    cause: str  # new, or what ended it at its last member
    ended_by: str | None  # taken, empty (the last member went), topology (it has another epoch), None at the end
    known: bool
    exchange_id: str | None


@dataclass(frozen=True, slots=True)
class LostMember:
    """A member that went without leaving. `noticed_at` is the first time that the group is seen to do without it."""

    group_id: str
    member_id: str
    process_id: str | None
    client_id: str | None
    last_seen_at: int
    noticed_at: int
    silent_ms: int
    how: str  # closed: its connection was; silent: it was not
    active_tasks: int
    standby_tasks: int
    warmup_tasks: int
    exchange_id: str | None


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """A status that answers carried, from the first that did until no member is told so any more."""

    group_id: str
    code: int
    name: str
    detail: str
    from_at: int
    to_at: int | None
    members: int
    exchange_id: str | None


@dataclass(frozen=True, slots=True)
class MemberSpan:
    """A member from its first sign to its end. `joined` is False where it was there before the recording."""

    group_id: str
    member_id: str
    process_id: str | None
    client_id: str | None
    endpoint: str | None
    from_at: int
    to_at: int | None
    joined: bool
    ended_by: str | None


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A value that a group, or a part of it that `key` names, has from `at` on."""

    at: int
    what: str  # state, group_epoch, assignment_epoch, topology_epoch, member_epoch, standby_goal, task, interval
    key: str
    value: int | str | None


@dataclass(slots=True)
class StreamsTimeline:
    """All that the events of one group told; `minutes` counts heartbeats, answers, errors and shutdown requests."""

    group_id: str
    first_at: int
    last_at: int
    tasks: list[StreamsTask] = field(default_factory=list)
    moves: list[StreamsMove] = field(default_factory=list)
    unheld: list[UnheldTask] = field(default_factory=list)
    lost: list[LostMember] = field(default_factory=list)
    statuses: list[GroupStatus] = field(default_factory=list)
    members: list[MemberSpan] = field(default_factory=list)
    changes: list[GroupChange] = field(default_factory=list)
    minutes: dict[int, list[int]] = field(default_factory=dict)
