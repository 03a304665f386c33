"""Builds the marts of topics and of groups, in one job: what names them is added up, then joined across clusters."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MART_STATE
from kafkascope.pipeline.mart.base.events import TablesByName, named_tables, union_text
from kafkascope.pipeline.mart.base.multi_writer import rows_of_several
from kafkascope.pipeline.mart.increments.plan import Plan
from kafkascope.pipeline.mart.increments.state import state_paths, state_rows
from kafkascope.pipeline.mart.names import groups, topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = {**topics.TABLES, **groups.TABLES}
_SUBJECTS: dict[str, Any] = {"topics": topics, "groups": groups}
_SUMS = {"topics": "topic_sums", "groups": "group_sums"}


def topic_and_group_rows(
    spark: "SparkSession",
    tables: TablesByName,
    absent: Collection[str],
    clusters: Mapping[str, str],
    plan: Plan,
    lake: Lake | None = None,
) -> "DataFrame | None":
    """Rows of both marts, and of their state; None if nothing names a topic or a group. `absent` are tables without
    rows, `clusters` the cluster ids of addresses, `lake` has the state that the plan goes on from."""
    cluster_rows = pa.table([pa.array(list(clusters), pa.string()), pa.array(list(clusters.values()), pa.string())],
                     names=["broker_address", "cluster_id"])  # fmt: skip
    frames: dict[str, Any] = {"clusters": spark.createDataFrame(cluster_rows)}
    texts, states = {}, []
    paths = [] if lake is None else state_paths(lake, plan)
    for name, subject in _SUBJECTS.items():
        sightings = union_text(subject.SIGHTINGS, absent)
        rows = None
        if sightings is not None:
            text = subject.COUNTED_SIGHTINGS.format(sightings=sightings)
            rows = spark.sql(text, **named_tables(text, tables))
        state = None if lake is None else state_rows(spark, lake, paths, name, subject.SUMS.columns)
        sums = subject.SUMS.added(spark, rows, state, plan)
        if sums is not None:
            frames[_SUMS[name]] = sums
            texts[name] = subject.STATEMENT.format(now=subject.SUMS.now(plan))
            states.append(subject.SUMS.state_statement(_SUMS[name], plan))
    if not texts:
        return None
    if plan.marks:
        texts[MART_STATE] = "\nUNION ALL\n".join(states)
    return rows_of_several(spark, texts, **frames)
