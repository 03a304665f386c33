"""Raft traffic and DescribeQuorum answers of the lake in, flat events of the quorum out, as `health.quorum_signals`
wants them."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

from kafkascope.pipeline.marts.events import union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = (
    "fetch_request",
    "fetch_response",
    "vote_request",
    "vote_response",
    "begin_quorum_epoch_request",
    "begin_quorum_epoch_response",
    "end_quorum_epoch_request",
    "end_quorum_epoch_response",
    "describe_quorum_response",
    "metadata_response",
)

COLUMNS = """
kind string, at_us bigint, `order` int, exchange_id string, connection_id string, broker string, node_id int,
directory_id string, peer_id int, leader_id int, leader_epoch int, epoch int, offset bigint, high_watermark bigint,
end_offset bigint, records_bytes int, max_wait_ms int, last_fetch_ms bigint, last_caught_up_ms bigint, error_code int,
granted boolean, pre_vote boolean, voter boolean, how string, cluster_id string
"""

METADATA_TOPIC = "__cluster_metadata"
# The id of the metadata topic is the same in every cluster (Uuid.METADATA_TOPIC_ID).
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"

_REQUEST, _ANSWER, _DESCRIBED, _DISCONNECTED, _SEEN = range(5)

# Requests that are about the metadata log, one row each: raft has no fetch sessions, every request says all.
RAFT_FETCH_SQL = f"""
SELECT q.exchange_id, q.request_at, q.connection_id, q.broker_address AS broker,
       coalesce(nullif(q.replica_state.replica_id, -1), q.replica_id) AS node_id,
       p.replica_directory_id AS directory_id, p.current_leader_epoch AS leader_epoch, p.fetch_offset AS offset,
       q.max_wait_ms, q.cluster_id
FROM {{fetch_request}} q
LATERAL VIEW inline(transform(q.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
WHERE t.topic = '{METADATA_TOPIC}' OR t.topic_id = '{METADATA_TOPIC_ID}'
"""

_FETCH_SQL = f"""
SELECT 'fetch' AS kind, unix_micros(request_at) AS at_us, {_REQUEST} AS `order`, exchange_id, connection_id, broker,
       node_id, directory_id, leader_epoch, offset, max_wait_ms, cluster_id
FROM {{raft_fetch}}
"""

_FETCH_ANSWER_SQL = f"""
SELECT 'fetch_answer' AS kind, unix_micros(r.response_at) AS at_us, {_ANSWER} AS `order`, r.exchange_id,
       r.connection_id, q.broker, q.node_id, q.directory_id, q.offset,
       int(IF(r.error_code <> 0, r.error_code, p.error_code)) AS error_code,
       p.current_leader.leader_id AS leader_id, p.current_leader.leader_epoch AS leader_epoch, p.high_watermark,
       p.records.size AS records_bytes, try_element_at(p.records.batches, -1).last_offset + 1 AS end_offset,
       CASE WHEN p.diverging_epoch.epoch >= 0 THEN 'diverging' WHEN p.snapshot_id.epoch >= 0 THEN 'snapshot' END AS how,
       q.cluster_id
FROM {{fetch_response}} r JOIN {{raft_fetch}} q USING (exchange_id)
LATERAL VIEW OUTER inline(transform(r.responses, x -> struct(x AS t))) AS t
LATERAL VIEW OUTER inline(transform(t.partitions, x -> struct(x AS p))) AS p
"""

_VOTE_SQL = f"""
SELECT 'vote' AS kind, unix_micros(q.request_at) AS at_us, {_REQUEST} AS `order`, q.exchange_id, q.connection_id,
       q.broker_address AS broker, p.replica_id AS node_id, p.replica_directory_id AS directory_id,
       q.voter_id AS peer_id, p.replica_epoch AS epoch, p.last_offset AS offset, p.pre_vote, q.cluster_id
FROM {{vote_request}} q
LATERAL VIEW inline(transform(q.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
"""

_VOTE_ANSWER_SQL = f"""
SELECT 'vote_answer' AS kind, unix_micros(r.response_at) AS at_us, {_ANSWER} AS `order`, r.exchange_id,
       r.connection_id, r.broker_address AS broker, a.replica_id AS node_id, a.replica_directory_id AS directory_id,
       q.voter_id AS peer_id, a.replica_epoch AS epoch, a.last_offset AS offset, a.pre_vote,
       p.vote_granted AS granted, p.leader_id, p.leader_epoch,
       int(IF(r.error_code <> 0, r.error_code, p.error_code)) AS error_code, q.cluster_id
FROM {{vote_response}} r JOIN {{vote_request}} q USING (exchange_id)
LATERAL VIEW inline(transform(q.topics, x -> struct(get(x.partitions, 0) AS a))) AS a
LATERAL VIEW OUTER inline(transform(r.topics, x -> struct(get(x.partitions, 0) AS p))) AS p
"""


def _epoch_sql(kind: str, name: str, peer: str) -> tuple[str, str]:
    """The request and the answer of BeginQuorumEpoch or EndQuorumEpoch."""
    asked = f"""
SELECT '{kind}' AS kind, unix_micros(q.request_at) AS at_us, {_REQUEST} AS `order`, q.exchange_id, q.connection_id,
       q.broker_address AS broker, {peer} AS peer_id, p.leader_id, p.leader_epoch, q.cluster_id
FROM {{{name}_request}} q
LATERAL VIEW inline(transform(q.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
"""
    answered = f"""
SELECT '{kind}_answer' AS kind, unix_micros(r.response_at) AS at_us, {_ANSWER} AS `order`, r.exchange_id,
       r.connection_id, r.broker_address AS broker, {peer} AS peer_id, p.leader_id, p.leader_epoch,
       int(IF(r.error_code <> 0, r.error_code, p.error_code)) AS error_code, q.cluster_id
FROM {{{name}_response}} r JOIN {{{name}_request}} q USING (exchange_id)
LATERAL VIEW OUTER inline(transform(r.topics, x -> struct(x AS t))) AS t
LATERAL VIEW OUTER inline(transform(t.partitions, x -> struct(x AS p))) AS p
"""
    return asked, answered


def _described_sql(replicas: str, voter: str) -> str:
    return f"""
SELECT 'described' AS kind, unix_micros(r.response_at) AS at_us, {_DESCRIBED} AS `order`, r.exchange_id,
       r.connection_id, r.broker_address AS broker, n.replica_id AS node_id, n.replica_directory_id AS directory_id,
       {voter} AS voter, n.log_end_offset AS offset, n.last_fetch_timestamp AS last_fetch_ms,
       n.last_caught_up_timestamp AS last_caught_up_ms, p.leader_id, p.leader_epoch, p.high_watermark,
       int(IF(r.error_code <> 0, r.error_code, p.error_code)) AS error_code
FROM {{describe_quorum_response}} r
LATERAL VIEW inline(transform(r.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
LATERAL VIEW inline(transform(p.{replicas}, x -> struct(x AS n))) AS n
"""


_DISCONNECTED_SQL = f"""
SELECT DISTINCT 'disconnected' AS kind, unix_micros(c.last_at) AS at_us, {_DISCONNECTED} AS `order`, c.connection_id,
       c.broker_address AS broker, IF(c.closed = 'fin', 'fin', 'reset') AS how
FROM {{connections}} c LEFT SEMI JOIN {{raft_fetch}} q ON q.connection_id = c.connection_id
WHERE c.closed IN ('fin', 'reset')
"""

_SEEN_SQL = f"""
SELECT 'seen' AS kind, l.at_us, {_SEEN} AS `order`, c.cluster_id
FROM {{last}} l CROSS JOIN (SELECT DISTINCT cluster_id FROM {{clusters}}) c
"""

# Which cluster an address belongs to: raft requests and Metadata answers say so, DescribeQuorum does not.
_CLUSTERS_SQL = (
    "SELECT broker AS address, cluster_id FROM {raft_fetch}",
    "SELECT broker_address AS address, cluster_id FROM {vote_request}",
    "SELECT broker_address AS address, cluster_id FROM {metadata_response}",
)

_STATEMENTS = (
    _FETCH_SQL,
    _FETCH_ANSWER_SQL,
    _VOTE_SQL,
    _VOTE_ANSWER_SQL,
    *_epoch_sql("begin", "begin_quorum_epoch", "q.voter_id"),
    *_epoch_sql("end", "end_quorum_epoch", "CAST(NULL AS INT)"),
    _described_sql("current_voters", "true"),
    _described_sql("observers", "false"),
    _DISCONNECTED_SQL,
    _SEEN_SQL,
)


def quorum_events(spark: "SparkSession", tables: dict[str, "DataFrame"], absent: Collection[str]) -> "DataFrame | None":
    """`tables` are those of TABLES, `connections` and `last`; `absent` are tables without a row. The rows of a cluster
    lie together, in time order."""
    from pyspark.sql import functions as f

    raft = spark.sql(RAFT_FETCH_SQL, fetch_request=cast(Any, tables["fetch_request"]))
    hidden = {*absent, "raft_fetch"} if "fetch_request" in absent else set(absent)
    if hidden >= {"raft_fetch", "vote_request", "begin_quorum_epoch_request", "describe_quorum_response"}:
        return None
    given = {**tables, "raft_fetch": raft}
    clusters = union(spark, "address string, cluster_id string", _CLUSTERS_SQL, given, hidden)
    if clusters is None:
        clusters = spark.createDataFrame([], "address string, cluster_id string")
    clusters = (
        clusters.where("cluster_id IS NOT NULL")
        .groupBy("address")
        .agg({"cluster_id": "min"})
        .toDF("address", "cluster_id")
    )
    events = union(spark, COLUMNS, _STATEMENTS, {**given, "clusters": clusters}, hidden)
    if events is None:
        return None
    known = f.broadcast(clusters.withColumnRenamed("cluster_id", "_cluster"))
    named = events.join(known, events["broker"] == known["address"], "left")
    named = named.withColumn("cluster_id", f.coalesce("cluster_id", "_cluster")).select(*events.columns)
    return named.repartition("cluster_id").sortWithinPartitions(
        "cluster_id", "at_us", "order", "exchange_id", "node_id"
    )
