"""Builds the marts of topics and of groups, in one job."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkascope.pipeline.mart.base.events import TablesByName, named_tables, union_text
from kafkascope.pipeline.mart.base.multi_writer import rows_of_several
from kafkascope.pipeline.mart.names import groups, topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = {**topics.TABLES, **groups.TABLES}
_SUBJECTS = {"topics": topics, "groups": groups}


def topic_and_group_rows(
    spark: "SparkSession", tables: TablesByName, absent: Collection[str], clusters: Mapping[str, str]
) -> "DataFrame | None":
    """Rows of both marts; None if nothing names a topic or a group. `absent` are tables without rows, `clusters` the
    cluster ids of addresses."""
    texts = {}
    for name, subject in _SUBJECTS.items():
        sightings = union_text(subject.SIGHTINGS, absent)
        if sightings is not None:
            texts[name] = subject.STATEMENT.format(sightings=sightings)
    if not texts:
        return None
    cluster_rows = pa.table([pa.array(list(clusters), pa.string()), pa.array(list(clusters.values()), pa.string())],
                     names=["broker_address", "cluster_id"])  # fmt: skip
    frames = {"clusters": spark.createDataFrame(cluster_rows)}
    for text in texts.values():
        frames |= named_tables(text.replace("{clusters}", ""), tables)
    return rows_of_several(spark, texts, **frames)
