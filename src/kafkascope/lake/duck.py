"""Makes all tables of a lake known to a DuckDB connection by their names: visible rows, as of one moment. A table that
the lake doesn't have yet is empty, so that a statement which works on one lake works on all."""

from typing import TYPE_CHECKING

from kafkascope.lake.home import Lake
from kafkascope.lake.reading import dataset, known_names, known_table, visible_names

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def register_tables(connection: "DuckDBPyConnection", lake: Lake) -> list[str]:
    """Their names, in order."""
    seen, there = visible_names(lake), set(lake.tables())
    names = sorted({*there, *known_names()})
    for name in names:
        rows = dataset(lake, name, seen) if name in there else known_table(name).schema.empty_table()
        connection.register(name, rows)
    return names
