"""Share-group bodies of the lake in, flat events of every group out, as `health.share_events` and
`health.share_group_health` want them; Spark explodes and joins, the ledger walks them in order."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from kafkascope.pipeline.marts.events import union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The tables that the events come from.
TABLES = (
    "share_fetch_request",
    "share_fetch_response",
    "share_acknowledge_request",
    "share_acknowledge_response",
    "write_share_group_state_request",
    "write_share_group_state_response",
    "alter_share_group_offsets_request",
    "alter_share_group_offsets_response",
    "delete_share_group_offsets_request",
    "delete_share_group_offsets_response",
    "delete_records_request",
    "delete_records_response",
    "share_group_heartbeat_request",
    "share_group_heartbeat_response",
    "share_group_describe_response",
    "describe_share_group_offsets_response",
)

# Both kinds of events in one row: those of the ledger and those of the group.
COLUMNS = """
kind string, at_us bigint, `order` int, group_id string, exchange_id string, connection_id string, broker string,
member_id string, client_id string, topic_id string, topic string, partition int, first_offset bigint,
last_offset bigint, value int, delivery_count int, lock_timeout_ms int, error_code int, asked_us bigint,
answered_us bigint, start_offset bigint, member_epoch int, group_epoch int, assignment_epoch int, state string,
members int, assigned int, lag bigint
"""

# Within one microsecond: what a request acknowledges comes before what its session does, and answers come last.
_ACKNOWLEDGED, _SESSION, _FORGOTTEN, _WRITTEN, _ALTERED, _ERROR, _ACQUIRED, _GROUP, _DISCONNECTED, _SEEN = range(10)

_ACQUIRED_SQL = f"""
SELECT 'acquired' AS kind, unix_micros(r.response_at) AS at_us, {_ACQUIRED} AS `order`, q.group_id, r.exchange_id,
       r.connection_id, r.broker_address AS broker, q.member_id, r.client_id, t.topic_id,
       p.partition_index AS partition, a.first_offset, a.last_offset, int(a.delivery_count) AS delivery_count,
       r.acquisition_lock_timeout_ms AS lock_timeout_ms, unix_micros(r.request_at) AS asked_us
FROM {{share_fetch_response}} r JOIN {{share_fetch_request}} q USING (exchange_id)
LATERAL VIEW inline(transform(r.responses, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
LATERAL VIEW inline(transform(p.acquired_records, x -> struct(x AS a))) AS a
"""

_BROKER_ERROR_SQL = f"""
SELECT 'broker_error' AS kind, unix_micros(r.response_at) AS at_us, {_ERROR} AS `order`, q.group_id, r.exchange_id,
       r.connection_id, r.broker_address AS broker, q.member_id, r.client_id, t.topic_id,
       p.partition_index AS partition, int(p.error_code) AS error_code
FROM {{share_fetch_response}} r JOIN {{share_fetch_request}} q USING (exchange_id)
LATERAL VIEW inline(transform(r.responses, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
WHERE p.error_code <> 0
"""


def _acknowledged_sql(request: str, response: str, error: str) -> str:
    """Runs of one type: one entry stands for the whole range, else there is one an offset (GOTCHAS 33)."""
    return f"""
WITH asked AS (
  SELECT q.*, t.topic_id, p.partition_index AS partition, b.first_offset AS batch_first, b.last_offset AS batch_last,
         b.acknowledge_types AS types,
         filter(sequence(0, size(b.acknowledge_types) - 1),
                i -> i = 0 OR get(b.acknowledge_types, i) <> get(b.acknowledge_types, i - 1)) AS starts
  FROM {{{request}}} q
  LATERAL VIEW inline(transform(q.topics, x -> struct(x AS t))) AS t
  LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
  LATERAL VIEW inline(transform(p.acknowledgement_batches, x -> struct(x AS b))) AS b
  WHERE size(b.acknowledge_types) > 0
), answered AS (
  SELECT r.exchange_id, t.topic_id, p.partition_index AS partition, any_value(int(p.{error})) AS code
  FROM {{{response}}} r
  LATERAL VIEW inline(transform(r.responses, x -> struct(x AS t))) AS t
  LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
  GROUP BY ALL
), whole AS (
  SELECT exchange_id, int(error_code) AS code, acquisition_lock_timeout_ms AS lock_timeout_ms, response_at
  FROM {{{response}}}
)
SELECT 'acknowledged' AS kind, unix_micros(q.request_at) AS at_us, {_ACKNOWLEDGED} AS `order`, q.group_id,
       q.exchange_id, q.connection_id, q.broker_address AS broker, q.member_id, q.client_id, q.topic_id, q.partition,
       q.batch_first + run.start AS first_offset, coalesce(q.batch_first + run.next - 1, q.batch_last) AS last_offset,
       int(run.type) AS value, w.lock_timeout_ms,
       CASE WHEN w.exchange_id IS NULL THEN NULL WHEN w.code <> 0 THEN w.code ELSE coalesce(a.code, 0) END
         AS error_code,
       unix_micros(w.response_at) AS answered_us
FROM asked q
LEFT JOIN whole w USING (exchange_id)
LEFT JOIN answered a ON a.exchange_id = q.exchange_id AND a.topic_id = q.topic_id AND a.partition = q.partition
LATERAL VIEW inline(transform(q.starts, (s, j) -> struct(struct(
  s AS start, get(q.starts, j + 1) AS next, get(q.types, s) AS type) AS run))) AS run
"""


def _session_sql(request: str, response: str) -> str:
    return f"""
SELECT 'session' AS kind, unix_micros(q.request_at) AS at_us, {_SESSION} AS `order`, q.group_id, q.exchange_id,
       q.connection_id, q.broker_address AS broker, q.member_id, q.client_id, q.share_session_epoch AS value,
       int(r.error_code) AS error_code, unix_micros(r.response_at) AS answered_us
FROM {{{request}}} q LEFT JOIN {{{response}}} r USING (exchange_id)
WHERE q.share_session_epoch IN (0, -1) OR r.error_code = {_SHARE_SESSION_NOT_FOUND}
"""


# SHARE_SESSION_NOT_FOUND: the broker has evicted it.
_SHARE_SESSION_NOT_FOUND = 122

_FORGOTTEN_SQL = f"""
SELECT 'forgotten' AS kind, unix_micros(q.request_at) AS at_us, {_FORGOTTEN} AS `order`, q.group_id, q.exchange_id,
       q.connection_id, q.broker_address AS broker, q.member_id, q.client_id, t.topic_id, partition
FROM {{share_fetch_request}} q
LATERAL VIEW inline(transform(q.forgotten_topics_data, x -> struct(x AS t))) AS t
LATERAL VIEW explode(t.partitions) AS partition
"""

_WRITTEN_SQL = f"""
SELECT 'state_written' AS kind, unix_micros(q.request_at) AS at_us, {_WRITTEN} AS `order`, q.group_id, q.exchange_id,
       q.connection_id, q.broker_address AS broker, t.topic_id, p.partition,
       coalesce(b.first_offset, -1) AS first_offset, coalesce(b.last_offset, -1) AS last_offset,
       int(b.delivery_state) AS value, int(b.delivery_count) AS delivery_count, p.start_offset,
       int(get(filter(flatten(transform(r.results, x -> transform(x.partitions, y ->
         struct(x.topic_id AS topic_id, y.partition AS partition, y.error_code AS code)))),
         x -> x.topic_id = t.topic_id AND x.partition = p.partition), 0).code) AS error_code
FROM {{write_share_group_state_request}} q LEFT JOIN {{write_share_group_state_response}} r USING (exchange_id)
LATERAL VIEW inline(transform(q.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
LATERAL VIEW OUTER inline(transform(p.state_batches, x -> struct(x AS b))) AS b
"""

_ALTERED_SQL = f"""
SELECT 'altered' AS kind, unix_micros(r.response_at) AS at_us, {_ALTERED} AS `order`, q.group_id, q.exchange_id,
       q.connection_id, q.broker_address AS broker, q.client_id, t.topic_name AS topic, p.partition_index AS partition
FROM {{alter_share_group_offsets_request}} q JOIN {{alter_share_group_offsets_response}} r USING (exchange_id)
LATERAL VIEW inline(transform(q.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
WHERE r.error IS NULL
"""

# Records that were deleted are gone for every group that reads the topic.
_DELETED_SQL = f"""
SELECT 'altered' AS kind, unix_micros(r.response_at) AS at_us, {_ALTERED} AS `order`, g.group_id, q.exchange_id,
       q.connection_id, q.broker_address AS broker, q.client_id, t.name AS topic, p.partition_index AS partition,
       coalesce(nullif(p.offset, -1), 9223372036854775807) AS start_offset
FROM {{delete_records_request}} q JOIN {{delete_records_response}} r USING (exchange_id) CROSS JOIN {{groups}} g
LATERAL VIEW inline(transform(q.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
WHERE r.error IS NULL
"""

_HEARTBEAT_SQL = f"""
SELECT 'heartbeat' AS kind, unix_micros(q.request_at) AS at_us, {_GROUP} AS `order`, q.group_id, q.exchange_id,
       q.connection_id, q.broker_address AS broker, q.member_id, q.client_id, q.member_epoch,
       r.member_epoch AS group_epoch,
       aggregate(r.assignment.topic_partitions, 0, (sum, x) -> sum + size(x.partitions)) AS assigned,
       int(r.error_code) AS error_code
FROM {{share_group_heartbeat_request}} q LEFT JOIN {{share_group_heartbeat_response}} r USING (exchange_id)
"""

_DESCRIBED_SQL = f"""
SELECT 'described' AS kind, unix_micros(r.response_at) AS at_us, {_GROUP} AS `order`, g.group_id, r.exchange_id,
       g.group_state AS state, g.group_epoch, g.assignment_epoch, size(g.members) AS members,
       aggregate(g.members, 0, (sum, m) -> sum
         + aggregate(m.assignment.topic_partitions, 0, (parts, x) -> parts + size(x.partitions))) AS assigned,
       int(g.error_code) AS error_code
FROM {{share_group_describe_response}} r
LATERAL VIEW inline(transform(r.groups, x -> struct(x AS g))) AS g
"""

_OFFSETS_SQL = f"""
SELECT 'offsets' AS kind, unix_micros(r.response_at) AS at_us, {_GROUP} AS `order`, g.group_id, r.exchange_id,
       t.topic_name AS topic, t.topic_id, p.partition_index AS partition, p.start_offset, p.lag,
       int(p.error_code) AS error_code
FROM {{describe_share_group_offsets_response}} r
LATERAL VIEW inline(transform(r.groups, x -> struct(x AS g))) AS g
LATERAL VIEW inline(transform(g.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
"""

_DISCONNECTED_SQL = f"""
SELECT DISTINCT 'disconnected' AS kind, unix_micros(c.last_at) AS at_us, {_DISCONNECTED} AS `order`, q.group_id,
       c.connection_id, c.broker_address AS broker, q.member_id
FROM {{connections}} c JOIN {{share_fetch_request}} q USING (connection_id)
WHERE c.closed IN ('fin', 'reset')
"""

_SEEN_SQL = f"""
SELECT 'seen' AS kind, l.at_us, {_SEEN} AS `order`, g.group_id FROM {{groups}} g CROSS JOIN {{last}} l
"""

_STATEMENTS = (
    _ACQUIRED_SQL,
    _BROKER_ERROR_SQL,
    _acknowledged_sql("share_fetch_request", "share_fetch_response", "acknowledge_error_code"),
    _acknowledged_sql("share_acknowledge_request", "share_acknowledge_response", "error_code"),
    _session_sql("share_fetch_request", "share_fetch_response"),
    _session_sql("share_acknowledge_request", "share_acknowledge_response"),
    _FORGOTTEN_SQL,
    _WRITTEN_SQL,
    _ALTERED_SQL,
    _DELETED_SQL,
    _HEARTBEAT_SQL,
    _DESCRIBED_SQL,
    _OFFSETS_SQL,
    _DISCONNECTED_SQL,
    _SEEN_SQL,
)


def share_events(
    spark: "SparkSession", tables: dict[str, "DataFrame"], names: "DataFrame", absent: Collection[str]
) -> "DataFrame | None":
    """`tables` are those of TABLES, `connections` and `last` (one row: at_us, the end of the recordings); `names` are
    topic ids and names; `absent` are tables without a row. The rows of a group lie together, in time order."""
    from pyspark.sql import functions as f

    groups = tables["share_fetch_request"].select("group_id").distinct()
    hidden = {*absent, "groups"} if "share_fetch_request" in absent else absent
    events = union(spark, COLUMNS, _STATEMENTS, {**tables, "groups": groups}, hidden)
    if events is None:
        return None
    columns = events.columns
    named = events.join(f.broadcast(names.withColumnRenamed("name", "_name")), "topic_id", "left")
    named = named.withColumn("topic", f.coalesce("topic", "_name")).select(*columns).where("group_id IS NOT NULL")
    return named.repartition("group_id").sortWithinPartitions("group_id", "at_us", "order")
