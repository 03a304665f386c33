"""A member of a share group: its membership, the leaders of its partitions and a share session at each of them. It
takes responses and the time, and returns requests; it never opens a socket or reads a clock."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafkascope.client.share.backoff import Backoff
from kafkascope.client.share.holding import Holding
from kafkascope.client.share.membership import API as HEARTBEAT
from kafkascope.client.share.membership import Membership
from kafkascope.client.share.session import Outcome, ShareSession
from kafkascope.client.share.values import (
    NOT_HELD,
    Acknowledge,
    AcknowledgeResult,
    Acquired,
    AcquireMode,
    Delivery,
    DeliveryId,
    FetchLimits,
    Problem,
    Range,
    SharePartition,
)
from kafkascope.limits import MAX_BUFFERED_RECORD_BYTES

METADATA_API = "Metadata"
_NOT_LEADER_OR_FOLLOWER = 6
# How long acknowledgements wait for a fetch to ride on.
LINGER = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Send:
    """A request. `node` is the broker, None for the group's coordinator (heartbeats) or any broker (Metadata)."""

    api: str
    value: dict[str, Any]
    node: int | None


@dataclass(slots=True)
class Counts:
    """Numbers of records (offsets), requests and events so far."""

    acquired: int = 0
    redelivered: int = 0
    accepted: int = 0
    released: int = 0
    rejected: int = 0
    gaps: int = 0
    renewed: int = 0
    refused: int = 0
    unknown: int = 0
    lost: int = 0
    fetches: int = 0
    acknowledges: int = 0
    ignored: int = 0


@dataclass(slots=True)
class _Leader:
    node: int
    epoch: int


@dataclass(slots=True)
class _Metadata:
    """Requests for the leaders of assigned partitions."""

    in_flight: Send | None = None
    stale: bool = False
    backoff: Backoff = field(default_factory=Backoff)


class ShareMember:
    """`deliveries`, `results` and `problems` are for the application, which empties them."""

    def __init__(self, membership: Membership, limits: FetchLimits) -> None:
        self.membership = membership
        self.limits = limits
        self.sessions: dict[int, ShareSession] = {}
        self.names: dict[UUID, str] = {}
        self.deliveries: deque[Delivery] = deque()
        self.results: list[AcknowledgeResult] = []
        self.problems: list[Problem] = []
        self.counts = Counts()
        self._leaders: dict[SharePartition, _Leader] = {}
        self._metadata = _Metadata()
        self._spread_for: tuple[frozenset[SharePartition], int] | None = None
        self._leaders_changed = 0
        self._last_node = -1
        self._queued_since: float | None = None
        self.sessions_opened = 0
        self._closing = False

    @property
    def closed(self) -> bool:
        return self._closing and not self.sessions and self.membership.done

    def poll(self, now: float, *, fetch: bool, flush: bool = False) -> list[Send]:
        """Requests to send now. `fetch` if the application wants records and has room for them; `flush` if it waits for
        the results of acknowledgements."""
        sends: list[Send] = []
        heartbeat = self.membership.request(now)
        if heartbeat is not None:
            sends.append(Send(HEARTBEAT, heartbeat, None))
        self._spread()
        if metadata := self._ask_for_leaders(now):
            sends.append(metadata)
        for session in self.sessions.values():
            self.counts.lost += session.expire(now)
        lingered = self._queued_since is not None and now >= self._queued_since + LINGER
        sends += self._session_requests(now, fetch, flush or lingered)
        if not any(session.queued for session in self.sessions.values()):
            self._queued_since = None
        if self._closing and not self.sessions:
            self.membership.leave()
            if (leave := self.membership.request(now)) is not None:
                sends.append(Send(HEARTBEAT, leave, None))
        return sends

    def next_at(self, now: float, *, fetch: bool) -> float:
        """When time alone makes `poll` send something more than it just did; infinite if only a response can."""
        times = [self.membership.due_at(), self._metadata.backoff.until]
        if self._queued_since is not None:
            times.append(self._queued_since + LINGER)
        times += [
            session.retry_at
            for session in self.sessions.values()
            if session.in_flight is None and ((fetch and session.wanted) or session.queued)
        ]
        return min((time for time in times if time > now), default=float("inf"))

    def received(self, send: Send, value: Mapping[str, Any], now: float) -> None:
        if send.api == HEARTBEAT:
            problem = self.membership.received(value, now)
            if problem is not None:
                self.problems.append(problem)
        elif send.api == METADATA_API:
            self._learn_leaders(value, now)
        elif send.node in self.sessions:
            opened = self.sessions[send.node].opened
            self._apply(self.sessions[send.node].received(value, now))
            self.sessions_opened += self.sessions[send.node].opened - opened

    def lost(self, send: Send, now: float) -> None:
        """No response to it, whatever the reason."""
        if send.api == HEARTBEAT:
            self.membership.lost(now)
        elif send.api == METADATA_API:
            self._metadata.in_flight = None
            self._metadata.backoff.failed(now)
        elif send.node in self.sessions:
            self._apply(self.sessions[send.node].lost(now))

    def acknowledge(
        self,
        now: float,
        partition: SharePartition,
        first: int,
        last: int,
        kind: int,
        delivery: DeliveryId | None = None,
    ) -> None:
        """Queues it; what isn't held is in `results` as refused, and so is what another response than `delivery`
        acquired."""
        holding = self._holding(partition, delivery)
        if holding is None:
            self._count([AcknowledgeResult(partition, first, last, kind, NOT_HELD, sent=False)])
            return
        self._count(holding.acknowledge(first, last, kind, delivery))
        if self._queued_since is None:
            self._queued_since = now

    def held(
        self, partition: SharePartition, first: int, last: int, delivery: DeliveryId | None = None
    ) -> Iterator[tuple[Range, float]]:
        """Ranges of those offsets that wait for an acknowledgement, and when the lock of each ends."""
        holding = self._holding(partition, delivery)
        return iter(()) if holding is None else holding.held(first, last, delivery)

    def waiting(self) -> Iterator[tuple[SharePartition, Acquired, float]]:
        """All that waits for an acknowledgement, and when its lock ends."""
        for session in self.sessions.values():
            for partition, holding in session.holdings.items():
                for acquired, until in holding.waiting():
                    yield partition, acquired, until

    @property
    def exhausted(self) -> int:
        """How many fetches in a row brought nothing, at the broker where these are the fewest; 0 while a partition has
        no leader to fetch from."""
        if any(partition not in self._leaders for partition in self.membership.assignment):
            return 0
        return min((session.empty_fetches for session in self.sessions.values() if session.wanted), default=0)

    def lock(
        self, partition: SharePartition, offset: int, delivery: DeliveryId | None = None
    ) -> tuple[int, float] | None:
        """Delivery count and end of the lock of an offset; None if it isn't ours any more."""
        holding = self._holding(partition, delivery)
        return None if holding is None else holding.find(offset, delivery)

    def close(self) -> None:
        """No more fetches. Sessions close with what is queued, which releases what is held; then the member leaves."""
        self._closing = True
        self.deliveries.clear()
        for session in self.sessions.values():
            session.close()

    @property
    def unsettled(self) -> bool:
        """Whether an acknowledgement waits to be sent, or for its result."""
        return any(session.unsettled for session in self.sessions.values())

    @property
    def held_offsets(self) -> int:
        """Offsets that wait for an acknowledgement, or for its result."""
        return sum(session.held_offsets for session in self.sessions.values())

    def _holding(self, partition: SharePartition, delivery: DeliveryId | None) -> Holding | None:
        """A late response of an old leader may be held beside that of the new one."""
        if delivery is not None:
            session = self.sessions.get(delivery.node)
            return None if session is None else session.holdings.get(partition)
        # A list: another thread may look here while sessions come and go.
        held = (session.holdings.get(partition) for session in list(self.sessions.values()))
        return next((holding for holding in held if holding is not None), None)

    def _spread(self) -> None:
        """Assigned partitions to the sessions of their leaders, if either has changed."""
        state = (self.membership.assignment, self._leaders_changed)
        if self._spread_for is not None and self._spread_for == state:
            return
        self._spread_for = state
        by_node: dict[int, set[SharePartition]] = {}
        for partition in () if self._closing else self.membership.assignment:
            leader = self._leaders.get(partition)
            if leader is not None:
                by_node.setdefault(leader.node, set()).add(partition)
        for node in by_node.keys() - self.sessions.keys():
            self.sessions[node] = ShareSession(node, self.membership.group, self.membership.member_id)
        for node, session in self.sessions.items():
            wanted = frozenset(by_node.get(node, ()))
            if wanted != session.wanted:
                session.wanted, session.empty_fetches = wanted, 0

    def _session_requests(self, now: float, fetch: bool, flush: bool) -> Iterator[Send]:
        most = 1 if self.limits.mode == AcquireMode.RECORD_LIMIT else self._most_fetches()
        fetching = sum(
            session.in_flight is not None and session.in_flight.limits is not None for session in self.sessions.values()
        )
        nodes = sorted(self.sessions)
        # The node after the last one that was asked comes first, so that each has its turn.
        turn = next((index for index, node in enumerate(nodes) if node > self._last_node), 0)
        for node in (*nodes[turn:], *nodes[:turn]):
            session = self.sessions[node]
            if session.useless and not self._closing:
                session.close()
            allowed = fetch and not self._closing and fetching < most
            request = session.request(now, self.limits if allowed else None, flush=flush)
            if request is None:
                if flush and not (fetch and session.wanted):
                    self._count(session.refuse_queued())
                if session.closed:
                    self._remove(node)
                continue
            if request.limits is not None:
                fetching += 1
                self._last_node = node
                self.counts.fetches += 1
            else:
                self.counts.acknowledges += 1
            yield Send(request.api, request.value, node)

    def _most_fetches(self) -> int:
        return max(1, MAX_BUFFERED_RECORD_BYTES // max(self.limits.max_bytes, 1))

    def _remove(self, node: int) -> None:
        """Its partitions may have come back while it closed."""
        del self.sessions[node]
        self._spread_for = None

    def _needs_leaders(self) -> bool:
        if self._closing:
            return False
        return self._metadata.stale or any(partition not in self._leaders for partition in self.membership.assignment)

    def _ask_for_leaders(self, now: float) -> Send | None:
        if self._metadata.in_flight is not None or now < self._metadata.backoff.until or not self._needs_leaders():
            return None
        self._metadata.stale = False
        topics = sorted({partition.topic_id for partition in self.membership.assignment})
        if not topics:
            return None
        value = {
            "topics": [{"topicId": topic_id, "name": None} for topic_id in topics],
            "allowAutoTopicCreation": False,
        }
        self._metadata.in_flight = Send(METADATA_API, value, None)
        return self._metadata.in_flight

    def _learn_leaders(self, value: Mapping[str, Any], now: float) -> None:
        self._metadata.in_flight = None
        assigned = self.membership.assignment
        topics = {partition.topic_id for partition in assigned}
        for topic in value["topics"]:
            topic_id, name = topic["topicId"], topic["name"]
            if topic_id not in topics:
                self.counts.ignored += 1
                continue
            if name:
                self.names[topic_id] = name
            for row in topic["partitions"]:
                partition = SharePartition(topic_id, row["partitionIndex"])
                if partition in assigned and row["leaderId"] >= 0:
                    self._set_leader(partition, row["leaderId"], row["leaderEpoch"])
        if any(partition not in self._leaders for partition in assigned):
            self._metadata.backoff.failed(now)
        else:
            self._metadata.backoff.reset()
        for partition in [partition for partition in self._leaders if partition not in assigned]:
            del self._leaders[partition]

    def _set_leader(self, partition: SharePartition, node: int, epoch: int) -> None:
        known = self._leaders.get(partition)
        if known is not None and epoch < known.epoch:
            return
        if known is None or known.node != node:
            self._leaders[partition] = _Leader(node, epoch)
            self._leaders_changed += 1
            self._move(partition, node)
        known = self._leaders[partition]
        known.epoch = epoch

    def _move(self, partition: SharePartition, leader: int) -> None:
        """What another broker locked for us is released: a leader's locks end with its leadership."""
        for node, session in self.sessions.items():
            if node != leader and partition in session.holdings:
                results, lost = session.holdings.pop(partition).end(_NOT_LEADER_OR_FOLLOWER)
                self._count(results)
                self.counts.lost += lost

    def _apply(self, outcome: Outcome) -> None:
        for change in outcome.leaders:
            known = self._leaders.get(change.partition)
            if change.leader >= 0 and known is not None and change.epoch > known.epoch:
                self._set_leader(change.partition, change.leader, change.epoch)
            elif known is not None:
                del self._leaders[change.partition]
                self._leaders_changed += 1
        self._metadata.stale = self._metadata.stale or outcome.stale
        self._count(outcome.results)
        self.problems += outcome.problems
        self.counts.ignored += outcome.ignored
        self.counts.lost += outcome.lost
        for delivery in outcome.deliveries:
            self.counts.acquired += delivery.offsets
            self.counts.redelivered += sum(
                piece.last - piece.first + 1 for piece in delivery.acquired if piece.delivery_count > 1
            )
            if self._closing:
                continue
            waiting = sum(len(waiting.data) for waiting in self.deliveries)
            if waiting and waiting + len(delivery.data) > MAX_BUFFERED_RECORD_BYTES:
                # More than was asked for. Its locks expire, and it's delivered again.
                self.counts.ignored += 1
                continue
            self.deliveries.append(delivery)

    def _count(self, results: list[AcknowledgeResult]) -> None:
        self.results += results
        for result in results:
            if result.code == 0:
                name = _COUNTED[result.type]
                setattr(self.counts, name, getattr(self.counts, name) + result.records)
            elif result.unknown:
                self.counts.unknown += result.records
            else:
                self.counts.refused += result.records


_COUNTED: dict[int, str] = {
    Acknowledge.GAP: "gaps",
    Acknowledge.ACCEPT: "accepted",
    Acknowledge.RELEASE: "released",
    Acknowledge.REJECT: "rejected",
    Acknowledge.RENEW: "renewed",
}
