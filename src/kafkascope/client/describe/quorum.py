"""Describes the KRaft quorum: its leader, the lag of every voter and observer, and which of them fall behind.

Lag, times and thresholds are those of `kafkascope.health`. A replica that hasn't fetched from this leader has log end
offset −1: its lag is unknown here, while Kafka's own tool subtracts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import Gap, error_gap, merge_gaps, refused_error
from kafkascope.client.describe.values import kafka_uuid, known_or_none
from kafkascope.health.findings.diagnosis import Finding, findings_of
from kafkascope.health.findings.rules.table import RULES
from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import replica_rows_of
from kafkascope.health.quorum.rows import QuorumReplica

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

METADATA_TOPIC = "__cluster_metadata"
_FETCH_TIMEOUT = "controller.quorum.fetch.timeout.ms"
_SESSION_TIMEOUT = "broker.session.timeout.ms"
QUORUM_REQUEST = {"topics": [{"topicName": METADATA_TOPIC, "partitions": [{"partitionIndex": 0}]}]}


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """One voter or observer. Timestamps are milliseconds since 1970 by the leader's clock, and ages are relative to it.
    None means unknown. `behind` is a sentence if the replica lags by more time than its timeout."""

    node_id: int
    role: str  # leader, follower, observer
    directory_id: str | None
    endpoints: tuple[str, ...]
    log_end_offset: int | None
    lag: int | None
    lag_ms: int | None
    fetch_age_ms: int | None
    last_fetch_timestamp: int | None
    last_caught_up_timestamp: int | None
    behind: str | None


@dataclass(frozen=True, slots=True)
class QuorumProblem:
    """A finding of `kafkascope.health` about this look."""

    rule: str
    severity: str
    summary: str
    advice: str


@dataclass(frozen=True, slots=True)
class QuorumView:
    """`controller_id` is proven by the response: only the leader responds without an error."""

    cluster_id: str | None
    controller_id: int
    leader_epoch: int
    high_watermark: int | None
    max_follower_lag: int | None
    max_follower_lag_ms: int | None
    fetch_timeout_ms: int
    fetch_timeout_known: bool  # False if it's unknown, and Kafka's default is used
    voters: tuple[ReplicaView, ...]
    observers: tuple[ReplicaView, ...]
    troubles: tuple[QuorumProblem, ...]
    gaps: tuple[Gap, ...]


def _default_timeout(rule: str) -> int:
    return int(next(threshold.default for threshold in RULES[rule].thresholds if threshold.name == "ms"))


def rows_of(value: Mapping[str, Any], at_us: int) -> list[QuorumReplica]:
    """The replicas of a response as rows of `quorum_replicas`; none if its node isn't the leader."""
    partition = _metadata_partition(value)
    if partition is None or value["errorCode"] or partition["errorCode"]:
        return []
    replicas = [(True, voter) for voter in partition["currentVoters"]] + [
        (False, observer) for observer in partition["observers"]
    ]
    events = (
        QuorumEvent(
            "described",
            at_us,
            order,
            exchange_id="now",
            node_id=replica["replicaId"],
            directory_id=kafka_uuid(replica.get("replicaDirectoryId")),
            voter=voter,
            leader_id=partition["leaderId"],
            leader_epoch=partition["leaderEpoch"],
            offset=replica["logEndOffset"],
            high_watermark=partition["highWatermark"],
            last_fetch_ms=replica.get("lastFetchTimestamp", -1),
            last_caught_up_ms=replica.get("lastCaughtUpTimestamp", -1),
            error_code=0,
        )
        for order, (voter, replica) in enumerate(replicas)
    )
    return list(replica_rows_of(events))


def _metadata_partition(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for topic in value["topics"]:
        for partition in topic["partitions"]:
            if topic["topicName"] == METADATA_TOPIC and partition["partitionIndex"] == 0:
                row: Mapping[str, Any] = partition
                return row
    return None


def quorum_of(
    value: Mapping[str, Any],
    *,
    at_us: int,
    cluster_id: str | None = None,
    timeouts: Mapping[str, int] | None = None,
    gaps: tuple[Gap, ...] = (),
) -> QuorumView:
    """`value` is a response of the leader. `timeouts` are the cluster's own, by config name, if known."""
    rows = rows_of(value, at_us)
    known = timeouts or {}
    fetch_timeout = known.get(_FETCH_TIMEOUT, _default_timeout("quorum_follower_behind"))
    session = known.get(_SESSION_TIMEOUT, _default_timeout("quorum_observer_behind"))
    findings = _findings(rows, fetch_timeout, session)
    endpoints = {
        node["nodeId"]: tuple(
            f"{listener['name']}://{listener['host']}:{listener['port']}" for listener in node["listeners"]
        )
        for node in value.get("nodes", ())
    }
    replicas = [_replica(row, endpoints.get(row.replica_id, ()), findings) for row in rows]
    voters = [replica for replica in replicas if replica.role != "observer"]
    followers = [voter for voter in voters if voter.role == "follower"]
    return QuorumView(
        cluster_id,
        rows[0].leader_id,
        rows[0].leader_epoch,
        rows[0].high_watermark,
        _max_or_none([follower.lag for follower in followers]),
        _max_or_none([follower.lag_ms for follower in followers]),
        fetch_timeout,
        _FETCH_TIMEOUT in known,
        tuple(sorted(voters, key=lambda replica: (replica.role != "leader", replica.node_id))),
        tuple(
            sorted(
                (replica for replica in replicas if replica.role == "observer"), key=lambda observer: observer.node_id
            )
        ),
        tuple(QuorumProblem(finding.rule, finding.severity, finding.summary, finding.advice) for finding in findings),
        gaps,
    )


def _findings(rows: list[QuorumReplica], fetch_timeout: int, session: int) -> list[Finding]:
    names = QuorumReplica.__slots__
    marts = {"quorum_replicas": [{name: getattr(row, name) for name in names} for row in rows]}
    limits = {"quorum_follower_behind.ms": float(fetch_timeout), "quorum_observer_behind.ms": float(session)}
    return list(findings_of(marts, limits))


def _replica(row: QuorumReplica, endpoints: tuple[str, ...], findings: list[Finding]) -> ReplicaView:
    behind = next((finding.summary for finding in findings if finding.subject == f"node {row.replica_id}"), None)
    if row.lag is None:
        behind = "It hasn't fetched from this leader, so its lag is unknown."
    return ReplicaView(
        row.replica_id,
        row.role or "observer",
        row.directory_id,
        endpoints,
        row.log_end_offset,
        row.lag,
        row.lag_ms,
        row.fetch_age_ms,
        None if row.last_fetch_at is None else row.last_fetch_at // 1000,
        None if row.last_caught_up_at is None else row.last_caught_up_at // 1000,
        behind,
    )


def _max_or_none(values: list[int | None]) -> int | None:
    """The largest of the followers' values; None if one is unknown, since it may be the largest. 0 without
    followers."""
    numbers = [known_or_none(value) for value in values]
    return None if None in numbers else max((value for value in numbers if value is not None), default=0)


async def describe_quorum(cluster: "Cluster") -> QuorumView:
    """Asks the leader. RefusedError if no leader is known within the deadline, or a permission is missing."""
    from kafkascope.client.describe.calls import call_with_retries, numeric_configs

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        partition = _metadata_partition(value)
        if value["errorCode"]:
            return error_gap("the quorum", "DescribeQuorum", value["errorCode"], None, value.get("errorMessage"))
        if partition is None:
            return error_gap("the quorum", "DescribeQuorum", 3, None, f"no {METADATA_TOPIC} in the response")
        if partition["errorCode"]:
            return error_gap(
                "the quorum", "DescribeQuorum", partition["errorCode"], None, partition.get("errorMessage")
            )
        if all(voter["replicaId"] != partition["leaderId"] for voter in partition["currentVoters"]):
            return error_gap("the quorum", "DescribeQuorum", 6, None, "the leader that it names isn't a voter")
        return None

    # first, so that the node that responds is known by its id: another may be the one that hangs
    name = await cluster.cluster_id()
    # apart, since a broker forwards it to the controller: if that hangs, no other response waits for it
    response, gap = await call_with_retries(cluster, "DescribeQuorum", QUORUM_REQUEST, verdict, apart=True)
    if gap is not None:
        raise refused_error(gap, response.address)
    timeouts, gaps = await numeric_configs(
        cluster, response.node, (_FETCH_TIMEOUT, _SESSION_TIMEOUT), "the fetch timeout"
    )
    return quorum_of(
        response.value, at_us=response.received_at // 1000, cluster_id=name, timeouts=timeouts, gaps=merge_gaps(gaps)
    )
