"""Converts decoded columns to types that Delta and Spark support: uuids become Kafka's text form, unsigned numbers the
next wider signed type. Nesting and nulls stay."""

from functools import cache

import numpy as np
import pyarrow as pa

from kafkascope.columnar.tables import UUID_TYPE
from kafkascope.columnar.uuid_text import UUID_DIGITS, uuid_text

_SIGNED = {pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}


@cache
def lake_type(type_: pa.DataType) -> pa.DataType:
    """The type that a column has in the lake."""
    if type_ == UUID_TYPE:
        return pa.string()
    if type_ in _SIGNED:
        return _SIGNED[type_]
    if pa.types.is_list(type_):
        return pa.list_(lake_type(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, lake_type(field.type)) for field in type_])
    return type_


def lake_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, lake_type(field.type)) for field in schema])


def to_lake(table: pa.Table) -> pa.Table:
    columns = [_column(column) for column in table.columns]
    return pa.table(columns, schema=lake_schema(table.schema))


def _column(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    if lake_type(column.type) == column.type:
        return column
    return pa.chunked_array([_array(_whole(chunk)) for chunk in column.chunks], lake_type(column.type))


def _whole(array: pa.Array) -> pa.Array:
    """Copies a slice, which keeps its parent's buffers: the code below needs buffers that begin at its first row."""
    return array.take(pa.array(np.arange(len(array)))) if array.offset else array


def _array(array: pa.Array) -> pa.Array:
    stored = lake_type(array.type)
    if stored == array.type:
        return array
    if array.type == UUID_TYPE:
        return _uuids(array)
    if array.type in _SIGNED:
        return array.cast(stored)
    buffers = array.buffers()
    if pa.types.is_list(array.type):
        return pa.Array.from_buffers(
            stored, len(array), buffers[:2], array.null_count, children=[_array(_whole(array.values))]
        )
    children = [_array(_whole(array.field(index))) for index in range(array.type.num_fields)]
    return pa.Array.from_buffers(stored, len(array), buffers[:1], array.null_count, children=children)


def _uuids(array: pa.Array) -> pa.Array:
    count = len(array)
    validity, content = array.buffers()
    raw = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    digits = uuid_text(raw[array.offset * 16 :], count)
    ends = np.arange(count + 1, dtype=np.int32) * UUID_DIGITS
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(digits), validity, array.null_count)
