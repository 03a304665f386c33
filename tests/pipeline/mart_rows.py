"""A lake in, rows of its marts out: as `health/` makes them, times as whole microseconds."""

from dataclasses import fields
from typing import Any, TypeVar

import pyarrow as pa

from kafkascope.lake.home import open_lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.read.visible_rows import dataset

Row = TypeVar("Row")
Plain = dict[str, Any]


def mart(lake: str, name: str, **filters: Any) -> list[Plain]:
    """In the order of their first time; `wanted` are values that columns have to have."""
    table = dataset(open_lake(lake), name).to_table()
    rows = [row for row in plain_rows(table) if all(row[key] == value for key, value in filters.items())]
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    return sorted(rows, key=lambda row: [row[name] or 0 for name in times[:1]])


def plain_rows(table: pa.Table) -> list[Plain]:
    plain = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in table.columns]
    return [_plain(row) for row in pa.table(plain, names=table.column_names).to_pylist()]


def _plain(row: Plain) -> Plain:
    """A map comes as pairs."""
    return {
        key: dict(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value
        for key, value in row.items()
    }


def rows_of(kind: type[Row], rows: list[Plain]) -> list[Row]:
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return [kind(**{name: row[name] for name in names}) for row in rows]


def all_marts(lake: str) -> dict[str, list[str]]:
    """To compare whole lakes: rows in no order."""
    return {name: sorted(map(repr, mart(lake, name))) for name in MARTS}
