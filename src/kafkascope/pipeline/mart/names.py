"""Builds the marts of topics and of groups, in one job."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkascope.pipeline.mart import groups, topics
from kafkascope.pipeline.mart.events import Tables, named_tables, union_text
from kafkascope.pipeline.mart.several import rows_of_several

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = {**topics.TABLES, **groups.TABLES}
_SUBJECTS = {"topics": topics, "groups": groups}


def name_rows(
    spark: "SparkSession", tables: Tables, absent: Collection[str], clusters: Mapping[str, str]
) -> "DataFrame | None":
    """Rows of both marts; None if nothing names a topic or a group. `absent` are tables without a row, `clusters` the
    cluster ids of addresses."""
    texts = {}
    for name, subject in _SUBJECTS.items():
        sightings = union_text(subject.SIGHTINGS, absent)
        if sightings is not None:
            texts[name] = subject.STATEMENT.format(sightings=sightings)
    if not texts:
        return None
    known = pa.table([pa.array(list(clusters), pa.string()), pa.array(list(clusters.values()), pa.string())],
                     names=["broker_address", "cluster_id"])  # fmt: skip
    given = {"clusters": spark.createDataFrame(known)}
    for text in texts.values():
        given |= named_tables(text.replace("{clusters}", ""), tables)
    return rows_of_several(spark, texts, **given)
