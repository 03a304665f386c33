"""Fills in the record sizes that a request log has in place of record data. Nothing else is known about the records: no
batch, no offset."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.columnar.tables import Column, table_of
from kafkascope.limits import MAX_FRAME_BYTES

# Suffix in Kafka's JSON form: `recordsSizeInBytes` in place of `records`.
SIZE_SUFFIX = "SizeInBytes"

Sizes = Sequence[int | None]
NO_SIZES: Sizes = ()


def sizes_in(name: str, value: Any) -> Sizes:
    """The size of every record field of a message in Kafka's JSON form, in order."""
    path = _path(name)
    if not path:
        return NO_SIZES
    values = [value]
    for names, _ in path[:-1]:
        values = [item for parent in values for item in _of(parent, names) or ()]
    names = tuple(f"{spelt}{SIZE_SUFFIX}" for spelt in path[-1][0])
    return [_size(_of(parent, names)) for parent in values]


def _size(size: Any) -> int | None:
    return size if type(size) is int and 0 <= size <= MAX_FRAME_BYTES else None


def _of(value: Any, names: tuple[str, ...]) -> Any:
    return next((value[name] for name in names if name in value), None)


def drop_sizes(value: Any) -> None:
    """Removes the sizes in place, because a copy of a long line may take too much memory."""
    if isinstance(value, dict):
        for name in [name for name in value if name.endswith(SIZE_SUFFIX)]:
            del value[name]
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(item, dict | list):
            drop_sizes(item)


def with_sizes(name: str, table: pa.Table, sizes: Sequence[Sizes]) -> pa.Table:
    """`sizes` are those of each row; record data without a size is null. Brokers log no sizes of the records in
    ShareFetch responses. If a row has a different number of record fields, the table stays unchanged."""
    path, flat = _path(name), [size for some in sizes for size in some]
    if not path:
        return table
    column = path[0][1]
    before = table.column(column).combine_chunks()
    after = _filled(before, [name for _, name in path[1:]], flat)
    return table if after is None else table.set_column(table.column_names.index(column), column, after)


def _filled(array: pa.Array, path: list[str], sizes: Sizes) -> pa.Array | None:
    """Lists of structs, down to the record data."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, array.type)
    if not path:
        return _sizes_column(array.type, sizes) if len(array) == len(sizes) else None
    inner = array.flatten()
    children = [inner.field(index) for index in range(inner.type.num_fields)]
    at = inner.type.get_field_index(path[0])
    filled = _filled(children[at], path[1:], sizes)
    if filled is None:
        return None
    children[at] = filled
    made = pa.StructArray.from_arrays(children, fields=list(inner.type), mask=pc.is_null(inner))
    ends = np.zeros(len(array) + 1, np.int32)
    np.cumsum(pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False), out=ends[1:])
    return pa.ListArray.from_arrays(pa.array(ends), made, type=array.type, mask=pc.is_null(array))


def _sizes_column(kind: pa.DataType, sizes: Sizes) -> pa.Array:
    columns = [pa.array(sizes, pa.int32()), *(pa.nulls(len(sizes), field.type) for field in list(kind)[1:])]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=columns[0].is_null())


@cache
def _path(name: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    """(spellings in JSON, column) from the top down to the record data; empty if the message has none."""

    def below(columns: tuple[Column, ...]) -> tuple[tuple[tuple[str, ...], str], ...]:
        for column in columns:
            here = (tuple(spelt[0].lower() + spelt[1:] for spelt in sorted(column.names)), column.name)
            if column.type == "records":
                return (here,)
            if deeper := below(column.children):
                return (here, *deeper)
        return ()

    return below(table_of(name))
