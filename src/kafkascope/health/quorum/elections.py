"""Derives leaders, elections and votes from the raft messages of one cluster in time order.

A node shows that it leads by what only a leader sends: a Fetch response without an error, BeginQuorumEpoch,
EndQuorumEpoch, a DescribeQuorum response without an error. Other nodes name the leader too, in responses with an error;
that can announce a new epoch, but doesn't prove that an old leader is alive. An epoch has one leader (KIP-595);
messages about an older epoch change nothing.

An election lasts from the last sign of the old leader to the first of the new one. Its cause is the first that holds:

- `resigned`: the old leader sent EndQuorumEpoch in its epoch. A node that restarts with an old epoch on its disk sends
  it late, is refused with FENCED_LEADER_EPOCH, and hasn't resigned.
- `lost`: since its last sign a connection to the old leader was closed, or a fetch to it is overdue.
- `timeout`: a voter asked for votes and nothing showed that the old leader failed: the voter hadn't heard from it.
- `no_leader`: when the recording began, the nodes reported that they had no leader.
- `unknown`: the recording doesn't show it.
"""

from dataclasses import replace

from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.rows import QuorumHappening


class Elections:
    """`leader` leads `leader_epoch`, as far as is known; `epoch` is the highest that any message named. State is what
    is annotated here; `rows` aren't, which whoever stores it has taken."""

    leader: int | None
    leader_epoch: int
    epoch: int
    addresses: set[str | None]
    begun: set[int]
    _first_at: int | None
    _last_at: int
    _last_sign: int
    _none_led: bool
    _resigned_at: int | None
    _closed: tuple[int, str] | None
    _connections: set[str | None]
    _waiting: dict[int | None, tuple[int, int, str | None]]
    _votes: dict[int, QuorumEvent]
    _pre_vote_at: int | None
    _vote_requests: dict[str | None, QuorumEvent]
    _once: set[tuple[str, int | None, int | None]]

    def __init__(self) -> None:
        self.rows: list[QuorumHappening] = []
        self.leader = None
        self.leader_epoch = -1
        self.epoch = -1
        self.addresses = set()
        self.begun = set()
        self._first_at = None
        self._last_at = 0
        self._last_sign = 0
        self._none_led = False
        self._resigned_at = None
        self._closed = None
        self._connections = set()
        self._waiting = {}
        self._votes = {}
        self._pre_vote_at = None
        self._vote_requests = {}
        self._once = set()

    def feed(self, event: QuorumEvent) -> None:
        kind = event.kind
        self._last_at = event.at_us
        if self._first_at is None:
            self._first_at = event.at_us
        if kind == "fetch":
            epoch = event.leader_epoch
            if epoch is not None and epoch > self.epoch:
                self.epoch = epoch
            if epoch == self.leader_epoch and event.broker in self.addresses:
                self._waiting[event.node_id] = (event.at_us, event.max_wait_ms or 0, event.exchange_id)
        elif kind == "fetch_answer":
            waiting = self._waiting.get(event.node_id)
            if waiting is not None and waiting[2] == event.exchange_id:
                del self._waiting[event.node_id]
            self._leader_reported(event, not event.error_code)
        elif kind == "described":
            if not event.error_code:
                self._leader_reported(event, True)
        elif kind == "disconnected":
            if event.connection_id in self._connections and self._closed is None:
                self._closed = (event.at_us, event.how or "closed")
        elif kind == "vote":
            self._vote(event)
        elif kind == "vote_answer":
            request = self._vote_requests.pop(event.exchange_id, event)
            self._vote_row(request, event)
            self._leader_reported(event, False)
        elif kind == "begin":
            self._leader_reported(event, True)
            self.begun.add(event.leader_epoch if event.leader_epoch is not None else -1)
            self._add_once(event, "announced", event.leader_id, event.peer_id)
        elif kind == "end":
            self._end(event)
        elif kind in ("begin_answer", "end_answer"):
            self._leader_reported(event, False)

    def _leader_reported(self, event: QuorumEvent, by_itself: bool) -> None:
        """A message named the epoch, and its leader if it has one."""
        leader, epoch = event.leader_id, event.leader_epoch
        if epoch is None:
            return
        if leader is None or leader < 0:
            if self.leader is None:
                self._none_led = True
        elif epoch > self.leader_epoch:
            self._elected(event, leader, epoch)
        if epoch > self.epoch:
            self.epoch = epoch
        if by_itself and leader == self.leader and epoch == self.leader_epoch:
            self._last_sign = event.at_us
            self._closed = self._pre_vote_at = None
            if event.kind == "fetch_answer":
                self.addresses.add(event.broker)
                self._connections.add(event.connection_id)

    def _elected(self, event: QuorumEvent, leader: int, epoch: int) -> None:
        at, old, voted = event.at_us, self.leader, epoch in self._votes
        for failed in sorted(self._votes):
            if failed < epoch:
                vote = self._votes[failed]
                self.rows.append(
                    QuorumHappening(vote.at_us, "election_failed", failed, vote.node_id, exchange_id=vote.exchange_id)
                )
        starts = [vote.at_us for vote in self._votes.values()]
        starts += [] if self._pre_vote_at is None else [self._pre_vote_at]
        seen = old is not None or voted or self._none_led or 0 <= self.epoch < epoch
        cause, detail = self._cause(at)
        self.rows.append(
            QuorumHappening(
                at,
                "elected" if seen else "observed",
                epoch,
                leader,
                cause if seen else "unknown",
                None if old is None else (at - self._last_sign) // 1000,
                (at - min(starts)) // 1000 if starts and seen else None,
                None if old is None else epoch - self.leader_epoch,
                old,
                detail=detail,
                exchange_id=event.exchange_id,
            )
        )
        self.leader, self.leader_epoch, self._last_sign = leader, epoch, at
        self._resigned_at = self._closed = self._pre_vote_at = None
        self._votes = {later: vote for later, vote in self._votes.items() if later > epoch}
        self.addresses.clear()
        self._connections.clear()
        self._waiting.clear()

    def _cause(self, at: int) -> tuple[str, str | None]:
        if self.leader is None:
            return ("no_leader", None) if self._none_led else ("unknown", None)
        if self._resigned_at is not None:
            return "resigned", None
        if self._closed is not None:
            closed_at, how = self._closed
            age = (closed_at - self._last_sign) // 1000
            return "lost", f"connection to node {self.leader} closed ({how}) {age} ms after its last sign of life"
        overdue = [
            (at - fetched_at) // 1000 for fetched_at, wait, _ in self._waiting.values() if at - fetched_at > wait * 1000
        ]
        if overdue:
            return "lost", f"node {self.leader} didn't respond to a fetch for {max(overdue)} ms"
        if self._votes or self._pre_vote_at is not None:
            return "timeout", None
        return "unknown", None

    def _vote(self, event: QuorumEvent) -> None:
        self._vote_requests[event.exchange_id] = event
        epoch = event.epoch if event.epoch is not None else -1
        if event.pre_vote:
            if self._pre_vote_at is None:
                self._pre_vote_at = event.at_us
        elif epoch > self.leader_epoch:
            self._votes.setdefault(epoch, event)

    def _vote_row(self, request: QuorumEvent, response: QuorumEvent | None) -> None:
        granted, error = (None, None) if response is None else (response.granted, response.error_code)
        self.rows.append(
            QuorumHappening(
                request.at_us,
                "pre_vote" if request.pre_vote else "vote",
                request.epoch,
                request.node_id,
                voter_id=request.peer_id,
                granted=granted,
                detail=f"error {error}" if error else None,
                exchange_id=request.exchange_id,
            )
        )

    def _end(self, event: QuorumEvent) -> None:
        if self._resigned_at is not None and event.leader_epoch == self.leader_epoch:  # sent to the next voter
            return
        if event.leader_epoch is not None and event.leader_epoch < max(self.leader_epoch, self.epoch):
            self._add_once(event, "late_resignation", event.leader_id, None)
            return
        self._leader_reported(event, True)
        self._resigned_at = event.at_us
        self._add_once(event, "resigned", event.leader_id, None)

    def _add_once(self, event: QuorumEvent, kind: str, node_id: int | None, voter_id: int | None) -> None:
        """Adds one row per epoch and voter: the same message goes to every voter, and is retried."""
        key = (kind, event.leader_epoch, voter_id)
        if key not in self._once:
            self._once.add(key)
            self.rows.append(
                QuorumHappening(
                    event.at_us,
                    kind,
                    event.leader_epoch,
                    node_id,
                    voter_id=voter_id,
                    exchange_id=event.exchange_id,
                )
            )

    def taken(self) -> list[QuorumHappening]:
        """The rows so far: no later event changes one."""
        rows, self.rows = self.rows, []
        return rows

    def finish(self) -> list[QuorumHappening]:
        """The rows by time. If the quorum has no leader when the recording ends, the last one is `leaderless`."""
        at = self._last_at
        for vote in self._vote_requests.values():
            self._vote_row(vote, None)
        cause, detail = self._cause(at)
        if self.leader is None:
            if self._none_led and self._first_at is not None:
                waited = (at - self._first_at) // 1000
                self.rows.append(QuorumHappening(self._first_at, "leaderless", self.epoch, None, cause, waited))
        elif cause == "resigned" or self._votes or (cause == "lost" and self._pre_vote_at is not None):
            silent = (at - self._last_sign) // 1000
            row = QuorumHappening(self._last_sign, "leaderless", self.leader_epoch, self.leader, cause, silent)
            self.rows.append(replace(row, detail=detail))
        self.rows.sort(key=lambda row: row.occurred_at)
        return self.rows
