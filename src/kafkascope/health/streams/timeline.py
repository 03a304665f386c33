"""Builds the timeline of one streams group from its events in time order: tasks, moves, unheld tasks, lost members,
statuses.

What the wire proves, and what not:

- A member holds what its request reports, from the time of that request; null is unchanged (KIP-1071, protocol note
  53). A response grants: it shows that a task exists, but nobody holds it before a request reports it. A description
  shows what a member holds only until the member has reported itself.
- Member epochs -1 and -2 leave. A response FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID ends what the member held.
- A member that crashes sends nothing (protocol note 54). It is lost when it is silent (its connection closed, or no
  heartbeat for twice its interval) and the group goes on without it: another member is granted its active task, or a
  description leaves it out; or when it is silent for the session timeout while the recording continues. It held its
  tasks until its connection closed or, if that isn't recorded, until its last request.
- If nothing of a group with members is recorded for the session timeout, the recording has a hole: what was held ends
  at its member's last request, as `unseen`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from kafkascope.health.state import decoded, encoded
from kafkascope.health.streams.events import (
    STATUS_NAMES,
    Role,
    StreamsEvent,
    statuses_of,
    task_parts,
    tasks_of,
    topology_tasks,
)
from kafkascope.health.streams.ledger import Ledger, Member
from kafkascope.health.streams.rows import (
    GroupChange,
    GroupStatus,
    LostMember,
    MemberSpan,
    StreamsTask,
    StreamsTimeline,
)

SESSION_TIMEOUT_MS = 45_000  # group.streams.session.timeout.ms by default; no message has it
MINUTE_US = 60_000_000

# Of a minute: heartbeats, responses, errors, requests to shut down.
_COUNTS = 4

_UNKNOWN_MEMBER_ID = 25
_FENCED_MEMBER_EPOCH = 110


def rows_of(events: Iterable[StreamsEvent], session_timeout_ms: int = SESSION_TIMEOUT_MS) -> Iterator[StreamsTask]:
    """The rows of `streams_tasks`, by the time at which each was taken."""
    timeline = timeline_of(events, session_timeout_ms)
    if timeline is not None:
        yield from timeline.tasks


def timeline_of(events: Iterable[StreamsEvent], session_timeout_ms: int = SESSION_TIMEOUT_MS) -> StreamsTimeline | None:
    """Returns None if there are no events. Rows are sorted by their start."""
    walk = StreamsWalk(session_timeout_ms=session_timeout_ms)
    for event in events:
        walk.feed(event)
    return walk.finish()


class StreamsWalk:
    """Goes through the events of one group, from the beginning or from the state that an earlier walk left. State has
    the rows so far: later events change some, and minutes are made from all."""

    def __init__(self, state: object = None, *, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> None:
        """`ValueError` for a state that no walk leaves."""
        self._timeout_us = session_timeout_ms * 1000
        self._group = None if state is None else _resumed(state)

    def feed(self, event: StreamsEvent) -> None:
        if self._group is None:
            self._group = _GroupState(event.group_id, event.at_us, self._timeout_us)
        self._group.feed(event)

    def state(self) -> object:
        """For JSON; None before the first event."""
        return None if self._group is None else encoded(self._group, _GroupState)

    def finish(self) -> StreamsTimeline | None:
        return None if self._group is None else self._group.finish()


def _resumed(state: object) -> "_GroupState":
    group = decoded(state, _GroupState)
    group.members = group.ledger.members
    if group.timeline is not group.ledger.timeline or (group.minute >= 0) != (group.minute in group.timeline.minutes):
        raise ValueError("parts of a state don't belong together")
    group.counts = group.timeline.minutes.get(group.minute, [])
    places = (place for member in group.members.values() for _, place in member.copies.values())
    if not all(0 <= place < len(group.timeline.tasks) for place in places):
        raise ValueError("a copy of a task without its row")
    if not all(len(counts) == _COUNTS for counts in group.timeline.minutes.values()):
        raise ValueError("counts of a minute")
    return group


class _Status:
    __slots__ = ("detail", "exchange_id", "from_at", "members", "most")

    detail: str
    exchange_id: str | None
    from_at: int
    members: set[str]
    most: int

    def __init__(self, detail: str, from_at: int, exchange_id: str | None) -> None:
        self.detail, self.from_at, self.exchange_id = detail, from_at, exchange_id
        self.members = set()
        self.most = 0


class _GroupState:
    """The state of the group so far. `gone` are members that a heartbeat can bring back, but a description can't. What
    is annotated here is stored; the rest is part of it."""

    timeline: StreamsTimeline
    ledger: Ledger
    session_timeout_us: int
    gone: set[str]
    listed: set[str]
    targets: Counter[str]
    statuses: dict[int, _Status]
    latest: dict[tuple[str, str], int | str | None]
    topology_epoch: int | None
    stateful: frozenset[str]
    standby_replicas: int | None
    goals: dict[str, int]
    minute: int

    def __init__(self, group_id: str, at: int, session_timeout_us: int) -> None:
        self.timeline = StreamsTimeline(group_id, at, at)
        self.ledger = Ledger(self.timeline)
        self.members = self.ledger.members
        self.session_timeout_us = session_timeout_us
        self.gone, self.listed, self.targets = set(), set(), Counter()
        self.statuses, self.latest, self.goals = {}, {}, {}
        self.topology_epoch = self.standby_replicas = None
        self.stateful = frozenset()
        self.minute = -1
        self.counts: list[int] = []

    def feed(self, event: StreamsEvent) -> None:
        at, kind = event.at_us, event.kind
        minute = at // MINUTE_US
        if minute != self.minute or kind == "seen" or at - self.timeline.last_at > self.session_timeout_us:
            self._turn(at, minute, kind)
        if kind == "heartbeat":
            self.counts[0] += 1
            self._heartbeat(event)
        elif kind == "answer":
            self.counts[1] += 1
            self._answer(event)
        elif kind == "described_member":
            self._described_member(event)
        elif kind == "described":
            self._described(event)
        elif kind == "disconnected":
            for member in self.members.values():
                if member.connection_id == event.connection_id:
                    member.closed_at = at
        elif kind == "config":
            self.standby_replicas = event.value
            self._set_goals(at)
        if at > self.timeline.last_at:
            self.timeline.last_at = at

    def _turn(self, at: int, minute: int, kind: str) -> None:
        """Once per minute, and after a long silence: ends members that have been silent for too long, and finds
        holes."""
        last = self.timeline.last_at
        hole = at - last > self.session_timeout_us and kind != "seen"
        for member in list(self.members.values()):
            if member.last_request_at is None or at - member.last_request_at < self.session_timeout_us:
                continue
            if hole and member.closed_at is None:
                self._end(member, member.last_request_at, "unseen", None)
            else:
                self._lose(member, at, None)
        if hole and not any(member.last_request_at is None for member in self.members.values()):
            self.ledger.close_gaps(last, "unseen")
            self.ledger.forget()
        if kind != "seen":
            self.minute = minute
            self.counts = self.timeline.minutes.setdefault(minute, [0] * _COUNTS)

    def _heartbeat(self, event: StreamsEvent) -> None:
        at, member_id, epoch = event.at_us, event.member_id or "", event.member_epoch or 0
        member = self.members.get(member_id)
        if epoch < 0:
            if member is None:
                member = self._add(event, joined=False)
            self._end(member, at, "left", event.exchange_id)
            return
        if member is None:
            member = self._add(event, joined=epoch == 0)
        elif epoch == 0:
            member.joined = True
        member.last_request_at, member.connection_id, member.closed_at = at, event.connection_id, None
        if event.client_id is not None:
            member.client_id = event.client_id
        if event.process_id is not None:
            member.process_id = event.process_id
        if event.endpoint is not None:
            member.endpoint = event.endpoint
        if event.topology_epoch is not None:
            self._topology(at, event.topology_epoch)
        if event.value:
            self.counts[3] += 1
        if event.active is not None or event.standby is not None or event.warmup is not None:
            self._report(member, event, "heartbeat", "rejoined" if epoch == 0 else "revoked")

    def _answer(self, event: StreamsEvent) -> None:
        at, member = event.at_us, self.members.get(event.member_id or "")
        if event.error_code:
            self.counts[2] += 1
            if member is not None and event.error_code in (_UNKNOWN_MEMBER_ID, _FENCED_MEMBER_EPOCH):
                self._end(member, at, "fenced", event.exchange_id)
            return
        if member is None:
            return
        if event.member_epoch is not None and event.member_epoch != member.epoch:
            member.epoch = event.member_epoch
            self._change(at, "member_epoch", member.member_id, member.epoch)
        interval = event.heartbeat_interval_ms
        if interval is not None and member.interval_us != interval * 1000:
            member.interval_us = interval * 1000
            self._change(at, "interval", "", interval)
        if event.active is not None:
            for task in tasks_of(event.active):
                owner = self.ledger.know(task, at, event.exchange_id).owner
                if owner is not None and owner is not member and self._silent(owner, at):
                    self._lose(owner, at, event.exchange_id)
        if event.standby is not None:
            for task in tasks_of(event.standby):
                self.ledger.know(task, at, event.exchange_id)
        if event.status is not None:
            codes = statuses_of(event.status)
            if codes != member.codes:
                self._set_statuses(member, codes, at, event.exchange_id)

    def _described_member(self, event: StreamsEvent) -> None:
        at, member_id = event.at_us, event.member_id or ""
        self.listed.add(member_id)
        if event.error_code or member_id in self.gone:
            return
        member = self.members.get(member_id) or self._add(event, joined=False)
        member.client_id = event.client_id or member.client_id
        member.process_id = event.process_id or member.process_id
        member.endpoint = event.endpoint or member.endpoint
        if event.member_epoch is not None and event.member_epoch != member.epoch:
            member.epoch = event.member_epoch
            self._change(at, "member_epoch", member_id, member.epoch)
        for text in (event.active, event.standby, event.target_active, event.target_standby):
            for task in tasks_of(text or ""):
                self.ledger.know(task, at, event.exchange_id)
        self.targets.update(tasks_of(event.target_standby or ""))
        if member.held is None or member.last_request_at is None:
            self._report(member, event, "describe", "revoked")

    def _described(self, event: StreamsEvent) -> None:
        at, listed, targets = event.at_us, self.listed, self.targets
        self.listed, self.targets = set(), Counter()
        if event.error_code:  # a group with an error has no members, which doesn't make it empty
            return
        self._change(at, "state", "", event.group_state)
        self._change(at, "group_epoch", "", event.group_epoch)
        self._change(at, "assignment_epoch", "", event.assignment_epoch)
        if event.topology_epoch is not None:
            self._topology(at, event.topology_epoch)
        for task in topology_tasks(event.topology or ""):
            self.ledger.know(task, at, event.exchange_id)
        self.stateful = frozenset((event.stateful or "").split(",")) - {""}
        for member in list(self.members.values()):
            if member.member_id in listed:
                continue
            if member.last_request_at is None:
                self._end(member, at, "gone", event.exchange_id)
            elif self._silent(member, at):
                self._lose(member, at, event.exchange_id)
        for task, count in targets.items():
            self._raise_goal(at, task_parts(task)[0], count)
        self._set_goals(at)
        if all(member.held is not None for member in self.members.values()):
            self.ledger.prove_gaps()

    def _add(self, event: StreamsEvent, joined: bool) -> Member:
        member = Member(event.member_id or "", event.at_us, joined, event.client_id, event.process_id, event.endpoint)
        if joined:
            member.held = {}
        first = not self.members
        self.members[member.member_id] = member
        self.gone.discard(member.member_id)
        if first:
            self.ledger.group_filled(event.at_us, event.exchange_id)
        return member

    def _report(self, member: Member, event: StreamsEvent, source: str, ended_by: str) -> None:
        """Sets what the member holds from now on; a list that is null stays as it was."""
        at, exchange_id, ledger = event.at_us, event.exchange_id, self.ledger
        known = member.held is not None and source == "heartbeat"
        if member.held is None:
            member.held = {}
        roles: dict[str, Role] = {}
        reported_roles: list[Role] = []
        lists: tuple[tuple[Role, str | None], ...] = (
            ("warmup", event.warmup),
            ("standby", event.standby),
            ("active", event.active),
        )
        for role, text in lists:
            if text is not None:
                reported_roles.append(role)
            if text:
                roles.update(dict.fromkeys(tasks_of(text), role))
        for task, hold in list(member.held.items()):
            role_now = roles.get(task)
            if role_now == hold.role:
                del roles[task]
            elif role_now is not None:
                how = "promoted" if role_now == "active" else "demoted" if hold.role == "active" else "changed"
                ledger.drop(member, task, at, how, exchange_id)
            elif hold.role in reported_roles:
                ledger.drop(member, task, at, ended_by, exchange_id)
        for task in sorted(roles):
            ledger.take(member, task, roles[task], at, known, source, exchange_id)

    def _silent(self, member: Member, at: int) -> bool:
        if member.last_request_at is None:
            return False
        return member.closed_at is not None or at - member.last_request_at >= member.patience_us()

    def _lose(self, member: Member, at: int, exchange_id: str | None) -> None:
        assert member.last_request_at is not None
        last = member.last_request_at if member.closed_at is None else member.closed_at
        roles = Counter(hold.role for hold in (member.held or {}).values())
        self.timeline.lost.append(
            LostMember(
                self.timeline.group_id,
                member.member_id,
                member.process_id,
                member.client_id,
                last,
                at,
                (at - last) // 1000,
                "silent" if member.closed_at is None else "closed",
                roles["active"],
                roles["standby"],
                roles["warmup"],
                exchange_id,
            )
        )
        self._end(member, last, "lost", exchange_id)

    def _end(self, member: Member, at: int, ended_by: str | None, exchange_id: str | None) -> None:
        for task in sorted(member.held or ()):
            self.ledger.drop(member, task, at, ended_by or "closed", exchange_id)
        self._set_statuses(member, (), at, exchange_id)
        self._span(member, at, ended_by)
        del self.members[member.member_id]
        self.gone.add(member.member_id)
        if not self.members and ended_by in ("left", "gone"):
            self.ledger.close_gaps(at, "empty")

    def _span(self, member: Member, to_at: int | None, ended_by: str | None) -> None:
        self.timeline.members.append(
            MemberSpan(
                self.timeline.group_id,
                member.member_id,
                member.process_id,
                member.client_id,
                member.endpoint,
                member.from_at,
                to_at,
                member.joined,
                ended_by,
            )
        )

    def _set_statuses(
        self, member: Member, codes: tuple[tuple[int, str], ...], at: int, exchange_id: str | None
    ) -> None:
        now = dict(codes)
        for code, _ in member.codes:
            if code not in now and code in self.statuses:
                status = self.statuses[code]
                status.members.discard(member.member_id)
                if not status.members:
                    self._status_row(code, self.statuses.pop(code), max(at, status.from_at))
        for code, detail in codes:
            status = self.statuses.setdefault(code, _Status(detail, at, exchange_id))
            status.members.add(member.member_id)
            status.most = max(status.most, len(status.members))
        member.codes = codes

    def _status_row(self, code: int, status: _Status, to_at: int | None) -> None:
        name = STATUS_NAMES.get(code, str(code))
        self.timeline.statuses.append(
            GroupStatus(
                self.timeline.group_id,
                code,
                name,
                status.detail,
                status.from_at,
                to_at,
                status.most,
                status.exchange_id,
            )
        )

    def _topology(self, at: int, epoch: int) -> None:
        """A higher epoch is a different topology, which may lack tasks that nobody holds."""
        if self.topology_epoch is not None and epoch <= self.topology_epoch:
            return
        if self.topology_epoch is not None:
            self.ledger.close_gaps(at, "topology")
            held = {task for member in self.members.values() for task in member.held or ()}
            for task in [task for task in self.ledger.tasks if task not in held]:
                del self.ledger.tasks[task]
            for subtopology in self.goals:
                self._change(at, "standby_goal", subtopology, 0)
            self.goals.clear()
        self.topology_epoch = epoch
        self._change(at, "topology_epoch", "", epoch)

    def _set_goals(self, at: int) -> None:
        if self.standby_replicas is not None:
            for subtopology in self.stateful:
                self._raise_goal(at, subtopology, self.standby_replicas)

    def _raise_goal(self, at: int, subtopology: str, standbys: int) -> None:
        """The most standbys per task that a target ever had, or that the group's configuration asks for."""
        if standbys > self.goals.get(subtopology, 0):
            self.goals[subtopology] = standbys
            self._change(at, "standby_goal", subtopology, standbys)

    def _change(self, at: int, kind: str, key: str, value: int | str | None) -> None:
        if value is not None and self.latest.get((kind, key)) != value:
            self.latest[kind, key] = value
            self.timeline.changes.append(GroupChange(at, kind, key, value))

    def finish(self) -> StreamsTimeline:
        """The end of the recording: what is still held has no end, unless its member's connection was closed."""
        timeline, at = self.timeline, self.timeline.last_at
        for member in list(self.members.values()):
            if member.last_request_at is None:
                continue
            if at - (member.closed_at or member.last_request_at) >= self.session_timeout_us:
                self._lose(member, at, None)
            elif member.closed_at is not None:
                self._end(member, member.closed_at, "closed", None)
        for member in self.members.values():
            for task, hold in (member.held or {}).items():
                self.ledger.row(member, task, hold, None, None, None)
            self._span(member, None, None)
        for code, status in self.statuses.items():
            self._status_row(code, status, None)
        self.ledger.close_gaps(at, None)
        timeline.tasks.sort(key=lambda row: (row.from_at, row.subtopology_id, row.partition, row.member_id, row.role))
        timeline.moves.sort(key=lambda row: (row.taken_at, row.subtopology_id, row.partition))
        timeline.unheld.sort(key=lambda row: (row.from_at, row.subtopology_id, row.partition))
        timeline.members.sort(key=lambda row: (row.from_at, row.member_id))
        timeline.statuses.sort(key=lambda row: (row.from_at, row.code))
        return timeline
