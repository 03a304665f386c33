"""Finds the first rows of tables in the order of time. It reads little, however many files there are.

A file or row group that begins later than the last of these rows isn't opened. Columns that no filter needs are read
only for the row groups that have the rows.
"""

import heapq
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.home import Lake
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.read.visible_rows import (
    holds,
    is_of,
    is_visible,
    must_filter,
    open_as_of_now,
    table_as_stored,
    within_calendar,
)
from kafkascope.lake.tables import EXCHANGE_ID, INGEST_ID, LakeTable, table_named
from kafkascope.lake.write.files import NO_DATE
from kafkascope.times import microseconds_of

AT = "request_at"
# The only time of a response whose request isn't in the recording.
OTHERWISE = "response_at"
# Before and after every time that a column can have.
FIRST, LAST = -(2**63), 2**63 - 1


# Opening a table spends most of its time waiting for its log.
_OPENED_AT_ONCE = 8
# Columns added to those of a table.
_AT, _ID, _GROUP, _ROW = "_at", "_id", "_group", "_row"
_HITS = pa.schema([(_AT, pa.int64()), (_ID, pa.string()), (_GROUP, pa.int64()), (_ROW, pa.int64())])
_NO_HITS = _HITS.empty_table()
_ORDER = [(_AT, "ascending"), (_ID, "ascending")]


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a row in the order of time."""

    at: int
    exchange_id: str

    def __str__(self) -> str:
        return f"{self.at}-{self.exchange_id}"


@dataclass(frozen=True, slots=True)
class RowFilter:
    """`chosen` needs `columns`. From `since` (inclusive) until `until` (exclusive), in microseconds; None is an open
    end. `among` limits it to these exchanges."""

    chosen: pc.Expression | None = None
    columns: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    among: "Hits | None" = None

    def may_hold(self, low: int, high: int) -> bool:
        return (self.until is None or low < self.until) and (self.since is None or high >= self.since)


@dataclass(frozen=True, slots=True)
class TimedFile:
    """No row of it is before `low` or after `high`. If it has hidden rows, `shown` selects the others by their
    `ingest_id`."""

    low: int
    high: int
    schema: pa.Schema
    fragment: ds.Fragment
    shown: pc.Expression | None = None

    def groups(self) -> Iterator["TimedFile"]:
        """Its row groups, each as a file of its own."""
        with filesystem_errors(self.fragment.path):
            metadata = self.fragment.metadata
            names = metadata.schema.names
            times = [names.index(name) for name in (AT, OTHERWISE) if name in names]
            for number in range(metadata.num_row_groups):
                group = metadata.row_group(number)
                known = [
                    statistics
                    for statistics in (group.column(column).statistics for column in times)
                    if _has_bounds(statistics)
                ]
                low = max(self.low, min((bounds.min_raw for bounds in known), default=FIRST))
                high = min(self.high, max((bounds.max_raw for bounds in known), default=LAST))
                yield TimedFile(low, high, self.schema, self.fragment.subset(row_group_ids=[number]), self.shown)

    def read(self, columns: Iterable[str]) -> pa.Table:
        with filesystem_errors(self.fragment.path):
            return self.fragment.to_table(schema=self.schema, columns=list(columns))


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows by their places in row groups: `hits` has time, id, index of the group and row within it, in order."""

    hits: pa.Table
    groups: list[TimedFile]

    def __len__(self) -> int:
        return len(self.hits)

    def ids(self, times: pa.ChunkedArray) -> pa.Array:
        """Ids of the rows within these times."""
        bounds = pc.min_max(times).as_py()
        known = self.hits.column(_AT).to_numpy()
        first, behind = np.searchsorted(known, bounds["min"]), np.searchsorted(known, bounds["max"], "right")
        return self.hits.column(_ID).slice(first, behind - first).combine_chunks()

    def first(self, count: int) -> "Hits":
        return Hits(self.hits.slice(0, count), self.groups)

    def place(self, index: int) -> Place:
        return Place(self.hits.column(_AT)[index].as_py(), self.hits.column(_ID)[index].as_py())

    def rows(self, columns: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """The rows, in their order."""
        by_group: dict[int, list[tuple[int, int]]] = {}
        places = zip(self.hits.column(_GROUP).to_pylist(), self.hits.column(_ROW).to_pylist(), strict=True)
        for order, (number, row) in enumerate(places):
            by_group.setdefault(number, []).append((order, row))
        by_order: dict[int, dict[str, Any]] = {}
        for number, some in by_group.items():
            group = self.groups[number]
            read = within_calendar(group.read(columns or group.schema.names).take([row for _, row in some]))
            by_order.update(zip((order for order, _ in some), read.to_pylist(), strict=True))
        return [by_order[order] for order in range(len(self))]


def _has_bounds(statistics: Any) -> bool:
    return statistics is not None and bool(statistics.has_min_max)


def files_in_time(lake: Lake, names: Iterable[str]) -> dict[str, list[TimedFile]]:
    """The visible files of those tables that exist."""
    opened, seen = open_as_of_now(lake, names)
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        files = dict(zip(opened, pool.map(_files, opened, opened.values()), strict=True))
    return {
        name: [_timed(lake, table, schema, file, seen) for file in some if is_visible(name, file, seen)]
        for name, (table, schema, some) in files.items()
    }


def _files(name: str, delta: DeltaTable) -> tuple[LakeTable, pa.Schema, list[ActiveFile]]:
    table = table_as_stored(name, delta)
    # In a table written by an older kafkascope, columns added since are null.
    new = [field for field in table_named(name).schema if field.name not in table.schema.names]
    return table, pa.schema([*table.schema, *new]), active_files(delta, table.time)


def _timed(lake: Lake, table: LakeTable, schema: pa.Schema, file: ActiveFile, seen: frozenset[str]) -> TimedFile:
    place = lake.table(table.name)
    fragment = ds.ParquetFileFormat().make_fragment(
        f"{place.path}/{file.path}", filesystem=place.filesystem, partition_expression=holds(table, file)
    )
    low, high = FIRST, LAST
    if file.low is not None and file.high is not None:
        low, high = microseconds_of(file.low), microseconds_of(file.high)
    elif file.date is not None and file.date != NO_DATE:
        low = microseconds_of(datetime.combine(file.date, time(), UTC))
        high = low + 86_400_000_000
    return TimedFile(low, high, schema, fragment, is_of(seen) if must_filter(table, file) else None)


def first_rows(files: Iterable[TimedFile], row_filter: RowFilter, after: Place | None, count: int) -> Hits:
    """The first `count` rows after `after`."""
    waiting = [(file.low, number, False, file) for number, file in enumerate(files)]
    heapq.heapify(waiting)
    number = len(waiting)
    groups: list[TimedFile] = []
    parts: list[pa.Table] = []
    last: int | None = None
    while waiting:
        low, _, opened, file = heapq.heappop(waiting)
        if last is not None and low > last:
            break
        if not row_filter.may_hold(file.low, file.high) or (after is not None and file.high < after.at):
            continue
        if not opened:
            for group in file.groups():
                heapq.heappush(waiting, (group.low, number, True, group))
                number += 1
            continue
        more = _hits(file, len(groups), row_filter, after)
        if not len(more):
            continue
        groups.append(file)
        parts.append(more)
        if sum(map(len, parts)) >= count:
            parts = [_least(pa.concat_tables(parts), count)]
            last = pc.max(parts[0].column(_AT)).as_py()
    return Hits(pa.concat_tables([_NO_HITS, *parts]).sort_by(_ORDER), groups)


def count_rows(files: Iterable[TimedFile], row_filter: RowFilter) -> int:
    """How many rows match. Without a filter only a file's metadata is read, with one only the columns that it needs."""
    total = 0
    for file in files:
        if not row_filter.may_hold(file.low, file.high):
            continue
        inside = (row_filter.since is None or file.low >= row_filter.since) and (
            row_filter.until is None or file.high < row_filter.until
        )
        with filesystem_errors(file.fragment.path):
            if inside:
                parts = [part for part in (row_filter.chosen, file.shown) if part is not None]
                chosen = reduce(and_, parts) if parts else None
                total += file.fragment.scanner(schema=file.schema, filter=chosen).count_rows()
                continue
        total += sum(
            len(_hits(group, 0, row_filter, None))
            for group in file.groups()
            if row_filter.may_hold(group.low, group.high)
        )
    return total


def _least(hits: pa.Table, count: int) -> pa.Table:
    return hits.take(pc.select_k_unstable(hits, count, _ORDER)) if len(hits) > count else hits


def _hits(group: TimedFile, number: int, row_filter: RowFilter, after: Place | None) -> pa.Table:
    mixed = () if group.shown is None else (INGEST_ID,)
    read = group.read(dict.fromkeys((*row_filter.columns, AT, OTHERWISE, *mixed)))
    times = _times(read)
    rows = read.append_column(_AT, times).append_column(_ROW, pa.array(np.arange(len(read))))
    kept = _within(times, row_filter, after)
    if kept is not None:
        rows = rows.filter(kept)
    if group.shown is not None:
        rows = rows.filter(group.shown)
    if row_filter.chosen is not None and len(rows):
        rows = rows.filter(row_filter.chosen)
    if not len(rows):
        return _NO_HITS
    ids = read if EXCHANGE_ID in row_filter.columns else group.read([EXCHANGE_ID])
    hits = pa.table(
        [
            rows.column(_AT),
            ids.column(EXCHANGE_ID).take(rows.column(_ROW)),
            pa.repeat(pa.scalar(number, pa.int64()), len(rows)),
            rows.column(_ROW),
        ],
        schema=_HITS,
    )
    if row_filter.among is not None:
        hits = hits.filter(pc.is_in(hits[_ID], row_filter.among.ids(hits[_AT])))
    if after is None:
        return hits
    return hits.filter(pc.or_(pc.greater(hits[_AT], after.at), pc.greater(hits[_ID], after.exchange_id)))


def _within(times: pa.ChunkedArray, row_filter: RowFilter, after: Place | None) -> pa.ChunkedArray | None:
    since = max((bound for bound in (row_filter.since, after.at if after else None) if bound is not None), default=None)
    kept = None if since is None else pc.greater_equal(times, since)
    if row_filter.until is not None:
        before = pc.less(times, row_filter.until)
        kept = before if kept is None else pc.and_(kept, before)
    return kept


def _times(rows: pa.Table) -> pa.ChunkedArray:
    times = pc.coalesce(rows.column(AT).cast(pa.int64()), rows.column(OTHERWISE).cast(pa.int64()))
    return pc.fill_null(times, 0)
