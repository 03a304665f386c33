"""Collects what every walk needs, in one job: names of topics, clusters of addresses, brokers as responses name them,
and how much was recorded at each address, from when to when."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafkascope.pipeline.mart.base.events import NO_TOPIC, TablesByName, columns_of, select, union
from kafkascope.pipeline.mart.base.raft import CLUSTERS, FETCH_REQUEST

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

# Newer messages have only a topic's id. An id never changes its topic.
_TOPIC_QUERIES = (
    "SELECT inline(transform(topics, t -> struct(t.topic_id, t.name))) FROM {metadata_response}",
    "SELECT inline(transform(topics, t -> struct(t.topic_id, t.name))) FROM {create_topics_response}",
    "SELECT inline(transform(topics, t -> struct(t.topic_id, t.name))) FROM {describe_topic_partitions_response}",
    "SELECT inline(transform(responses, t -> struct(t.topic_id, t.topic_name))) FROM"
    " {alter_share_group_offsets_response}",
    "SELECT inline(flatten(transform(groups, g -> transform(g.topics, t -> struct(t.topic_id, t.topic_name))))) FROM"
    " {describe_share_group_offsets_response}",
)

_COLUMNS = columns_of(
    "kind string, key string, value string, low bigint, high bigint, calls bigint, cluster_id string, node_id int,"
    "host string, port int, rack string"
)
_OBSERVED = "observe://"

# Responses that name brokers: the address that responded, the time, cluster, node, host, port, rack.
_NAMED_BY = "SELECT broker_address, response_at, "
_BROKER_QUERIES = (
    f"{_NAMED_BY} cluster_id, inline(transform(brokers, b -> struct(b.node_id, b.host, b.port, b.rack)))"
    " FROM {metadata_response}",
    f"{_NAMED_BY} cluster_id, inline(transform(brokers, b -> struct(b.broker_id, b.host, b.port, b.rack)))"
    " FROM {describe_cluster_response}",
    f"{_NAMED_BY} CAST(NULL AS STRING), node_id, host, port, CAST(NULL AS STRING) FROM {{find_coordinator_response}}",
    f"{_NAMED_BY} CAST(NULL AS STRING),"
    " inline(transform(coordinators, c -> struct(c.node_id, c.host, c.port, CAST(NULL AS STRING))))"
    " FROM {find_coordinator_response}",
)

# A rotated recording goes on in the next file where that begins no later.
_APART_US = 10_000_000
# From when to when an address was recorded, over all files without a hole between them: one for each broker and file
# would be too many for a driver. All that was observed is one: an observer sees what it asked itself, and no silence of
# others.
_INTERVALS = f"""
FROM (
  SELECT *, sum(begins) OVER (PARTITION BY broker_address, observed ORDER BY low, high, uri) AS interval FROM (
    SELECT *, IF(low IS NULL OR low - max(high) OVER (
      PARTITION BY broker_address, observed ORDER BY low, high, uri ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) <= {_APART_US}, 0, 1) AS begins FROM (
      SELECT broker_address, observed, IF(observed, '{_OBSERVED}', capture_uri) AS uri, count(*) AS calls,
             unix_micros(min(least(request_at, response_at))) AS low,
             unix_micros(max(greatest(request_at, response_at))) AS high
      FROM (SELECT *, capture_uri LIKE '{_OBSERVED}%' AS observed FROM {{exchanges}})
      WHERE broker_address IS NOT NULL GROUP BY broker_address, observed, uri
    )
  )
)
GROUP BY broker_address, observed, low IS NULL, interval"""

_STATEMENTS = (
    *(
        select(
            _COLUMNS,
            f"FROM ({statement}) AS t(topic_id, name) WHERE topic_id <> '{NO_TOPIC}' AND name IS NOT NULL",
            kind="'topic'", key="topic_id", value="name",
        )
        for statement in _TOPIC_QUERIES
    ),
    *(
        select(
            _COLUMNS,
            f"FROM ({statement}) WHERE cluster_id IS NOT NULL",
            kind="'cluster'", key="address", value="cluster_id",
        )
        for statement in CLUSTERS
    ),
    *(
        # An error comes without an address, or with port -1.
        select(
            _COLUMNS,
            f"FROM ({statement}) AS b(address, at, cluster_id, node_id, host, port, rack)"
            " WHERE host <> '' AND port > 0 GROUP BY address, cluster_id, node_id, host, port, rack",
            kind="'broker'", key="address", low="unix_micros(min(at))", high="unix_micros(max(at))",
            cluster_id="cluster_id", node_id="node_id", host="host", port="port", rack="rack",
        )
        for statement in _BROKER_QUERIES
    ),
    select(
        _COLUMNS,
        _INTERVALS,
        kind="'recorded'", key="broker_address", value="min(uri)", calls="sum(calls)", low="min(low)", high="max(high)",
    ),
    select(
        _COLUMNS,
        "FROM {exchanges} WHERE api IN ('ShareFetch', 'ShareAcknowledge') AND group_id IS NOT NULL"
        " GROUP BY group_id, broker_address",
        kind="'group'", key="group_id", value="broker_address",
        high="unix_micros(max(greatest(request_at, response_at)))",
    ),
)  # fmt: skip


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


def collect_facts(spark: "SparkSession", tables: TablesByName, absent: Collection[str]) -> LakeFacts:
    facts = LakeFacts()
    rows = fact_rows(spark, tables, absent)
    for row in sorted(rows.collect(), key=_order) if rows is not None else ():
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
    return facts


def fact_rows(spark: "SparkSession", tables: TablesByName, absent: Collection[str]) -> "DataFrame | None":
    """Few, however many files the lake has."""
    rows = union(spark, _STATEMENTS, tables, absent)
    return None if rows is None else rows.distinct()


def _order(row: Any) -> list[tuple[bool, Any]]:
    return [(value is not None, value) for value in (row.kind, row.key, row.low, *row)]
