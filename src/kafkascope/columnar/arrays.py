"""Wraps filled buffers as Arrow arrays, in the order of the table's columns; nulls for columns that this version
lacks."""

import numpy as np
import pyarrow as pa

from kafkascope.columnar.buffers import Buffers
from kafkascope.columnar.operations import Node
from kafkascope.columnar.tables import BATCH_TYPE, RECORDS_TYPE, Column


def array_of(buffers: Buffers, node: Node) -> pa.Array:
    if node.element is not None:
        return _list(buffers, node.slot, node.column.arrow_type, array_of(buffers, node.element))
    column, index = node.column, node.slot
    length = buffers.rows(node.group)
    type_ = column.element_type
    match column.type:
        case "struct":
            return _struct(buffers, node, length)
        case "records":
            return _records(buffers, index, length)
        case "string" | "bytes":
            parts = [buffers.valid(index), buffers.values(index), buffers.data(index)]
            return pa.Array.from_buffers(type_, length, parts)
        case "bool":
            return pa.Array.from_buffers(type_, length, [None, buffers.bits(index)])
    made = pa.Array.from_buffers(_own_type(column, buffers.slots[index].width), length, [None, buffers.values(index)])
    return made if made.type == type_ else made.cast(type_)


def _struct(buffers: Buffers, node: Node, length: int) -> pa.Array:
    present = {child.column.name: array_of(buffers, child) for child in node.children}
    children = [
        present[column.name] if column.name in present else nulls(column.arrow_type, length)
        for column in node.column.children
    ]
    valid = buffers.valid(node.slot) if node.slot >= 0 else None
    return pa.Array.from_buffers(node.column.element_type, length, [valid], children=children)


def _list(buffers: Buffers, index: int, type_: pa.DataType, element: pa.Array) -> pa.Array:
    length = buffers.rows(buffers.slots[index].group)
    parts = [buffers.valid(index), buffers.values(index)]
    return pa.Array.from_buffers(type_, length, parts, children=[element])


def _records(buffers: Buffers, index: int, length: int) -> pa.Array:
    sizes = [pa.Array.from_buffers(pa.int32(), length, [None, buffers.values(index + n)]) for n in (1, 2)]
    batches = buffers.rows(buffers.slots[index + 3].child)
    columns = [
        pa.Array.from_buffers(field.type, batches, [None, buffers.values(index + 4 + number)])
        for number, field in enumerate(BATCH_TYPE)
    ]
    batch = pa.Array.from_buffers(BATCH_TYPE, batches, [None], children=columns)
    children = [*sizes, _list(buffers, index + 3, pa.list_(BATCH_TYPE), batch)]
    return pa.Array.from_buffers(RECORDS_TYPE, length, [buffers.valid(index)], children=children)


def _own_type(column: Column, width: int) -> pa.DataType:
    """The type that this version writes, if the table's type is wider."""
    type_ = column.element_type
    if type_.bit_width == 8 * width:
        return type_
    return {1: pa.int8(), 2: pa.uint16(), 4: pa.int32()}[width]


def nulls(type_: pa.DataType, length: int) -> pa.Array:
    """Like pa.nulls, but all arrays share the same zeros: most columns of an old version are null."""
    if not length:
        return pa.nulls(0, type_)
    # The widest value is a uuid, 16 bytes.
    return _nulls(type_, length, _zeros(16 * (length + 1)))


def _nulls(type_: pa.DataType, length: int, zeros: pa.Buffer) -> pa.Array:
    if pa.types.is_struct(type_):
        children = [_nulls(field.type, length, zeros) for field in type_]
        return pa.Array.from_buffers(type_, length, [zeros], null_count=length, children=children)
    if pa.types.is_list(type_):
        children = [pa.nulls(0, type_.value_type)]
        return pa.Array.from_buffers(type_, length, [zeros, zeros], null_count=length, children=children)
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return pa.Array.from_buffers(type_, length, [zeros, zeros, zeros], null_count=length)
    return pa.Array.from_buffers(type_, length, [zeros, zeros], null_count=length)


_ZEROS = [pa.py_buffer(b"")]


def _zeros(size: int) -> pa.Buffer:
    """At least this many, always the same ones. Nobody writes to them, so the system doesn't allocate memory for
    them."""
    if _ZEROS[0].size < size:
        _ZEROS[0] = pa.py_buffer(np.zeros(2 * size, dtype=np.uint8))
    return _ZEROS[0]
