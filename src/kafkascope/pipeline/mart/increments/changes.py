"""Compares a lake with what the marts were built from last: which ingests came or were superseded, and the earliest
time that they change. Counts of rows show whether anything else happened to a table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.file_names import PENDING
from kafkascope.lake.home import Lake
from kafkascope.lake.place import filesystem_errors, readable
from kafkascope.lake.read.visible_rows import is_of, is_visible, known_table, rows_of
from kafkascope.pipeline.mart.increments.checkpoints import NO_CHANGE
from kafkascope.times import microseconds_of

# The columns whose times matter to marts. Of connections they use the end: a row without one is of no use.
_TIMES = ("request_at", "response_at")
_ENDS = {"connections": ("closed_at",)}


@dataclass(frozen=True, slots=True)
class Times:
    """The first and last time of any column of a file, in microseconds; None if it has none, or isn't known."""

    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class Pending:
    """Rows of one ingest that a later one may write again, and their first time."""

    rows: int
    first: int


@dataclass(frozen=True, slots=True)
class Account:
    """`names` are those of visible rows. By table: `rows` without pending ones, pending ones by their name, and the
    files that have rows of several ingests."""

    names: frozenset[str]
    rows: Mapping[str, int] = field(default_factory=dict)
    pending: Mapping[str, Mapping[str, Pending]] = field(default_factory=dict)
    merged: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenTable:
    """The visible files of a table, with their times. `timeless`: rows without one are of use."""

    files: tuple[ActiveFile, ...]
    times: Mapping[str, Times]
    timeless: bool = True

    def since(self, start: int) -> list[ActiveFile]:
        """Files that may have something from then on, or without a time."""
        return [file for file in self.files if self._may_have(file, start)]

    def _may_have(self, file: ActiveFile, start: int) -> bool:
        last = self.times[file.path].last
        return file.foreign or (self.timeless if last is None else last >= start)


def open_files(table: DeltaTable | None, name: str, names: frozenset[str]) -> OpenTable:
    if table is None:
        return OpenTable((), {})
    times = _times(table, _ENDS.get(name, _TIMES))
    files = tuple(file for file in active_files(table) if is_visible(name, file, names))
    return OpenTable(files, {file.path: times[file.path] for file in files}, name not in _ENDS)


def _times(table: DeltaTable, named: Iterable[str]) -> dict[str, Times]:
    with readable(table.table_uri):
        adds = pa.table(table.get_add_actions(flatten=True))
    bounds: dict[str, list[list[object]]] = {}
    for bound in ("min", "max"):
        columns = (f"{bound}.{name}" for name in named)
        bounds[bound] = [adds.column(name).to_pylist() for name in columns if name in adds.column_names]
    paths = adds.column("path").to_pylist()
    return {
        str(path): Times(
            min(_moments(column[row] for column in bounds["min"]), default=None),
            max(_moments(column[row] for column in bounds["max"]), default=None),
        )
        for row, path in enumerate(paths)
    }


def _moments(values: Iterable[object]) -> list[int]:
    return [microseconds_of(value) for value in values if isinstance(value, datetime)]


def account_of(tables: Mapping[str, OpenTable], names: frozenset[str]) -> Account:
    rows: dict[str, int] = {}
    pending: dict[str, dict[str, Pending]] = {}
    for name, table in tables.items():
        rows[name] = sum(file.rows for file in table.files if not _is_pending(file))
        for file in filter(_is_pending, table.files):
            of_name = pending.setdefault(name, {})
            before = of_name.get(str(file.ingest), Pending(0, NO_CHANGE))
            first = table.times[file.path].first
            of_name[str(file.ingest)] = Pending(before.rows + file.rows, min(before.first, _or_beginning(first)))
    merged = {
        name: frozenset(file.path for file in table.files if file.ingest is None) for name, table in tables.items()
    }
    return Account(names, rows, pending, {name: paths for name, paths in merged.items() if paths})


def _is_pending(file: ActiveFile) -> bool:
    return file.ingest is not None and file.ingest.endswith(PENDING)


def _or_beginning(first: int | None) -> int:
    return 0 if first is None else first


@dataclass(frozen=True, slots=True)
class Change:
    """`first` is the earliest time of what changed, `NO_CHANGE` if that has none; `reason` why it isn't known; `tables`
    are those that did."""

    first: int
    reason: str | None = None
    tables: frozenset[str] = frozenset()


def change_between(lake: Lake, before: Account, tables: Mapping[str, OpenTable], now: Account) -> Change:
    came = now.names - before.names
    first, changed = NO_CHANGE, set[str]()
    for name, table in tables.items():
        new = [file for file in table.files if file.ingest in came]
        counts = [sum(file.rows for file in new if not _is_pending(file))]
        # Rows without any time are read every time.
        times = [table.times[file.path].first for file in new]
        # An ingest merges small files, its own too.
        merged = [file for file in table.files if file.ingest is None and file.path not in before.merged.get(name, ())]
        if merged and came:
            rows, at = _rows_of(lake, name, merged, came)
            counts.append(rows)
            times.append(at)
        if before.rows.get(name, 0) + sum(counts) != now.rows[name]:
            return Change(0, f"rows left or entered the table {name}")
        first = min((first, *(at for at in times if at is not None)))
        if new or sum(counts):
            changed.add(name)
        pending = now.pending.get(name, {})
        for of, was in before.pending.get(name, {}).items():
            if of not in now.names:
                first = min(first, was.first)
                changed.add(name)
            elif pending.get(of) != was:
                return Change(0, f"rows left the table {name}")
    return Change(first, tables=frozenset(changed))


def _rows_of(lake: Lake, name: str, files: list[ActiveFile], names: frozenset[str]) -> tuple[int, int | None]:
    """How many rows of files that were merged are of these ingests, and their first time."""
    table = known_table(name)
    columns = [column for column in _ENDS.get(name, _TIMES) if column in table.schema.names]
    with filesystem_errors(lake.table(name).uri):
        content = rows_of(lake, name, table.file_schema, files)
        count = content.count_rows(filter=is_of(names))
        rows = content.to_table(columns=columns, filter=is_of(names))
    lows = (pc.min(column.cast(pa.int64())).as_py() for column in rows.columns)
    return count, min((low for low in lows if low is not None), default=None)
