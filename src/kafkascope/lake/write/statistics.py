"""Computes Delta's statistics of a file from its Parquet footer: minimum, maximum and null count of every column that
can have them.

Readers use them to skip files, and some take a column without bounds for null. So none is left out: if the exact bounds
can't be written, wider ones are."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafkascope.times import iso, moment_of

# The number of characters of a text that delta-spark keeps.
PREFIX_CHARACTERS = 32
# Sorts after every other character.
_LAST_CHARACTER = "\U0010ffff"
_FIRST_MOMENT, _LAST_MOMENT = "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"
_LARGEST = sys.float_info.max

Path = tuple[str, ...]


class Statistics:
    """Counts what a file's footer lacks: how many lists are null, and which columns have NaN."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._lists = {path: 0 for path, kind in _leaves(schema) if _is_list(kind)}
        self._floats = {path: False for path, kind in _leaves(schema) if pa.types.is_floating(kind)}

    def add(self, rows: pa.Table) -> None:
        for path in self._lists:
            self._lists[path] += _column(rows, path).null_count
        for path, odd in self._floats.items():
            self._floats[path] = odd or bool(pc.any(pc.is_nan(_column(rows, path))).as_py())

    def text(self, footer: pq.FileMetaData, read: Callable[[str], pa.Table]) -> str:
        """In the form of Delta's log. `read` returns a column of the file: a footer has no bounds beyond 4 KB."""
        lows: dict[str, Any] = {}
        highs: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        of_column = {name: number for number, name in enumerate(_names(footer))}
        # A struct without an entry counts as null.
        for field in self._schema:
            if pa.types.is_struct(field.type):
                lows[field.name], highs[field.name] = {}, {}
        for path, kind in _leaves(self._schema):
            if path in self._lists:
                _put(nulls, path, self._lists[path])
                continue
            name = ".".join(path)
            low, high, missing = _over_groups(footer, of_column[name])
            _put(nulls, path, missing)
            if missing == footer.num_rows or pa.types.is_binary(kind):
                continue
            if low is None:
                extremes = pc.min_max(_column(read(name), path)).as_py()
                low, high = extremes["min"].encode(), extremes["max"].encode()
            first, last = (-_LARGEST, _LARGEST) if self._floats.get(path) else _bounds(kind, low, high)
            _put(lows, path, first)
            _put(highs, path, last)
        values = {"numRecords": footer.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}
        # Delta's library misreads escapes beyond U+FFFF.
        return json.dumps(values, ensure_ascii=False)


def _leaves(fields: Any, prefix: Path = ()) -> Iterator[tuple[Path, pa.DataType]]:
    """Columns and fields of structs; a list is one leaf, whatever its elements are."""
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, (*prefix, field.name))
        else:
            yield (*prefix, field.name), field.type


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def _column(rows: pa.Table, path: Path) -> pa.ChunkedArray:
    column = rows.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _names(footer: pq.FileMetaData) -> Iterator[str]:
    for number in range(footer.num_columns):
        yield footer.schema.column(number).path


def _over_groups(footer: pq.FileMetaData, column: int) -> tuple[Any, Any, int]:
    """(minimum, maximum, nulls) of all row groups; no bounds if one of the groups lacks them for its values."""
    low = high = None
    nulls = 0
    known = True
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        statistics = group.column(column).statistics
        nulls += statistics.null_count
        if statistics.has_min_max:
            low = statistics.min_raw if low is None else min(low, statistics.min_raw)
            high = statistics.max_raw if high is None else max(high, statistics.max_raw)
        elif statistics.null_count < group.num_rows:
            known = False
    return (low, high, nulls) if known else (None, None, nulls)


def _bounds(kind: pa.DataType, low: Any, high: Any) -> tuple[Any, Any]:
    """As JSON values."""
    if pa.types.is_floating(kind):
        return max(low, -_LARGEST), min(high, _LARGEST)
    if pa.types.is_timestamp(kind):
        # Readers use milliseconds: truncating must not lower the upper bound.
        return _moment(low) or _FIRST_MOMENT, _moment(high + 999) or _LAST_MOMENT
    if pa.types.is_string(kind):
        return low.decode()[:PREFIX_CHARACTERS], _prefix_above(high.decode())
    return low, high


def _prefix_above(text: str) -> str:
    """Short, and not before the text in any order."""
    for end in range(PREFIX_CHARACTERS, len(text)):
        if text[end] != _LAST_CHARACTER:
            return text[:end] + _LAST_CHARACTER
    return text


def _moment(us: int) -> str | None:
    """None for an impossible time."""
    moment = moment_of(us // 1000 * 1000)
    return None if moment is None else iso(moment, "milliseconds")


def _put(values: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value
