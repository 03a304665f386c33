"""Builds the marts of share groups: a ledger walks each partition of a group, then Spark adds the deliveries up.
Both go on from the state at the start of a plan."""

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from kafkascope.lake.home import Lake
from kafkascope.lake.write.files import NewFile
from kafkascope.pipeline.mart.base.events import GroupClusters
from kafkascope.pipeline.mart.base.multi_writer import writer_of_several
from kafkascope.pipeline.mart.base.new_files import written
from kafkascope.pipeline.mart.base.settings import compile_for
from kafkascope.pipeline.mart.base.sources import Sources
from kafkascope.pipeline.mart.increments.kept import kept_rows
from kafkascope.pipeline.mart.increments.plan import Plan, start_of_segment
from kafkascope.pipeline.mart.names.facts import LakeFacts
from kafkascope.pipeline.mart.share.counts import minute_rows, minutes_of, minutes_writer, of_minutes
from kafkascope.pipeline.mart.share.events import share_events
from kafkascope.pipeline.mart.share.near import with_near
from kafkascope.pipeline.mart.share.walk import DELIVERIES, Group, Walked, walk_partitions
from kafkascope.pipeline.tables import read_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_share_marts(
    spark: "SparkSession", lake: Lake, sources: Sources, plan: Plan, facts: LakeFacts,
    replaced: set[tuple[str, str]], tasks: int | None = None,
) -> list[NewFile]:  # fmt: skip
    """`replaced` gets the files of `share_group_health` before the plan's start that are rewritten."""
    events = share_events(spark, sources, sources.absent, facts.clusters, facts.topics, tasks, plan, lake)
    brokers, ends = _brokers_and_ends(facts.share_groups, events.clusters)
    walked = Walked()
    if events.of_partitions is not None:
        walked = walk_partitions(lake, plan, events.of_partitions, facts, ends)
    for group, spoken in walked.brokers.items():
        brokers.setdefault(group, set()).update(spoken)
    rows = minute_rows(spark, _deliveries(spark, lake, plan, walked, events.clusters), events, plan)
    files = walked.files
    if rows is not None:
        made, near = minutes_of(rows, minutes_writer(lake, plan, brokers, facts.recorded, walked.unsettled))
        files = [*files, *made, *with_near(lake, plan, near, replaced)]
    return files if events.kept is None else [*files, *written(events.kept, writer_of_several(lake, plan))]


def _deliveries(
    spark: "SparkSession", lake: Lake, plan: Plan, walked: Walked, clusters: GroupClusters
) -> "DataFrame | None":
    """What the walk wrote, with the `segment` of each row; and of the minutes before the plan's start to which it added
    acknowledgements, the rows before, with segment -1."""
    parts = []
    paths: dict[int, list[str]] = {}
    for file in walked.files:
        start = start_of_segment(file.path)
        if file.table == DELIVERIES.name and start is not None:
            paths.setdefault(plan.starts.index(start), []).append(file.path)
    if paths:
        compile_for(spark, sum(file.rows for file in walked.files))
    for segment, of_segment in sorted(paths.items()):
        parts.append(read_files(spark, lake, DELIVERIES, of_segment).selectExpr("*", f"{segment} AS segment"))
    late = [(group_id, minute) for (group_id, _), minutes in walked.late.items() for minute in minutes]
    before = kept_rows(spark, lake, DELIVERIES.name, plan) if late else None
    if before is not None:
        parts.append(of_minutes(spark, before, late))
    if not parts:
        return None
    rows = reduce(lambda some, more: some.unionByName(more), parts)
    return clusters.add_to(rows.withColumnRenamed("broker_address", "broker")).drop("broker")


def _brokers_and_ends(
    share_groups: Mapping[str, Mapping[str | None, int | None]], clusters: GroupClusters
) -> tuple[dict[Group, set[str]], dict[Group, int]]:
    """The brokers that a group fetched from, and when it did last."""
    brokers: dict[Group, set[str]] = {}
    ends: dict[Group, int] = {}
    for group_id, last_by_broker in share_groups.items():
        for broker, last in last_by_broker.items():
            group = (group_id, clusters.of(group_id, broker))
            if broker is not None:
                brokers.setdefault(group, set()).add(broker)
            if last is not None:
                ends[group] = max(ends.get(group, last), last)
    return brokers, ends
