"""A quorum played by rule: its leaders, elections and lag are told from its messages alone."""

import random
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import history_of

MAX_WAIT = 500_000
FETCH_TIMEOUT = 2_000_000
VOTERS, OBSERVER = (1, 2, 3), 4
NODES = (*VOTERS, OBSERVER)


@dataclass
class Node:
    """Its log is `end` records long. A parked fetch waits at the leader until `until`."""

    node_id: int
    end: int = 0
    up: bool = True
    frozen: bool = False
    parked: str | None = None
    until: int = 0
    next_fetch_at: int = 0
    told_mark: int = -1


@dataclass
class Election:
    """What really happened: the cause, when the old leader was last heard, when the new one first was."""

    epoch: int
    leader: int
    cause: str
    silent_at: int | None
    at: int
    previous: int | None
    failed: int = 0


@dataclass
class Quorum:
    """A leader that appends, replicas that fetch, freeze and thaw; leaders resign, die and are outvoted.

    `ends` and `fetched` are the true log ends of the leader and of replicas, from the event with that place on."""

    seed: int
    now: int = 1_700_000_000_000_000
    epoch: int = 0
    leader: int | None = None
    mark: int = -1
    heard_at: int = 0
    lead_from: int = 0
    events: list[QuorumEvent] = field(default_factory=list)
    elections: list[Election] = field(default_factory=list)
    ends: list[tuple[int, int]] = field(default_factory=list)
    fetched: list[tuple[int, int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.nodes = {node_id: Node(node_id) for node_id in NODES}

    def say(self, kind: str, exchange_id: str | None = None, **more: Any) -> str:
        exchange_id = exchange_id or f"x{len(self.events)}"
        made = QuorumEvent(kind, self.now, len(self.events), exchange_id)
        self.events.append(made._replace(**more))
        return exchange_id

    def connection(self, node: int) -> str:
        return f"c{node}-{self.leader}-{self.epoch}"

    def park(self, node: Node) -> None:
        node.parked = self.say(
            "fetch", connection_id=self.connection(node.node_id), broker=f"n{self.leader}", node_id=node.node_id,
            leader_epoch=self.epoch, offset=node.end, max_wait_ms=MAX_WAIT // 1000,
        )  # fmt: skip
        self.fetched.append((len(self.events) - 1, self.epoch, node.node_id, node.end))
        node.until = self.now + MAX_WAIT

    def ask(self, node: Node) -> None:
        assert self.leader is not None
        self.park(node)
        if node.end < self.nodes[self.leader].end or node.told_mark != self.mark:
            self.reply(node)

    def reply(self, node: Node) -> None:
        assert self.leader is not None and node.parked is not None
        records = self.nodes[self.leader].end - node.end
        self.say(
            "fetch_answer", node.parked, connection_id=self.connection(node.node_id), broker=f"n{self.leader}",
            node_id=node.node_id, leader_id=self.leader, leader_epoch=self.epoch, offset=node.end, error_code=0,
            high_watermark=self.mark, records_bytes=70 * records,
            end_offset=node.end + records if records and self.random.random() < 0.5 else None,
        )  # fmt: skip
        self.heard_at = self.now
        node.parked, node.told_mark = None, self.mark
        if not node.frozen:
            node.end += records
        node.next_fetch_at = self.now + 1_000 + self.random.randrange(5_000)

    def append(self) -> None:
        """Fetches that wait are answered at once, as the leader does when its log grows."""
        assert self.leader is not None
        self.nodes[self.leader].end += self.random.randrange(1, 4)
        self.ends.append((len(self.events), self.nodes[self.leader].end))
        for node in self.nodes.values():
            if node.parked:
                self.reply(node)

    def elect(self, cause: str) -> None:
        """The voter with the longest log asks the others, sometimes in vain at first."""
        previous, silent_at, failed = self.leader, self.heard_at, 0
        able = [node for node in self.nodes.values() if node.node_id in VOTERS and node.up and not node.frozen]
        chosen = max((node for node in able if node.node_id != previous), key=lambda node: node.end)
        while self.random.random() < 0.3:
            self.epoch += 1
            failed += 1
            self.ask_votes(chosen, False)
            self.now += 300_000
        self.epoch += 1
        self.ask_votes(chosen, True)
        self.now += 10_000
        self.leader = chosen.node_id
        first = None
        for voter in VOTERS:
            if voter != chosen.node_id:
                self.say("begin", leader_id=self.leader, leader_epoch=self.epoch, peer_id=voter)
                first = first or self.now
        assert first is not None
        self.heard_at = self.lead_from = first
        self.elections.append(
            Election(
                self.epoch, chosen.node_id, cause, None if previous is None else silent_at, first, previous, failed
            )
        )
        for node in self.nodes.values():
            node.parked, node.end, node.told_mark = None, min(node.end, chosen.end), -1
            node.next_fetch_at = self.now + 2_000 + self.random.randrange(100_000)
        self.ends.append((len(self.events), chosen.end))

    def ask_votes(self, node: Node, granted: bool) -> None:
        for voter in VOTERS:
            if voter != node.node_id:
                facts: dict[str, Any] = {
                    "node_id": node.node_id,
                    "peer_id": voter,
                    "epoch": self.epoch,
                    "pre_vote": False,
                }
                request = self.say("vote", **facts)
                if self.nodes[voter].up and not self.nodes[voter].frozen:
                    self.say("vote_answer", request, granted=granted, leader_id=-1, leader_epoch=self.epoch, **facts)

    def change_leader(self) -> None:
        assert self.leader is not None
        old = self.nodes[self.leader]
        cause = self.random.choice(["resigned", "lost", "lost", "timeout"])
        if cause == "resigned":
            for voter in VOTERS:
                if voter != self.leader:
                    self.say("end", leader_id=self.leader, leader_epoch=self.epoch)
            self.heard_at = self.now
            self.now += 20_000
        elif cause == "lost":
            others = [node for node in self.nodes.values() if node is not old and not node.frozen]
            for node in others:
                if not node.parked:
                    self.now += 1_000
                    self.park(node)
            if self.random.random() < 0.5:
                self.now += 500
                self.say("disconnected", connection_id=self.connection(others[0].node_id), how="reset")
            self.now += FETCH_TIMEOUT
        else:
            for node in self.nodes.values():
                if node.parked:
                    self.now += 1
                    self.reply(node)
            self.now += 1_000
        self.elect(cause)

    def run(self, seconds: int) -> None:
        for node_id in NODES:
            self.say("fetch_answer", broker="n1", node_id=node_id, leader_id=-1, leader_epoch=0, offset=0, error_code=6)
        self.now += 100_000
        self.elect("no_leader")
        end = self.now + seconds * 1_000_000
        while self.now < end:
            self.now += 1_000 + self.random.randrange(20_000)
            if self.random.random() < 0.03:
                self.append()
            if self.random.random() < 0.002:
                follower = self.nodes[self.random.choice([node_id for node_id in NODES if node_id != self.leader])]
                if not any(node.frozen for node in self.nodes.values()):
                    follower.frozen = True
                else:
                    for node in self.nodes.values():
                        node.frozen = False
            if self.now - self.lead_from > 3_000_000 and self.random.random() < 0.001:
                self.change_leader()
                continue
            for node in self.nodes.values():
                if node.node_id == self.leader:
                    continue
                if node.parked and node.until <= self.now:
                    self.reply(node)
                elif not node.parked and not node.frozen and node.next_fetch_at <= self.now:
                    self.ask(node)
            self.commit()

    def commit(self) -> None:
        """The high watermark is what a majority of voters has fetched up to."""
        assert self.leader is not None
        mine = [
            offset
            for voter in VOTERS
            if voter != self.leader
            for _, epoch, node, offset in self.fetched[-12:]
            if node == voter and epoch == self.epoch
        ]
        reached = min(max(mine, default=-1), self.nodes[self.leader].end)
        if reached > self.mark:
            self.mark = reached
            for node in self.nodes.values():
                if node.parked:
                    self.reply(node)


@cache
def played(seed: int) -> Quorum:
    quorum = Quorum(seed)
    quorum.run(120)
    return quorum


@pytest.mark.parametrize("seed", range(20))
def test_elections_are_told_with_their_cause_and_length(seed: int) -> None:
    quorum = played(seed)
    rows = history_of(quorum.events).events
    elections_found = [
        (row.epoch, row.node_id, row.cause, row.occurred_at, row.previous_leader_id, row.duration_ms)
        for row in rows
        if row.kind == "elected"
    ]
    assert elections_found == [
        (
            election.epoch,
            election.leader,
            election.cause,
            election.at,
            election.previous,
            None if election.silent_at is None else (election.at - election.silent_at) // 1000,
        )
        for election in quorum.elections
    ]
    assert sum(row.kind == "election_failed" for row in rows) == sum(election.failed for election in quorum.elections)
    vote_requests = sum(event.kind == "vote" for event in quorum.events)
    answered = sum(event.kind == "vote_answer" for event in quorum.events)
    votes = [row for row in rows if row.kind == "vote"]
    assert (len(votes), sum(row.granted is not None for row in votes)) == (vote_requests, answered)


@pytest.mark.parametrize("seed", range(20))
def test_lag_is_never_more_than_the_true_one_and_equal_where_it_is_said_to_be_exact(seed: int) -> None:
    quorum = played(seed)
    rows = history_of(quorum.events).replicas
    answers = {event.exchange_id: place for place, event in enumerate(quorum.events) if event.kind == "fetch_answer"}
    fetched_at: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for place, epoch, node, offset in quorum.fetched:
        fetched_at.setdefault((epoch, node), []).append((place, offset))
    exact = 0
    for row in rows:
        sampled = answers[row.exchange_id]  # just before this answer
        end = quorum.ends[bisect_left(quorum.ends, (sampled, -1)) - 1][1]
        own = fetched_at.get((row.leader_epoch, row.replica_id), [])
        fetches = [offset for _, offset in own[: bisect_left(own, (sampled, -1))]]
        if row.role == "leader":
            assert row.log_end_offset is not None and row.log_end_offset <= end
            if row.lag_bound == "exact":
                assert row.log_end_offset == end
            continue
        assert row.role == ("observer" if row.replica_id == OBSERVER else "follower")
        if row.lag is None:
            continue
        assert row.log_end_offset == fetches[-1]
        assert 0 <= row.lag <= end - fetches[-1]
        if row.lag_bound == "exact":
            exact += 1
            assert row.lag == end - fetches[-1]
    assert exact > len(rows) // 3
    assert {row.source for row in rows} == {"fetch"}


def test_the_play_has_every_cause_and_lag() -> None:
    causes: set[str] = set()
    lags: set[bool] = set()
    for seed in range(20):
        quorum = played(seed)
        causes |= {election.cause for election in quorum.elections}
        lags |= {row.lag > 5 for row in history_of(quorum.events).replicas if row.lag is not None}
    assert causes == {"no_leader", "resigned", "lost", "timeout"}
    assert lags == {True, False}
