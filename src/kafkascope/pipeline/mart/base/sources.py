"""Opens a lake's tables as DataFrames with only the needed columns: other nested columns aren't read. All tables are as
of one moment."""

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkascope.health.share.book import CROSSED_US
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import known_table, open_as_of_now
from kafkascope.lake.tables import INGEST_ID, KEYS, message_of
from kafkascope.pipeline.mart.increments.changes import open_files
from kafkascope.pipeline.mart.increments.checkpoints import BEGINNING
from kafkascope.pipeline.mart.increments.once import once
from kafkascope.pipeline.tables import read_opened

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


# Below this size, everything is read in a few tasks of about a second.
LITTLE_BYTES = 64 << 20


class OpenLake:
    """Tables as of one moment. `needs` maps tables to the needed paths, separated by blanks."""

    def __init__(self, lake: Lake, *needs: Mapping[str, str]) -> None:
        self.lake = lake
        self.needs: dict[str, set[str]] = {}
        for tables in needs:
            for name, paths in tables.items():
                self.needs.setdefault(name, set()).update(paths.split())
        self.deltas, self.names = open_as_of_now(lake, self.needs)
        self.tables = {name: open_files(self.deltas.get(name), name, self.names) for name in self.needs}


class Sources:
    """What a lake has since a checkpoint, or all. Bodies always have their keys."""

    def __init__(self, spark: "SparkSession", opened: OpenLake, since: int = BEGINNING) -> None:
        self._spark, self._opened, self._since = spark, opened, since
        self._files = {
            name: list(table.files)
            if since == BEGINNING
            else table.since(since - (0 if table.timeless else CROSSED_US))
            for name, table in opened.tables.items()
        }
        self._frames: dict[str, DataFrame] = {}

    @property
    def bytes(self) -> int:
        return sum(file.size for files in self._files.values() for file in files)

    @property
    def absent(self) -> frozenset[str]:
        """Tables without rows."""
        return frozenset(name for name, files in self._files.items() if not any(file.rows for file in files))

    def __getitem__(self, name: str) -> "DataFrame":
        if name not in self._frames:
            opened, paths = self._opened, self._opened.needs[name]
            columns = {*paths, *KEYS.names, INGEST_ID} if message_of(name) else {*paths, INGEST_ID}
            rows = read_opened(
                self._spark, opened.lake, name, opened.deltas.get(name), opened.names,
                narrow=lambda schema: narrow_schema(schema, columns),
                paths=[file.path for file in self._files[name]],
            )  # fmt: skip
            rows = _with_new_columns(rows, name, columns)
            rows = rows if self._since == BEGINNING else rows.where(self._of_these(rows))
            # Each part reads it several times.
            shared = name == "exchanges" and sum(file.size for file in self._files[name]) < LITTLE_BYTES
            self._frames[name] = once(self._spark, rows) if shared else rows
        return self._frames[name]

    def _of_these(self, rows: "DataFrame") -> "Column":
        """In a form by which Parquet's readers leave out groups of rows. Rows without a time stay."""
        from pyspark.sql import functions as f

        start = f.timestamp_micros(f.lit(self._since))
        times = [rows[name] for name in ("request_at", "response_at") if name in rows.columns]
        if not times:
            return rows["closed_at"] >= f.timestamp_micros(f.lit(self._since - CROSSED_US))
        recent = [time >= start for time in times] + [reduce(and_, (time.isNull() for time in times))]
        return reduce(or_, recent)


def _with_new_columns(rows: "DataFrame", name: str, columns: set[str]) -> "DataFrame":
    """Columns that a table doesn't have yet, because an earlier version wrote it, are null."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_type

    for field in narrow_schema(known_table(name).schema, columns):
        if field.name not in rows.columns:
            rows = rows.withColumn(field.name, f.lit(None).cast(from_arrow_type(field.type)))
    return rows


def narrow_schema(schema: pa.Schema, paths: set[str]) -> pa.Schema:
    """The columns that the paths name, with everything nested below them."""
    return pa.schema(_narrowed_fields(list(schema), {tuple(path.split(".")) for path in paths}))


def _narrowed_fields(fields: list[pa.Field], paths: set[tuple[str, ...]]) -> list[pa.Field]:
    narrowed = []
    for field in fields:
        below = {path[1:] for path in paths if path[0] == field.name}
        if below:
            narrowed.append(field if () in below else field.with_type(_narrowed_type(field.type, below)))
    return narrowed


def _narrowed_type(type_: pa.DataType, paths: set[tuple[str, ...]]) -> pa.DataType:
    if pa.types.is_list(type_):
        return pa.list_(_narrowed_type(type_.value_type, paths))
    return pa.struct(_narrowed_fields([type_.field(index) for index in range(type_.num_fields)], paths))
