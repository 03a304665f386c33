"""Checks the KRaft quorum for replicas that lag, a majority at risk, and elections between snapshots."""

from collections.abc import Iterator, Sequence

from kafkascope.client.check.openmetrics import MetricFamilies
from kafkascope.client.check.verdicts import (
    CheckLimits,
    CheckResult,
    Snapshot,
    check_result,
    lag_problems,
    rule_problems,
)
from kafkascope.client.describe.quorum import QuorumView, ReplicaView
from kafkascope.formatting import count, span
from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import history_of
from kafkascope.health.quorum.rows import QuorumHappening, QuorumReplica

# One look is enough for the first three; the others compare looks. The reason for the end of a leader only shows in
# raft's own traffic, so quorum_leader_lost is not among them.
RULES = (
    "quorum_follower_behind",
    "quorum_observer_behind",
    "quorum_majority_at_risk",
    "quorum_replica_never_fetched",
    "quorum_frequent_elections",
    "quorum_voters_changed",
)


def check_quorum(snapshots: Sequence[Snapshot[QuorumView]], limits: CheckLimits) -> CheckResult:
    now = snapshots[-1].view
    history = history_of(event for number, snapshot in enumerate(snapshots) for event in _events(snapshot, number))
    marts = {
        "quorum_replicas": [{name: getattr(row, name) for name in QuorumReplica.__slots__} for row in history.replicas],
        "quorum_events": [{name: getattr(row, name) for name in QuorumHappening.__slots__} for row in history.events],
    }
    own = {"quorum_follower_behind.ms": float(now.fetch_timeout_ms)}
    problems = rule_problems(marts, RULES, limits, own)
    for voter in now.voters:
        if voter.role != "leader":
            problems += lag_problems(voter.lag, _behind_ms(voter), f"The lag of voter node {voter.node_id}", limits)
    figures = {
        "controllerId": now.controller_id,
        "leaderEpoch": now.leader_epoch,
        "highWatermark": now.high_watermark,
        "voters": len(now.voters),
        "observers": len(now.observers),
        "maxFollowerLag": now.max_follower_lag,
        "maxFollowerLagMs": now.max_follower_lag_ms,
    }
    return check_result("quorum", "quorum", _summary(now), problems, limits, figures, now.gaps)


def _behind_ms(replica: ReplicaView) -> int | None:
    """The age of its copy: since it was caught up, or since its last fetch."""
    ages = [value for value in (replica.lag_ms, replica.fetch_age_ms) if value is not None]
    return max(ages) if ages and replica.lag is not None else None


def _summary(now: QuorumView) -> str:
    lag, lag_ms = now.max_follower_lag, now.max_follower_lag_ms
    behind = "a follower's lag is unknown" if lag is None else f"lag at most {count(lag, 'record')}"
    since = f", {span(lag_ms)}" if lag and lag_ms is not None else ""
    observers = f" and {count(len(now.observers), 'observer')}" if now.observers else ""
    voters = count(len(now.voters), "voter")
    return f"node {now.controller_id} leads in epoch {now.leader_epoch}, {voters}{observers}, {behind}{since}"


def _events(snapshot: Snapshot[QuorumView], number: int) -> Iterator[QuorumEvent]:
    """The response as rows that the marts read."""
    view = snapshot.view
    for order, replica in enumerate((*view.voters, *view.observers)):
        yield QuorumEvent(
            "described",
            snapshot.at,
            order,
            exchange_id=f"look {number}",
            node_id=replica.node_id,
            directory_id=replica.directory_id,
            voter=replica.role != "observer",
            leader_id=view.controller_id,
            leader_epoch=view.leader_epoch,
            offset=-1 if replica.log_end_offset is None else replica.log_end_offset,
            high_watermark=-1 if view.high_watermark is None else view.high_watermark,
            last_fetch_ms=-1 if replica.last_fetch_timestamp is None else replica.last_fetch_timestamp,
            last_caught_up_ms=-1 if replica.last_caught_up_timestamp is None else replica.last_caught_up_timestamp,
            error_code=0,
        )


def quorum_metrics(now: QuorumView, families: MetricFamilies) -> None:
    add = families.add
    add("kafkascope_quorum_leader_id", "Node that leads the quorum.", now.controller_id)
    add("kafkascope_quorum_leader_epoch", "Epoch of that leader.", now.leader_epoch)
    add("kafkascope_quorum_high_watermark", "High watermark of the metadata log.", now.high_watermark)
    add("kafkascope_quorum_voters", "Voters of the quorum.", len(now.voters))
    add("kafkascope_quorum_observers", "Observers of the quorum.", len(now.observers))
    for replica in (*now.voters, *now.observers):
        labels = {"node": replica.node_id, "role": replica.role}
        add("kafkascope_quorum_replica_log_end_offset", "Log end offset of a replica.", replica.log_end_offset, labels)
        add("kafkascope_quorum_replica_lag_records", "Records behind the leader.", replica.lag, labels, "records")
        lag = "Time since it was caught up, 0 if it is."
        add("kafkascope_quorum_replica_lag_seconds", lag, _seconds(replica.lag_ms), labels, "seconds")
        age = "Time since its last fetch."
        add("kafkascope_quorum_replica_fetch_age_seconds", age, _seconds(replica.fetch_age_ms), labels, "seconds")


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
