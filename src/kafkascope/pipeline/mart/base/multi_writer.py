"""Writes several marts in one job: their statements become one DataFrame, whose tasks write each row to its mart."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import KEPT, MART_STATE, MARTS
from kafkascope.lake.write.files import Files
from kafkascope.pipeline.mart.increments.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MART = "mart"
# The start of the segment that a row belongs to, if a statement has it; otherwise all its rows are of the last one.
SEGMENT_START = "segment"
_TABLES = {**MARTS, **KEPT}


def rows_of_several(spark: "SparkSession", statements: Mapping[str, str], **tables: Any) -> "DataFrame":
    """Each row belongs to one mart: `mart` names it, and the column of that name has the row."""
    parts = []
    for name, statement in statements.items():
        columns = (f"struct(*) AS {name}" if other == name else f"NULL AS {other}" for other in statements)
        parts.append(f"SELECT '{name}' AS {_MART}, {', '.join(columns)} FROM ({statement})")
    return spark.sql("\nUNION ALL\n".join(parts), **tables)


def writer_of_several(lake: Lake, plan: Plan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow` that returns the new files as JSON."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = SegmentFiles(lake, plan)
        for batch in batches:
            for name in pc.unique(batch.column(_MART)).to_pylist():
                rows = batch.filter(pc.equal(batch.column(_MART), name)).column(name)
                files.add(name, pa.Table.from_struct_array(rows))
        yield pa.record_batch([pa.array(files.close(), pa.string())], names=["file"])

    return write


class SegmentFiles:
    """One task's files, by the segments of their rows."""

    def __init__(self, lake: Lake, plan: Plan) -> None:
        self._lake, self._plan = lake, plan
        self._files: dict[str, Files] = {}

    def add(self, name: str, rows: pa.Table) -> None:
        schema = _TABLES[name].file_schema
        if SEGMENT_START not in rows.column_names:
            self._of(name, self._plan.tail).add(_TABLES[name], rows.cast(schema))
            return
        segments = rows.column(SEGMENT_START)
        for start in pc.unique(segments).to_pylist():
            of_segment = rows.filter(pc.equal(segments, start)).drop_columns([SEGMENT_START])
            self._of(name, start).add(_TABLES[name], of_segment.cast(schema))

    def close(self) -> list[str]:
        """The new files as JSON."""
        return [json.dumps(asdict(file)) for files in self._files.values() for file in files.close()]

    def _of(self, name: str, start: int) -> Files:
        plan = self._plan
        prefix = plan.state_prefix(start) if name == MART_STATE else plan.prefix(start)
        if prefix not in self._files:
            self._files[prefix] = Files(self._lake, "", prefix)
        return self._files[prefix]
