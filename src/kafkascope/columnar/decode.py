"""Many frames of one message in, an Arrow table out: one row a frame, `_error` for those that do not decode.

The kernel reads what is in the form Kafka writes; the careful codec reads the rest, so that both engines say the same.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.codec.message import decode
from kafkascope.columnar.arrays import array_of, nulls
from kafkascope.columnar.buffers import Buffers
from kafkascope.columnar.program import TOP, compile_program
from kafkascope.columnar.rows import row_of
from kafkascope.columnar.tables import arrow_schema, table_of
from kafkascope.errors import DecodeError
from kafkascope.schema.layout import layout

ERROR = "_error"
UNKNOWN = "_unknown_tags"
UNKNOWN_TYPE = pa.list_(pa.struct([("path", pa.string()), ("tag", pa.int32()), ("data", pa.binary())]))
# Arrow's offsets are int32: frames are taken in portions whose strings stay far below that.
PORTION_BYTES = 256 * 1024 * 1024


def decode_columns(
    name: str, version: int, frames: pa.Array | pa.ChunkedArray, release: str | None = None
) -> pa.Table:
    """Bodies (binary, without frame and header) to the columns of the message's table, whatever the version."""
    found = layout(name, version, release)
    schema = full_schema(found.message.name)
    chunks = frames.chunks if isinstance(frames, pa.ChunkedArray) else [frames]
    tables = [
        _decode_portion(found.message.name, version, release, portion)
        for chunk in chunks
        for portion in _portions(chunk)
    ]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def full_schema(name: str) -> pa.Schema:
    return arrow_schema(name).append(pa.field(UNKNOWN, UNKNOWN_TYPE)).append(pa.field(ERROR, pa.string()))


def _portions(chunk: pa.Array) -> list[pa.Array]:
    if chunk.null_count:
        raise DecodeError("frames hold nulls; leave them out before decoding")
    if not (pa.types.is_binary(chunk.type) or pa.types.is_large_binary(chunk.type)):
        raise DecodeError(f"frames are {chunk.type}; binary or large_binary wanted")
    offsets = _offsets(chunk)
    parts = []
    start = 0
    while start < len(chunk):
        end = int(np.searchsorted(offsets, offsets[start] + PORTION_BYTES, side="right")) - 1
        end = max(end, start + 1)
        parts.append(chunk.slice(start, end - start))
        start = end
    return parts


def _offsets(chunk: pa.Array) -> npt.NDArray[np.int64]:
    wide = pa.types.is_large_binary(chunk.type)
    buffer = chunk.buffers()[1]
    raw = np.frombuffer(buffer, dtype=np.int64 if wide else np.int32)
    return raw[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)


def _decode_portion(name: str, version: int, release: str | None, frames: pa.Array) -> pa.Table:
    program = compile_program(name, version, release)
    content = frames.buffers()[2]
    buffers = Buffers(program, len(frames))
    status = buffers.read(content.address if content is not None else 0, _offsets(frames))
    present = {node.column.name: array_of(buffers, node) for node in program.nodes}
    good = buffers.rows[TOP]
    schema = full_schema(name)
    columns = [present[field.name] if field.name in present else nulls(field.type, good) for field in schema]
    table = pa.table(columns, schema=schema)
    if good == len(frames):
        return table
    return _with_the_rest(table, name, version, release, frames, status)


def _with_the_rest(
    table: pa.Table, name: str, version: int, release: str | None, frames: pa.Array, status: npt.NDArray[np.uint8]
) -> pa.Table:
    """Rows that the careful codec reads, or their errors, in their places."""
    columns = table_of(name)
    rows: list[dict[str, Any]] = []
    for index in np.flatnonzero(status):
        try:
            decoded = decode(name, version, frames[int(index)].as_py(), release)
        except DecodeError as error:
            rows.append({ERROR: str(error)})
            continue
        row = row_of(layout(name, version, release).fields, columns, decoded.value)
        if decoded.unknown_tags:
            row[UNKNOWN] = [{"path": t.path, "tag": t.tag, "data": t.data} for t in decoded.unknown_tags]
        rows.append(row)
    rest = pa.Table.from_pylist(rows, schema=table.schema)
    order = np.empty(len(status), dtype=np.int64)
    order[status == 0] = np.arange(len(table))
    order[status == 1] = len(table) + np.arange(len(rest))
    return pa.concat_tables([table, rest]).take(pa.array(order))
