"""Writes the SQL that registers a lake in a catalog of Spark: external Delta tables in one schema, and in another one
views of their visible rows, with comments."""

import os

from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.read.column_texts import column_texts
from kafkascope.lake.read.visible_rows import CAPTURES, table_in
from kafkascope.lake.tables import INGEST_ID

# An ingest's name is so long; a `p` after it marks rows that a later ingest may replace.
_NAME = 20


def catalog_sql(lake: str | os.PathLike[str] | Lake, schema: str = "kafka") -> list[str]:
    """Statements, to be run in this order: the tables go to the schema `{schema}_tables`, the views to `schema`. Spark
    needs Delta's jar for them. Run them again when the lake has new tables, or tables new columns."""
    home = lake if isinstance(lake, Lake) else open_lake(lake)
    tables = f"{schema}_tables"
    statements = [f"CREATE SCHEMA IF NOT EXISTS {_name(word)}" for word in (tables, schema)]
    for name in home.tables():
        place = home.table(name).uri.replace("s3://", "s3a://")
        table = f"{_name(tables)}.{_name(name)}"
        statements.append(f"CREATE TABLE IF NOT EXISTS {table} USING delta LOCATION {_text(place)}")
        columns = table_in(home, name).schema.names
        texts = column_texts(name, columns)
        listed = ", ".join(
            _name(word) + (f" COMMENT {_text(texts[word])}" if word in texts else "") for word in columns
        )
        rows = f"SELECT {', '.join(map(_name, columns))} FROM {table}"  # noqa: S608 - names of our own
        if INGEST_ID in columns and name != CAPTURES:
            visible = f"SELECT {INGEST_ID} FROM {_name(tables)}.{CAPTURES}"  # noqa: S608
            rows += f" WHERE left({INGEST_ID}, {_NAME}) IN ({visible})"
        statements.append(f"CREATE OR REPLACE VIEW {_name(schema)}.{_name(name)} ({listed}) AS {rows}")
    return statements


def _name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def _text(text: str) -> str:
    """A literal of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
