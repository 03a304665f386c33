"""Reads the rows of a mart that a build keeps: those of segments before the one it goes on from."""

from typing import TYPE_CHECKING

from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import known_table
from kafkascope.lake.write.commit import find_table
from kafkascope.pipeline.mart.increments.plan import Plan, segment_of
from kafkascope.pipeline.tables import read_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def kept_files(lake: Lake, name: str, plan: Plan) -> list[ActiveFile]:
    table = find_table(lake, name)
    return [] if table is None else [file for file in active_files(table) if is_kept(file, plan)]


def is_kept(file: ActiveFile, plan: Plan) -> bool:
    start = segment_of(file)
    return start is not None and start < plan.since


def kept_rows(spark: "SparkSession", lake: Lake, name: str, plan: Plan) -> "DataFrame | None":
    files = kept_files(lake, name, plan)
    return read_files(spark, lake, known_table(name), [file.path for file in files]) if files else None
