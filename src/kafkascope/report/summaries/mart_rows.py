"""A mart's name and columns in, its rows out, a batch at a time; times are whole microseconds. A mart or a column that
is not there is empty, so that marts of an older kafkascope can be read."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.place import told
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.tables import table_named

# Rows that are looked at together.
BATCH_ROWS = 65_536
_NOT_AHEAD = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)

Row = dict[str, Any]


def has_marts(lake: Lake) -> bool:
    return any(lake.has(name) for name in MARTS)


def batches(
    lake: Lake, name: str, columns: Sequence[str], where: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """Without those that are empty."""
    if not lake.has(name):
        return
    found = _whole(dataset(lake, name), name)
    wanted = {column: _column(found.schema, column) for column in columns}
    with told(lake.table(name).uri):
        for file in found.get_fragments(filter=where):
            # One row group after the other: a scanner of the whole runs ahead of a reader that takes its time.
            for part in file.split_by_row_group(filter=where, schema=found.schema):
                scanner = part.scanner(
                    schema=found.schema,
                    columns=wanted,
                    filter=where,
                    batch_size=BATCH_ROWS,
                    fragment_scan_options=_NOT_AHEAD,
                )
                for batch in scanner.to_batches():
                    if batch.num_rows:
                        yield batch


def _whole(found: ds.Dataset, name: str) -> ds.Dataset:
    """With the columns that an older kafkascope did not know, all null: a filter may name them."""
    known = MARTS[name] if name in MARTS else table_named(name)
    missing = [field for field in known.schema if field.name not in found.schema.names]
    return found.replace_schema(pa.schema([*found.schema, *missing])) if missing else found


def _column(schema: pa.Schema, name: str) -> pc.Expression:
    if name not in schema.names:
        return pc.scalar(pa.scalar(None, pa.int64()))
    if pa.types.is_timestamp(schema.field(name).type):
        return pc.field(name).cast(pa.int64())
    return pc.field(name)


def rows(lake: Lake, name: str, columns: Sequence[str], where: pc.Expression | None = None) -> Iterator[Row]:
    """For marts that are small, or of which the filter leaves little."""
    for batch in batches(lake, name, columns, where):
        yield from batch.to_pylist()


def distinct(lake: Lake, name: str, column: str) -> set[str]:
    found: set[str] = set()
    for batch in batches(lake, name, [column]):
        found.update(value for value in pc.unique(batch.column(0)).to_pylist() if value is not None)
    return found
