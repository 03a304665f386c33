"""A DescribeQuorum answer in, `Quorum` out: who leads, how far every voter and observer is, who falls behind.

Lag, times and thresholds are those of `kafkascope.health`. A replica that has not fetched from this leader shows log
end offset −1: its lag is unknown, where Kafka's own tool subtracts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import Gap, gap, merged, refused
from kafkascope.client.describe.values import kafka_uuid, known
from kafkascope.health.findings.diagnosis import Finding, findings_of
from kafkascope.health.findings.rules import RULES
from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import replica_rows_of
from kafkascope.health.quorum.rows import QuorumReplica

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

TOPIC = "__cluster_metadata"
FETCH_TIMEOUT = "controller.quorum.fetch.timeout.ms"
SESSION_TIMEOUT = "broker.session.timeout.ms"
ASKED = {"topics": [{"topicName": TOPIC, "partitions": [{"partitionIndex": 0}]}]}


@dataclass(frozen=True, slots=True)
class Replica:
    """One voter or observer. Timestamps are milliseconds since 1970 by the leader's clock, and the ages are against
    that clock. None is unknown. `behind` says in a sentence that it is, by time against its timeout."""

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
class Trouble:
    """A finding of `kafkascope.health` on this one look."""

    rule: str
    severity: str
    summary: str
    advice: str


@dataclass(frozen=True, slots=True)
class Quorum:
    """`controller_id` is the leader that the answer itself proves: only the leader answers without an error."""

    cluster_id: str | None
    controller_id: int
    leader_epoch: int
    high_watermark: int | None
    max_follower_lag: int | None
    max_follower_lag_ms: int | None
    fetch_timeout_ms: int
    fetch_timeout_known: bool  # False where it could not be asked, and Kafka's default stands
    voters: tuple[Replica, ...]
    observers: tuple[Replica, ...]
    troubles: tuple[Trouble, ...]
    gaps: tuple[Gap, ...]


def timeout_default(rule: str) -> int:
    return int(next(one.default for one in RULES[rule].thresholds if one.name == "ms"))


def rows_of(value: Mapping[str, Any], at_us: int) -> list[QuorumReplica]:
    """The replicas of an answer as rows of `quorum_replicas`; none where its node does not lead."""
    partition = partition_of(value)
    if partition is None or value["errorCode"] or partition["errorCode"]:
        return []
    replicas = [(True, one) for one in partition["currentVoters"]] + [(False, one) for one in partition["observers"]]
    events = (
        QuorumEvent(
            "described",
            at_us,
            order,
            exchange_id="now",
            node_id=one["replicaId"],
            directory_id=kafka_uuid(one.get("replicaDirectoryId")),
            voter=voter,
            leader_id=partition["leaderId"],
            leader_epoch=partition["leaderEpoch"],
            offset=one["logEndOffset"],
            high_watermark=partition["highWatermark"],
            last_fetch_ms=one.get("lastFetchTimestamp", -1),
            last_caught_up_ms=one.get("lastCaughtUpTimestamp", -1),
            error_code=0,
        )
        for order, (voter, one) in enumerate(replicas)
    )
    return list(replica_rows_of(events))


def partition_of(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for topic in value["topics"]:
        for partition in topic["partitions"]:
            if topic["topicName"] == TOPIC and partition["partitionIndex"] == 0:
                found: Mapping[str, Any] = partition
                return found
    return None


def quorum_of(
    value: Mapping[str, Any],
    *,
    at_us: int,
    cluster_id: str | None = None,
    timeouts: Mapping[str, int] | None = None,
    gaps: tuple[Gap, ...] = (),
) -> Quorum:
    """`value` is an answer of the leader. `timeouts` are the cluster's own, by config name, where they are known."""
    rows = rows_of(value, at_us)
    told = timeouts or {}
    fetch_timeout = told.get(FETCH_TIMEOUT, timeout_default("quorum_follower_behind"))
    session = told.get(SESSION_TIMEOUT, timeout_default("quorum_observer_behind"))
    findings = _findings(rows, fetch_timeout, session)
    endpoints = {
        node["nodeId"]: tuple(f"{one['name']}://{one['host']}:{one['port']}" for one in node["listeners"])
        for node in value.get("nodes", ())
    }
    replicas = [_replica(row, endpoints.get(row.replica_id, ()), findings) for row in rows]
    voters = [one for one in replicas if one.role != "observer"]
    followers = [one for one in voters if one.role == "follower"]
    return Quorum(
        cluster_id,
        rows[0].leader_id,
        rows[0].leader_epoch,
        rows[0].high_watermark,
        _most([one.lag for one in followers]),
        _most([one.lag_ms for one in followers]),
        fetch_timeout,
        FETCH_TIMEOUT in told,
        tuple(sorted(voters, key=lambda one: (one.role != "leader", one.node_id))),
        tuple(sorted((one for one in replicas if one.role == "observer"), key=lambda one: one.node_id)),
        tuple(Trouble(one.rule, one.severity, one.summary, one.advice) for one in findings),
        gaps,
    )


def _findings(rows: list[QuorumReplica], fetch_timeout: int, session: int) -> list[Finding]:
    names = QuorumReplica.__slots__
    marts = {"quorum_replicas": [{name: getattr(row, name) for name in names} for row in rows]}
    limits = {"quorum_follower_behind.ms": float(fetch_timeout), "quorum_observer_behind.ms": float(session)}
    return list(findings_of(marts, limits))


def _replica(row: QuorumReplica, endpoints: tuple[str, ...], findings: list[Finding]) -> Replica:
    behind = next((one.summary for one in findings if one.subject == f"node {row.replica_id}"), None)
    if row.lag is None:
        behind = "It has not fetched from this leader: its lag is unknown."
    return Replica(
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


def _most(values: list[int | None]) -> int | None:
    """Of followers; None as soon as one is unknown, for it may be the furthest behind. Without followers 0."""
    found = [known(value) for value in values]
    return None if None in found else max((value for value in found if value is not None), default=0)


async def describe_quorum(cluster: "Cluster") -> Quorum:
    """Asks whoever leads; RefusedError where nobody says so within the deadline, or rights are lacking."""
    from kafkascope.client.describe.asking import numbers_of, settled

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        partition = partition_of(value)
        if value["errorCode"]:
            return gap("the quorum", "DescribeQuorum", value["errorCode"], None, value.get("errorMessage"))
        if partition is None:
            return gap("the quorum", "DescribeQuorum", 3, None, f"no {TOPIC} in the answer")
        if partition["errorCode"]:
            return gap("the quorum", "DescribeQuorum", partition["errorCode"], None, partition.get("errorMessage"))
        if all(one["replicaId"] != partition["leaderId"] for one in partition["currentVoters"]):
            return gap("the quorum", "DescribeQuorum", 6, None, "the leader that it names is no voter")
        return None

    # first, so that the node that answers is known by its id: another may be the one that hangs
    name = await cluster.cluster_id()
    # apart, since a broker passes it on to the controller: while that one hangs, no other answer waits behind it
    answer, lack = await settled(cluster, "DescribeQuorum", ASKED, verdict, apart=True)
    if lack is not None:
        raise refused(lack, answer.address)
    timeouts, gaps = await numbers_of(cluster, answer.node, (FETCH_TIMEOUT, SESSION_TIMEOUT), "the fetch timeout")
    return quorum_of(
        answer.value,
        at_us=answer.received_at // 1000,
        cluster_id=name,
        timeouts=timeouts,
        gaps=merged(gaps),
    )
