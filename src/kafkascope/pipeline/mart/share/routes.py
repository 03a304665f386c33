"""Sends events of share groups that name no partition to the partitions they concern.

What happens to a member on a broker (its session, its connection) concerns the partitions that it acquired there: each
of these gets such an event, and no other does."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkascope.health.share.events import RENEW
from kafkascope.pipeline.mart.base.events import flat_map

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# One walk of the ledger.
WALK_KEYS = ("group_id", "cluster", "topic_id", "partition")
_MEMBER_KEYS = ("group_id", "cluster", "member_id", "broker")

_TOUCH = "q.group_id, q.member_id, q.broker_address AS broker, q.connection_id"
_ACQUIRED_PLACES = flat_map(
    "r.responses",
    "t",
    "transform(filter(t.partitions, p -> size(p.acquired_records) > 0),"
    " p -> struct(t.topic_id AS topic_id, p.partition_index AS partition))",
)
_ACQUIRED_FROM = f"""
SELECT {_TOUCH}, unix_micros(r.response_at) AS at_us, inline({_ACQUIRED_PLACES})
FROM {{share_fetch_request}} q JOIN {{share_fetch_response}} r ON q.exchange_id = r.exchange_id
"""


def _renewed_from(request: str) -> str:
    """A renewal shows a lock whose acquisition was perhaps not recorded."""
    places = flat_map(
        "q.topics",
        "t",
        "transform(filter(t.partitions, p -> exists(p.acknowledgement_batches,"
        f" b -> array_contains(b.acknowledge_types, CAST({RENEW} AS TINYINT)))),"
        " p -> struct(t.topic_id AS topic_id, p.partition_index AS partition))",
    )
    return f"SELECT {_TOUCH}, unix_micros(q.request_at) AS at_us, inline({places}) FROM {{{request}}} q"


# Which partitions a member acquired at which broker, over which connection, and when.
TOUCHES = (_ACQUIRED_FROM, _renewed_from("share_fetch_request"), _renewed_from("share_acknowledge_request"))


def with_places(
    spark: "SparkSession", events: "DataFrame", touched: "DataFrame | None", topics: Mapping[str, str]
) -> "list[DataFrame]":
    """Where a response has a topic's name alone, its partitions are those of the topic that a group has records of."""
    named = [events.where("topic_id IS NOT NULL")]
    if touched is not None and topics:
        names = pa.table([pa.array(list(topics)), pa.array(list(topics.values()))], names=["topic_id", "topic"])
        places = touched.select("group_id", "cluster", "topic_id", "partition").distinct()
        of_name = _null_safe(
            events.where("topic_id IS NULL").drop("topic_id"),
            places.join(spark.createDataFrame(names), "topic_id"),
            ("group_id", "cluster", "topic", "partition"),
            ("topic_id",),
        )
        named.append(of_name)
    return named


def to_partitions(
    events: "DataFrame", touched: "DataFrame", columns: Mapping[str, str], order: str
) -> "list[DataFrame]":
    """What happened to a member at a broker, once for each partition that it acquired there. A connection over which
    it acquired of one partition is that of its session, for all of them: only where it had several does one need to
    know. `columns` are those of `events`, `order` that of acquisitions."""
    from pyspark.sql import functions as f

    firsts = touched.groupBy(*WALK_KEYS, "member_id", "broker", "connection_id").agg(f.min("at_us").alias("at_us"))
    places = firsts.select(*WALK_KEYS, "member_id", "broker").distinct()
    by_connection = firsts.groupBy(*_MEMBER_KEYS, "connection_id").agg(f.min("at_us").alias("at_us"))
    by_member = by_connection.groupBy(*_MEMBER_KEYS).agg(
        f.collect_list(f.struct("connection_id", "at_us")).alias("connections")
    )
    links = by_member.where("size(connections) > 1").selectExpr(*_MEMBER_KEYS, "inline(connections)")
    values = {"kind": "'linked'", "order": order, **{name: name for name in _MEMBER_KEYS}}
    values |= {"connection_id": "connection_id", "at_us": "at_us"}
    linked = links.selectExpr(
        *(f"CAST({values.get(name, 'NULL')} AS {kind}) AS `{name}`" for name, kind in columns.items()), "cluster"
    )
    place_columns = ("topic_id", "partition")
    return [_null_safe(rows.drop(*place_columns), places, _MEMBER_KEYS, place_columns) for rows in (events, linked)]


def _null_safe(rows: "DataFrame", other: "DataFrame", keys: Collection[str], columns: Collection[str]) -> "DataFrame":
    """Joined by keys that may be null; with these columns of the other."""
    from pyspark.sql import functions as f

    left, right = rows.alias("rows"), other.alias("other")
    alike = [f.col(f"rows.{key}").eqNullSafe(f.col(f"other.{key}")) for key in keys]
    return left.join(right, alike).select("rows.*", *(f"other.{name}" for name in columns))
