"""Sends events of share groups that name no partition to the partitions they concern.

What happens to a member on a broker (its session, its connection) concerns the partitions that it acquired there: each
of these gets such an event, and no other does."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkascope.health.share.book import CROSSED_US
from kafkascope.health.share.events import RENEW
from kafkascope.pipeline.mart.base.events import flat_map
from kafkascope.pipeline.mart.increments.once import once
from kafkascope.pipeline.mart.increments.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# One walk of the ledger.
WALK_KEYS = ("group_id", "cluster", "topic_id", "partition")
GROUP_KEYS = ("group_id", "cluster")
# By this name statements have the partitions that members acquired: `first_at` is when they did first.
TOUCHED, FIRST_AT = "touched", "first_at"
_SEVERAL = "several"
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


def first_touches(spark: "SparkSession", touches: "DataFrame", plan: Plan) -> "DataFrame":
    """The first of each segment: few, for two sums."""
    from pyspark.sql import functions as f

    keys = ("group_id", "member_id", "broker", "connection_id", "topic_id", "partition")
    of_segments = touches.where(plan.within("at_us")).groupBy(*keys, f.expr(plan.segment("at_us")).alias("segment"))
    return once(spark, of_segments.agg(f.min("at_us").alias("row_at"), f.min("at_us").alias(FIRST_AT)))


def with_places(
    spark: "SparkSession", events: "DataFrame", touched: "DataFrame", topics: Mapping[str, str]
) -> "list[DataFrame]":
    """Where a response has a topic's name alone, its partitions are those of the topic that a group has acquired
    records of by then."""
    from pyspark.sql import functions as f

    named = [events.where("topic_id IS NOT NULL")]
    if topics:
        names = pa.table([pa.array(list(topics)), pa.array(list(topics.values()))], names=["topic_id", "topic"])
        places = touched.groupBy(*WALK_KEYS).agg(f.min(FIRST_AT).alias(FIRST_AT))
        of_name = _null_safe(
            events.where("topic_id IS NULL").drop("topic_id"),
            places.join(spark.createDataFrame(names), "topic_id"),
            ("group_id", "cluster", "topic", "partition"),
            ("topic_id", FIRST_AT),
        )
        named.append(of_name.where(f"{FIRST_AT} <= at_us").drop(FIRST_AT))
    return named


def linked_events(links: "DataFrame", columns: Mapping[str, str], order: str) -> "DataFrame":
    """When a member first acquired over a connection, which is that of its session from then on, for all partitions.
    `order` is that of acquisitions."""
    from pyspark.sql import functions as f

    by_member = links.where(f"{FIRST_AT} IS NOT NULL").groupBy(*_MEMBER_KEYS).agg(
        f.collect_list(f.struct("connection_id", f.col(FIRST_AT).alias("at_us"))).alias("connections")
    )  # fmt: skip
    firsts = by_member.selectExpr(*_MEMBER_KEYS, f"size(connections) > 1 AS {_SEVERAL}", "inline(connections)")
    values = {"kind": "'linked'", "order": order, **{name: name for name in _MEMBER_KEYS}}
    values |= {"connection_id": "connection_id", "at_us": "at_us"}
    return firsts.selectExpr(
        *(f"CAST({values.get(name, 'NULL')} AS {kind}) AS `{name}`" for name, kind in columns.items()),
        "cluster",
        _SEVERAL,
    )


def to_partitions(events: "DataFrame", touched: "DataFrame", plan: Plan) -> "DataFrame":
    """What happened to a member at a broker, once for each partition that it acquired there. Only where it had several
    connections does one need to know which: a partition that was touched before the plan's start has seen another."""
    place_columns = ("topic_id", "partition")
    recent = f"at_us >= {plan.since - CROSSED_US} AND (at_us >= {plan.since} OR kind = 'disconnected')"
    rows = _null_safe(
        events.drop(*place_columns).where(recent), touched, _MEMBER_KEYS, (*place_columns, FIRST_AT)
    )  # fmt: skip
    is_new = f"{FIRST_AT} >= {plan.since}"
    # The state of others has what was before.
    rows = rows.where(f"at_us >= {plan.since} OR {is_new}")
    if _SEVERAL in rows.columns:
        rows = rows.where(f"{_SEVERAL} OR NOT {is_new}").drop(_SEVERAL)
    return rows.drop(FIRST_AT)


def _null_safe(rows: "DataFrame", other: "DataFrame", keys: Collection[str], columns: Collection[str]) -> "DataFrame":
    """Joined by keys that may be null; with these columns of the other."""
    from pyspark.sql import functions as f

    left, right = rows.alias("rows"), other.alias("other")
    alike = [f.col(f"rows.{key}").eqNullSafe(f.col(f"other.{key}")) for key in keys]
    return left.join(right, alike).select("rows.*", *(f"other.{name}" for name in columns))
