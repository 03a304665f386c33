"""A table of the lake in, a DataFrame of its visible rows out; a DataFrame of a mart in, its files in the lake out.
Spark reads by file list: no Delta jar is needed."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkascope.lake.files import Files, NewFile
from kafkascope.lake.home import Lake
from kafkascope.lake.reading import must_filter, table_in, visible_files
from kafkascope.lake.tables import INGEST_ID, LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_table(spark: "SparkSession", lake: Lake, name: str, ingests: frozenset[str] | None = None) -> "DataFrame":
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(table_in(lake, name).schema)
    paths = visible_files(lake, name, ingests)
    if not paths:
        return spark.createDataFrame([], schema)
    place = lake.table(name)
    # On the JVM the object store of `s3://` is called s3a.
    base = place.uri.replace("s3://", "s3a://")
    rows = spark.read.schema(schema).option("basePath", base).parquet(*[f"{base}/{path}" for path in paths])
    if ingests is not None and any(must_filter(path) for path in paths):
        return rows.where(rows[INGEST_ID].isin(*ingests))
    return rows


def write_files(lake: Lake, table: LakeTable, rows: "DataFrame", prefix: str) -> list[NewFile]:
    """The rows are written by the tasks that have them; nothing is committed."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = Files(lake, "", prefix)
        for batch in batches:
            files.add(table, pa.Table.from_batches([batch]).cast(table.file_schema))
        said = [json.dumps(asdict(file)) for file in files.close()]
        yield pa.record_batch([pa.array(said, pa.string())], names=["file"])

    wanted: Any = rows.select(*table.file_schema.names)
    return [NewFile(**json.loads(row.file)) for row in wanted.mapInArrow(write, "file string").collect()]
