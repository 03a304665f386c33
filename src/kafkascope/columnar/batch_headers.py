"""Reads the headers of record batches that follow each other, as a segment has them, into columns of numbers. It stops
before the first bytes that aren't a whole batch of magic 2, so that the careful reader decides what they are."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.columnar.compiling.jit import inlined, jit

# The rows of the array that `scan_headers` fills, in this order.
HEADER_FIELDS = (
    "position",
    "size_bytes",
    "base_offset",
    "leader_epoch",
    "crc",
    "attributes",
    "last_offset",
    "base_timestamp_ms",
    "max_timestamp_ms",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "records_count",
)
_HEADER = 61
_OVERHEAD = 12
_MAGIC_AT = 16
_COMPRESSIONS = 5


@inlined
def _unsigned(data: Any, at: int, width: int) -> Any:
    value = np.int64(0)
    for index in range(width):
        value = (value << 8) | data[at + index]
    return value


@inlined
def _signed(data: Any, at: int, width: int) -> Any:
    value = _unsigned(data, at, width)
    shift = np.int64(64 - 8 * width)
    return (value << shift) >> shift


@jit
def scan_headers(data: Any, start: Any, place: Any, columns: Any) -> Any:
    """(rows, where the next bytes begin in `data`). `place` is the position of `data` in the file."""
    at, row, end = start, np.int64(0), np.int64(len(data))
    while row < columns.shape[1] and end - at >= _HEADER:
        size = _signed(data, at + 8, 4) + _OVERHEAD
        if data[at + _MAGIC_AT] != 2 or size < _HEADER or size > end - at:
            break
        attributes = _signed(data, at + 21, 2)
        count = _signed(data, at + 57, 4)
        if attributes & 7 >= _COMPRESSIONS or count < 0:
            break
        base = _signed(data, at, 8)
        columns[0, row] = place + at
        columns[1, row] = size
        columns[2, row] = base
        columns[3, row] = _signed(data, at + 12, 4)
        columns[4, row] = _unsigned(data, at + 17, 4)
        columns[5, row] = attributes
        columns[6, row] = base + _signed(data, at + 23, 4)
        columns[7, row] = _signed(data, at + 27, 8)
        columns[8, row] = _signed(data, at + 35, 8)
        columns[9, row] = _signed(data, at + 43, 8)
        columns[10, row] = _signed(data, at + 51, 2)
        columns[11, row] = _signed(data, at + 53, 4)
        columns[12, row] = count
        row += 1
        at += size
    return row, at


def read_headers(data: bytes, start: int, place: int, columns: npt.NDArray[np.int64]) -> tuple[int, int]:
    """As many batches as `columns` have room for: how many, and where the next bytes begin."""
    rows, at = scan_headers(np.frombuffer(data, np.uint8), np.int64(start), np.int64(place), columns)
    return int(rows), int(at)


def warm_up() -> None:
    """Compiled or loaded, without a byte."""
    read_headers(b"", 0, 0, np.empty((len(HEADER_FIELDS), 1), np.int64))
