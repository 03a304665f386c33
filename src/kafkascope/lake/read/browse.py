"""Reads one page of a lake's exchanges in the order of time, with filters. It reads little, however large the lake
is."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

import pyarrow.compute as pc

from kafkascope.errors import UsageError
from kafkascope.lake.home import Lake
from kafkascope.lake.read.time_ordered import (
    AT,
    FIRST,
    LAST,
    OTHERWISE,
    Hits,
    Place,
    RowFilter,
    TimedFile,
    count_rows,
    files_in_time,
    first_rows,
)
from kafkascope.lake.tables import EXCHANGE_ID, body_table, body_table_name
from kafkascope.limits import MAX_KEPT_TOTALS
from kafkascope.schema.catalog import apis
from kafkascope.times import microseconds_of

EXCHANGES = "exchanges"
_GROUP = "group_id"
ANY_ERROR = "any"
# How many of a group's exchanges are looked up at a time: few at first, nearly all if few of them match.
_LOOKED_UP, _MORE, _MOST_LOOKED_UP = 500, 2_000, 1_000_000


@dataclass(frozen=True, slots=True)
class ExchangeFilters:
    """`client` may have * and ?; `error` is a name, or `any`; times are microseconds, `until` is exclusive."""

    api: str = ""
    client: str = ""
    group: str = ""
    error: str = ""
    status: str = ""
    since: int | None = None
    until: int | None = None
    slower_us: int | None = None


def parse_place(text: str) -> Place:
    at, _, exchange_id = text.rpartition("-")
    if not is_time(at) or not exchange_id.isalnum():
        raise UsageError(f"{text[:40]!r} isn't a place in a list of exchanges; follow the links of the list")
    return Place(int(at), exchange_id)


def is_time(text: str) -> bool:
    """If it's a time in microseconds."""
    return re.fullmatch(r"-?[0-9]{1,19}", text) is not None and FIRST < int(text) < LAST


@dataclass(frozen=True, slots=True)
class Slice:
    """`total` is the number of all matches; None if it needs a lookup of each exchange: a group combined with another
    filter."""

    rows: list[dict[str, Any]]
    after: Place | None  # where the next slice begins; None at the end
    total: int | None = None


def exchanges(
    lake: Lake, filters: ExchangeFilters, after: Place | None, count: int, columns: list[str] | None = None
) -> Slice:
    """The first `count` rows after `after`, with these columns or all."""
    files = files_in_time(lake, [*(_naming_groups(filters.api) if filters.group else ()), EXCHANGES])
    of_exchanges = files.pop(EXCHANGES, [])
    if filters.group:
        naming = [file for some in files.values() for file in some]
        listed = _of_group(of_exchanges, naming, filters, after, count, columns)
        looked_up = filters.error or filters.status or filters.slower_us is not None
        return listed if looked_up else replace(listed, total=_total(lake, naming, filters, _naming_filter(filters)))
    row_filter = _row_filter(filters)
    hits = first_rows(of_exchanges, row_filter, after, count + 1)
    total = _total(lake, of_exchanges, filters, row_filter)
    return Slice(hits.first(count).rows(columns), hits.place(count - 1) if len(hits) > count else None, total)


# Totals by lake, filters and files: a file never changes.
_TOTALS: dict[bytes, int] = {}


def _total(lake: Lake, files: list[TimedFile], filters: ExchangeFilters, row_filter: RowFilter) -> int:
    if any(file.shown is not None for file in files):
        # Which rows of another tool's file are visible may change without the file.
        return count_rows(files, row_filter)
    names = sorted(file.fragment.path for file in files)
    key = blake2b(repr((lake.id, filters, names)).encode(errors="surrogatepass"), digest_size=16).digest()
    total = _TOTALS.get(key)
    if total is None:
        total = count_rows(files, row_filter)
        while len(_TOTALS) >= MAX_KEPT_TOTALS:
            _TOTALS.pop(next(iter(_TOTALS)), None)
        _TOTALS[key] = total
    return total


def exchange(lake: Lake, exchange_id: str, at: int | None = None) -> dict[str, Any] | None:
    """One row; if its time is known, only the row groups of that time are opened."""
    files = files_in_time(lake, [EXCHANGES]).get(EXCHANGES, [])
    for since, until in ([(at, at + 1)] if at is not None else []) + [(None, None)]:
        row_filter = RowFilter(pc.field(EXCHANGE_ID) == exchange_id, (EXCHANGE_ID,), since, until)
        rows = first_rows(files, row_filter, None, 1).rows()
        if rows:
            return rows[0]
    return None


def bodies(lake: Lake, row: dict[str, Any]) -> dict[str, dict[str, Any] | None]:
    """Table to this exchange's row, for request and response; None if the lake doesn't have it."""
    names = [body_table_name(f"{row['api']}{kind}") for kind in ("Request", "Response")] if row["api"] else []
    at = place_of(row).at
    row_filter = RowFilter(pc.field(EXCHANGE_ID) == row[EXCHANGE_ID], (EXCHANGE_ID,), at, at + 1)
    rows_by_table: dict[str, dict[str, Any] | None] = {}
    for name, files in files_in_time(lake, names).items():
        rows = first_rows(files, row_filter, None, 1).rows()
        rows_by_table[name] = rows[0] if rows else None
    return rows_by_table


def place_of(row: dict[str, Any]) -> Place:
    moment: datetime | None = row[AT] or row[OTHERWISE]
    return Place(0 if moment is None else microseconds_of(moment), row[EXCHANGE_ID])


def _row_filter(filters: ExchangeFilters) -> RowFilter:
    """The filter for `exchanges`; the group is handled separately."""
    parts: dict[str, pc.Expression] = {}
    for column, value in (("api", filters.api), ("status", filters.status)):
        if value:
            parts[column] = pc.field(column) == value
    if filters.client:
        parts["client_id"] = _like("client_id", filters.client)
    if filters.error == ANY_ERROR:
        parts["error_code"] = pc.field("error_code") != 0
    elif filters.error:
        parts["error"] = pc.field("error") == filters.error
    if filters.slower_us is not None:
        parts["latency_us"] = pc.field("latency_us") >= filters.slower_us
    return _all(parts, filters.since, filters.until)


def _like(column: str, pattern: str) -> pc.Expression:
    if "*" not in pattern and "?" not in pattern:
        return pc.field(column) == pattern
    plain = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return pc.match_like(pc.field(column), plain.replace("*", "%").replace("?", "_"))


def _all(parts: dict[str, pc.Expression], since: int | None, until: int | None) -> RowFilter:
    whole: pc.Expression | None = None
    for part in parts.values():
        whole = part if whole is None else whole & part
    return RowFilter(whole, tuple(parts), since, until)


def _of_group(
    of_exchanges: list[TimedFile],
    naming: list[TimedFile],
    filters: ExchangeFilters,
    after: Place | None,
    count: int,
    columns: list[str] | None,
) -> Slice:
    """The group is in the requests' own tables. Their exchanges are looked up until there are enough."""
    kept: list[dict[str, Any]] = []
    ends: list[Place] = []
    at, step = after, _LOOKED_UP
    while len(kept) <= count:
        places = first_rows(naming, _naming_filter(filters), at, step)
        if not len(places):
            break
        more = first_rows(of_exchanges, _looked_up_filter(filters, places), None, count + 1 - len(kept))
        kept += more.rows(columns)
        ends += [more.place(index) for index in range(len(more))]
        at, step = places.place(-1), min(_MORE * step, _MOST_LOOKED_UP)
    return Slice(kept[:count], ends[count - 1] if len(kept) > count else None)


def _naming_groups(api: str) -> list[str]:
    tables = [body_table(f"{name}Request") for name in apis().values() if not api or name == api]
    return [table.name for table in tables if _GROUP in table.schema.names]


def _naming_filter(filters: ExchangeFilters) -> RowFilter:
    parts = {_GROUP: pc.field(_GROUP) == filters.group}
    if filters.client:
        parts["client_id"] = _like("client_id", filters.client)
    if filters.error and filters.error != ANY_ERROR:
        parts["error"] = pc.field("error") == filters.error
    return _all(parts, filters.since, filters.until)


def _looked_up_filter(filters: ExchangeFilters, places: Hits) -> RowFilter:
    row_filter = _row_filter(filters)
    return RowFilter(row_filter.chosen, row_filter.columns, places.place(0).at, places.place(-1).at + 1, places)
