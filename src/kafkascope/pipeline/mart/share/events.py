"""Extracts the events of share groups from their messages, as `health.share` wants them; Spark joins and sorts, a
ledger walks each partition of a group in order.

What one message acknowledged, or acquired, of a partition is one row with all of it inside: there are many more ranges
than messages, and the columns that they share would be sorted and sent with each. `share_ranges` takes them apart where
the ledger is."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from kafkascope.lake.home import Lake
from kafkascope.pipeline.mart.base.events import (
    NO_TOPIC,
    ROW_AT,
    GroupClusters,
    TablesByName,
    columns_of,
    disconnected,
    flat_map,
    group_clusters,
    select,
    struct,
    union,
)
from kafkascope.pipeline.mart.base.links import LINKS, SPOKE_SUMS, STATE, Kept, WithLinks, first_of
from kafkascope.pipeline.mart.increments.plan import EVERY_ROW, Plan
from kafkascope.pipeline.mart.share.routes import (
    GROUP_KEYS,
    TOUCHED,
    TOUCHES,
    WALK_KEYS,
    first_touches,
    linked_events,
    to_partitions,
    with_places,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCHES = "topics.partitions.acknowledgement_batches"
_REQUEST_PATHS = (
    "group_id member_id share_session_epoch topics.topic_id topics.partitions.partition_index"
    f" {_BATCHES}.first_offset {_BATCHES}.last_offset {_BATCHES}.acknowledge_types"
)
_RECORDS = "responses.partitions.acquired_records"
# The tables that the events come from, and the columns needed of each.
TABLES = {
    "share_fetch_request": f"{_REQUEST_PATHS} forgotten_topics_data",
    "share_fetch_response": "error_code acquisition_lock_timeout_ms responses.topic_id"
    " responses.partitions.partition_index responses.partitions.error_code responses.partitions.acknowledge_error_code"
    f" {_RECORDS}.first_offset {_RECORDS}.last_offset {_RECORDS}.delivery_count",
    "share_acknowledge_request": _REQUEST_PATHS,
    "share_acknowledge_response": "error_code acquisition_lock_timeout_ms responses.topic_id"
    " responses.partitions.partition_index responses.partitions.error_code",
    "write_share_group_state_request": "group_id topics",
    "write_share_group_state_response": "results",
    "alter_share_group_offsets_request": "group_id",
    "alter_share_group_offsets_response": "error_code responses",
    "delete_share_group_offsets_request": "group_id",
    "delete_share_group_offsets_response": "error_code responses",
    "delete_records_response": "topics",
    "delete_topics_response": "responses",
    "share_group_heartbeat_request": "group_id member_id member_epoch",
    "share_group_heartbeat_response": "member_epoch error_code assignment",
    "share_group_describe_response": "groups.error_code groups.group_id groups.group_state groups.group_epoch"
    " groups.assignment_epoch groups.members.assignment",
    "describe_share_group_offsets_response": "groups",
    "connections": "connection_id broker_address closed closed_at",
}

EVENT_COLUMNS = columns_of(
    "kind string, at_us bigint, order int, group_id string, exchange_id string, connection_id string, broker string,"
    "member_id string, client_id string, topic_id string, topic string, partition int, first_offset bigint,"
    "last_offset bigint, value int, delivery_count int, lock_timeout_ms int, error_code int, asked_us bigint,"
    "answered_us bigint, start_offset bigint"
)
# Ranges of the row's partition: the acknowledgements of a request, and what a response acquired.
EVENT_COLUMNS["acknowledged"] = (
    "array<struct<first_offset bigint, last_offset bigint, acknowledge_types array<tinyint>>>"
)
EVENT_COLUMNS["acquired"] = "array<struct<first_offset bigint, last_offset bigint, delivery_count smallint>>"

# What describes a group as a whole.
GROUP_COLUMNS = columns_of(
    "kind string, at_us bigint, order int, group_id string, exchange_id string, broker string, member_id string,"
    "member_epoch int, group_epoch int, assignment_epoch int, state string, members int, assigned int, topic string,"
    "topic_id string, partition int, start_offset bigint, lag bigint, error_code int"
)

# Within one microsecond: a request's acknowledgements come before its session event, and responses come last.
_ACKNOWLEDGED, _SESSION, _FORGOTTEN, _WRITTEN, _ALTERED, _ERROR, _ACQUIRED, _GROUP, _DISCONNECTED = map(str, range(9))
# The broker has evicted the session.
_SHARE_SESSION_NOT_FOUND = 122

_REQUEST_AT, _RESPONSE_AT = "unix_micros(q.request_at)", "unix_micros(r.response_at)"
_CLIENT = {
    "group_id": "q.group_id",
    "exchange_id": "q.exchange_id",
    "connection_id": "q.connection_id",
    "broker": "q.broker_address",
    "client_id": "q.client_id",
}
_MEMBER = {**_CLIENT, "member_id": "q.member_id"}


def _event(kind: str, at: str, order: str, **values: str) -> str:
    return struct(EVENT_COLUMNS, kind=f"'{kind}'", at_us=at, order=order, **_MEMBER, **values)


_PLACE = {"topic_id": "t.topic_id", "partition": "p.partition_index"}
# `refused` are the partitions whose acknowledgements were.
_REFUSED = "coalesce(get(filter(refused, x -> x.topic_id = t.topic_id AND x.partition = p.partition_index), 0).code, 0)"
_ACKNOWLEDGED_EVENTS = flat_map(
    "q.topics",
    "t",
    "transform(filter(t.partitions, p -> size(p.acknowledgement_batches) > 0), p -> "
    + _event(
        "acknowledged",
        _REQUEST_AT,
        _ACKNOWLEDGED,
        **_PLACE,
        error_code="CASE WHEN r.exchange_id IS NULL THEN NULL WHEN r.error_code <> 0 THEN r.error_code"
        f" ELSE {_REFUSED} END",
        lock_timeout_ms="r.acquisition_lock_timeout_ms",
        answered_us=_RESPONSE_AT,
        acknowledged="p.acknowledgement_batches",
    )
    + ")",
)


def _exchange(request: str, response: str, refused: str, *events: str) -> str:
    """All facts of a request and its response about partitions. `refused` is the error of a partition's
    acknowledgements."""
    codes = flat_map(
        "r.responses",
        "t",
        f"transform(filter(t.partitions, p -> p.{refused} <> 0),"
        f" p -> struct(t.topic_id AS topic_id, p.partition_index AS partition, p.{refused} AS code))",
    )
    return f"""
SELECT event.* FROM (
  SELECT explode(concat({", ".join((_ACKNOWLEDGED_EVENTS, *events))})) AS event FROM (
    SELECT struct(q.*) AS q, struct(r.*) AS r, {codes} AS refused
    FROM {{{request}}} q LEFT JOIN {{{response}}} r ON q.exchange_id = r.exchange_id
  )
)
"""


def _session(request: str, response: str) -> str:
    return select(
        EVENT_COLUMNS,
        f"FROM {{{request}}} q LEFT JOIN {{{response}}} r ON q.exchange_id = r.exchange_id"
        f" WHERE q.share_session_epoch IN (0, -1) OR r.error_code = {_SHARE_SESSION_NOT_FOUND}",
        kind="'session'",
        at_us=_REQUEST_AT,
        order=_SESSION,
        **_MEMBER,
        value="q.share_session_epoch",
        error_code="r.error_code",
        answered_us=_RESPONSE_AT,
    )


_ACQUIRED_EVENTS = flat_map(
    "r.responses",
    "t",
    "transform(filter(t.partitions, p -> size(p.acquired_records) > 0), p -> "
    + _event(
        "acquired",
        _RESPONSE_AT,
        _ACQUIRED,
        **_PLACE,
        lock_timeout_ms="r.acquisition_lock_timeout_ms",
        asked_us=_REQUEST_AT,
        acquired="p.acquired_records",
    )
    + ")",
)
_ERROR_EVENTS = flat_map(
    "r.responses",
    "t",
    "transform(filter(t.partitions, p -> p.error_code <> 0), p -> "
    + _event("broker_error", _RESPONSE_AT, _ERROR, **_PLACE, error_code="p.error_code")
    + ")",
)
_FORGOTTEN_EVENTS = flat_map(
    "q.forgotten_topics_data",
    "t",
    "transform(t.partitions, p -> "
    + _event("forgotten", _REQUEST_AT, _FORGOTTEN, topic_id="t.topic_id", partition="p")
    + ")",
)

_WRITTEN_SQL = select(
    EVENT_COLUMNS,
    """
FROM {write_share_group_state_request} q LEFT JOIN {write_share_group_state_response} r USING (exchange_id)
LATERAL VIEW inline(transform(q.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
LATERAL VIEW OUTER inline(transform(p.state_batches, x -> struct(x AS b))) AS b
""",
    kind="'state_written'",
    at_us=_REQUEST_AT,
    order=_WRITTEN,
    **_CLIENT,
    topic_id="t.topic_id",
    partition="p.partition",
    first_offset="coalesce(b.first_offset, -1)",
    last_offset="coalesce(b.last_offset, -1)",
    value="b.delivery_state",
    delivery_count="b.delivery_count",
    start_offset="p.start_offset",
    error_code="get(filter(flatten(transform(r.results, x -> transform(x.partitions, y ->"
    " struct(x.topic_id AS topic_id, y.partition AS partition, y.error_code AS code)))),"
    " x -> x.topic_id = t.topic_id AND x.partition = p.partition), 0).code",
)

# Part of a request may be refused: the response has what was done.
_ALTERED_SQL = select(
    EVENT_COLUMNS,
    """
FROM {alter_share_group_offsets_request} q JOIN {alter_share_group_offsets_response} r USING (exchange_id)
LATERAL VIEW inline(transform(r.responses, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
WHERE r.error_code = 0 AND p.error_code = 0
""",
    kind="'altered'",
    at_us=_RESPONSE_AT,
    order=_ALTERED,
    **_CLIENT,
    topic_id=f"nullif(t.topic_id, '{NO_TOPIC}')",
    topic="t.topic_name",
    partition="p.partition_index",
)

_ALTERED_VALUES = {
    "kind": "'altered'",
    "at_us": _RESPONSE_AT,
    "order": _ALTERED,
    "exchange_id": "r.exchange_id",
    "connection_id": "r.connection_id",
    "broker": "r.broker_address",
    "client_id": "r.client_id",
}
# For a whole topic: every partition that a group has acquired records of by then.
_PLACES = f"(SELECT group_id, topic_id, partition, min(first_at) AS first_at FROM {{{TOUCHED}}} GROUP BY ALL)"
_BY_THEN = f"w.first_at <= {_RESPONSE_AT}"
_PLACE_OF_TOPIC = {"group_id": "w.group_id", "topic_id": "w.topic_id", "partition": "w.partition"}

_OFFSETS_DELETED_SQL = select(
    EVENT_COLUMNS,
    f"""
FROM (SELECT *, explode(responses) AS t FROM {{delete_share_group_offsets_response}} WHERE error_code = 0) r
JOIN {{delete_share_group_offsets_request}} q ON q.exchange_id = r.exchange_id
JOIN {_PLACES} w ON w.group_id = q.group_id AND w.topic_id = r.t.topic_id AND {_BY_THEN}
WHERE r.t.error_code = 0
""",
    **_ALTERED_VALUES,
    **_PLACE_OF_TOPIC,
)

# Deleted records are gone for every group that reads the topic.
_DELETED_SQL = select(
    EVENT_COLUMNS,
    f"""
FROM {{delete_records_response}} r
CROSS JOIN (SELECT DISTINCT group_id FROM {{{TOUCHED}}}) g
LATERAL VIEW inline(transform(r.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
WHERE p.error_code = 0
""",
    **_ALTERED_VALUES,
    group_id="g.group_id",
    topic="t.name",
    partition="p.partition_index",
    start_offset="p.low_watermark",
)

# The response has the id since version 6.
_TOPICS_DELETED_SQL = select(
    EVENT_COLUMNS,
    f"""
FROM (SELECT *, explode(responses) AS t FROM {{delete_topics_response}}) r
JOIN {_PLACES} w ON w.topic_id = r.t.topic_id AND {_BY_THEN}
WHERE r.t.error_code = 0
""",
    **_ALTERED_VALUES,
    **_PLACE_OF_TOPIC,
    start_offset="9223372036854775807",
)

_HEARTBEAT_SQL = select(
    GROUP_COLUMNS,
    "FROM {share_group_heartbeat_request} q LEFT JOIN {share_group_heartbeat_response} r USING (exchange_id)",
    kind="'heartbeat'",
    at_us=_REQUEST_AT,
    order=_GROUP,
    group_id="q.group_id",
    exchange_id="q.exchange_id",
    broker="q.broker_address",
    member_id="q.member_id",
    member_epoch="q.member_epoch",
    group_epoch="r.member_epoch",
    assigned="aggregate(r.assignment.topic_partitions, 0, (sum, x) -> sum + size(x.partitions))",
    error_code="r.error_code",
)

_DESCRIBED_SQL = select(
    GROUP_COLUMNS,
    "FROM {share_group_describe_response} r LATERAL VIEW inline(transform(r.groups, x -> struct(x AS g))) AS g",
    kind="'described'",
    at_us=_RESPONSE_AT,
    order=_GROUP,
    group_id="g.group_id",
    exchange_id="r.exchange_id",
    broker="r.broker_address",
    state="g.group_state",
    group_epoch="g.group_epoch",
    assignment_epoch="g.assignment_epoch",
    members="size(g.members)",
    assigned="aggregate(g.members, 0, (sum, m) -> sum"
    " + aggregate(m.assignment.topic_partitions, 0, (parts, x) -> parts + size(x.partitions)))",
    error_code="g.error_code",
)

_OFFSETS_SQL = select(
    GROUP_COLUMNS,
    """
FROM {describe_share_group_offsets_response} r
LATERAL VIEW inline(transform(r.groups, x -> struct(x AS g))) AS g
LATERAL VIEW inline(transform(g.topics, x -> struct(x AS t))) AS t
LATERAL VIEW inline(transform(t.partitions, x -> struct(x AS p))) AS p
""",
    kind="'offsets'",
    at_us=_RESPONSE_AT,
    order=_GROUP,
    group_id="g.group_id",
    exchange_id="r.exchange_id",
    broker="r.broker_address",
    topic="t.topic_name",
    topic_id="t.topic_id",
    partition="p.partition_index",
    start_offset="p.start_offset",
    lag="p.lag",
    error_code="p.error_code",
)

_DISCONNECTED_SQL = disconnected(EVENT_COLUMNS, LINKS, _DISCONNECTED)

# Of the states of groups in `mart_state`.
MINUTES = "minutes"

# Of one partition each; some name it without the id of its topic.
_OF_PARTITIONS = (
    _exchange(
        "share_fetch_request",
        "share_fetch_response",
        "acknowledge_error_code",
        _FORGOTTEN_EVENTS,
        _ERROR_EVENTS,
        _ACQUIRED_EVENTS,
    ),
    _exchange("share_acknowledge_request", "share_acknowledge_response", "error_code"),
    _WRITTEN_SQL,
    _OFFSETS_DELETED_SQL,
    _TOPICS_DELETED_SQL,
)
_OF_TOPIC_NAMES = (_ALTERED_SQL, _DELETED_SQL)
_OF_MEMBERS = (
    _session("share_fetch_request", "share_fetch_response"),
    _session("share_acknowledge_request", "share_acknowledge_response"),
    _DISCONNECTED_SQL,
)
_OF_GROUPS = (_HEARTBEAT_SQL, _DESCRIBED_SQL, _OFFSETS_SQL)


@dataclass(frozen=True, slots=True)
class ShareEvents:
    """`of_partitions` has the rows of one partition of a group of one cluster together, in time order after its state
    at the plan's start; what is inside a row is in no order. `of_groups` is in no order, `group_states` what is known
    of groups at the plan's start. Any may have no row. `kept` is the state of all at the plan's marks, but for their
    walks."""

    of_partitions: "DataFrame | None"
    of_groups: "DataFrame | None"
    group_states: "DataFrame | None"
    clusters: GroupClusters
    kept: "DataFrame | None"


# Which partitions a member acquired at which broker, and over which connections it spoke; `first_at` is null for one
# over which it didn't acquire.
_TOUCHED_SUMS = first_of(
    TOUCHED, columns_of("group_id string, member_id string, broker string, topic_id string, partition int")
)
_LINK_SUMS = first_of(LINKS, columns_of("group_id string, member_id string, broker string, connection_id string"))
_ROW_AT = ROW_AT.format("q")
_CALLED = f"""
SELECT {_ROW_AT} AS row_at, q.group_id, q.member_id, q.broker_address AS broker, q.connection_id,
       CAST(NULL AS BIGINT) AS first_at
FROM {{share_fetch_request}} q
"""
_SPOKE = "SELECT {0} AS row_at, {1} AS group_id, q.broker_address AS broker, {0} AS last_at FROM {{{2}}} q"
_WITH_GROUP = tuple(name for name, paths in TABLES.items() if paths.split()[0] == "group_id")
_WITH_GROUPS = ("share_group_describe_response", "describe_share_group_offsets_response")
_SPOKE_STATEMENTS = (
    *(_SPOKE.format(_ROW_AT, "q.group_id", name) for name in _WITH_GROUP),
    *(_SPOKE.format(_ROW_AT, "explode(q.groups.group_id)", name) for name in _WITH_GROUPS),
)


def share_events(
    spark: "SparkSession",
    tables: TablesByName,
    absent: Collection[str],
    clusters: Mapping[str, str] | None = None,
    topics: Mapping[str, str] | None = None,
    tasks: int | None = None,
    plan: Plan = EVERY_ROW,
    lake: Lake | None = None,
) -> ShareEvents:
    """`tables` are those of TABLES, `absent` those without a row, `clusters` the ids of addresses, `topics` names by
    id. Without `tasks` there are as many as Spark has for a shuffle. `lake` has the state that the plan goes on
    from."""
    from pyspark.sql import functions as f

    kept = Kept(spark, lake, plan)
    pairs = kept.added(SPOKE_SUMS, union(spark, _SPOKE_STATEMENTS, tables, absent))
    of_cluster = group_clusters(clusters or {}, pairs)
    touches = _usable(union(spark, TOUCHES, tables, absent))
    firsts = [] if touches is None else [first_touches(spark, touches, plan)]
    calls = union(spark, (_CALLED,), tables, absent)
    touched = kept.added(_TOUCHED_SUMS, _united(firsts))
    links = kept.added(
        _LINK_SUMS, _united([*([] if calls is None else [calls]), *(rows.select(*_CALLED_COLUMNS) for rows in firsts)])
    )
    kept.without_closed(_LINK_SUMS, tables, absent)
    more = WithLinks(tables, links, **{TOUCHED: touched})
    missing = {*absent, *(name for name, rows in ((LINKS, links), (TOUCHED, touched)) if rows is None)}
    placed, named, members, groups = (
        _usable(union(spark, statements, more, missing))
        for statements in (_OF_PARTITIONS, _OF_TOPIC_NAMES, _OF_MEMBERS, _OF_GROUPS)
    )
    within = plan.within("at_us")
    parts = [] if placed is None else [of_cluster.add_to(placed.where(within))]
    if touched is not None:
        touched = of_cluster.add_to(touched)
        if named is not None:
            parts += with_places(spark, of_cluster.add_to(named.where(within)), touched, topics or {})
        if members is not None:
            parts.append(to_partitions(of_cluster.add_to(members), touched, plan))
        if links is not None:
            linked = linked_events(of_cluster.add_to(links), EVENT_COLUMNS, _ACQUIRED)
            parts.append(to_partitions(linked, touched, plan))
    states = kept.walks(EVENT_COLUMNS, WALK_KEYS)
    if states is not None:
        parts = [rows.withColumn(STATE, f.lit(None).cast("string")) for rows in parts]
        parts.append(of_cluster.checked(states))
    described = {name: kind for name, kind in GROUP_COLUMNS.items() if name != STATE}
    group_states = kept.walks(described, GROUP_KEYS, of=MINUTES)
    in_order = _united(parts)
    return ShareEvents(
        None if in_order is None else _in_order(in_order, tasks),
        None if groups is None else of_cluster.add_to(groups.where(within)),
        None if group_states is None else of_cluster.checked(group_states),
        of_cluster,
        kept.rows(),
    )


_CALLED_COLUMNS = ("row_at", *_LINK_SUMS.columns)


def _united(parts: "list[DataFrame]") -> "DataFrame | None":
    return reduce(lambda rows, more: rows.unionByName(more), parts) if parts else None


def _usable(events: "DataFrame | None") -> "DataFrame | None":
    """An event of a log without a time has no place among them."""
    return None if events is None else events.where("group_id IS NOT NULL AND at_us IS NOT NULL")


def _in_order(events: "DataFrame", tasks: int | None) -> "DataFrame":
    parts = events.repartition(*WALK_KEYS) if tasks is None else events.repartition(tasks, *WALK_KEYS)
    return parts.sortWithinPartitions(*WALK_KEYS, "at_us", "order", "exchange_id", "first_offset")
