"""Columns as the decoder gives them in, columns that Delta and Spark can hold out: uuids become Kafka's text form,
unsigned numbers the next wider signed ones. Nesting and nulls stay."""

from functools import cache

import numpy as np
import pyarrow as pa

from kafkascope.columnar.tables import UUID_TYPE
from kafkascope.columnar.uuid_text import UUID_DIGITS, uuid_text

_SIGNED = {pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}


@cache
def lake_type(given: pa.DataType) -> pa.DataType:
    """The type under which a column stands in the lake."""
    if given == UUID_TYPE:
        return pa.string()
    if given in _SIGNED:
        return _SIGNED[given]
    if pa.types.is_list(given):
        return pa.list_(lake_type(given.value_type))
    if pa.types.is_struct(given):
        return pa.struct([pa.field(field.name, lake_type(field.type)) for field in given])
    return given


def lake_schema(given: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, lake_type(field.type)) for field in given])


def to_lake(table: pa.Table) -> pa.Table:
    columns = [_column(column) for column in table.columns]
    return pa.table(columns, schema=lake_schema(table.schema))


def _column(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    if lake_type(column.type) == column.type:
        return column
    return pa.chunked_array([_array(_whole(chunk)) for chunk in column.chunks], lake_type(column.type))


def _whole(array: pa.Array) -> pa.Array:
    """A slice keeps its parent's buffers, its children theirs: what follows wants them to begin at its first row."""
    return array.take(pa.array(np.arange(len(array)))) if array.offset else array


def _array(array: pa.Array) -> pa.Array:
    wanted = lake_type(array.type)
    if wanted == array.type:
        return array
    if array.type == UUID_TYPE:
        return _uuids(array)
    if array.type in _SIGNED:
        return array.cast(wanted)
    buffers = array.buffers()
    if pa.types.is_list(array.type):
        return pa.Array.from_buffers(
            wanted, len(array), buffers[:2], array.null_count, children=[_array(_whole(array.values))]
        )
    children = [_array(_whole(array.field(index))) for index in range(array.type.num_fields)]
    return pa.Array.from_buffers(wanted, len(array), buffers[:1], array.null_count, children=children)


def _uuids(array: pa.Array) -> pa.Array:
    count = len(array)
    validity, content = array.buffers()
    raw = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    digits = uuid_text(raw[array.offset * 16 :], count)
    ends = np.arange(count + 1, dtype=np.int32) * UUID_DIGITS
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(digits), validity, array.null_count)
