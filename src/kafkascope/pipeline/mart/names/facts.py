"""Collects what every walk needs, in one job: names of topics, clusters of addresses, brokers as responses name them,
and how much was recorded at each address, from when to when."""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MART_STATE, MART_STATE_SCHEMA
from kafkascope.lake.write.files import NewFile
from kafkascope.pipeline.mart.base.events import NO_TOPIC, ROW_AT, TablesByName, columns_of, select, union
from kafkascope.pipeline.mart.base.multi_writer import SEGMENT_START, SegmentFiles
from kafkascope.pipeline.mart.base.raft import CLUSTERS, FETCH_REQUEST
from kafkascope.pipeline.mart.increments.plan import EVERY_ROW, Plan
from kafkascope.pipeline.mart.increments.state import state_paths, state_rows
from kafkascope.pipeline.mart.increments.sums import Sums

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = {
    "metadata_response": "cluster_id topics.topic_id topics.name brokers",
    "create_topics_response": "topics.topic_id topics.name",
    "describe_topic_partitions_response": "topics.topic_id topics.name",
    "alter_share_group_offsets_response": "responses.topic_id responses.topic_name",
    "describe_share_group_offsets_response": "groups",
    "fetch_request": FETCH_REQUEST,
    "vote_request": "cluster_id",
    "broker_registration_request": "cluster_id",
    "describe_cluster_response": "cluster_id brokers",
    "find_coordinator_response": "node_id host port coordinators",
    "exchanges": "capture_uri broker_address request_at response_at api group_id",
}

_AT = ROW_AT.format("r")
_DAY_US = 86_400_000_000

# Newer messages have only a topic's id. An id never changes its topic.
_TOPICS_NAMED = f"SELECT {_AT} AS row_at, inline(transform(topics, t -> struct(t.topic_id, t.name)))"
_TOPIC_QUERIES = (
    f"{_TOPICS_NAMED} FROM {{metadata_response}} r",
    f"{_TOPICS_NAMED} FROM {{create_topics_response}} r",
    f"{_TOPICS_NAMED} FROM {{describe_topic_partitions_response}} r",
    f"SELECT {_AT} AS row_at, inline(transform(responses, t -> struct(t.topic_id, t.topic_name))) FROM"
    " {alter_share_group_offsets_response} r",
    f"SELECT {_AT} AS row_at,"
    " inline(flatten(transform(groups, g -> transform(g.topics, t -> struct(t.topic_id, t.topic_name))))) FROM"
    " {describe_share_group_offsets_response} r",
)

_COLUMNS = columns_of(
    "row_at bigint, kind string, key string, value string, low bigint, high bigint, calls bigint, cluster_id string,"
    "node_id int, host string, port int, rack string, day bigint"
)
_OBSERVED = "observe://"

# Responses that name brokers: the address that responded, the time, cluster, node, host, port, rack.
_NAMED_BY = f"SELECT {_AT} AS row_at, broker_address, response_at, "
_BROKER_QUERIES = (
    f"{_NAMED_BY} cluster_id, inline(transform(brokers, b -> struct(b.node_id, b.host, b.port, b.rack)))"
    " FROM {metadata_response} r",
    f"{_NAMED_BY} cluster_id, inline(transform(brokers, b -> struct(b.broker_id, b.host, b.port, b.rack)))"
    " FROM {describe_cluster_response} r",
    f"{_NAMED_BY} CAST(NULL AS STRING), node_id, host, port, CAST(NULL AS STRING) FROM {{find_coordinator_response}} r",
    f"{_NAMED_BY} CAST(NULL AS STRING),"
    " inline(transform(coordinators, c -> struct(c.node_id, c.host, c.port, CAST(NULL AS STRING))))"
    " FROM {find_coordinator_response} r",
)

_STATEMENTS = (
    *(
        select(
            _COLUMNS,
            f"FROM ({statement}) AS t(row_at, topic_id, name) WHERE topic_id <> '{NO_TOPIC}' AND name IS NOT NULL",
            row_at="row_at", kind="'topic'", key="topic_id", value="name",
        )
        for statement in _TOPIC_QUERIES
    ),
    *(
        select(
            _COLUMNS,
            f"FROM ({statement}) WHERE cluster_id IS NOT NULL",
            row_at="row_at", kind="'cluster'", key="address", value="cluster_id",
        )
        for statement in CLUSTERS
    ),
    *(
        # An error comes without an address, or with port -1.
        select(
            _COLUMNS,
            f"FROM ({statement}) AS b(row_at, address, at, cluster_id, node_id, host, port, rack)"
            " WHERE host <> '' AND port > 0",
            row_at="row_at", kind="'broker'", key="address", low="unix_micros(at)", high="unix_micros(at)",
            cluster_id="cluster_id", node_id="node_id", host="host", port="port", rack="rack",
        )
        for statement in _BROKER_QUERIES
    ),
    # What was recorded at an address, by file and day: all that was observed is one file. An observer sees what it
    # asked itself, and no silence of others.
    select(
        _COLUMNS,
        f"""
FROM (
  SELECT *, IF(capture_uri LIKE '{_OBSERVED}%', '{_OBSERVED}', coalesce(capture_uri, '')) AS uri,
         unix_micros(least(request_at, response_at)) AS low, unix_micros(greatest(request_at, response_at)) AS high
  FROM {{exchanges}}
) r WHERE broker_address IS NOT NULL""",
        row_at=_AT, kind="'recorded'", key="broker_address", value="uri", calls="1", low="low", high="high",
        day=f"IF(uri = '{_OBSERVED}', NULL, low DIV {_DAY_US})",
    ),
    select(
        _COLUMNS,
        "FROM {exchanges} r WHERE api IN ('ShareFetch', 'ShareAcknowledge') AND group_id IS NOT NULL",
        row_at=_AT, kind="'group'", key="group_id", value="broker_address",
        high="unix_micros(greatest(request_at, response_at))",
    ),
)  # fmt: skip

_SUMS = Sums(
    "facts",
    {name: kind for name, kind in _COLUMNS.items() if name not in ("row_at", "low", "high", "calls")},
    {"low": ("bigint", "min"), "high": ("bigint", "max"), "calls": ("bigint", "sum")},
)

# A rotated recording goes on in the next file where that begins no later.
_APART_US = 10_000_000
# There is no hole within one file, not even from one day to the next: a part of a file begins where the part of the day
# before ended.
_JOINED = """
SELECT *, IF(day - lag(day) OVER file = 1, lag(high) OVER file, low) AS joined_low
FROM {facts} WHERE kind = 'recorded'
WINDOW file AS (PARTITION BY number, key, value ORDER BY day)
"""
# From when to when an address was recorded, over all files without a hole between them: one for each broker and file
# would be too many for a driver.
_ISLAND = f"PARTITION BY number, key, value = '{_OBSERVED}' ORDER BY joined_low, high, value"
_INTERVALS = f"""
SELECT number, key, min(value) AS value, min(joined_low) AS low, max(high) AS high, sum(calls) AS calls
FROM (
  SELECT *, sum(begins) OVER ({_ISLAND}) AS interval FROM (
    SELECT *, IF(joined_low IS NULL OR joined_low - max(high) OVER (
      {_ISLAND} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) <= {_APART_US}, 0, 1) AS begins
    FROM ({{joined}}))
)
GROUP BY number, key, value = '{_OBSERVED}', joined_low IS NULL, interval
"""
_FACTS = ", ".join(f"`{name}`" for name in _SUMS.columns)


def _of_intervals(source: str, value: str) -> str:
    """Columns of facts for intervals."""
    columns = {"kind": "'recorded'", "key": "key", "value": value, "low": "low", "high": "high", "calls": "calls"}
    columns["number"] = "number"
    every = {"number": "int", **_SUMS.columns}
    return f"""
SELECT {", ".join(f"CAST({columns.get(name, 'NULL')} AS {kind}) AS `{name}`" for name, kind in every.items())}
FROM ({source})"""


@dataclass(frozen=True, slots=True)
class NamedBroker:
    """A broker as responses from the address `by` name it; first and last time in microseconds."""

    by: str
    cluster_id: str | None
    node_id: int | None
    host: str
    port: int
    rack: str | None
    low: int | None
    high: int | None


@dataclass(slots=True)
class RecordedCalls:
    """What was recorded at one address; without times if a log has none."""

    calls: int = 0
    low: int | None = None
    high: int | None = None

    def add(self, calls: int, low: int | None, high: int | None) -> None:
        self.calls += calls
        self.low = min((at for at in (self.low, low) if at is not None), default=None)
        self.high = max((at for at in (self.high, high) if at is not None), default=None)


@dataclass(slots=True)
class LakeFacts:
    """`recorded` are the times of an address in microseconds, first and last, apart and in order. `share_groups` are
    the brokers that a share group fetched from, with the last time."""

    topics: dict[str, str] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)
    recorded: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    named_brokers: list[NamedBroker] = field(default_factory=list)
    calls_by_address: dict[str, RecordedCalls] = field(default_factory=dict)
    share_groups: dict[str, dict[str | None, int | None]] = field(default_factory=dict)


def collect_facts(
    spark: "SparkSession",
    tables: TablesByName,
    absent: Collection[str],
    plan: Plan = EVERY_ROW,
    lake: Lake | None = None,
) -> tuple[LakeFacts, list[NewFile]]:
    """With the files of their state at the marks of the plan. `lake` has the state that the plan goes on from."""
    facts = LakeFacts()
    rows = fact_rows(spark, tables, absent, plan, lake)
    if rows is None:
        return facts, []
    collected = rows.mapInArrow(
        _writer(lake, plan), ", ".join(f"`{name}` {kind}" for name, kind in _COLLECTED.items())
    ).collect()
    for row in sorted((row for row in collected if row.file is None), key=_order):
        if row.kind == "topic":
            facts.topics.setdefault(row.key, row.value)
        elif row.kind == "cluster":
            facts.clusters.setdefault(row.key, row.value)
        elif row.kind == "broker":
            identity = (row.cluster_id, row.node_id, row.host, row.port, row.rack)
            facts.named_brokers.append(NamedBroker(row.key, *identity, row.low, row.high))
        elif row.kind == "group":
            facts.share_groups.setdefault(row.key, {})[row.value] = row.high
        else:
            facts.calls_by_address.setdefault(row.key, RecordedCalls()).add(row.calls, row.low, row.high)
            # There is no hole within one file.
            if row.low is not None and row.value != _OBSERVED:
                facts.recorded.setdefault(row.key, []).append((row.low, row.high))
    return facts, [NewFile(**json.loads(row.file)) for row in collected if row.file is not None]


def fact_rows(
    spark: "SparkSession",
    tables: TablesByName,
    absent: Collection[str],
    plan: Plan = EVERY_ROW,
    lake: Lake | None = None,
) -> "DataFrame | None":
    """Few, however many files the lake has: those of now, and of the marks of the plan, by `number`."""
    counted = union(spark, _STATEMENTS, tables, absent)
    state = None if lake is None else state_rows(spark, lake, state_paths(lake, plan), _SUMS.name, _SUMS.columns)
    facts = _SUMS.added(spark, counted, state, plan)
    if facts is None:
        return None
    now = _SUMS.now(plan)
    joined = spark.sql(_JOINED, facts=facts)
    file_parts = f"SELECT * FROM {{joined}} WHERE value <> '{_OBSERVED}' AND NOT ({now})"
    shown = [
        f"SELECT number, {_FACTS} FROM {{facts}} WHERE {now} AND kind <> 'recorded'",
        _of_intervals(_INTERVALS.format(joined=f"SELECT * FROM {{joined}} WHERE {now}"), "value"),
    ]
    kept = [
        f"SELECT number, {_FACTS} FROM {{facts}} WHERE NOT ({now}) AND (kind <> 'recorded' OR value = '{_OBSERVED}')"
    ]
    if plan.marks:
        # State has the parts of files of the last two days, and intervals of the days before: no file goes on there.
        recent = f"coalesce(day >= {plan.mark('number')} DIV {_DAY_US} - 1, false)"
        of_joined = _FACTS.replace("`low`", "joined_low AS `low`")
        kept.append(f"SELECT number, {of_joined} FROM ({file_parts}) WHERE {recent}")
        kept.append(_of_intervals(_INTERVALS.format(joined=f"{file_parts} AND NOT {recent}"), "concat('-', low)"))
    texts = [f"SELECT CAST(NULL AS STRING) AS state, number, {_FACTS} FROM ({text})" for text in shown]
    if plan.marks:
        texts += [f"SELECT to_json(struct({_FACTS})) AS state, number, {_FACTS} FROM ({text})" for text in kept]
    return spark.sql("\nUNION ALL\n".join(texts), facts=facts, joined=joined)


_COLLECTED = {"file": "string", **_SUMS.columns}


def _writer(lake: Lake | None, plan: Plan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`: writes the state at the marks, and passes on the facts of now."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = None if lake is None else SegmentFiles(lake, plan)
        schema = None
        for batch in batches:
            of_now = pc.is_null(batch.column("state"))
            facts = batch.filter(of_now).select(list(_SUMS.columns))
            schema = facts.schema
            yield _collected(facts, pa.nulls(len(facts), pa.string()))
            if files is not None:
                files.add(MART_STATE, _state(batch.filter(pc.invert(of_now)), plan))
        if files is not None and schema is not None:
            listed = pa.array(files.close(), pa.string())
            nulls = [pa.nulls(len(listed), kind) for kind in schema.types]
            yield _collected(pa.record_batch(nulls, schema=schema), listed)

    return write


def _collected(facts: pa.RecordBatch, file: pa.Array) -> pa.RecordBatch:
    return pa.record_batch([file, *facts.columns], names=list(_COLLECTED))


def _state(rows: pa.RecordBatch, plan: Plan) -> pa.Table:
    marks = pa.array(plan.marks, pa.int64()).take(rows.column("number"))
    columns = {
        "part": pa.repeat(plan.part, len(rows)),
        "checkpoint_at": marks.cast(MART_STATE_SCHEMA.field("checkpoint_at").type),
        "key": pa.repeat(_SUMS.name, len(rows)),
        "state": rows.column("state"),
        SEGMENT_START: marks,
    }
    return pa.table(columns)


def _order(row: Any) -> list[tuple[bool, Any]]:
    return [(value is not None, value) for value in (row.kind, row.key, row.low, *row)]
