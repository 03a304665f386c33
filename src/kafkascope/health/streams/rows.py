"""Row types of the marts about streams groups: tasks, moves, unheld tasks, lost members, statuses.

Times are microseconds since 1970, UTC; an end of None is after the recording. Durations are whole milliseconds.
"""

from dataclasses import dataclass, field

from kafkascope.health.streams.events import Role


@dataclass(frozen=True, slots=True)
class StreamsTask:
    """One task held by one member in one role over an interval: a row of `streams_tasks`.

    `pause_ms`, `previous_member_id` and `warm` apply to active tasks that had a holder before: how long it had none,
    who was the last, and whether the new member had it as a standby or warm-up until then.
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
    from_known: bool  # False: it was held at `from_at`, and perhaps before
    source: str  # heartbeat or describe
    previous_member_id: str | None
    pause_ms: int | None
    warm: bool | None
    from_exchange_id: str | None
    to_exchange_id: str | None


@dataclass(frozen=True, slots=True)
class StreamsMove:
    """An active task that a member took over from another one, or took again after a pause."""

    group_id: str
    subtopology_id: str
    partition: int
    from_member_id: str
    to_member_id: str
    released_at: int
    taken_at: int
    pause_ms: int
    cause: str  # what ended it at the previous member
    warm: bool
    exchange_id: str | None


@dataclass(frozen=True, slots=True)
class UnheldTask:
    """A task that no member held as active, while the group had members.

    `known` is False if the recording may not show every member: no member took the task in it, and no description
    showed the task without a holder.
    """

    group_id: str
    subtopology_id: str
    partition: int
    from_at: int
    to_at: int | None
    cause: str  # new, or what ended it at its last member
    ended_by: str | None  # taken, empty (the last member left), topology (its epoch changed), None at the end
    known: bool
    exchange_id: str | None


@dataclass(frozen=True, slots=True)
class LostMember:
    """A member that disappeared without leaving the group. `noticed_at` is when the group is first seen to go on
    without it."""

    group_id: str
    member_id: str
    process_id: str | None
    client_id: str | None
    last_seen_at: int
    noticed_at: int
    silent_ms: int
    how: str  # closed: its connection was closed; silent: it stayed open
    active_tasks: int
    standby_tasks: int
    warmup_tasks: int
    exchange_id: str | None


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """A status in responses, from the first response that has it until no member receives it any more."""

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
    """A member from its first sign to its end. `joined` is False if it was a member before the recording."""

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
    """A value that a group, or the part of it that `key` names, has from `at` on."""

    at: int
    what: str  # state, group_epoch, assignment_epoch, topology_epoch, member_epoch, standby_goal, task, interval
    key: str
    value: int | str | None


@dataclass(slots=True)
class StreamsTimeline:
    """Everything derived from the events of one group; `minutes` counts heartbeats, responses, errors and shutdown
    requests."""

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
