"""Writes rows of `health/` to the files of their marts, a portion at a time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from operator import attrgetter
from typing import Any

import pyarrow as pa

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import CLUSTER_ID, MARTS
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.write.files import Files, NewFile

# Rows of a mart that are written together.
_PORTION_ROWS = 20_000
# More than come and go with some events and some rows.
_GC_OBJECTS = 200_000


class RowFiles:
    """One task's files."""

    def __init__(self, lake: Lake, prefix: str) -> None:
        self._files = Files(lake, "", prefix)
        self._portions: dict[str, tuple[LakeTable, list[Any], list[Any]]] = {}

    def add(self, name: str, row: Any, key: Any = None, table: LakeTable | None = None) -> None:
        """`key` becomes the column of `table` that the row lacks, if there is one; `table` is that of the mart."""
        portion = self._portions.get(name)
        if portion is None:
            portion = self._portions[name] = (table or MARTS[name], [], [])
        _, keys, rows = portion
        keys.append(key)
        rows.append(row)
        if len(rows) >= _PORTION_ROWS:
            self._write(*portion)

    def close(self) -> list[NewFile]:
        for portion in self._portions.values():
            self._write(*portion)
        return self._files.close()

    def _write(self, table: LakeTable, keys: list[Any], rows: list[Any]) -> None:
        if rows:
            self._files.add(table, _table(table.schema, keys, rows))
            keys.clear()
            rows.clear()


@contextmanager
def rare_gc() -> Iterator[None]:
    """Events and rows are many and hold no circles: looking for these every 700 objects is a third of a walk."""
    before = gc.get_threshold()
    gc.set_threshold(_GC_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def events_from(kind: Any, columns: dict[str, list[Any]]) -> list[Any]:
    """Nulls of a column that has a default are that default."""
    field_values = []
    for name in kind._fields:
        default, values = kind._field_defaults.get(name), columns[name]
        field_values.append(values if default is None else [default if value is None else value for value in values])
    # As `_make` does it, without a call in Python for each of millions.
    return list(map(tuple.__new__, repeat(kind), zip(*field_values, strict=True)))


def _table(schema: pa.Schema, keys: list[Any], rows: list[Any]) -> pa.Table:
    names = [field.name for field in schema if field.name != CLUSTER_ID.name]
    values_by_name: dict[str, Any] = dict(zip(names, zip(*map(attrgetter(*names), rows), strict=True), strict=True))
    columns = []
    for field in schema:
        values = values_by_name.get(field.name, keys)
        if pa.types.is_map(field.type):
            values = [list(value.items()) for value in values]
        plain = pa.int64() if pa.types.is_timestamp(field.type) else field.type
        columns.append(pa.array(values, plain).cast(field.type) if plain != field.type else pa.array(values, plain))
    return pa.table(columns, schema=schema)
