"""Computes the lag of replicas from raft fetches and descriptions of one cluster, in time order.

From DescribeQuorum: lag is the leader's log end offset minus the replica's. A replica that has not fetched from this
leader shows -1: its lag is unknown (protocol note 55). Errors inside the partition come from nodes that don't lead.

From fetches: what the leader would have returned for DescribeQuorum, at most once per second, just before it responds
to a fetch. For each replica it keeps the offset of the last fetch, which is the replica's log end, and the times that
Kafka's own leader keeps (KIP-836): a fetch counts when it arrives and when its response is sent. The replica was caught
up then if it asked for the leader's log end, or at its previous fetch if it now asks for what was the end then. A
replica that falls silent keeps its offset while its lag and the age of its fetch grow.

No fetch states the leader's log end. It is at least the highest of: an offset that a replica of this epoch's log asked
for, the high watermark, the end of the records in a response (one past the requested offset, if only their size is
known), the leader's own row in a description. That is exact while a fetch for this offset has been waiting at the
leader for 20 ms, since new records would have completed it. In all other cases the lag is `at_least`.
"""

from collections.abc import Iterator
from dataclasses import replace

from kafkascope.health.quorum.elections import Elections
from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.rows import QuorumHappening, QuorumReplica

_SAMPLE_US = 1_000_000
_PROVEN_US = 20_000  # a leader that has records responds within a few milliseconds
_MOST_UNDECIDED = 20_000
_OBSERVER_SESSION_US = 300_000_000  # LeaderState drops an observer that hasn't fetched for this long

State = tuple[int | None, int | None, str | None, int | None, int | None, int | None, int | None]
_UNKNOWN: State = (None, None, None, None, None, None, None)  # of a replica that has not fetched from this leader


class _Replica:
    """A replica as the leader of `epoch` knows it. `prefix`: its log has been shown to be a prefix of the leader's."""

    __slots__ = (
        "caught_up_at",
        "directory_id",
        "epoch",
        "fetch_at",
        "fetch_end",
        "node_id",
        "offset",
        "prefix",
        "wait",
    )

    node_id: int
    directory_id: str | None
    epoch: int
    prefix: bool
    offset: int | None
    fetch_at: int | None
    caught_up_at: int | None
    fetch_end: int | None
    wait: tuple[int, int, int] | None  # the offset that it waits at, since when and until when

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.directory_id = None
        self.reset(-1)

    def reset(self, epoch: int) -> None:
        self.epoch = epoch
        self.prefix = False
        self.offset = self.fetch_at = self.caught_up_at = self.fetch_end = self.wait = None

    def fetched(self, at: int, offset: int, leader_end: int) -> None:
        if offset >= leader_end:
            self.caught_up_at = at
        elif self.fetch_end is not None and offset >= self.fetch_end:
            self.caught_up_at = self.fetch_at
        self.offset, self.fetch_at, self.fetch_end = offset, at, leader_end


class Replicas:
    """Follows the leader that `elections` knows, so pass each event to `elections` first. State is what is annotated
    here; rows aren't, which whoever stores it has taken."""

    elections: Elections
    _replicas: dict[int, _Replica]
    _leader_epoch: int
    _log_end: int
    _high_watermark: int
    _sampled: int
    _batch: list[QuorumEvent]
    _described: tuple[int, int, int | None, int] | None
    _voters: frozenset[int] | None
    _observers: frozenset[int]
    _voting: set[int]
    _connections: dict[str | None, int]  # that lead to the leader: who fetches over each
    _fetched_in_begun: set[int]
    # Rows that wait for a role. Where they are many they are taken without: then `_assumed` is the role that they have.
    _undecided: list[QuorumReplica]
    _assumed: dict[int, str | None]

    def __init__(self, elections: Elections) -> None:
        self.elections = elections
        self.changes: list[QuorumHappening] = []
        self._rows: list[QuorumReplica] = []
        self._replicas = {}
        self._leader_epoch = -1
        self._log_end = 0
        self._high_watermark = -1
        self._sampled = -1
        self._batch = []
        self._described = None
        self._voters = None
        self._observers = frozenset()
        self._voting = set()
        self._connections = {}
        self._fetched_in_begun = set()
        self._undecided = []
        self._assumed = {}

    @property
    def is_as_assumed(self) -> bool:
        """Whether later events left the roles as they were in rows that have been taken."""
        return all(self._final_role(node_id) == role for node_id, role in self._assumed.items())

    def taken(self) -> list[QuorumReplica]:
        """The rows so far whose role is known."""
        rows, self._rows = self._rows, []
        self._undecided += [row for row in rows if row.role is None]
        decided = [row for row in rows if row.role is not None]
        return decided + self._decided() if len(self._undecided) > _MOST_UNDECIDED else decided

    def _decided(self) -> list[QuorumReplica]:
        """Rows that wait for a role, as if nothing came later."""
        rows, self._undecided = self._undecided, []
        self._assumed |= {row.replica_id: self._final_role(row.replica_id) for row in rows}
        return [replace(row, role=self._assumed[row.replica_id]) for row in rows]

    def _final_role(self, node_id: int) -> str | None:
        return self._role(node_id) or ("observer" if node_id in self._fetched_in_begun else None)

    def feed(self, event: QuorumEvent) -> None:
        kind = event.kind
        if self._batch and (kind != "described" or event.exchange_id != self._batch[0].exchange_id):
            self._flush()
        if kind == "fetch":
            self._fetch(event)
        elif kind == "fetch_answer":
            if not event.error_code:
                self._answer(event)
        elif kind == "described":
            if not event.error_code:
                self._batch.append(event)
        elif kind == "disconnected":
            self._disconnected(event)
        elif kind == "vote" or kind == "begin":
            named = (event.node_id, event.peer_id, event.leader_id)
            self._voting.update(node_id for node_id in named if node_id is not None and node_id >= 0)

    def _replica(self, event: QuorumEvent) -> _Replica:
        node_id = -1 if event.node_id is None else event.node_id
        replica = self._replicas.get(node_id)
        if replica is None:
            replica = self._replicas[node_id] = _Replica(node_id)
        if event.directory_id is not None:
            replica.directory_id = event.directory_id
        if replica.epoch != self.elections.leader_epoch:
            replica.reset(self.elections.leader_epoch)
        return replica

    def _fetch(self, event: QuorumEvent) -> None:
        leading = self.elections
        if event.leader_epoch != leading.leader_epoch or event.broker not in leading.addresses:
            return
        self._turn()
        replica, at, offset = self._replica(event), event.at_us, event.offset or 0
        self._connections[event.connection_id] = replica.node_id
        if replica.prefix:  # otherwise its log may have records that the leader's lacks
            if offset > self._log_end:
                self._log_end = offset
            replica.fetched(at, offset, self._log_end)
            replica.wait = (offset, at, at + (event.max_wait_ms or 0) * 1000)

    def _answer(self, event: QuorumEvent) -> None:
        leading = self.elections
        if event.leader_id != leading.leader or event.leader_epoch != leading.leader_epoch:
            return
        at, offset = event.at_us, event.offset or 0
        if at // _SAMPLE_US != self._sampled and self._leader_epoch == leading.leader_epoch:
            self._sampled = at // _SAMPLE_US
            self._rows += self.now(at, event.exchange_id)
        self._turn()
        replica = self._replica(event)
        replica.wait = None
        if leading.leader_epoch in leading.begun:
            self._fetched_in_begun.add(replica.node_id)
        high_watermark, size = event.high_watermark, event.records_bytes
        if high_watermark is not None and high_watermark > self._high_watermark:
            self._high_watermark = high_watermark
        if event.how is None:
            replica.prefix = True
            end = max(event.end_offset or 0, offset + 1 if size else offset)
            self._log_end = max(self._log_end, end, self._high_watermark)
            replica.fetched(at, offset, self._log_end)

    def _disconnected(self, event: QuorumEvent) -> None:
        node_id = self._connections.pop(event.connection_id, None)
        if node_id is not None:
            epoch = self.elections.leader_epoch
            self.changes.append(QuorumHappening(event.at_us, "disconnected", epoch, node_id, detail=event.how))

    def _turn(self) -> None:
        """A new leader's log has everything committed; records that only the old leader had may be gone."""
        if self._leader_epoch != self.elections.leader_epoch:
            self._connections.clear()
            self._leader_epoch = self.elections.leader_epoch
            self._log_end = max(0, self._high_watermark)

    def now(self, at: int, exchange_id: str | None) -> list[QuorumReplica]:
        """Rows for the leader and every replica that ever fetched, as the leader knows them at `at`."""
        leader, epoch, end = self.elections.leader, self._leader_epoch, self._log_end
        if leader is None or epoch != self.elections.leader_epoch:
            return []
        waits = (replica.wait for replica in self._replicas.values() if replica.epoch == epoch)
        exact = any(wait and wait[0] == end and wait[1] + _PROVEN_US <= at <= wait[2] for wait in waits)
        mark = None if self._high_watermark < 0 else self._high_watermark
        bound = "exact" if exact else "at_least"
        directory_id = self._replicas[leader].directory_id if leader in self._replicas else None
        rows = [
            QuorumReplica(
                at, "fetch", leader, epoch, mark, leader, directory_id, "leader", end, 0, bound, 0, 0, at, at,
                exchange_id,
            )
        ]  # fmt: skip
        for replica in list(self._replicas.values()):
            node_id, role = replica.node_id, self._role(replica.node_id)
            if node_id == leader:
                continue
            offset, fetch_at, caught_up_at = replica.offset, replica.fetch_at, replica.caught_up_at
            if replica.epoch != epoch or offset is None or fetch_at is None:
                state = _UNKNOWN
            elif role != "follower" and at - fetch_at > _OBSERVER_SESSION_US:
                del self._replicas[node_id]
                continue
            else:
                lag, age = max(0, end - offset), (at - fetch_at) // 1000
                lag_ms = 0 if lag == 0 else None if caught_up_at is None else (at - caught_up_at) // 1000
                state = (offset, lag, bound, lag_ms, age, fetch_at, caught_up_at)
            rows.append(
                QuorumReplica(
                    at, "fetch", leader, epoch, mark, node_id, replica.directory_id, role, *state, exchange_id
                )
            )  # fmt: skip
        return rows

    def _flush(self) -> None:
        """Adds a whole description. Brokers forward the request to the leader, so the recording may have the response
        twice."""
        batch, self._batch = self._batch, []
        first = batch[0]
        at, leader, epoch = first.at_us, first.leader_id, first.leader_epoch
        if leader is None or epoch is None:
            return
        own = next((event for event in batch if event.node_id == leader), None)
        stamp = (leader, epoch, own.last_fetch_ms, len(batch)) if own and (own.last_fetch_ms or -1) >= 0 else None
        if stamp is not None and stamp == self._described:
            return
        self._described = stamp
        end = own.offset if own is not None and (own.offset or -1) >= 0 else None
        if epoch == self.elections.leader_epoch:
            self._turn()
            self._high_watermark = max(self._high_watermark, first.high_watermark or -1)
            self._log_end = max(self._log_end, end or 0, self._high_watermark)
        mark = _known(first.high_watermark)
        now, now_caught = (_known(own.last_fetch_ms), _known(own.last_caught_up_ms)) if own else (None, None)
        for event in batch:
            node_id = -1 if event.node_id is None else event.node_id
            role = "leader" if node_id == leader else "follower" if event.voter else "observer"
            offset, fetch, caught = _known(event.offset), _known(event.last_fetch_ms), _known(event.last_caught_up_ms)
            lag = None if end is None or offset is None else end - offset
            lag_ms = 0 if lag == 0 else None if caught is None or now_caught is None else now_caught - caught
            age = None if fetch is None or now is None else now - fetch
            fetch_at, caught_up_at = (None if value is None else value * 1000 for value in (fetch, caught))
            bound = None if lag is None else "exact"
            self._rows.append(
                QuorumReplica(
                    at, "describe", leader, epoch, mark, node_id, event.directory_id, role, offset, lag, bound,
                    lag_ms, age, fetch_at, caught_up_at, event.exchange_id,
                )
            )  # fmt: skip
        voters = frozenset(event.node_id for event in batch if event.voter and event.node_id is not None)
        if self._voters is not None and voters != self._voters:
            detail = f"{_ids(self._voters)} to {_ids(voters)}"
            self.changes.append(
                QuorumHappening(at, "voters_changed", epoch, None, detail=detail, exchange_id=first.exchange_id)
            )
        self._voters = voters
        self._observers = frozenset(event.node_id for event in batch if not event.voter and event.node_id is not None)

    def _role(self, node_id: int) -> str | None:
        """The role in the last description; a node that takes part in votes and announcements is a voter."""
        if self._voters is not None and node_id in self._voters:
            return "follower"
        if node_id in self._observers:
            return "observer"
        return "follower" if node_id in self._voting else None

    def finish(self) -> Iterator[QuorumReplica]:
        """The rows by time. Roles that were unknown are filled in from later events. A replica that fetched from a
        leader whose announcements are in the recording, and never took part in them or in votes, is an observer."""
        if self._batch:
            self._flush()
        rows, self._rows = [*self._undecided, *self._rows], []
        self._undecided = [row for row in rows if row.role is None]
        decided = {id(row): known for row, known in zip(self._undecided, self._decided(), strict=True)}
        yield from (decided.get(id(row), row) for row in rows)


def _known(value: int | None) -> int | None:
    return None if value is None or value < 0 else value


def _ids(nodes: frozenset[int]) -> str:
    return ",".join(map(str, sorted(nodes)))
