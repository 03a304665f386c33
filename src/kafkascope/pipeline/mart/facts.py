"""Tables of the lake in, the few facts that every walk needs out, in one job: names of topics, clusters of addresses,
and from when to when each broker was recorded."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkascope.pipeline.mart import quorum
from kafkascope.pipeline.mart.events import NO_TOPIC, Tables, union

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "metadata_response": "cluster_id topics.topic_id topics.name",
    "create_topics_response": "topics.topic_id topics.name",
    "describe_topic_partitions_response": "topics.topic_id topics.name",
    "alter_share_group_offsets_response": "responses.topic_id responses.topic_name",
    "describe_share_group_offsets_response": "groups",
    "fetch_request": quorum.TABLES["fetch_request"],
    "vote_request": quorum.TABLES["vote_request"],
    "broker_registration_request": "cluster_id",
    "describe_cluster_response": "cluster_id",
    "exchanges": "capture_uri broker_address request_at response_at",
}

# Newer messages carry a topic's id alone. Ids never change their topic.
_NAMES = (
    "SELECT inline(transform(topics, t -> struct(t.topic_id, t.name))) FROM {metadata_response}",
    "SELECT inline(transform(topics, t -> struct(t.topic_id, t.name))) FROM {create_topics_response}",
    "SELECT inline(transform(topics, t -> struct(t.topic_id, t.name))) FROM {describe_topic_partitions_response}",
    "SELECT inline(transform(responses, t -> struct(t.topic_id, t.topic_name))) FROM"
    " {alter_share_group_offsets_response}",
    "SELECT inline(flatten(transform(groups, g -> transform(g.topics, t -> struct(t.topic_id, t.topic_name))))) FROM"
    " {describe_share_group_offsets_response}",
)

_STATEMENTS = (
    *(
        "SELECT 'topic' AS kind, topic_id AS key, name AS value, 0L AS low, 0L AS high"
        f" FROM ({statement}) AS t(topic_id, name) WHERE topic_id <> '{NO_TOPIC}' AND name IS NOT NULL"
        for statement in _NAMES
    ),
    *(
        "SELECT 'cluster' AS kind, address AS key, cluster_id AS value, 0L AS low, 0L AS high"
        f" FROM ({statement}) WHERE cluster_id IS NOT NULL"
        for statement in quorum.CLUSTERS
    ),
    # A recording has no hole within one file. An observer sees what it asked itself, and no silence of others.
    "SELECT 'recorded' AS kind, broker_address AS key, capture_uri AS value,"
    " unix_micros(min(least(request_at, response_at))) AS low,"
    " unix_micros(max(greatest(request_at, response_at))) AS high FROM {exchanges}"
    " WHERE broker_address IS NOT NULL AND coalesce(request_at, response_at) IS NOT NULL"
    " AND capture_uri NOT LIKE 'observe://%'"
    " GROUP BY broker_address, capture_uri",
)


@dataclass(slots=True)
class Facts:
    """`recorded` are the times of an address in microseconds, first and last, apart and in order."""

    topics: dict[str, str] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)
    recorded: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


# A rotated recording goes on in the next file where that begins no later.
_APART_US = 10_000_000


def facts_of(spark: "SparkSession", tables: Tables, absent: Collection[str]) -> Facts:
    found = Facts()
    rows = union(spark, _STATEMENTS, tables, absent)
    times: dict[str, list[tuple[int, int]]] = {}
    for row in sorted(rows.distinct().collect()) if rows is not None else ():
        if row.kind == "topic":
            found.topics.setdefault(row.key, row.value)
        elif row.kind == "cluster":
            found.clusters.setdefault(row.key, row.value)
        else:
            times.setdefault(row.key, []).append((row.low, row.high))
    found.recorded = {address: _joined(sorted(some)) for address, some in times.items()}
    return found


def _joined(times: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined = times[:1]
    for low, high in times[1:]:
        first, last = joined[-1]
        if low - last <= _APART_US:
            joined[-1] = (first, max(last, high))
        else:
            joined.append((low, high))
    return joined
