"""Writes several marts in one job: their statements become one DataFrame, whose tasks write each row to its mart."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.write.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MART = "mart"


def rows_of_several(spark: "SparkSession", statements: Mapping[str, str], **tables: Any) -> "DataFrame":
    """Each row belongs to one mart: `mart` names it, and the column of that name has the row."""
    parts = []
    for name, statement in statements.items():
        columns = (f"struct(*) AS {name}" if other == name else f"NULL AS {other}" for other in statements)
        parts.append(f"SELECT '{name}' AS {_MART}, {', '.join(columns)} FROM ({statement})")
    return spark.sql("\nUNION ALL\n".join(parts), **tables)


def writer_of_several(lake: Lake, prefix: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow` that returns the new files as JSON."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = Files(lake, "", prefix)
        for batch in batches:
            for name in pc.unique(batch.column(_MART)).to_pylist():
                rows = batch.filter(pc.equal(batch.column(_MART), name)).column(name)
                files.add(MARTS[name], pa.Table.from_struct_array(rows).cast(MARTS[name].file_schema))
        listed = [json.dumps(asdict(file)) for file in files.close()]
        yield pa.record_batch([pa.array(listed, pa.string())], names=["file"])

    return write
