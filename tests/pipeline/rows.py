"""Rows of a lake or of a reading, in a form to compare: what does not depend on how files were cut."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.exchanges.messages import Messages
from kafkascope.capture.reader import Reading
from kafkascope.columnar.decode import ERROR
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.shape import to_lake
from kafkascope.lake.tables import KEYS, body_table_name, message_of

# Of the files and the ingests, not of the traffic.
APART = {"ingest_id", "date", "capture_uri", "packet"}
Rows = dict[str, list[dict[str, Any]]]


def lake_rows(lake: str) -> Rows:
    """Exchanges and bodies by table."""
    home = open_lake(lake)
    names = [name for name in home.tables() if name == "exchanges" or message_of(name)]
    by_table = {name: _rows(dataset(home, name).to_table()) for name in names}
    return {name: rows for name, rows in by_table.items() if rows}


def read_rows(*paths: Path) -> Rows:
    """The same from the reader alone."""
    tables: dict[str, list[pa.Table]] = {}
    messages = Messages([name for name in KEYS.names if name != "api_version"])

    def keep(rows_of: Any) -> None:
        table = rows_of.table.filter(rows_of.table.column(ERROR).is_null())
        tables.setdefault(body_table_name(rows_of.name), []).append(to_lake(table.drop_columns([ERROR])))

    for batch in Reading([str(path) for path in paths]).batches():
        columns = to_arrow(batch)
        tables.setdefault("exchanges", []).append(pa.Table.from_batches([columns]))
        for rows_read in messages.add(batch, columns):
            keep(rows_read)
    for rows_read in messages.finish():
        keep(rows_read)
    return {name: _rows(pa.concat_tables(parts)) for name, parts in tables.items()}


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    plain = table.select([name for name in table.column_names if name not in APART])
    return sorted(plain.to_pylist(), key=lambda row: (row["exchange_id"], repr(row)))
