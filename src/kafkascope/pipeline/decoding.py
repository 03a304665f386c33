"""A DataFrame with bytes of one message in, the same rows with the message's columns out, on any Spark session."""

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
    the one with the bodies, without frame and header. The other columns stay in front; a row that does not decode has
    nulls and says why in `_error`."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    name = find(message)
    names = rows.columns
    for wanted in (column, *((version,) if isinstance(version, str) else ())):
        if wanted not in names:
            raise UsageError(f"the DataFrame has no column {wanted}; it has {', '.join(names)}")
    kept = [field for field in rows.schema if field.name != column]
    found = lake_schema(full_schema(name, contents=contents))
    same = {field.name for field in kept} & set(found.names)
    if same:
        raise UsageError(
            f"{name} has columns of the same name: {', '.join(sorted(same))}; rename those of the DataFrame"
        )
    schema = type(rows.schema)([*kept, *from_arrow_schema(found)])
    arrow = to_arrow_schema(schema)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _decoded(batch, name, version, column, contents, arrow)

    made: Any = rows.mapInArrow(work, schema)
    return made  # type: ignore[no-any-return]


def _decoded(
    batch: pa.RecordBatch, name: str, version: int | str, column: str, contents: bool, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Frames of one version are decoded together and put back into their places."""
    table = pa.Table.from_batches([batch])
    bodies = table.column(column).combine_chunks().cast(pa.large_binary())
    if isinstance(version, int):
        versions = np.full(len(table), version)
    else:
        versions = table.column(version).cast(pa.int64()).fill_null(-1).to_numpy()
    there = bodies.is_valid().to_numpy(zero_copy_only=False)
    parts, order = [], []
    for one in np.unique(versions).tolist():
        where = np.flatnonzero((versions == one) & there)
        known = 0 <= one < 1 << 15 and bool(read_message(name).releases_of(one))
        if len(where) and known:
            parts.append(to_lake(decode_columns(name, one, bodies.take(pa.array(where)), contents=contents)))
            order.append(where)
    left = np.setdiff1d(np.arange(len(table)), np.concatenate(order) if order else np.zeros(0, np.int64))
    if len(left):
        parts.append(_unread(name, versions[left], there[left], contents))
        order.append(left)
    found = pa.concat_tables(parts).take(pa.array(np.argsort(np.concatenate(order), kind="stable")))
    rest = table.drop_columns([column])
    joined = pa.table([*rest.columns, *found.columns], names=[*rest.column_names, *found.column_names])
    yield from joined.cast(schema).combine_chunks().to_batches()


def _unread(name: str, versions: Any, there: Any, contents: bool) -> pa.Table:
    schema = lake_schema(full_schema(name, contents=contents))
    said = [
        "no bytes" if not has else f"{name} has no version {one}"
        for one, has in zip(versions.tolist(), there.tolist(), strict=True)
    ]
    columns = [pa.array(said) if field.name == "_error" else pa.nulls(len(said), field.type) for field in schema]
    return pa.table(columns, schema=schema)
