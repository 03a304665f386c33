"""Streams-group bodies of the lake in, flat events of every group out, as `health.streams_signals` wants them."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from kafkascope.pipeline.marts.events import union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = (
    "streams_group_heartbeat_request",
    "streams_group_heartbeat_response",
    "streams_group_describe_response",
)

COLUMNS = """
kind string, at_us bigint, `order` int, group_id string, exchange_id string, connection_id string, member_id string,
client_id string, process_id string, member_epoch int, active string, standby string, warmup string,
target_active string, target_standby string, target_warmup string, error_code int, status string,
heartbeat_interval_ms int, topology_epoch int, endpoint string, endpoint_epoch int, group_state string,
group_epoch int, assignment_epoch int, topology string, stateful string, value int
"""

# Within one microsecond; members of a description come before their group.
_HEARTBEAT, _ANSWER, _MEMBER, _GROUP, _DISCONNECTED, _SEEN = range(6)


def _tasks(of: str) -> str:
    """`0_0,0_1`; null where nothing is said."""
    named = "transform(t.partitions, p -> concat(t.subtopology_id, '_', p))"
    return f"array_join(flatten(transform({of}, t -> {named})), ',')"


def _endpoint(of: str) -> str:
    return f"IF({of} IS NULL, NULL, concat({of}.host, ':', {of}.port))"


_HEARTBEAT_SQL = f"""
SELECT 'heartbeat' AS kind, unix_micros(request_at) AS at_us, {_HEARTBEAT} AS `order`, group_id, exchange_id,
       connection_id, member_id, client_id, process_id, member_epoch, {_tasks("active_tasks")} AS active,
       {_tasks("standby_tasks")} AS standby, {_tasks("warmup_tasks")} AS warmup, topology.epoch AS topology_epoch,
       {_endpoint("user_endpoint")} AS endpoint, IF(shutdown_application, 1, NULL) AS value
FROM {{streams_group_heartbeat_request}}
"""

_ANSWER_SQL = f"""
SELECT 'answer' AS kind, unix_micros(r.response_at) AS at_us, {_ANSWER} AS `order`, q.group_id, r.exchange_id,
       r.connection_id, q.member_id, r.client_id, r.member_epoch, {_tasks("r.active_tasks")} AS active,
       {_tasks("r.standby_tasks")} AS standby, {_tasks("r.warmup_tasks")} AS warmup, int(r.error_code) AS error_code,
       array_join(transform(r.status, s -> concat(s.status_code, ' ', s.status_detail)), '\\n') AS status,
       r.heartbeat_interval_ms, r.endpoint_information_epoch AS endpoint_epoch
FROM {{streams_group_heartbeat_response}} r JOIN {{streams_group_heartbeat_request}} q USING (exchange_id)
"""

_MEMBER_SQL = f"""
SELECT 'described_member' AS kind, unix_micros(r.response_at) AS at_us, {_MEMBER} AS `order`, g.group_id, r.exchange_id,
       m.member_id, m.client_id, m.process_id, m.member_epoch, m.topology_epoch,
       {_tasks("m.assignment.active_tasks")} AS active, {_tasks("m.assignment.standby_tasks")} AS standby,
       {_tasks("m.assignment.warmup_tasks")} AS warmup,
       {_tasks("m.target_assignment.active_tasks")} AS target_active,
       {_tasks("m.target_assignment.standby_tasks")} AS target_standby,
       {_tasks("m.target_assignment.warmup_tasks")} AS target_warmup, {_endpoint("m.user_endpoint")} AS endpoint
FROM {{streams_group_describe_response}} r
LATERAL VIEW inline(transform(r.groups, x -> struct(x AS g))) AS g
LATERAL VIEW inline(transform(g.members, x -> struct(x AS m))) AS m
"""

# The partitions of a subtopology are those of its changelogs, where it has any; the heartbeats' tasks tell the rest.
_GROUP_SQL = f"""
SELECT 'described' AS kind, unix_micros(r.response_at) AS at_us, {_GROUP} AS `order`, g.group_id, r.exchange_id,
       g.group_state, g.group_epoch, g.assignment_epoch, g.topology.epoch AS topology_epoch,
       int(g.error_code) AS error_code,
       array_join(transform(
         filter(g.topology.subtopologies, s -> exists(s.state_changelog_topics, c -> c.partitions > 0)),
         s -> concat(s.subtopology_id, '=', array_max(transform(s.state_changelog_topics, c -> c.partitions)))), ',')
         AS topology,
       array_join(transform(filter(g.topology.subtopologies, s -> size(s.state_changelog_topics) > 0),
         s -> s.subtopology_id), ',') AS stateful
FROM {{streams_group_describe_response}} r
LATERAL VIEW inline(transform(r.groups, x -> struct(x AS g))) AS g
"""

_DISCONNECTED_SQL = f"""
SELECT DISTINCT 'disconnected' AS kind, unix_micros(c.last_at) AS at_us, {_DISCONNECTED} AS `order`, q.group_id,
       c.connection_id, q.member_id
FROM {{connections}} c JOIN {{streams_group_heartbeat_request}} q USING (connection_id)
WHERE c.closed IN ('fin', 'reset')
"""

_SEEN_SQL = f"""
SELECT 'seen' AS kind, l.at_us, {_SEEN} AS `order`, g.group_id FROM {{groups}} g CROSS JOIN {{last}} l
"""

_STATEMENTS = (_HEARTBEAT_SQL, _ANSWER_SQL, _MEMBER_SQL, _GROUP_SQL, _DISCONNECTED_SQL, _SEEN_SQL)


def streams_events(
    spark: "SparkSession", tables: dict[str, "DataFrame"], absent: Collection[str]
) -> "DataFrame | None":
    """`tables` are those of TABLES, `connections` and `last`; `absent` are tables without a row. The rows of a group
    lie together, in time order."""
    groups = tables["streams_group_heartbeat_request"].select("group_id").distinct()
    hidden = {*absent, "groups"} if "streams_group_heartbeat_request" in absent else absent
    events = union(spark, COLUMNS, _STATEMENTS, {**tables, "groups": groups}, hidden)
    if events is None:
        return None
    named = events.where("group_id IS NOT NULL")
    return named.repartition("group_id").sortWithinPartitions("group_id", "at_us", "order")
