"""Many frames of one message in, an Arrow table out: one row a frame, `_error` for those that do not decode.

The kernel reads what is in the form Kafka writes; the careful codec reads the rest, so that both engines say the same.
"""

from functools import cache
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
from kafkascope.errors import DecodeError, UsageError
from kafkascope.schema.layout import layout

ERROR = "_error"
UNKNOWN = "_unknown_tags"
# Their bytes are nobody's: what a newer Kafka has there may be secret.
UNKNOWN_TYPE = pa.list_(pa.struct([("path", pa.string()), ("tag", pa.int64()), ("size", pa.int32())]))
# Arrow's offsets are int32: what the frames of one portion hold stays far below that.
PORTION_BYTES = 256 * 1024 * 1024
# Records become Python objects on their way, so fewer of them at a time.
CONTENTS_BYTES = 16 * 1024 * 1024
# More changes between good and bad frames than this, and a table's chunks would be too small to be of use.
FEW_RUNS = 64
# A frame's length is an int32 on the wire.
_MOST_BYTES = 0x7FFFFFFF


def decode_columns(
    name: str, version: int, frames: pa.Array | pa.ChunkedArray, release: str | None = None, *, contents: bool = False
) -> pa.Table:
    """Bodies (binary, without frame and header) to the columns of the message's table, whatever the version. `contents`
    adds the records in record batches, unpacked; it is slow."""
    found = layout(name, version, release)
    known = found.message.name
    chunks = frames.chunks if isinstance(frames, pa.ChunkedArray) else [frames]
    tables = []
    for chunk in chunks:
        ends = _ends(chunk)
        for first, last in _portions(ends, CONTENTS_BYTES if contents else PORTION_BYTES):
            portion = chunk.slice(first, last - first)
            if contents:
                every = np.ones(len(portion), dtype=np.uint8)
                tables.append(_careful(known, version, release, portion, every, contents=True))
            else:
                tables.append(_decode_portion(known, version, release, portion, ends[first : last + 1]))
    return pa.concat_tables(tables) if tables else full_schema(known, contents=contents).empty_table()


@cache
def full_schema(name: str, *, contents: bool = False) -> pa.Schema:
    """The same for all versions of a message."""
    known = arrow_schema(name, contents=contents)
    return known.append(pa.field(UNKNOWN, UNKNOWN_TYPE)).append(pa.field(ERROR, pa.string()))


def _ends(chunk: pa.Array) -> npt.NDArray[np.int64]:
    """Where frames end in the chunk's bytes, with the start of the first before them."""
    if not (pa.types.is_binary(chunk.type) or pa.types.is_large_binary(chunk.type)):
        raise UsageError(f"frames are {chunk.type}; an array of binary or large_binary wanted")
    if chunk.null_count:
        raise UsageError(f"frames hold {chunk.null_count} nulls; leave them out")
    if len(chunk) == 0:
        return np.zeros(1, dtype=np.int64)
    _, offsets, content = chunk.buffers()
    raw: npt.NDArray[Any] = np.frombuffer(offsets, dtype=np.int64 if pa.types.is_large_binary(chunk.type) else np.int32)
    ends = raw[chunk.offset : chunk.offset + len(chunk) + 1]
    # Arrow itself does not look, and the kernel believes them.
    if ends[0] < 0 or ends[-1] > (content.size if content else 0) or (ends[1:] < ends[:-1]).any():
        raise UsageError("frames have offsets that do not rise or lie outside of their bytes")
    wide: npt.NDArray[np.int64] = ends.astype(np.int64)
    return wide


def _portions(ends: npt.NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """First and last of as many frames as have `most` bytes together, one at the least."""
    parts = []
    start = 0
    while start < len(ends) - 1:
        end = int(np.searchsorted(ends, ends[start] + most, side="right")) - 1
        parts.append((start, max(end, start + 1)))
        start = parts[-1][1]
    return parts


def _decode_portion(
    name: str, version: int, release: str | None, frames: pa.Array, ends: npt.NDArray[np.int64]
) -> pa.Table:
    if ends[-1] - ends[0] > _MOST_BYTES:
        raise UsageError(f"a frame of {ends[-1] - ends[0]} bytes; Kafka's have {_MOST_BYTES} at the most")
    program = compile_program(name, version, release)
    content = frames.buffers()[2]
    buffers = Buffers(program, len(frames))
    status = buffers.read(content.address if content else 0, ends)
    present = {node.column.name: array_of(buffers, node) for node in program.nodes}
    good = buffers.rows[TOP]
    schema = full_schema(name)
    columns = [present[field.name] if field.name in present else nulls(field.type, good) for field in schema]
    table = pa.table(columns, schema=schema)
    if good == len(frames):
        return table
    return _in_order(table, _careful(name, version, release, frames, status), status)


def _in_order(table: pa.Table, rest: pa.Table, status: npt.NDArray[np.uint8]) -> pa.Table:
    """Rows of both in the places of their frames: the rest where the status is 1."""
    starts = np.flatnonzero(np.diff(status.astype(np.int8), prepend=2))
    if len(starts) > FEW_RUNS:
        order = np.empty(len(status), dtype=np.int64)
        order[status == 0] = np.arange(len(table))
        order[status == 1] = np.arange(len(table), len(status))
        return pa.concat_tables([table, rest]).take(pa.array(order))
    # Slices cost nothing, where taking would copy every row for the sake of one.
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
    wanted: npt.NDArray[np.uint8],
    *,
    contents: bool = False,
) -> pa.Table:
    """Rows of the wanted frames as the careful codec reads them, or their errors."""
    fields, columns = layout(name, version, release).fields, table_of(name, contents=contents)
    rows: list[dict[str, Any]] = []
    for index in np.flatnonzero(wanted):
        try:
            decoded = decode(name, version, frames[int(index)].as_py(), release)
        except DecodeError as error:
            rows.append({ERROR: str(error)})
            continue
        row = row_of(fields, columns, decoded.value, contents=contents)
        if decoded.unknown_tags:
            row[UNKNOWN] = [{"path": tag.path, "tag": tag.tag, "size": len(tag.data)} for tag in decoded.unknown_tags]
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=full_schema(name, contents=contents))
