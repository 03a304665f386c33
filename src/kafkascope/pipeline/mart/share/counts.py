"""Has Spark add up the deliveries of share groups, as `health.share.counted` does for those of one: by partition,
minute and delivery count, and acknowledgement times by minute. Then the minutes of each group are made of few rows."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from kafkascope.health.share.group_health import GroupWalk, ShareGroupEvent, ShareGroupHealth
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MART_STATE
from kafkascope.lake.write.files import NewFile
from kafkascope.pipeline.mart.base.events import columns_of
from kafkascope.pipeline.mart.base.links import STATE, state_row
from kafkascope.pipeline.mart.base.multi_writer import SegmentFiles
from kafkascope.pipeline.mart.base.new_files import OUTDATED, OutdatedError
from kafkascope.pipeline.mart.base.row_files import RowFiles, events_from
from kafkascope.pipeline.mart.increments.plan import Plan
from kafkascope.pipeline.mart.share.events import GROUP_COLUMNS, MINUTES, ShareEvents
from kafkascope.pipeline.mart.share.routes import GROUP_KEYS
from kafkascope.pipeline.mart.share.walk import Group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HEALTH = "share_group_health"
_COUNTED, _TIMES = "counted", "times"
_NEAR = "near "
# What a sum has beside the columns of a group's events: both are in one row, so that one sort brings them together.
_SUM_COLUMNS = columns_of(
    "minute bigint, delivery_count bigint, acquired bigint, outcomes array<bigint>, renewals bigint, archived bigint,"
    "progress boolean, at_limit boolean, held bigint, first_at bigint, last_at bigint, p50_us bigint, p95_us bigint,"
    "max_us bigint"
)
_COLUMNS = {**GROUP_COLUMNS, **_SUM_COLUMNS, "cluster": "string", "segment": "int"}


def _minute(micros: str) -> str:
    """Since 1970, rounded down."""
    return f"({micros} - pmod({micros}, {MINUTE_US})) DIV {MINUTE_US}"


_PLACE = "segment, group_id, cluster, topic_id, partition, delivery_count, outcome, archived"
# Deliveries that began and ended in the same minutes in the same way: few, so that what follows has few rows.
_ALIKE = f"""
SELECT {_PLACE}, began, ended, began IS NOT NULL AND NOT began <=> ended AS lasts, min(topic) AS topic,
       sum(last_offset - first_offset + 1) AS records, sum(renewals) AS renewals, count(*) AS deliveries,
       min(acquired_us) AS first_acquired, max(acquired_us) AS last_acquired,
       min(outcome_us) AS first_ended, max(outcome_us) AS last_ended
FROM (
  SELECT *, {_minute("acquired_us")} AS began, {_minute("outcome_us")} AS ended FROM (
    SELECT *, unix_micros(acquired_at) AS acquired_us, unix_micros(outcome_at) AS outcome_us FROM {{deliveries}}
    WHERE segment >= 0))
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
SELECT '{_COUNTED}' AS kind, segment, group_id, cluster, topic_id, partition, minute, delivery_count,
       min(topic) AS topic,
       sum(IF(begins AND minute IS NOT NULL, records, 0)) AS acquired,
       array({", ".join(f"sum(IF(NOT begins AND outcome = '{name}', records, 0))" for name in COUNTED_OUTCOMES)})
         AS outcomes,
       sum(IF(begins, 0, renewals)) AS renewals,
       sum(IF(NOT begins AND archived, records, 0)) AS archived,
       bool_or(NOT begins AND (archived OR outcome IN ('accepted', 'rejected'))) AS progress,
       bool_or(NOT begins AND archived AND outcome <> 'rejected') AS at_limit,
       sum(held) AS held, min(first_at) AS first_at, max(last_at) AS last_at
FROM ({_SIDES}) WHERE begins OR minute IS NOT NULL
GROUP BY segment, group_id, cluster, topic_id, partition, minute, delivery_count
"""
_ACKNOWLEDGED = ", ".join(f"'{name}'" for name in ACKNOWLEDGED_OUTCOMES)
_MINUTE_KEYS = "group_id, cluster, minute"
_MICROS = f"""
SELECT {_MINUTE_KEYS}, segment, micros, sum(records) AS records FROM (
  SELECT group_id, cluster, {_minute("unix_micros(outcome_at)")} AS minute, segment,
         greatest(0, unix_micros(outcome_at) - unix_micros(acquired_at)) AS micros,
         last_offset - first_offset + 1 AS records
  FROM {{deliveries}}
  WHERE outcome IN ({_ACKNOWLEDGED}) AND acquired_at IS NOT NULL AND outcome_at IS NOT NULL)
GROUP BY ALL
"""
# Rows of a minute may be of several segments: at the end of each, the minute has those so far.
_SO_FAR = f"""
SELECT {_MINUTE_KEYS}, explode(filter(segments, s -> s >= segment)) AS segment, micros, records
FROM (SELECT *, collect_set(segment) OVER (PARTITION BY {_MINUTE_KEYS}) AS segments FROM ({_MICROS}))
"""


def _percentiles(times: str) -> str:
    """Each record counts once. A sort, since there may be millions of times in a minute."""
    keys = f"{_MINUTE_KEYS}, segment"
    return f"""
SELECT '{_TIMES}' AS kind, {keys}, min(IF(so_far * 100 >= total * 50, micros, NULL)) AS p50_us,
       min(IF(so_far * 100 >= total * 95, micros, NULL)) AS p95_us, max(micros) AS max_us
FROM (
  SELECT *, sum(records) OVER (PARTITION BY {keys} ORDER BY micros) AS so_far,
         sum(records) OVER (PARTITION BY {keys}) AS total
  FROM ({times}))
WHERE segment >= 0
GROUP BY {keys}
"""


def of_minutes(spark: "SparkSession", deliveries: "DataFrame", minutes: "Collection[tuple[str, int]]") -> "DataFrame":
    """Those of these minutes of groups by their end, with `segment` -1."""
    from pyspark.sql import functions as f

    listed = pa.table({"group_id": [of for of, _ in minutes], "minute": [minute for _, minute in minutes]})
    first, last = min(minute for _, minute in minutes), max(minute for _, minute in minutes)
    ends = [f.timestamp_micros(f.lit(minute * MINUTE_US)) for minute in (first, last + 1)]
    rows = deliveries.where((deliveries["outcome_at"] >= ends[0]) & (deliveries["outcome_at"] < ends[1]))
    return spark.sql(
        f"SELECT d.*, -1 AS segment FROM {{rows}} d LEFT SEMI JOIN {{listed}} m"
        f" ON d.group_id = m.group_id AND {_minute('unix_micros(d.outcome_at)')} = m.minute",
        rows=rows,
        listed=spark.createDataFrame(listed),
    )


def minute_rows(
    spark: "SparkSession", deliveries: "DataFrame | None", described: ShareEvents, plan: Plan
) -> "DataFrame | None":
    """What the minutes of groups are made of. `deliveries` are those of the mart with `cluster` and the number of their
    `segment`. The rows of a group lie together by segment, after its state, and events in time order."""
    groups = described.of_groups
    parts = [] if groups is None else [groups.selectExpr("*", f"{plan.segment('at_us')} AS segment")]
    if described.group_states is not None:
        parts.append(described.group_states.selectExpr("*", "-1 AS segment"))
    if deliveries is not None:
        times = _percentiles(_SO_FAR if plan.marks or plan.since else _MICROS)
        parts += [spark.sql(text, deliveries=deliveries) for text in (_SUMS, times)]
    if not parts:
        return None
    rows = reduce(lambda some, more: some.unionByName(more), (_all_columns(part) for part in parts))
    return rows.repartition(*GROUP_KEYS).sortWithinPartitions(
        *GROUP_KEYS, "segment", "at_us", "order", "exchange_id", "topic_id", "partition"
    )


def _all_columns(rows: "DataFrame") -> "DataFrame":
    return rows.selectExpr(
        *(f"CAST({name if name in rows.columns else 'NULL'} AS {kind}) AS `{name}`" for name, kind in _COLUMNS.items())
    )


def minutes_writer(
    lake: Lake,
    plan: Plan,
    brokers: Mapping[Group, Collection[str]],
    recorded: Mapping[str, list[tuple[int, int]]],
    unsettled: Mapping[Group, Sequence[int | None]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`: it gives the new files as JSON. `brokers` are those that a group spoke with,
    `recorded` from when to when each was, `unsettled` by mark the first minute of a group that isn't known yet."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Group, int, str | None, Any]]:
        for batch in batches:
            columns = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
            events: list[Any] = events_from(ShareGroupEvent, columns)
            for at, kind in enumerate(columns["kind"]):
                if kind in _SUMS_OF:
                    events[at] = _SUMS_OF[kind]({name: column[at] for name, column in columns.items()})
                elif kind == STATE:
                    events[at] = columns[STATE][at]
            groups = zip(columns["group_id"], columns["cluster"], strict=True)
            yield from zip(groups, columns["segment"], columns["broker"], events, strict=True)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = {start: RowFiles(lake, plan.prefix(start)) for start in plan.starts}
        states, listed = SegmentFiles(lake, plan), list[str]()
        for group, rest in groupby(rows(batches), itemgetter(0)):
            history = GroupHistory(group, plan, brokers.get(group, ()), unsettled.get(group, ()))
            for _, segment, broker, row in rest:
                history.feed(segment, broker, row)
            for number, minute in history.finish(recorded):
                files[plan.starts[number]].add(_HEALTH, minute)
            for mark, state in history.states:
                states.add(MART_STATE, state_row(plan, mark, MINUTES, state))
            if history.is_near_another:
                # Rows of a group name no cluster.
                listed.append(f"{_NEAR}{json.dumps([group[0], history.near])}" if group[1] is None else OUTDATED)
        listed += [json.dumps(asdict(file)) for of_segment in files.values() for file in of_segment.close()]
        yield pa.record_batch([pa.array([*listed, *states.close()], pa.string())], names=["file"])

    return write


def minutes_of(rows: "DataFrame", write: Any) -> tuple[list[NewFile], dict[str, int]]:
    """New files, and groups of which another number of deliveries is near the limit than earlier rows say."""
    listed = [row.file for row in rows.mapInArrow(write, "file string").collect()]
    if OUTDATED in listed:
        raise OutdatedError
    near = dict(json.loads(text.removeprefix(_NEAR)) for text in listed if text.startswith(_NEAR))
    return [NewFile(**json.loads(text)) for text in listed if not text.startswith(_NEAR)], near


class GroupHistory:
    """Goes through the segments of one group."""

    def __init__(self, group: Group, plan: Plan, brokers: Collection[str], unsettled: Sequence[int | None]) -> None:
        self._group, self._plan, self._unsettled = group, plan, unsettled
        self._walk = GroupWalk(group[0])
        # Those that rows so far name, and those that partitions name.
        self._named, self._brokers, self._segment = set[str](), brokers, 0
        self._marked: list[tuple[int, object, list[str]]] = []
        self._near: int | None = None

    def feed(self, segment: int, broker: str | None, row: Any) -> None:
        if isinstance(row, str):
            walk, self._named, self._near = _stored(row)
            self._walk = GroupWalk(self._group[0], walk)
            return
        self._mark(segment)
        if broker is not None:
            self._named.add(broker)
        self._walk.feed(row)

    def finish(self, recorded: Mapping[str, list[tuple[int, int]]]) -> Iterator[tuple[int, ShareGroupHealth]]:
        """Rows, with the number of their segment."""
        self._mark(len(self._plan.marks))
        for broker in sorted({*self._named, *self._brokers}):
            if times := recorded.get(broker):
                self._walk.feed(ShareGroupEvent("seen", times[-1][1], group_id=self._group[0]))
        yield from self._walk.finish()

    @property
    def states(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """After `finish`: what is near the limit is known then."""
        keys = dict(zip(GROUP_KEYS, self._group, strict=True))
        for mark, state, named in self._marked:
            yield mark, {**keys, STATE: json.dumps([state, named, self._walk.near])}

    @property
    def near(self) -> int:
        return self._walk.near

    @property
    def is_near_another(self) -> bool:
        """After `finish`: whether another number of deliveries is near the limit than rows before the start say."""
        return self._near is not None and self._near != self.near

    def _mark(self, segment: int) -> None:
        while self._segment < segment:
            self._walk.mark(self._unsettled[self._segment] if self._unsettled else None)
            self._marked.append((self._plan.marks[self._segment], self._walk.state(), sorted(self._named)))
            self._segment += 1


def _stored(text: str) -> tuple[object, set[str], int]:
    """`ValueError` for what no build leaves."""
    walk, brokers, near = json.loads(text)
    if type(near) is not int or not all(isinstance(broker, str) for broker in brokers):
        raise ValueError("no build leaves such a state")
    return walk, {*brokers}, near


def _place_minute(values: dict[str, Any]) -> PlaceMinute:
    return PlaceMinute(**{name: values[name] for name in PlaceMinute._fields})


def _acknowledge_times(values: dict[str, Any]) -> AcknowledgeTimes:
    return AcknowledgeTimes(**{name: values[name] for name in AcknowledgeTimes._fields})


_SUMS_OF = {_COUNTED: _place_minute, _TIMES: _acknowledge_times}
