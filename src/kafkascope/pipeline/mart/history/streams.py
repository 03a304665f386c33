"""Extracts the events of streams groups from their messages, in the form of `health.streams`."""

from collections.abc import Callable, Collection, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from kafkascope.lake.home import Lake
from kafkascope.pipeline.mart.base.events import (
    ROW_AT,
    TablesByName,
    columns_of,
    disconnected,
    group_clusters,
    select,
    union,
)
from kafkascope.pipeline.mart.base.links import LINKS, SPOKE_SUMS, STATE, Kept, WithLinks, sums_of
from kafkascope.pipeline.mart.increments.plan import EVERY_ROW, Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = {
    "streams_group_heartbeat_request": "group_id member_id member_epoch process_id active_tasks standby_tasks"
    " warmup_tasks topology.epoch user_endpoint shutdown_application",
    "streams_group_heartbeat_response": "member_epoch error_code heartbeat_interval_ms active_tasks standby_tasks"
    " warmup_tasks status endpoint_information_epoch",
    "streams_group_describe_response": "groups.error_code groups.group_id groups.group_state groups.group_epoch"
    " groups.assignment_epoch groups.topology.epoch groups.topology.subtopologies.subtopology_id"
    " groups.topology.subtopologies.state_changelog_topics groups.members.member_id groups.members.member_epoch"
    " groups.members.client_id groups.members.process_id groups.members.topology_epoch groups.members.user_endpoint"
    " groups.members.assignment groups.members.target_assignment",
    "connections": "connection_id broker_address closed closed_at",
}

# `broker` shows how long its recording continues.
_COLUMNS = columns_of(
    "kind string, at_us bigint, order int, group_id string, exchange_id string, connection_id string, member_id string,"
    "client_id string, process_id string, member_epoch int, active string, standby string, warmup string,"
    "target_active string, target_standby string, target_warmup string, error_code int, status string,"
    "heartbeat_interval_ms int, topology_epoch int, endpoint string, endpoint_epoch int, group_state string,"
    "group_epoch int, assignment_epoch int, topology string, stateful string, value int, broker string"
)

# Order within one microsecond; members of a description come before their group.
_HEARTBEAT, _RESPONSE, _MEMBER, _GROUP, _DISCONNECTED = map(str, range(5))


def _tasks(of: str) -> str:
    """`0_0,0_1`; null if unknown."""
    named = "transform(t.partitions, p -> concat(t.subtopology_id, '_', p))"
    return f"array_join(flatten(transform({of}, t -> {named})), ',')"


def _endpoint(of: str) -> str:
    return f"IF({of} IS NULL, NULL, concat({of}.host, ':', {of}.port))"


_HEARTBEAT_SQL = select(
    _COLUMNS,
    "FROM {streams_group_heartbeat_request} q",
    kind="'heartbeat'",
    at_us="unix_micros(q.request_at)",
    order=_HEARTBEAT,
    group_id="q.group_id",
    exchange_id="q.exchange_id",
    connection_id="q.connection_id",
    broker="q.broker_address",
    member_id="q.member_id",
    client_id="q.client_id",
    process_id="q.process_id",
    member_epoch="q.member_epoch",
    active=_tasks("q.active_tasks"),
    standby=_tasks("q.standby_tasks"),
    warmup=_tasks("q.warmup_tasks"),
    topology_epoch="q.topology.epoch",
    endpoint=_endpoint("q.user_endpoint"),
    value="IF(q.shutdown_application, 1, NULL)",
)

_RESPONSE_SQL = select(
    _COLUMNS,
    "FROM {streams_group_heartbeat_response} r JOIN {streams_group_heartbeat_request} q USING (exchange_id)",
    kind="'answer'",
    at_us="unix_micros(r.response_at)",
    order=_RESPONSE,
    group_id="q.group_id",
    exchange_id="exchange_id",
    connection_id="r.connection_id",
    broker="r.broker_address",
    member_id="q.member_id",
    client_id="r.client_id",
    member_epoch="r.member_epoch",
    active=_tasks("r.active_tasks"),
    standby=_tasks("r.standby_tasks"),
    warmup=_tasks("r.warmup_tasks"),
    error_code="r.error_code",
    # One line per status: line breaks in its detail are replaced.
    status="array_join(transform(r.status, s -> concat(s.status_code, ' ', translate(s.status_detail, '\\n', ' '))),"
    " '\\n')",
    heartbeat_interval_ms="r.heartbeat_interval_ms",
    endpoint_epoch="r.endpoint_information_epoch",
)

_MEMBER_SQL = select(
    _COLUMNS,
    """
FROM {streams_group_describe_response} r
LATERAL VIEW inline(transform(r.groups, x -> struct(x AS g))) AS g
LATERAL VIEW inline(transform(g.members, x -> struct(x AS m))) AS m
""",
    kind="'described_member'",
    at_us="unix_micros(r.response_at)",
    order=_MEMBER,
    group_id="g.group_id",
    exchange_id="r.exchange_id",
    broker="r.broker_address",
    member_id="m.member_id",
    client_id="m.client_id",
    process_id="m.process_id",
    member_epoch="m.member_epoch",
    topology_epoch="m.topology_epoch",
    active=_tasks("m.assignment.active_tasks"),
    standby=_tasks("m.assignment.standby_tasks"),
    warmup=_tasks("m.assignment.warmup_tasks"),
    target_active=_tasks("m.target_assignment.active_tasks"),
    target_standby=_tasks("m.target_assignment.standby_tasks"),
    target_warmup=_tasks("m.target_assignment.warmup_tasks"),
    endpoint=_endpoint("m.user_endpoint"),
)

# A subtopology has as many partitions as its changelogs, if it has any; the tasks in heartbeats show the others.
_GROUP_SQL = select(
    _COLUMNS,
    "FROM {streams_group_describe_response} r LATERAL VIEW inline(transform(r.groups, x -> struct(x AS g))) AS g",
    kind="'described'",
    at_us="unix_micros(r.response_at)",
    order=_GROUP,
    group_id="g.group_id",
    exchange_id="r.exchange_id",
    broker="r.broker_address",
    group_state="g.group_state",
    group_epoch="g.group_epoch",
    assignment_epoch="g.assignment_epoch",
    topology_epoch="g.topology.epoch",
    error_code="g.error_code",
    topology="array_join(transform("
    "filter(g.topology.subtopologies, s -> exists(s.state_changelog_topics, c -> c.partitions > 0)),"
    " s -> concat(s.subtopology_id, '=', array_max(transform(s.state_changelog_topics, c -> c.partitions)))), ',')",
    stateful="array_join(transform(filter(g.topology.subtopologies, s -> size(s.state_changelog_topics) > 0),"
    " s -> s.subtopology_id), ',')",
)

_DISCONNECTED_SQL = disconnected(_COLUMNS, LINKS, _DISCONNECTED)

_STATEMENTS = (_HEARTBEAT_SQL, _RESPONSE_SQL, _MEMBER_SQL, _GROUP_SQL, _DISCONNECTED_SQL)


_KEYS = ("group_id", "cluster")
_CONNECTIONS = sums_of(LINKS, "connection_id", "group_id", "member_id")
_CONNECTION = f"""
SELECT {ROW_AT.format("q")} AS row_at, connection_id, group_id, member_id, {ROW_AT.format("q")} AS last_at
FROM {{streams_group_heartbeat_request}} q
"""


def streams_events(
    spark: "SparkSession",
    tables: TablesByName,
    absent: Collection[str],
    clusters: Callable[[], Mapping[str, str]] = dict,
    plan: Plan = EVERY_ROW,
    lake: Lake | None = None,
) -> "tuple[DataFrame | None, DataFrame | None]":
    """`tables` are those of TABLES, `absent` those without a row, `clusters` the ids of addresses. The rows of a group
    of one cluster lie together, in time order, after its state at the plan's start. Also the state of all groups at the
    plan's marks, but for their walks."""
    kept = Kept(spark, lake, plan)
    calls = union(spark, (_CONNECTION,), tables, absent)
    links = kept.added(_CONNECTIONS, calls)
    events = union(spark, _STATEMENTS, WithLinks(tables, links), absent if links is not None else {*absent, LINKS})
    kept.without_closed(_CONNECTIONS, tables, absent)
    states = kept.walks(_COLUMNS, _KEYS)
    usable = None
    if events is not None:
        # An event of a log without a time has no place among them.
        usable = events.where(f"group_id IS NOT NULL AND at_us IS NOT NULL AND {plan.within('at_us')}")
    spoke = None if usable is None else usable.selectExpr("at_us AS row_at", "group_id", "broker", "at_us AS last_at")
    pairs = kept.added(SPOKE_SUMS, spoke)
    if pairs is None:
        return None, None
    of_cluster = group_clusters(clusters(), pairs)
    parts = [] if states is None else [of_cluster.checked(states)]
    if usable is not None:
        parts.append(of_cluster.add_to(usable).selectExpr(*_COLUMNS, "cluster", f"CAST(NULL AS STRING) AS {STATE}"))
    if not parts:
        return None, kept.rows()
    rows = reduce(lambda some, more: some.unionByName(more), parts)
    in_order = rows.repartition("group_id").sortWithinPartitions(*_KEYS, "at_us", "order", "exchange_id", "member_id")
    return in_order, kept.rows()
