"""Decodes a DataFrame column with bytes of one message into the message's columns, on any Spark session."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kafkascope.columnar.decode import decode_columns, full_schema
from kafkascope.errors import UsageError
from kafkascope.lake.shape import lake_schema, to_lake
from kafkascope.schema.catalog import message as read_message
from kafkascope.schema.names import find

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def decode(
    rows: "DataFrame", message: str, version: int | str, column: str = "bytes", *, contents: bool = False
) -> "DataFrame":
    """`message` is its name (`ShareFetchRequest`), `version` a number or the name of the column that has it, `column`
    the column with the bodies, without frame and header. The other columns stay in front; a row that doesn't decode has
    nulls and the reason in `_error`."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    name = find(message)
    names = rows.columns
    for required in (column, *((version,) if isinstance(version, str) else ())):
        if required not in names:
            raise UsageError(f"the DataFrame has no column {required}; it has {', '.join(names)}")
    other_fields = [field for field in rows.schema if field.name != column]
    message_schema = lake_schema(full_schema(name, contents=contents))
    duplicates = {field.name for field in other_fields} & set(message_schema.names)
    if duplicates:
        raise UsageError(
            f"{name} has columns of the same name: {', '.join(sorted(duplicates))}; rename those of the DataFrame"
        )
    schema = type(rows.schema)([*other_fields, *from_arrow_schema(message_schema)])
    arrow = to_arrow_schema(schema)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _decoded(batch, name, version, column, contents, arrow)

    decoded: Any = rows.mapInArrow(work, schema)
    return decoded  # type: ignore[no-any-return]


def _decoded(
    batch: pa.RecordBatch, name: str, version: int | str, column: str, contents: bool, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Decodes the frames of one version together and restores their order."""
    table = pa.Table.from_batches([batch])
    bodies = table.column(column).combine_chunks().cast(pa.large_binary())
    if isinstance(version, int):
        versions = np.full(len(table), version)
    else:
        versions = table.column(version).cast(pa.int64()).fill_null(-1).to_numpy()
    present = bodies.is_valid().to_numpy(zero_copy_only=False)
    parts, order = [], []
    for version_number in np.unique(versions).tolist():
        rows = np.flatnonzero((versions == version_number) & present)
        exists = 0 <= version_number < 1 << 15 and bool(read_message(name).releases_of(version_number))
        if len(rows) and exists:
            parts.append(to_lake(decode_columns(name, version_number, bodies.take(pa.array(rows)), contents=contents)))
            order.append(rows)
    undecoded = np.setdiff1d(np.arange(len(table)), np.concatenate(order) if order else np.zeros(0, np.int64))
    if len(undecoded):
        parts.append(_unread(name, versions[undecoded], present[undecoded], contents))
        order.append(undecoded)
    decoded = pa.concat_tables(parts).take(pa.array(np.argsort(np.concatenate(order), kind="stable")))
    other_columns = table.drop_columns([column])
    joined = pa.table(
        [*other_columns.columns, *decoded.columns], names=[*other_columns.column_names, *decoded.column_names]
    )
    yield from joined.cast(schema).combine_chunks().to_batches()


def _unread(name: str, versions: Any, present: Any, contents: bool) -> pa.Table:
    schema = lake_schema(full_schema(name, contents=contents))
    errors = [
        "no bytes" if not is_present else f"{name} has no version {version_number}"
        for version_number, is_present in zip(versions.tolist(), present.tolist(), strict=True)
    ]
    columns = [pa.array(errors) if field.name == "_error" else pa.nulls(len(errors), field.type) for field in schema]
    return pa.table(columns, schema=schema)
