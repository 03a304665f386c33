"""Reads rows of a mart in batches, one row group at a time, with times as whole microseconds. A missing mart or column
reads as empty, so that marts of an older kafkascope stay readable."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.tables import table_named

# Rows per batch, and how many of them are Python objects at a time.
_BATCH_ROWS, _OBJECTS = 65_536, 4_096
_NOT_AHEAD = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)

Row = dict[str, Any]


def has_marts(lake: Lake) -> bool:
    return any(lake.has(name) for name in MARTS)


def batches(
    lake: Lake, name: str, columns: Sequence[str], where: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """Empty batches are skipped."""
    if not lake.has(name):
        return
    mart = _with_all_columns(dataset(lake, name), name)
    projection = {column: _column(mart.schema, column) for column in columns}
    with filesystem_errors(lake.table(name).uri):
        for file in mart.get_fragments(filter=where):
            # One row group at a time: a scanner of the whole file runs ahead of a slow reader and fills memory.
            for part in file.split_by_row_group(filter=where, schema=mart.schema):
                scanner = part.scanner(
                    schema=mart.schema,
                    columns=projection,
                    filter=where,
                    batch_size=_BATCH_ROWS,
                    fragment_scan_options=_NOT_AHEAD,
                )
                for batch in scanner.to_batches():
                    if batch.num_rows:
                        yield batch


def _with_all_columns(mart: ds.Dataset, name: str) -> ds.Dataset:
    """Adds columns that an older kafkascope didn't write, all null, since a filter may name them."""
    table = MARTS[name] if name in MARTS else table_named(name)
    missing = [field for field in table.schema if field.name not in mart.schema.names]
    return mart.replace_schema(pa.schema([*mart.schema, *missing])) if missing else mart


def _column(schema: pa.Schema, name: str) -> pc.Expression:
    if name not in schema.names:
        return pc.scalar(pa.scalar(None, pa.int64()))
    if pa.types.is_timestamp(schema.field(name).type):
        return pc.field(name).cast(pa.int64())
    return pc.field(name)


def rows(lake: Lake, name: str, columns: Sequence[str], where: pc.Expression | None = None) -> Iterator[Row]:
    """All rows as dicts: for small marts, or filters that leave little."""
    for batch in batches(lake, name, columns, where):
        for start in range(0, batch.num_rows, _OBJECTS):
            yield from batch.slice(start, _OBJECTS).to_pylist()


def distinct(lake: Lake, name: str, column: str) -> set[str]:
    values: set[str] = set()
    for batch in batches(lake, name, [column]):
        values.update(value for value in pc.unique(batch.column(0)).to_pylist() if value is not None)
    return values
