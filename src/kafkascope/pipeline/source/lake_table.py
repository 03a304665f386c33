"""Reads the visible rows of a lake's table for Spark: filters on its time open only the files that can have such rows,
and only the chosen columns are read from them."""

import os
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from kafkascope.errors import UsageError
from kafkascope.lake.active import active_files
from kafkascope.lake.home import SIGN, Lake, open_lake
from kafkascope.lake.place import filesystem_errors, place_of
from kafkascope.lake.read.visible_rows import (
    holds,
    is_of,
    is_visible,
    must_filter,
    open_as_of_now,
    table_as_stored,
    table_in,
)
from kafkascope.lake.tables import LakeTable
from kafkascope.pipeline.source.filters import Pushdown, expression
from kafkascope.pipeline.source.options import SourceOptions

_ROWS = 16_384
# As large as Spark reads in one task (spark.sql.files.maxPartitionBytes).
_PARTITION_BYTES = 128 << 20


class _Files(InputPartition):
    """Paths within the table's folder, each with the date of its folder. With `names`, rows of other ingests are left
    out: other tools have mixed them."""

    def __init__(self, paths: list[tuple[str, pa.compute.Expression]], names: frozenset[str] | None) -> None:
        super().__init__(len(paths))
        self.paths, self.names = paths, names


def lake_at(paths: Sequence[str]) -> Lake | None:
    """None where these are recordings."""
    lakes = [path for path in paths if place_of(path).child(SIGN).exists()]
    if not lakes:
        return None
    if len(paths) > 1:
        raise UsageError(f"{lakes[0]}: a lake is read by itself, without other paths")
    return open_lake(lakes[0])


def lake_schema(lake: Lake, table: str) -> pa.Schema:
    return table_in(lake, table).schema


class LakeReader(DataSourceReader):
    """`schema` has the columns that Spark gets."""

    def __init__(self, lake: Lake, options: SourceOptions, schema: pa.Schema) -> None:
        self._uri, self._options, self._schema = lake.uri, options, schema
        self._whole = lake_schema(lake, options.table)
        self._filters: list[Filter] = []

    @property
    def pushFilters(self) -> Pushdown:  # noqa: N802
        return Pushdown(self._whole, self._filters)

    def partitions(self) -> list[InputPartition]:
        lake, name = open_lake(self._uri), self._options.table
        tables, names = open_as_of_now(lake, [name])
        if name not in tables:
            return [_Files([], None)]
        table = table_as_stored(name, tables[name])
        files = [file for file in active_files(tables[name], table.time) if is_visible(name, file, names)]
        # What cannot pass the filters, by what the log says of each file, is not opened.
        kept = set(self._fragments(lake, table, [(file.path, holds(table, file)) for file in files]))
        files = [file for file in files if file.path in kept]
        count = self._options.tasks or max(
            os.cpu_count() or 1, -(-sum(file.size for file in files) // _PARTITION_BYTES)
        )
        count = max(1, min(count, len(files)))
        files.sort(key=lambda file: -file.size)
        filtered = names if any(must_filter(table, file) for file in files) else None
        return [
            _Files([(file.path, holds(table, file)) for file in files[number::count]], filtered)
            for number in range(count)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Files)
        if not partition.paths:
            return
        passed = expression(self._filters)
        if partition.names is not None:
            own = is_of(partition.names)
            passed = own if passed is None else own & passed
        place = place_of(self._uri).child(self._options.table)
        with filesystem_errors(place.uri):
            rows = self._dataset(self._uri, self._options.table, self._whole, partition.paths)
            for batch in rows.to_batches(
                columns=self._schema.names, filter=passed, batch_size=_ROWS, batch_readahead=2, fragment_readahead=1
            ):
                if batch.num_rows:
                    yield from pa.Table.from_batches([batch]).cast(self._schema).combine_chunks().to_batches()

    def _fragments(self, lake: Lake, table: LakeTable, paths: list[tuple[str, pa.compute.Expression]]) -> Iterator[str]:
        rows = self._dataset(lake.uri, table.name, table.schema, paths)
        folder = lake.table(table.name).path
        for fragment in rows.get_fragments(expression(self._filters)):
            yield fragment.path[len(folder) + 1 :]

    @staticmethod
    def _dataset(
        uri: str, name: str, schema: pa.Schema, paths: list[tuple[str, pa.compute.Expression]]
    ) -> ds.FileSystemDataset:
        place = place_of(uri).child(name)
        return ds.FileSystemDataset.from_paths(
            [f"{place.path}/{path}" for path, _ in paths],
            schema=schema,
            format=ds.ParquetFileFormat(),
            filesystem=place.filesystem,
            partitions=[known for _, known in paths],
        )
