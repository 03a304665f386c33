"""Lists the rows of a table of log directories, page by page: batches, segments, and Kafka's own records decoded."""

import json
from typing import Any
from urllib.parse import urlencode

from kafkascope.errors import NotFoundError, UsageError
from kafkascope.explorer.facts.lake_values import plain
from kafkascope.explorer.page import Page
from kafkascope.lake.home import Lake
from kafkascope.lake.read.log_rows import LogFilters, listed_tables, log_rows, offset_column
from kafkascope.limits import MAX_LISTED_EXCHANGES
from kafkascope.schema.names import clip

RECORD_QUERY = ("topic", "partition", "broker", "offset", "skip")
# Columns that name the row; the others are its content.
_PLACE = ("broker", "topic", "partition")
_LEFT_OUT = frozenset({"ingest_id", "date", "_unknown_tags"})
_LONGEST = 249
_MOST_SKIPPED = 100_000


def make(lake: Lake, *, table: str, **values: str) -> Page:
    if table not in listed_tables() or not lake.has(table):
        raise NotFoundError(f"this lake has no records in a table {clip(table)}; the overview lists its tables")
    values = {name: values.get(name, "").strip()[:_LONGEST] for name in RECORD_QUERY}
    filters = LogFilters(values["topic"], *(_number(values[name], name) for name in ("partition", "broker", "offset")))
    skip = _number(values["skip"], "skip") or 0
    if skip > _MOST_SKIPPED:
        raise UsageError(f"skip: pages end after {_MOST_SKIPPED:,} rows; choose a topic, a partition or an offset")
    rows, more = log_rows(lake, table, filters, skip, MAX_LISTED_EXCHANGES)
    asked = {name: value for name, value in values.items() if value and name != "skip"}
    offset = offset_column(table)
    facts: dict[str, Any] = {
        "lake": lake.uri,
        "table": table,
        "asked": values,
        "filtered": bool(asked),
        "rows": [_row(plain(row), offset) for row in rows],
        "skip": skip,
        "next": urlencode(asked | {"skip": str(skip + len(rows))}) if more and rows else None,
        "previous": urlencode(asked | {"skip": str(max(0, skip - MAX_LISTED_EXCHANGES))}) if skip else None,
    }
    return Page(table, facts, f"Rows of {table}: what brokers have on their disks.")


def _row(row: dict[str, Any], offset: str) -> dict[str, Any]:
    """`content` are the columns that say something, as JSON where they are nested."""
    apart = {*_PLACE, offset, "written_at", *_LEFT_OUT}
    content = {
        name: json.dumps(_known(value), ensure_ascii=False) if isinstance(value, dict | list) else value
        for name, value in row.items()
        if name not in apart and value is not None
    }
    place = {name: row[name] for name in _PLACE}
    return {**place, "offset": row[offset], "written_at": row.get("written_at"), "content": content}


def _known(value: Any) -> Any:
    """Without columns that are null."""
    if isinstance(value, dict):
        return {name: _known(item) for name, item in value.items() if item is not None and name not in _LEFT_OUT}
    return [_known(item) for item in value] if isinstance(value, list) else value


def _number(text: str, name: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise UsageError(f"{name}: {text[:40]!r} isn't a number from 0 on")
    return int(text)
