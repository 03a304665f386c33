"""Builds the marts of share groups: a ledger walks each partition of a group, then Spark adds the deliveries up."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkascope.lake.home import Lake
from kafkascope.lake.write.files import NewFile
from kafkascope.pipeline.mart.base.events import GroupClusters
from kafkascope.pipeline.mart.base.settings import compile_for
from kafkascope.pipeline.mart.base.sources import Sources
from kafkascope.pipeline.mart.names.facts import LakeFacts
from kafkascope.pipeline.mart.share.counts import minute_rows, minutes_writer
from kafkascope.pipeline.mart.share.events import share_events
from kafkascope.pipeline.mart.share.walk import DELIVERIES, Group, Walked, walk_partitions
from kafkascope.pipeline.tables import read_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_share_marts(
    spark: "SparkSession", lake: Lake, sources: Sources, prefix: str, facts: LakeFacts, tasks: int | None = None
) -> list[NewFile]:
    events = share_events(spark, sources, sources.absent, facts.clusters, facts.topics, tasks)
    brokers, ends = _brokers_and_ends(facts.share_groups, events.clusters)
    walked = Walked()
    if events.of_partitions is not None:
        walked = walk_partitions(lake, prefix, events.of_partitions, facts, ends)
    for group, spoken in walked.brokers.items():
        brokers.setdefault(group, set()).update(spoken)
    deliveries = None
    if walked.files:
        compile_for(spark, sum(file.rows for file in walked.files))
        written = read_files(spark, lake, DELIVERIES, [file.path for file in walked.files])
        deliveries = events.clusters.add_to(written.withColumnRenamed("broker_address", "broker")).drop("broker")
    rows = minute_rows(spark, deliveries, events.of_groups)
    if rows is None:
        return walked.files
    minutes = rows.mapInArrow(minutes_writer(lake, prefix, brokers, facts.recorded), "file string").collect()
    return [*walked.files, *(NewFile(**json.loads(row.file)) for row in minutes)]


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
