"""Summarizes the metadata quorum of each cluster: leaders by epoch, the lag of each replica, and events."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import batches, rows
from kafkascope.report.summaries.buckets import Buckets, buckets_of
from kafkascope.report.summaries.scope import Scope, both

MOST_CLUSTERS = 6
MOST_BUCKETS = 200
MOST_REPLICAS = 16
MOST_EVENTS = 100
_MOST_BANDS = 200

_REPLICAS = "observed_at leader_id leader_epoch high_watermark replica_id role lag lag_ms fetch_age_ms".split()
_EVENTS = (
    "occurred_at kind epoch node_id cause duration_ms voting_ms rounds previous_leader_id voter_id granted detail"
    " exchange_id"
).split()
# One per request: they are counted, and the election that they lead to is shown.
_VOTES = frozenset({"vote", "pre_vote", "announced"})
_LEADS = frozenset({"elected", "observed"})
_TROUBLE = frozenset({"elected", "election_failed", "leaderless"})


@dataclass(slots=True)
class ReplicaLag:
    """`behind_ms` and `lag` are the worst of each step, None where nothing is known."""

    replica_id: int
    role: str | None = None
    seen_at: int = -1
    lag: list[int | None] = field(default_factory=list)
    behind_ms: list[int | None] = field(default_factory=list)
    worst_lag: int | None = None
    worst_behind_ms: int | None = None
    worst_fetch_age_ms: int | None = None
    last_lag: int | None = None
    last_behind_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Band:
    """A leader in its epoch. `without_ms` is how long the quorum had no leader before."""

    leader_id: int
    epoch: int
    from_at: int
    to_at: int
    without_ms: int | None


@dataclass(frozen=True, slots=True)
class Event:
    at: int
    kind: str
    epoch: int | None
    node_id: int | None
    cause: str | None
    duration_ms: int | None
    voting_ms: int | None
    rounds: int | None
    previous_leader_id: int | None
    voter_id: int | None
    granted: bool | None
    detail: str | None
    exchange_id: str | None


@dataclass(frozen=True, slots=True)
class QuorumSummary:
    """`elections` and `longest_without_ms` count all events. `leaderless_ms` is how long the quorum had had no leader
    at the end."""

    cluster_id: str | None
    first_at: int
    last_at: int
    buckets: Buckets
    bands: tuple[Band, ...]
    replicas: tuple[ReplicaLag, ...]
    replicas_left_out: int
    events: tuple[Event, ...]
    events_left_out: int
    votes: dict[str, int]
    elections: int
    longest_without_ms: int
    leaderless_ms: int | None
    observations: int
    high_watermark: int | None


@dataclass(frozen=True, slots=True)
class Quorums:
    """The clusters in most trouble, worst first."""

    shown: tuple[QuorumSummary, ...]
    left_out: int


@dataclass(slots=True)
class _QuorumTotals:
    first_at: int | None = None
    last_at: int | None = None
    high_watermark: int | None = None
    observations: int = 0
    leads: dict[tuple[int, int], list[int]] = field(default_factory=dict)  # (epoch, leader) to first and last
    replicas: Counter[int] = field(default_factory=Counter)  # to the worst lag in time

    def see(self, at: int) -> None:
        self.first_at = at if self.first_at is None else min(self.first_at, at)
        self.last_at = at if self.last_at is None else max(self.last_at, at)


def quorums_in(lake: Lake, scope: Scope) -> Quorums:
    trouble = _trouble(lake, scope)
    order = sorted(
        trouble, key=lambda cluster: (*(-number for number in trouble[cluster]), cluster is None, cluster or "")
    )
    quorums = [_quorum_in(lake, scope, cluster) for cluster in order[:MOST_CLUSTERS]]
    return Quorums(tuple(quorum for quorum in quorums if quorum is not None), max(0, len(order) - MOST_CLUSTERS))


def _trouble(lake: Lake, scope: Scope) -> dict[str | None, tuple[int, int]]:
    """For each cluster, its trouble with leadership and the largest lag of a replica."""
    events: Counter[str | None] = Counter()
    behind: Counter[str | None] = Counter()
    for batch in batches(lake, "quorum_events", ["cluster_id", "kind"], scope.at("occurred_at")):
        for row in batch.to_pylist():
            events[row["cluster_id"]] += row["kind"] in _TROUBLE
    for batch in batches(lake, "quorum_replicas", ["cluster_id", "lag_ms"], scope.at("observed_at")):
        table = pa.Table.from_batches([batch]).group_by(["cluster_id"], use_threads=False)
        for row in table.aggregate([("lag_ms", "max")]).to_pylist():
            behind[row["cluster_id"]] = max(behind[row["cluster_id"]], row["lag_ms_max"] or 0)
    return {cluster: (events[cluster], behind[cluster]) for cluster in {**events, **behind}}


def _quorum_in(lake: Lake, scope: Scope, cluster: str | None) -> QuorumSummary | None:
    """None if nothing was seen of it."""
    of_cluster = pc.field("cluster_id").is_null() if cluster is None else pc.field("cluster_id") == cluster
    observed = both(scope.at("observed_at"), of_cluster)
    seen = _survey(lake, observed)
    events: list[Event] = []
    votes: Counter[str] = Counter()
    left_out = elections = longest = 0
    leaderless_ms: int | None = None
    for row in rows(lake, "quorum_events", _EVENTS, both(scope.at("occurred_at"), of_cluster)):
        if row["kind"] == "disconnected":
            continue  # a sign for incidents; replicas reconnect often
        event = Event(row.pop("occurred_at"), **row)
        seen.see(event.at)
        elections += event.kind == "elected"
        longest = max(longest, event.duration_ms or 0)
        if event.kind == "leaderless":
            leaderless_ms = event.duration_ms or 0
            seen.see(event.at + 1000 * leaderless_ms)
            events.append(event)
        elif event.kind in _VOTES:
            votes[event.kind] += 1
        elif len(events) < 4 * MOST_EVENTS:
            events.append(event)
        else:
            left_out += 1
    if seen.first_at is None or seen.last_at is None:
        return None
    events.sort(key=lambda event: event.at)
    buckets = buckets_of(seen.first_at, seen.last_at, MOST_BUCKETS)
    worst = sorted(seen.replicas, key=lambda replica_id: (-seen.replicas[replica_id], replica_id))
    replicas = {replica_id: ReplicaLag(replica_id) for replica_id in sorted(worst[:MOST_REPLICAS])}
    _lags(lake, observed, buckets, replicas)
    return QuorumSummary(
        cluster,
        seen.first_at,
        seen.last_at,
        buckets,
        _bands_of(events, seen.leads, seen.last_at)[:_MOST_BANDS],
        tuple(replicas.values()),
        len(worst) - len(replicas),
        tuple(events[:MOST_EVENTS]),
        left_out + max(0, len(events) - MOST_EVENTS),
        dict(votes),
        elections,
        longest,
        leaderless_ms,
        seen.observations,
        seen.high_watermark,
    )


def _survey(lake: Lake, where: pc.Expression | None) -> _QuorumTotals:
    seen = _QuorumTotals()
    columns = "observed_at leader_id leader_epoch replica_id high_watermark lag_ms".split()
    for batch in batches(lake, "quorum_replicas", columns, where):
        table = pa.Table.from_batches([batch])
        seen.observations += len(table)
        high = pc.max(table["high_watermark"]).as_py()
        seen.high_watermark = high if seen.high_watermark is None else max(high or 0, seen.high_watermark)
        by_leader = table.group_by(["leader_epoch", "leader_id"], use_threads=False)
        for row in by_leader.aggregate([("observed_at", "min"), ("observed_at", "max")]).to_pylist():
            first, last = row["observed_at_min"], row["observed_at_max"]
            seen.see(first)
            seen.see(last)
            ends = seen.leads.setdefault((row["leader_epoch"], row["leader_id"]), [first, last])
            ends[:] = min(first, ends[0]), max(last, ends[1])
        by_replica = table.group_by(["replica_id"], use_threads=False).aggregate([("lag_ms", "max")])
        for row in by_replica.to_pylist():
            replica = row["replica_id"]
            seen.replicas[replica] = max(seen.replicas[replica], row["lag_ms_max"] or 0)
    return seen


def _lags(lake: Lake, where: pc.Expression | None, buckets: Buckets, replicas: dict[int, ReplicaLag]) -> None:
    order = list(replicas)
    worst = np.full((2, len(order), buckets.count), -1, np.int64)
    for batch in batches(lake, "quorum_replicas", _REPLICAS, where):
        table = pa.Table.from_batches([batch])
        at = table["observed_at"].to_numpy()
        step = (at - buckets.first_at) // buckets.step_us
        index = pc.fill_null(pc.index_in(table["replica_id"], value_set=pa.array(order, pa.int64())), -1).to_numpy()
        for number, name in enumerate(("lag", "lag_ms")):
            value = pc.fill_null(table[name].cast(pa.int64()), -1).to_numpy()
            np.maximum.at(worst[number], (index[index >= 0], step[index >= 0]), value[index >= 0])
        _latest(table, replicas)
    for number, replica in enumerate(replicas.values()):
        replica.lag, replica.behind_ms = (
            [None if value < 0 else value for value in worst[kind, number].tolist()] for kind in (0, 1)
        )


def _latest(table: pa.Table, replicas: dict[int, ReplicaLag]) -> None:
    sums = [("fetch_age_ms", "max"), ("lag", "max"), ("lag_ms", "max"), ("observed_at", "max")]
    last = {}
    for row in table.group_by(["replica_id"], use_threads=False).aggregate(sums).to_pylist():
        replica = replicas.get(row["replica_id"])
        if replica is None:
            continue
        replica.worst_lag = _larger(replica.worst_lag, row["lag_max"])
        replica.worst_behind_ms = _larger(replica.worst_behind_ms, row["lag_ms_max"])
        replica.worst_fetch_age_ms = _larger(replica.worst_fetch_age_ms, row["fetch_age_ms_max"])
        if row["observed_at_max"] >= replica.seen_at:
            replica.seen_at = last[replica.replica_id] = row["observed_at_max"]
    times = pa.array(sorted(set(last.values())), pa.int64())
    for row in table.filter(pc.is_in(table["observed_at"], value_set=times)).to_pylist():
        if last.get(row["replica_id"]) == row["observed_at"]:
            replica = replicas[row["replica_id"]]
            replica.role, replica.last_lag, replica.last_behind_ms = row["role"], row["lag"], row["lag_ms"]


def _larger(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return max(left, right)


def _bands_of(events: list[Event], leads: dict[tuple[int, int], list[int]], last_at: int) -> tuple[Band, ...]:
    """A leader leads from its election, or from when it is first seen to lead, until the next election, less the time
    without a leader before it."""
    starts: dict[tuple[int, int], tuple[int, int | None]] = {key: (ends[0], None) for key, ends in leads.items()}
    for event in events:
        if event.kind in _LEADS and event.epoch is not None and event.node_id is not None:
            starts[event.epoch, event.node_id] = (event.at, event.duration_ms)
    order: list[tuple[int, int, int, int | None]] = []
    for (epoch, leader), (at, without) in sorted(starts.items(), key=lambda item: (item[1][0], item[0])):
        # A leader that doesn't know of its successor yet still responds, but leads nobody.
        if not order or epoch >= order[-1][1]:
            order.append((at, epoch, leader, without))
    bands = []
    for number, (at, epoch, leader, without) in enumerate(order):
        end = last_at
        if number + 1 < len(order):
            following, _, _, gap = order[number + 1]
            end = max(at, following - 1000 * (gap or 0))
        leaderless = [event for event in events if event.kind == "leaderless" and event.node_id == leader]
        if number + 1 == len(order) and leaderless:
            end = max(at, leaderless[-1].at)
        bands.append(Band(leader, epoch, at, end, without))
    return tuple(bands)
