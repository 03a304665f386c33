"""Reads the visible rows of a lake's table as a DataFrame. Spark reads by file list: it needs no Delta jar, and no jar
for an object store."""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from kafkascope.lake.active import active_files
from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.place import filesystem_errors, place_of
from kafkascope.lake.read.column_texts import column_texts
from kafkascope.lake.read.former_names import former_names
from kafkascope.lake.read.topic_names import TOPICS, topic_arrays
from kafkascope.lake.read.visible_rows import (
    is_visible,
    known_names,
    known_table,
    must_filter,
    open_as_of_now,
    table_as_stored,
)
from kafkascope.lake.tables import DATE, INGEST_ID, LakeTable, message_of
from kafkascope.pipeline.topic_names import topic_names, with_topic_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Rows per batch sent to Spark.
_ROWS = 16_384
# Errors of a JVM that lacks the jar for a store.
_NO_FILESYSTEM = ("ClassNotFoundException", "UnsupportedFileSystem", "No FileSystem for scheme")


def read_opened(
    spark: "SparkSession",
    lake: Lake,
    name: str,
    opened: DeltaTable | None,
    names: frozenset[str],
    *,
    narrow: Callable[[pa.Schema], pa.Schema] = lambda schema: schema,
    paths: Collection[str] | None = None,
) -> "DataFrame":
    """A table as it was opened with these visible names (`open_as_of_now`). `narrow` leaves out columns that aren't
    needed, nested ones too, but not `ingest_id`. Of its files those at `paths`, or all."""
    from pyspark.sql.pandas.types import from_arrow_schema

    table = known_table(name) if opened is None else table_as_stored(name, opened)
    table = replace(table, schema=narrow(table.schema))
    files = [] if opened is None else [file for file in active_files(opened) if is_visible(name, file, names)]
    files = files if paths is None else [file for file in files if file.path in paths]
    if not files:
        return spark.createDataFrame([], from_arrow_schema(table.schema))
    rows = read_files(spark, lake, table, [file.path for file in files])
    if any(must_filter(table, file) for file in files):
        return rows.where(rows[INGEST_ID].isin(*names))
    return rows


def read_files(spark: "SparkSession", lake: Lake, table: LakeTable, paths: list[str]) -> "DataFrame":
    """Of a table, committed or not."""
    rows = _by_the_jvm(spark, lake, table, paths)
    return _by_python(spark, lake, table, paths) if rows is None else rows


def read_table(spark: "SparkSession", lake: Lake, name: str) -> "DataFrame":
    tables, names = open_as_of_now(lake, [name])
    return read_opened(spark, lake, name, tables.get(name), names)


def register_views(
    spark: "SparkSession", lake: str | os.PathLike[str] | Lake, since: datetime | None = None,
    until: datetime | None = None,
) -> list[str]:  # fmt: skip
    """Creates temporary views of all tables by their names, for SQL: visible rows as of one moment, with a comment on
    every column. A table that the lake doesn't have yet is empty, so a statement that works on one lake works on all.
    Of tables that have a time, rows from `since` on and before `until`, out of the files of these days."""
    home = lake if isinstance(lake, Lake) else open_lake(lake)
    present = home.tables()
    tables, names = open_as_of_now(home, present)
    every = sorted({*present, *known_names()})
    topics = topic_names(read_opened(spark, home, TOPICS, tables[TOPICS], names)) if TOPICS in tables else None
    for name in every:
        rows = read_opened(spark, home, name, tables.get(name), names)
        if name in tables:
            table = table_as_stored(name, tables[name])
            rows = _between(rows, table, since, until)
            if topics is not None and message_of(name):
                rows = with_topic_names(rows, topic_arrays(table.schema), topics)
        former = former_names(name)
        texts = column_texts(name, rows.columns)
        columns = [rows[column].alias(column, metadata=_comment(texts.get(column))) for column in rows.columns]
        columns += [rows[column].alias(old, metadata=_comment(texts.get(column))) for column, old in former.items()]
        rows.select(*columns).createOrReplaceTempView(name)
    return every


def _comment(text: str | None) -> dict[str, str]:
    """As Spark keeps it, and DESCRIBE shows it."""
    return {} if text is None else {"comment": text}


def _between(rows: "DataFrame", table: LakeTable, since: datetime | None, until: datetime | None) -> "DataFrame":
    """The date too: Spark doesn't know that it is that of the time, and by the date it leaves out folders."""
    from pyspark.sql import functions as f

    if table.time is None:
        return rows
    time = f.coalesce(rows[table.time], rows[table.otherwise]) if table.otherwise else rows[table.time]
    if since is not None:
        rows = rows.where((time >= f.lit(_utc(since))) & (rows[DATE] >= f.lit(_utc(since).date())))
    if until is not None:
        rows = rows.where((time < f.lit(_utc(until))) & (rows[DATE] <= f.lit(_utc(until).date())))
    return rows


def _utc(moment: datetime) -> datetime:
    """Without a zone it is UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _by_the_jvm(spark: "SparkSession", lake: Lake, table: LakeTable, paths: list[str]) -> "DataFrame | None":
    """None if the JVM has no filesystem for the lake's place: an object store needs its jar (`hadoop-aws` for S3)."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema

    # The JVM calls the object store of `s3://` s3a.
    base = lake.table(table.name).uri.replace("s3://", "s3a://")
    reader = spark.read.schema(from_arrow_schema(table.schema)).option("basePath", base)
    try:
        rows = reader.parquet(*[f"{base}/{path}" for path in paths])
        # Over Spark Connect an error shows only when the result is requested.
        assert rows.schema
    except Exception as error:
        if isinstance(error, PySparkException) or type(error).__module__.startswith("py4j"):
            if lake.place.local or not any(word in str(error) for word in _NO_FILESYSTEM):
                raise
            return None
        raise
    return rows


def _by_python(spark: "SparkSession", lake: Lake, table: LakeTable, paths: list[str]) -> "DataFrame":
    """Tasks read the files with `pyarrow.fs`, as `ingest` wrote them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    count = min(len(paths), int(spark.conf.get("spark.sql.shuffle.partitions") or 1))
    portions = [paths[number::count] for number in range(count)]
    numbers: Any = spark.range(0, count, 1, count)
    rows: DataFrame = numbers.mapInArrow(
        _reader(lake.table(table.name).uri, table.schema, portions), from_arrow_schema(table.schema)
    )
    return rows


def _reader(
    uri: str, schema: pa.Schema, portions: list[list[str]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        place = place_of(uri)
        for batch in batches:
            paths = [path for number in batch.column(0).to_pylist() for path in portions[number]]
            with filesystem_errors(uri):
                rows = ds.FileSystemDataset.from_paths(
                    [f"{place.path}/{path}" for path in paths],
                    schema=schema,
                    format=ds.ParquetFileFormat(),
                    filesystem=place.filesystem,
                    partitions=[_day(path) for path in paths],
                )
                yield from rows.to_batches(batch_size=_ROWS, batch_readahead=2, fragment_readahead=1)

    return read


def _day(path: str) -> pc.Expression:
    """The day in the folder's name."""
    folder, _, _ = path.rpartition("/")
    key, _, value = folder.partition("=")
    return pc.field(DATE) == pa.scalar(date.fromisoformat(value), pa.date32()) if key == DATE else pc.scalar(True)
