"""Builds a lake that grows by parts: each is a recorded lake's rows again, later and under other names."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import dataset, table_in
from kafkascope.lake.tables import INGEST_ID, recorded_names
from kafkascope.lake.write.commit import commit
from kafkascope.lake.write.files import Files, NewFile

# Between two copies of the recorded minutes, and copies in a part: an hour of a day.
_APART_US, COPIES = 300_000_000, 12
PART_US = 86_400_000_000
# What makes rows of another copy other connections and calls.
_NAMED = ("exchange_id", "connection_id")


def recorded_tables(source: Lake) -> dict[str, pa.Table]:
    """All rows of a lake by table, but for what a later ingest resumes."""
    names = [name for name in recorded_names() if name != "unfinished" and source.has(name)]
    return {name: rows for name in names if len(rows := dataset(source, name).to_table())}


def add_part(lake: Lake, source: Lake, tables: dict[str, pa.Table], part: int) -> None:
    ingest_id = f"{part:020x}"
    files = Files(lake, ingest_id)
    for copy in range(COPIES):
        for name, rows in tables.items():
            later = _later(rows, part * PART_US + copy * _APART_US, f"{part}-{copy}-", ingest_id)
            files.add(table_in(source, name), later)
    by_table: dict[str, list[NewFile]] = {}
    for file in files.close():
        by_table.setdefault(file.table, []).append(file)
    # Readers see an ingest once `captures` names it.
    for name in sorted(by_table, key=lambda name: name == "captures"):
        commit(lake, table_in(source, name), by_table[name], ingest_id)


def _later(rows: pa.Table, micros: int, prefix: str, ingest_id: str) -> pa.Table:
    columns: list[Any] = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        changed = column
        if pa.types.is_timestamp(field.type):
            changed = pc.add(column.cast(pa.int64()), micros).cast(field.type)
        elif field.name in _NAMED:
            changed = pc.binary_join_element_wise(pa.scalar(prefix), column, "")
        elif field.name == INGEST_ID:
            changed = pa.repeat(pa.scalar(ingest_id), len(rows))
        elif field.name == "capture_uri":
            changed = pc.binary_join_element_wise(column, pa.scalar(prefix), "-")
        columns.append(changed)
    return pa.table(columns, schema=rows.schema)


def bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))
