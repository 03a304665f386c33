"""Registers all tables of a lake in a DuckDB connection by their names: visible rows, as of one moment. A table that
the lake doesn't have yet is empty, so that a statement which works on one lake works on all."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.lake.home import Lake
from kafkascope.lake.read.former_names import former_names
from kafkascope.lake.read.topic_names import TOPIC, TOPIC_ID, TOPICS, TopicElement, topic_arrays
from kafkascope.lake.read.visible_rows import dataset, known_names, known_table, visible_names
from kafkascope.lake.tables import message_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# The column with topic ids and names, which no table has.
_MAP = "_topic_names"


def register_tables(connection: "DuckDBPyConnection", lake: Lake) -> list[str]:
    """Returns their names, in order."""
    seen, existing = visible_names(lake), set(lake.tables())
    names = sorted({*existing, *known_names()})
    topics = _topic_names(lake, seen) if TOPICS in existing else None
    for name in names:
        rows = dataset(lake, name, seen) if name in existing else known_table(name).schema.empty_table()
        arrays = topic_arrays(rows.schema) if topics is not None and message_of(name) else {}
        former = "".join(f", {column} AS {_quoted(former)}" for column, former in former_names(name).items())
        if not arrays and not former:
            connection.register(name, rows)
            continue
        view = connection.from_arrow(rows)
        if arrays:
            filled = ", ".join(f"{_filled(_quoted(column), arrays[column])} AS {_quoted(column)}" for column in arrays)
            view = view.cross(connection.from_arrow(topics)).project(f"* EXCLUDE ({_MAP}) REPLACE ({filled})")
        connection.register(name, view.project(f"*{former}"))
    return names


def _topic_names(lake: Lake, seen: frozenset[str]) -> pa.Table | None:
    """One row with the names of all topic ids; None if there are none."""
    known = pc.is_valid(pc.field(TOPIC_ID)) & pc.is_valid(pc.field(TOPIC))
    rows = dataset(lake, TOPICS, seen).to_table(columns=[TOPIC_ID, TOPIC], filter=known)
    names: Mapping[str, str] = dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    column = pa.array([list(names.items())], pa.map_(pa.string(), pa.string()))
    return pa.table({_MAP: column}) if names else None


def _quoted(name: str) -> str:
    return f'"{name}"'


def _filled(array: str, element: TopicElement, depth: int = 0) -> str:
    """An expression for the array with its elements' names filled in."""
    item = f"e{depth}"
    fields = {name: _filled(f"{item}.{_quoted(name)}", inner, depth + 1) for name, inner in element.arrays.items()}
    if element.name:
        fields[element.name] = f"coalesce({item}.{_quoted(element.name)}, {_MAP}[{item}.{TOPIC_ID}])"
    updates = ", ".join(f"{_quoted(name)} := {value}" for name, value in fields.items())
    return f"list_transform({array}, lambda {item}: struct_update({item}, {updates}))"
