"""Decodes many frames of one message to an Arrow table: one row per frame, `_error` for those that don't decode.

The kernel reads what is in the form Kafka writes; the careful codec reads the rest, with equal results.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.codec.message import decode
from kafkascope.columnar.arrays import array_of, nulls
from kafkascope.columnar.buffers import Buffers
from kafkascope.columnar.frames import Frames, chunks_of, frames_of
from kafkascope.columnar.operations import TOP
from kafkascope.columnar.program import compile_program
from kafkascope.columnar.rows import row_of
from kafkascope.columnar.scratch import Scratch, give_back, take
from kafkascope.columnar.tables import ERROR, UNKNOWN_TAGS_COLUMN, full_schema, table_of
from kafkascope.columnar.unknown import unknown_tags
from kafkascope.errors import DecodeError, UsageError
from kafkascope.schema.layouts.layout import layout

__all__ = ["ERROR", "UNKNOWN_TAGS_COLUMN", "decode_columns", "full_schema"]

# Arrow's offsets are int32: the contents of one portion's frames stay far below that.
_PORTION_BYTES = 256 * 1024 * 1024
# Records become Python objects on their way, so fewer of them at a time.
CONTENTS_BYTES = 16 * 1024 * 1024
# Bytes per portion of frames that the careful codec reads: they become rows of Python objects, twenty times as large.
_CAREFUL_BYTES = 1024 * 1024
# With more changes between good and bad frames than this, a table's chunks would be too small to be useful.
FEW_RUNS = 64


def decode_columns(
    name: str, version: int, frames: pa.Array | pa.ChunkedArray, release: str | None = None, *, contents: bool = False
) -> pa.Table:
    """Bodies (binary, without frame and header) to the columns of the message's table, for any version. `contents` adds
    the records of record batches, decompressed, which is slow."""
    _check(name, version, release)
    known = layout(name, version, release).message.name
    chunks = chunks_of(frames)
    tables = []
    scratch = take()
    for chunk in chunks:
        for portion in frames_of(chunk, scratch.places, CONTENTS_BYTES if contents else _PORTION_BYTES):
            if contents:
                bodies = chunk.slice(portion.first, portion.count)
                tables.append(_careful(known, version, release, bodies, np.arange(portion.count), contents=True))
            else:
                tables.append(_decode_portion(known, version, release, chunk, portion, scratch))
    give_back(scratch)
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables) if tables else full_schema(known, contents=contents).empty_table()


def _check(name: Any, version: Any, release: Any) -> None:
    if not isinstance(name, str):
        raise UsageError(f"the name of a message must be a str, not {type(name).__name__}")
    # numpy's integers aren't ints of Python.
    if isinstance(version, bool) or not hasattr(version, "__index__"):
        raise UsageError(f"a version must be an int, not {type(version).__name__}")
    if release is not None and not isinstance(release, str):
        raise UsageError(f"a release must be a str, not {type(release).__name__}")


def _decode_portion(
    name: str, version: int, release: str | None, chunk: pa.Array, frames: Frames, scratch: Scratch
) -> pa.Table:
    buffers = Buffers(compile_program(name, version, release), scratch)
    buffers.read(frames)
    table = _table(name, buffers)
    if len(table) == frames.count:
        return table
    status = frames.status[: frames.count].copy()
    frames.status[: frames.count] = 0
    bodies = chunk.slice(frames.first, frames.count)
    return _in_order(table, _careful(name, version, release, bodies, np.flatnonzero(status)), status)


def _table(name: str, buffers: Buffers) -> pa.Table:
    schema = full_schema(name)
    unknown = unknown_tags(buffers)
    packed = buffers.packed()
    if packed is not None:
        table = pa.Table.from_batches([pa.ipc.read_record_batch(packed, schema)])
    else:
        buffers.settle()
        present = {node.column.name: array_of(buffers, node) for node in buffers.program.nodes}
        good = buffers.rows(TOP)
        columns = [present[field.name] if field.name in present else nulls(field.type, good) for field in schema]
        table = pa.table(columns, schema=schema)
    return table if unknown is None else table.set_column(len(schema) - 2, schema.field(UNKNOWN_TAGS_COLUMN), unknown)


def _in_order(table: pa.Table, rest: pa.Table, status: npt.NDArray[np.uint8]) -> pa.Table:
    """The rows of both in the order of their frames: those of `rest` if the status is 1."""
    starts = np.flatnonzero(np.diff(status.astype(np.int8), prepend=2))
    if len(starts) > FEW_RUNS:
        order = np.empty(len(status), dtype=np.int64)
        order[status == 0] = np.arange(len(table))
        order[status == 1] = np.arange(len(table), len(status))
        return pa.concat_tables([table, rest]).take(pa.array(order))
    # Slices are free, while `take` would copy every row.
    parts = []
    taken = [0, 0]
    for start, end in zip(starts, [*starts[1:], len(status)], strict=True):
        which = int(status[start])
        parts.append((table, rest)[which].slice(taken[which], end - start))
        taken[which] += end - start
    return pa.concat_tables(parts)


def _careful(
    name: str,
    version: int,
    release: str | None,
    frames: pa.Array,
    wanted: npt.NDArray[np.int64],
    *,
    contents: bool = False,
) -> pa.Table:
    """Rows of the given frames as the careful codec reads them, or their errors."""
    fields, columns = layout(name, version, release).fields, table_of(name, contents=contents)
    schema = full_schema(name, contents=contents)
    tables: list[pa.Table] = []
    rows: list[dict[str, Any]] = []
    held = 0
    for index in wanted.tolist():
        frame = frames[index].as_py()
        if held > _CAREFUL_BYTES:
            tables.append(pa.Table.from_pylist(rows, schema=schema))
            rows, held = [], 0
        held += len(frame)
        try:
            decoded = decode(name, version, frame, release)
        except DecodeError as error:
            rows.append({ERROR: str(error)})
            continue
        row = row_of(fields, columns, decoded.value, contents=contents)
        if decoded.unknown_tags:
            row[UNKNOWN_TAGS_COLUMN] = [
                {"path": tag.path, "tag": tag.tag, "size": len(tag.data)} for tag in decoded.unknown_tags
            ]
        rows.append(row)
    tables.append(pa.Table.from_pylist(rows, schema=schema))
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
