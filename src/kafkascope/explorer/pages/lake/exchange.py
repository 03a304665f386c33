"""The page of one exchange of a lake: its columns, its request and its response."""

from typing import Any

import pyarrow.compute as pc

from kafkascope.capture.exchanges.facts import ENVELOPE
from kafkascope.errors import NotFoundError, UsageError
from kafkascope.explorer.facts.lake_values import plain
from kafkascope.explorer.page import Page
from kafkascope.lake.home import Lake
from kafkascope.lake.read.browse import bodies, exchange, is_time, place_of
from kafkascope.lake.read.time_ordered import RowFilter, files_in_time, first_rows
from kafkascope.lake.tables import DATE, EXCHANGE_ID, KEYS, body_table_name, message_of
from kafkascope.schema.catalog import apis

# Columns that a body repeats from its exchange.
_REPEATED = frozenset((*KEYS.names, "ingest_id", DATE))


def make(lake: Lake, exchange_id: str, at: str = "") -> Page:
    row = exchange_row(lake, exchange_id, at)
    facts = {
        "lake": lake.uri,
        "exchange": plain(row) | {"at": place_of(row).at},
        "bodies": [_body(name, body) for name, body in (bodies(lake, row) | _inside(lake, row)).items()],
    }
    return Page(f"{row_title(row)} {exchange_id}", facts, "One request with its response.")


def row_title(row: dict[str, Any]) -> str:
    """The catalog may not know the API."""
    return row["api"] or ("Response only" if row["api_key"] is None else f"API key {row['api_key']}")


def _inside(lake: Lake, row: dict[str, Any]) -> dict[str, dict[str, Any] | None]:
    """The message inside an Envelope is in the tables of its own API, and nothing records which."""
    if row["api_key"] != ENVELOPE:
        return {}
    requests = {body_table_name(f"{api}Request"): api for key, api in apis().items() if key != ENVELOPE}
    at = place_of(row).at
    selection = RowFilter(pc.field(EXCHANGE_ID) == row[EXCHANGE_ID], (EXCHANGE_ID,), at, at + 1)
    for name, files in files_in_time(lake, requests).items():
        if len(first_rows(files, selection, None, 1)):
            return bodies(lake, row | {"api": requests[name]})
    return {}


def exchange_row(lake: Lake, exchange_id: str, at: str) -> dict[str, Any]:
    if at and not is_time(at):
        raise UsageError(f"at: {at[:40]!r} isn't a time in microseconds; follow a link of the list")
    row = exchange(lake, exchange_id, int(at) if at else None) if exchange_id.isalnum() else None
    if row is None:
        raise NotFoundError(f"this lake has no exchange {exchange_id[:40]}")
    return row


def _body(table: str, body: dict[str, Any] | None) -> dict[str, Any]:
    if body is None:
        return {"table": table, "message": message_of(table), "version": None, "value": None}
    value = {name: plain(field) for name, field in body.items() if name not in _REPEATED}
    return {"table": table, "message": message_of(table), "version": body["api_version"], "value": value}
