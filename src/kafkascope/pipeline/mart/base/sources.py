"""Opens a lake's tables as DataFrames with only the needed columns: other nested columns aren't read. All tables are as
of one moment."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkascope.lake.active import active_files
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import is_visible, open_as_of_now
from kafkascope.lake.tables import INGEST_ID, KEYS, message_of
from kafkascope.pipeline.tables import read_opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Sources:
    """`needs` maps tables to the needed paths, separated by blanks. Bodies always have their keys."""

    def __init__(self, spark: "SparkSession", lake: Lake, *needs: Mapping[str, str]) -> None:
        self._spark, self._lake = spark, lake
        self._needs: dict[str, set[str]] = {}
        for tables in needs:
            for name, paths in tables.items():
                self._needs.setdefault(name, set()).update(paths.split())
        self._tables, self._names = open_as_of_now(lake, self._needs)
        self._bytes = {name: self._size(name) for name in self._needs}
        self._frames: dict[str, DataFrame] = {}

    def use(self, spark: "SparkSession") -> None:
        """Another session, for what isn't open yet."""
        self._spark = spark

    @property
    def bytes(self) -> int:
        return sum(self._bytes.values())

    @property
    def absent(self) -> frozenset[str]:
        """Tables without rows."""
        return frozenset(name for name, size in self._bytes.items() if not size)

    def __getitem__(self, name: str) -> "DataFrame":
        if name not in self._frames:
            paths = self._needs[name]
            columns = {*paths, *KEYS.names, INGEST_ID} if message_of(name) else {*paths, INGEST_ID}
            self._frames[name] = read_opened(
                self._spark, self._lake, name, self._tables.get(name), self._names,
                narrow=lambda schema: narrow_schema(schema, columns),
            )  # fmt: skip
        return self._frames[name]

    def _size(self, name: str) -> int:
        table = self._tables.get(name)
        files = () if table is None else active_files(table)
        return sum(file.size for file in files if is_visible(name, file, self._names))


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
