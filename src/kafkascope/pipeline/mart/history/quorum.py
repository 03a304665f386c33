"""Extracts the quorum's events from Raft traffic and DescribeQuorum responses, in the form of `health.quorum`."""

from collections.abc import Collection, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from kafkascope.lake.home import Lake
from kafkascope.pipeline.mart.base.events import ROW_AT, TablesByName, columns_of, flat_map, select, struct, union
from kafkascope.pipeline.mart.base.links import LINKS, STATE, Kept, WithLinks, sums_of
from kafkascope.pipeline.mart.base.raft import FETCH_REQUEST, IS_METADATA_TOPIC
from kafkascope.pipeline.mart.increments.plan import EVERY_ROW, Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = {
    "fetch_request": FETCH_REQUEST,
    "fetch_response": "error_code responses.topic responses.topic_id responses.partitions.error_code"
    " responses.partitions.high_watermark responses.partitions.diverging_epoch responses.partitions.current_leader"
    " responses.partitions.snapshot_id responses.partitions.records.size"
    " responses.partitions.records.batches.last_offset",
    "vote_request": "cluster_id voter_id topics",
    "vote_response": "error_code topics",
    "begin_quorum_epoch_request": "cluster_id voter_id topics",
    "begin_quorum_epoch_response": "error_code topics",
    "end_quorum_epoch_request": "cluster_id topics",
    "end_quorum_epoch_response": "error_code topics",
    "describe_quorum_response": "error_code topics",
    "connections": "connection_id broker_address closed closed_at",
}

_COLUMNS = columns_of(
    "kind string, at_us bigint, order int, exchange_id string, connection_id string, broker string, node_id int,"
    "directory_id string, peer_id int, leader_id int, leader_epoch int, epoch int, offset bigint,"
    "high_watermark bigint, end_offset bigint, records_bytes int, max_wait_ms int, last_fetch_ms bigint,"
    "last_caught_up_ms bigint, error_code int, granted boolean, pre_vote boolean, voter boolean, how string,"
    "cluster_id string"
)

_REQUEST, _RESPONSE, _DESCRIBED, _DISCONNECTED = map(str, range(4))

_REQUEST_AT, _RESPONSE_AT = "unix_micros(q.request_at)", "unix_micros(r.response_at)"
_CONNECTION = {"exchange_id": "q.exchange_id", "connection_id": "q.connection_id", "broker": "q.broker_address"}
_ERROR = "IF(r.error_code <> 0, r.error_code, p.error_code)"

# Raft has no fetch sessions: every request is complete, and about one partition. Most fetches are of other topics and
# are dropped before the join.
_RAFT_FETCH = f"SELECT * FROM {{fetch_request}} WHERE exists(topics, t -> {IS_METADATA_TOPIC})"


def _event(kind: str, at: str, order: str, **values: str) -> str:
    return struct(_COLUMNS, kind=f"'{kind}'", at_us=at, order=order, **_CONNECTION, cluster_id="q.cluster_id", **values)


def _exchange(requests: str, responses: str, *events: str) -> str:
    """All events of a request and its response."""
    return f"""
SELECT event.* FROM (
  SELECT explode(concat({", ".join(events)})) AS event FROM (
    SELECT struct(q.*) AS q, struct(r.*) AS r FROM {requests} q LEFT JOIN {responses} r ON q.exchange_id = r.exchange_id
  )
)
"""


def _request_events(event: str) -> str:
    return f"transform({flat_map('q.topics', 't', 't.partitions')}, p -> {event})"


def _response_events(event: str, topics: str) -> str:
    """A response without topics has one error for all: then `p` is null."""
    first = f"array(get(get({topics}, 0).partitions, 0))"
    partitions = f"IF(size({topics}) = 0, {first}, {flat_map(topics, 't', 't.partitions')})"
    return f"IF(r.exchange_id IS NULL, array(), transform({partitions}, p -> {event}))"


_PARTITION = f"get(filter(q.topics, t -> {IS_METADATA_TOPIC}), 0).partitions"
_REPLICA = {
    "node_id": "coalesce(nullif(q.replica_state.replica_id, -1), q.replica_id)",
    "directory_id": f"get({_PARTITION}, 0).replica_directory_id",
    "offset": f"get({_PARTITION}, 0).fetch_offset",
}
_FETCH_EVENT = _event(
    "fetch",
    _REQUEST_AT,
    _REQUEST,
    **_REPLICA,
    leader_epoch=f"get({_PARTITION}, 0).current_leader_epoch",
    max_wait_ms="q.max_wait_ms",
)
_FETCH_RESPONSE_EVENT = _event(
    "fetch_answer",
    _RESPONSE_AT,
    _RESPONSE,
    **_REPLICA,
    error_code=_ERROR,
    leader_id="p.current_leader.leader_id",
    leader_epoch="p.current_leader.leader_epoch",
    high_watermark="p.high_watermark",
    records_bytes="p.records.size",
    end_offset="try_element_at(p.records.batches, -1).last_offset + 1",
    how="CASE WHEN p.diverging_epoch.epoch >= 0 THEN 'diverging' WHEN p.snapshot_id.epoch >= 0 THEN 'snapshot' END",
)
_FETCH_SQL = _exchange(
    f"({_RAFT_FETCH})",
    f"(SELECT * FROM {{fetch_response}} WHERE error_code <> 0 OR exists(responses, t -> {IS_METADATA_TOPIC}))",
    f"array({_FETCH_EVENT})",
    _response_events(_FETCH_RESPONSE_EVENT, "r.responses"),
)

_CANDIDATE = "get(get(q.topics, 0).partitions, 0)"
_VOTE = {
    "node_id": f"{_CANDIDATE}.replica_id",
    "directory_id": f"{_CANDIDATE}.replica_directory_id",
    "peer_id": "q.voter_id",
    "epoch": f"{_CANDIDATE}.replica_epoch",
    "offset": f"{_CANDIDATE}.last_offset",
    "pre_vote": f"{_CANDIDATE}.pre_vote",
}
_VOTE_SQL = _exchange(
    "{vote_request}",
    "{vote_response}",
    f"array({_event('vote', _REQUEST_AT, _REQUEST, **_VOTE)})",
    _response_events(
        _event(
            "vote_answer",
            _RESPONSE_AT,
            _RESPONSE,
            **_VOTE,
            granted="p.vote_granted",
            leader_id="p.leader_id",
            leader_epoch="p.leader_epoch",
            error_code=_ERROR,
        ),
        "r.topics",
    ),
)


def _epoch_sql(kind: str, name: str, peer: str) -> str:
    """Events of BeginQuorumEpoch or EndQuorumEpoch."""
    leader = {"peer_id": peer, "leader_id": "p.leader_id", "leader_epoch": "p.leader_epoch"}
    answer = _event(f"{kind}_answer", _RESPONSE_AT, _RESPONSE, **leader, error_code=_ERROR)
    return _exchange(
        f"{{{name}_request}}",
        f"{{{name}_response}}",
        _request_events(_event(kind, _REQUEST_AT, _REQUEST, **leader)),
        _response_events(answer, "r.topics"),
    )


_DESCRIBED_SQL = select(
    _COLUMNS,
    """
FROM {describe_quorum_response} r
LATERAL VIEW inline(transform(r.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
LATERAL VIEW inline(concat(transform(p.current_voters, x -> struct(x AS n, true AS voter)),
                           transform(p.observers, x -> struct(x AS n, false AS voter)))) AS n, voter
""",
    kind="'described'",
    at_us=_RESPONSE_AT,
    order=_DESCRIBED,
    exchange_id="r.exchange_id",
    connection_id="r.connection_id",
    broker="r.broker_address",
    node_id="n.replica_id",
    directory_id="n.replica_directory_id",
    voter="voter",
    offset="n.log_end_offset",
    last_fetch_ms="n.last_fetch_timestamp",
    last_caught_up_ms="n.last_caught_up_timestamp",
    leader_id="p.leader_id",
    leader_epoch="p.leader_epoch",
    high_watermark="p.high_watermark",
    error_code=_ERROR,
)

# A connection that a later ingest resumed has several rows.
_DISCONNECTED_SQL = select(
    _COLUMNS,
    f"""
FROM (SELECT connection_id, broker_address, min(closed_at) AS at, min(closed) AS closed FROM {{connections}}
      WHERE closed IN ('fin', 'reset') GROUP BY connection_id, broker_address) c
LEFT SEMI JOIN {{{LINKS}}} q ON q.connection_id = c.connection_id
""",
    kind="'disconnected'",
    at_us="unix_micros(c.at)",
    order=_DISCONNECTED,
    connection_id="c.connection_id",
    broker="c.broker_address",
    how="c.closed",
)

_STATEMENTS = (
    _FETCH_SQL,
    _VOTE_SQL,
    _epoch_sql("begin", "begin_quorum_epoch", "q.voter_id"),
    _epoch_sql("end", "end_quorum_epoch", "NULL"),
    _DESCRIBED_SQL,
    _DISCONNECTED_SQL,
)


_KEYS = ("cluster_id",)
_CONNECTIONS = sums_of(LINKS, "connection_id")
_AT = ROW_AT.format("q")
_FETCHED_OVER = f"SELECT {_AT} AS row_at, connection_id, {_AT} AS last_at FROM ({_RAFT_FETCH}) q"


def quorum_events(
    spark: "SparkSession",
    tables: TablesByName,
    absent: Collection[str],
    clusters: Mapping[str, str],
    plan: Plan = EVERY_ROW,
    lake: Lake | None = None,
) -> "tuple[DataFrame | None, DataFrame | None]":
    """`tables` are those of TABLES, `absent` those without rows, `clusters` the ids of addresses. The rows of a cluster
    are adjacent, in time order, after its state at the plan's start. Also the state of all at the plan's marks, but for
    their walks."""
    from pyspark.sql import functions as f

    kept = Kept(spark, lake, plan)
    links = kept.added(_CONNECTIONS, union(spark, (_FETCHED_OVER,), tables, absent))
    events = union(spark, _STATEMENTS, WithLinks(tables, links), absent if links is not None else {*absent, LINKS})
    kept.without_closed(_CONNECTIONS, tables, absent)
    states = kept.walks({name: kind for name, kind in _COLUMNS.items() if name != "cluster_id"}, _KEYS)
    parts = [] if states is None else [states]
    if events is not None:
        cluster_columns: list[Any] = ["cluster_id", "broker"]
        if clusters:
            cluster_map = f.create_map(*[f.lit(text) for pair in clusters.items() for text in pair])
            cluster_columns.insert(1, f.try_element_at(cluster_map, "broker"))
        # Two clusters of unknown id aren't one: each is named by the address that was queried.
        usable = events.where(f"at_us IS NOT NULL AND {plan.within('at_us')}")
        parts.append(
            usable.withColumn("cluster_id", f.coalesce(*cluster_columns)).withColumn(STATE, f.lit(None).cast("string"))
        )
    if not parts:
        return None, kept.rows()
    rows = reduce(lambda some, more: some.unionByName(more), parts)
    in_order = rows.repartition(*_KEYS).sortWithinPartitions(*_KEYS, "at_us", "order", "exchange_id", "node_id")
    return in_order, kept.rows()
