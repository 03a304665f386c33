"""Reads the state of a part of the marts at a checkpoint, as rows of text that whoever uses it checks."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from kafkascope.lake.active import active_files
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import KEPT, MART_STATE
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.read.visible_rows import rows_of
from kafkascope.lake.write.commit import find_table
from kafkascope.pipeline.mart.increments.checkpoints import BEGINNING
from kafkascope.pipeline.mart.increments.plan import Plan, state_of
from kafkascope.pipeline.tables import read_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def state_paths(lake: Lake, plan: Plan) -> list[str]:
    """Files of the state that a part goes on from."""
    table = find_table(lake, MART_STATE) if plan.since != BEGINNING else None
    return [] if table is None else [
        file.path for file in active_files(table) if state_of(file) == (plan.part, plan.since)
    ]  # fmt: skip


def state_rows(
    spark: "SparkSession", lake: Lake, paths: list[str], key: str, columns: Mapping[str, str]
) -> "DataFrame | None":
    """State of one subject as a table with these columns; a text of another form fails the job that reads it."""
    if not paths:
        return None
    schema = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    rows = read_files(spark, lake, KEPT[MART_STATE], paths)
    state = f"from_json(state, '{schema}', map('mode', 'FAILFAST')) AS s"
    return rows.where(rows.key == key).selectExpr(state).selectExpr("s.*")


def state_texts(lake: Lake, paths: list[str], key: str | None = None) -> Iterator[tuple[str, str]]:
    """Key and text of each row, without Spark."""
    if not paths:
        return
    table = find_table(lake, MART_STATE)
    files = [file for file in active_files(table) if file.path in paths] if table is not None else []
    chosen = None if key is None else pc.field("key") == key
    with filesystem_errors(lake.table(MART_STATE).uri):
        content = rows_of(lake, MART_STATE, KEPT[MART_STATE].file_schema, files)
        for batch in content.to_batches(columns=["key", "state"], filter=chosen):
            yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
