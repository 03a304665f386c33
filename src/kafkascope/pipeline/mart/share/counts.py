"""Has Spark add up the deliveries of share groups, as `health.share.counted` does for those of one: by partition,
minute and delivery count, and acknowledgement times by minute. Then the minutes of each group are made of few rows."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkascope.health.share.counted import (
    ACKNOWLEDGED_OUTCOMES,
    COUNTED_OUTCOMES,
    MINUTE_US,
    AcknowledgeTimes,
    PlaceMinute,
)
from kafkascope.health.share.group_health import ShareGroupEvent, group_minutes
from kafkascope.lake.home import Lake
from kafkascope.pipeline.mart.base.events import columns_of
from kafkascope.pipeline.mart.base.row_files import RowFiles, events_from
from kafkascope.pipeline.mart.share.events import GROUP_COLUMNS
from kafkascope.pipeline.mart.share.walk import Group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HEALTH = "share_group_health"
_COUNTED, _TIMES = "counted", "times"
# What a sum has beside the columns of a group's events: both are in one row, so that one sort brings them together.
_SUM_COLUMNS = columns_of(
    "minute bigint, delivery_count bigint, acquired bigint, outcomes array<bigint>, renewals bigint, archived bigint,"
    "progress boolean, at_limit boolean, held bigint, first_at bigint, last_at bigint, p50_us bigint, p95_us bigint,"
    "max_us bigint"
)
_COLUMNS = {**GROUP_COLUMNS, **_SUM_COLUMNS, "cluster": "string"}
_GROUP_KEYS = ("group_id", "cluster")


def _minute(micros: str) -> str:
    """Since 1970, rounded down."""
    return f"({micros} - pmod({micros}, {MINUTE_US})) DIV {MINUTE_US}"


_PLACE = "group_id, cluster, topic_id, partition, delivery_count, outcome, archived"
# Deliveries that began and ended in the same minutes in the same way: few, so that what follows has few rows.
_ALIKE = f"""
SELECT {_PLACE}, began, ended, began IS NOT NULL AND NOT began <=> ended AS lasts, min(topic) AS topic,
       sum(last_offset - first_offset + 1) AS records, sum(renewals) AS renewals, count(*) AS deliveries,
       min(acquired_us) AS first_acquired, max(acquired_us) AS last_acquired,
       min(outcome_us) AS first_ended, max(outcome_us) AS last_ended
FROM (
  SELECT *, {_minute("acquired_us")} AS began, {_minute("outcome_us")} AS ended FROM (
    SELECT *, unix_micros(acquired_at) AS acquired_us, unix_micros(outcome_at) AS outcome_us FROM {{deliveries}}))
GROUP BY {_PLACE}, began, ended
"""
# A delivery counts in the minute of its acquisition and in that of its end, which may be one; without either time it
# shows a delivery count. `held` is what it changes from the next minute on.
_SIDES = f"""
SELECT {_PLACE}, topic, records, renewals, inline(array(
         struct(true AS begins, began AS minute, IF(lasts, deliveries, 0) AS held,
                first_acquired AS first_at, last_acquired AS last_at),
         struct(false AS begins, ended AS minute, IF(lasts, -deliveries, 0) AS held,
                first_ended AS first_at, last_ended AS last_at)))
FROM ({_ALIKE})
"""
_SUMS = f"""
SELECT '{_COUNTED}' AS kind, group_id, cluster, topic_id, partition, minute, delivery_count, min(topic) AS topic,
       sum(IF(begins AND minute IS NOT NULL, records, 0)) AS acquired,
       array({", ".join(f"sum(IF(NOT begins AND outcome = '{name}', records, 0))" for name in COUNTED_OUTCOMES)})
         AS outcomes,
       sum(IF(begins, 0, renewals)) AS renewals,
       sum(IF(NOT begins AND archived, records, 0)) AS archived,
       bool_or(NOT begins AND (archived OR outcome IN ('accepted', 'rejected'))) AS progress,
       bool_or(NOT begins AND archived AND outcome <> 'rejected') AS at_limit,
       sum(held) AS held, min(first_at) AS first_at, max(last_at) AS last_at
FROM ({_SIDES}) WHERE begins OR minute IS NOT NULL
GROUP BY group_id, cluster, topic_id, partition, minute, delivery_count
"""
_ACKNOWLEDGED = ", ".join(f"'{name}'" for name in ACKNOWLEDGED_OUTCOMES)
# Each record counts once. A sort, since there may be millions of times in a minute.
_PERCENTILES = f"""
SELECT '{_TIMES}' AS kind, group_id, cluster, minute, min(IF(so_far * 100 >= total * 50, micros, NULL)) AS p50_us,
       min(IF(so_far * 100 >= total * 95, micros, NULL)) AS p95_us, max(micros) AS max_us
FROM (
  SELECT *, sum(records) OVER (PARTITION BY group_id, cluster, minute ORDER BY micros) AS so_far,
         sum(records) OVER (PARTITION BY group_id, cluster, minute) AS total
  FROM (
    SELECT group_id, cluster, {_minute("unix_micros(outcome_at)")} AS minute,
           greatest(0, unix_micros(outcome_at) - unix_micros(acquired_at)) AS micros,
           sum(last_offset - first_offset + 1) AS records
    FROM {{deliveries}}
    WHERE outcome IN ({_ACKNOWLEDGED}) AND acquired_at IS NOT NULL AND outcome_at IS NOT NULL
    GROUP BY ALL
  )
)
GROUP BY group_id, cluster, minute
"""


def minute_rows(
    spark: "SparkSession", deliveries: "DataFrame | None", descriptions: "DataFrame | None"
) -> "DataFrame | None":
    """What the minutes of groups are made of. `deliveries` are those of the mart with `cluster`, `descriptions` the
    events of groups. The rows of a group lie together, events in time order."""
    parts = [] if descriptions is None else [descriptions]
    if deliveries is not None:
        parts += [spark.sql(text, deliveries=deliveries) for text in (_SUMS, _PERCENTILES)]
    if not parts:
        return None
    rows = reduce(lambda some, more: some.unionByName(more), (_all_columns(part) for part in parts))
    return rows.repartition(*_GROUP_KEYS).sortWithinPartitions(
        *_GROUP_KEYS, "at_us", "order", "exchange_id", "topic_id", "partition"
    )


def _all_columns(rows: "DataFrame") -> "DataFrame":
    return rows.selectExpr(
        *(f"CAST({name if name in rows.columns else 'NULL'} AS {kind}) AS `{name}`" for name, kind in _COLUMNS.items())
    )


def minutes_writer(
    lake: Lake, prefix: str, brokers: Mapping[Group, Collection[str]], recorded: Mapping[str, list[tuple[int, int]]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`: it gives the new files as JSON. `brokers` are those that a group spoke with,
    `recorded` from when to when each was."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Group, str | None, Any]]:
        for batch in batches:
            columns = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
            events = events_from(ShareGroupEvent, columns)
            for at, kind in enumerate(columns["kind"]):
                values = {name: column[at] for name, column in columns.items()} if kind in _SUMS_OF else {}
                event = _SUMS_OF[kind](values) if values else events[at]
                yield (columns["group_id"][at], columns["cluster"][at]), columns["broker"][at], event

    def until_the_end(group: Group, events: Iterator[tuple[Group, str | None, Any]]) -> Iterator[Any]:
        spoke = {*brokers.get(group, ())}
        for _, broker, event in events:
            if broker is not None:
                spoke.add(broker)
            yield event
        for broker in sorted(spoke):
            if times := recorded.get(broker):
                yield ShareGroupEvent("seen", times[-1][1], group_id=group[0])

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = RowFiles(lake, prefix)
        for group, events in groupby(rows(batches), itemgetter(0)):
            for minute in group_minutes(group[0], until_the_end(group, events)):
                files.add(_HEALTH, minute)
        new_files = [json.dumps(asdict(file)) for file in files.close()]
        yield pa.record_batch([pa.array(new_files, pa.string())], names=["file"])

    return write


def _place_minute(values: dict[str, Any]) -> PlaceMinute:
    return PlaceMinute(**{name: values[name] for name in PlaceMinute._fields})


def _acknowledge_times(values: dict[str, Any]) -> AcknowledgeTimes:
    return AcknowledgeTimes(**{name: values[name] for name in AcknowledgeTimes._fields})


_SUMS_OF = {_COUNTED: _place_minute, _TIMES: _acknowledge_times}
