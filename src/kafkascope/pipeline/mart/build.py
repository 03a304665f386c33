"""Rebuilds all marts of a lake: tasks write the rows, and each mart is replaced in one commit."""

import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from kafkascope.lake.home import Lake, find_lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.upkeep.upgrade import upgraded
from kafkascope.lake.write.catalog_tables import write_catalog
from kafkascope.lake.write.files import NewFile
from kafkascope.lake.write.replace import replace
from kafkascope.pipeline.mart import apis
from kafkascope.pipeline.mart.base.multi_writer import writer_of_several
from kafkascope.pipeline.mart.base.settings import session_of_its_own, walks_at_once
from kafkascope.pipeline.mart.base.sources import Sources
from kafkascope.pipeline.mart.findings import write_findings, write_incidents
from kafkascope.pipeline.mart.history import quorum, streams
from kafkascope.pipeline.mart.history.walks import quorum_rows, streams_rows, writer
from kafkascope.pipeline.mart.logs import build as logs
from kafkascope.pipeline.mart.logs.agreement import write_agreement
from kafkascope.pipeline.mart.names import facts, topics_and_groups
from kafkascope.pipeline.mart.names.brokers import clusters_of, write_brokers
from kafkascope.pipeline.mart.share import events as share
from kafkascope.pipeline.mart.share import marts as share_marts
from kafkascope.pipeline.spark_jobs import parallel_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Jobs and commits that run in parallel: planning one leaves the executors idle.
_AT_ONCE = 5
# These are made from the other marts.
_OF_OTHERS = ("share_agreement", "findings", "incidents")


def build_marts(
    spark: "SparkSession", lake: str | os.PathLike[str] | Lake, thresholds: Mapping[str, float] | None = None
) -> dict[str, int]:
    """Returns the number of rows per mart. `thresholds` overrides defaults of findings, as `rule.threshold`."""
    lake = lake if isinstance(lake, Lake) else upgraded(find_lake(lake))
    prefix = f"mart-{uuid4().hex}"
    needs = (facts.TABLES, share.TABLES, streams.TABLES, quorum.TABLES, apis.TABLES, topics_and_groups.TABLES)
    sources = Sources(spark, lake, *needs, *logs.TABLES)
    with (
        session_of_its_own(spark, sources.bytes) as own,
        ThreadPoolExecutor(_AT_ONCE) as pool,
        parallel_jobs(own, prefix, pool) as spark_jobs,
    ):
        sources.use(own)
        collected = spark_jobs.submit(lambda: facts.collect_facts(own, sources, sources.absent))
        jobs = [spark_jobs.submit(job) for job in _jobs(own, lake, sources, prefix, collected)]
        catalog = pool.submit(write_catalog, lake)
        new_files = [file for job in jobs for file in job.result()]
        by_table: dict[str, list[NewFile]] = {name: [] for name in MARTS if name not in _OF_OTHERS}
        for file in new_files:
            by_table[file.table].append(file)
        list(pool.map(lambda name: replace(lake, MARTS[name], by_table[name]), by_table))
        catalog.result()
        counts = {name: sum(file.rows for file in files) for name, files in by_table.items()}
        counts["share_agreement"] = write_agreement(own, lake, sources, prefix, counts["share_deliveries"])
    findings = write_findings(lake, thresholds or {}, prefix)
    return {**counts, "findings": len(findings), "incidents": write_incidents(lake, findings, prefix)}


def _jobs(
    spark: "SparkSession", lake: Lake, sources: Sources, prefix: str, collected: "Future[facts.LakeFacts]"
) -> list[Callable[[], list[NewFile]]]:
    """Does what doesn't depend on the facts while they are collected."""
    absent = sources.absent

    def written(rows: Any, write: Any) -> list[NewFile]:
        return [NewFile(**json.loads(row.file)) for row in rows.mapInArrow(write, "file string").collect()]

    def walked(events: Any, walk: Any, *keys: str) -> list[NewFile]:
        return [] if events is None else written(events, writer(lake, prefix, walk, keys, collected.result()))

    def clusters() -> Mapping[str, str]:
        return collected.result().clusters

    def named() -> list[NewFile]:
        rows = topics_and_groups.topic_and_group_rows(spark, sources, absent, clusters_of(collected.result()))
        return [] if rows is None else written(rows, writer_of_several(lake, prefix))

    group = ("group_id", "cluster")
    walks = walks_at_once(spark, sources.bytes)
    return [
        lambda: share_marts.write_share_marts(spark, lake, sources, prefix, collected.result(), walks),
        lambda: written(apis.api_rows(spark, sources["exchanges"]), writer_of_several(lake, prefix)),
        lambda: walked(streams.streams_events(spark, sources, absent, clusters), streams_rows, *group),
        lambda: walked(quorum.quorum_events(spark, sources, absent, clusters()), quorum_rows, "cluster_id"),
        named,
        lambda: write_brokers(lake, prefix, collected.result()),
        *logs.log_jobs(spark, lake, sources, prefix),
    ]
