"""Writes tables as Parquet files that are named after their ingest, and lists them for the commit. Nothing is in the
lake until the commit names it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafkascope.errors import KafkascopeError
from kafkascope.lake.file_names import INGEST_PREFIX
from kafkascope.lake.home import Lake
from kafkascope.lake.inside import inside
from kafkascope.lake.place import Place, filesystem_errors
from kafkascope.lake.tables import DATE, EXCHANGE_ID, INGEST_ID, LakeTable
from kafkascope.lake.write.statistics import Statistics

# Rows per row group, as a minimum: enough to be worth its own statistics, few enough to skip by the hour.
GROUP_ROWS = 65_536
# Bytes that wait for a row group to fill, over all tables of a writer. Twice as much makes files a tenth smaller, but
# until the limit is reached a task's memory grows with its input.
MOST_WAITING_BYTES = 16 << 20
# Files that a writer keeps open, one per table and day: most systems allow a process 1,024.
MOST_OPEN = 256
# Row groups per file, some hundred megabytes: the footer stays in memory until the file ends, a kilobyte per group and
# column.
_MOST_GROUPS = 128
COMPRESSION = "zstd"
COMPRESSION_LEVEL = 1
# Queries by the hour need no finer order.
MOST_DISORDER_US = 60_000_000
# The day of rows without a time, or with an impossible one.
NO_DATE = date(1970, 1, 1)
_DAY_US = 86_400_000_000
_FIRST_DAY, _LAST_DAY = (date.min - NO_DATE).days, (date.max - NO_DATE).days

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file of a table, not committed yet. `path` is relative to the table's folder."""

    table: str
    path: str
    size: int
    rows: int
    date: str | None
    stats: str

    def place(self, lake: Lake) -> Place:
        return inside(lake.table(self.table), self.path)


@dataclass(slots=True)
class _Waiting:
    table: LakeTable
    parts: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    size: int = 0


@dataclass(slots=True)
class _Open:
    table: LakeTable
    writer: pq.ParquetWriter
    stream: Any
    path: str
    day: str | None
    statistics: Statistics
    rows: int = 0
    groups: int = 0


class Files:
    """One task's files. `add` takes rows of any table; `close` returns the list, `abort` deletes them. With a
    `prefix` other than an ingest's, the files belong to no ingest."""

    def __init__(self, lake: Lake, ingest_id: str, prefix: str | None = None) -> None:
        self._lake = lake
        self._ingest_id = ingest_id
        self._prefix = f"{INGEST_PREFIX}{ingest_id}" if prefix is None else prefix
        self._waiting: dict[str, _Waiting] = {}
        self._size = 0
        # In the order of their last use.
        self._open: dict[tuple[str, str | None], _Open] = {}
        self._done: list[NewFile] = []

    def add(self, table: LakeTable, rows: pa.Table) -> None:
        if not len(rows):
            return
        waiting = self._waiting.setdefault(table.name, _Waiting(table))
        waiting.parts.append(rows)
        waiting.rows += len(rows)
        size = rows.nbytes
        waiting.size += size
        self._size += size
        if waiting.rows >= GROUP_ROWS:
            self._flush(waiting)
        while self._size > MOST_WAITING_BYTES:
            self._flush(max(self._waiting.values(), key=lambda part: part.size))

    def close(self) -> list[NewFile]:
        for waiting in list(self._waiting.values()):
            if waiting.rows:
                self._flush(waiting)
        for key in list(self._open):
            self._finish(key)
        return self._done

    def abort(self) -> None:
        """Cleans up after a failure: no file stays, as far as the filesystem still allows."""
        self._waiting, self._size = {}, 0
        for file in self._open.values():
            with suppress(OSError, pa.ArrowException):
                file.writer.close()
            with suppress(OSError, pa.ArrowException):
                file.stream.close()
        left = [NewFile(file.table.name, file.path, 0, 0, file.day, "") for file in self._open.values()]
        discard(self._lake, [*left, *self._done])
        self._open, self._done = {}, []

    def _flush(self, waiting: _Waiting) -> None:
        table = waiting.table
        rows = pa.concat_tables(waiting.parts)
        self._size -= waiting.size
        waiting.parts, waiting.rows, waiting.size = [], 0, 0
        if INGEST_ID not in rows.column_names:
            rows = rows.append_column(INGEST_ID, _same(self._ingest_id, len(rows)))
        rows = rows.select(table.file_schema.names)
        if table.time is None:
            self._write(table, None, rows)
            return
        times, has_time = _times(rows, table)
        rows, times, has_time = _in_time(rows, times, has_time)
        days = np.where(has_time, times // _DAY_US, 0)
        days[(days < _FIRST_DAY) | (days > _LAST_DAY)] = 0
        distinct = np.unique(days)
        for day in distinct:
            of_day = rows if len(distinct) == 1 else rows.filter(pa.array(days == day))
            self._write(table, (NO_DATE + timedelta(days=int(day))).isoformat(), of_day)

    def _write(self, table: LakeTable, day: str | None, rows: pa.Table) -> None:
        file = self._open.pop((table.name, day), None) or self._begin(table, day)
        self._open[table.name, day] = file
        with filesystem_errors(self._lake.uri):
            file.writer.write_table(rows, row_group_size=4 * GROUP_ROWS)
        file.rows += len(rows)
        file.groups += 1
        file.statistics.add(rows)
        if file.groups == _MOST_GROUPS:
            self._finish((table.name, day))
        elif len(self._open) > MOST_OPEN:
            self._finish(next(iter(self._open)))

    def _begin(self, table: LakeTable, day: str | None) -> _Open:
        name = f"{self._prefix}-{uuid4().hex}.parquet"
        path = name if day is None else f"{DATE}={day}/{name}"
        place = inside(self._lake.table(table.name), path)
        with filesystem_errors(place.uri):
            if place.local:
                place.filesystem.create_dir(place.path.rsplit("/", 1)[0], recursive=True)
            stream = place.filesystem.open_output_stream(place.path)
            writer = pq.ParquetWriter(
                stream,
                table.file_schema,
                compression=COMPRESSION,
                compression_level=COMPRESSION_LEVEL,
                use_dictionary=_repeating(table.file_schema),
                coerce_timestamps="us",
            )
        return _Open(table, writer, stream, path, day, Statistics(table.file_schema))

    def _finish(self, key: tuple[str, str | None]) -> None:
        file = self._open[key]
        with filesystem_errors(self._lake.uri):
            file.writer.close()
            size = file.stream.tell()
            file.stream.close()
        del self._open[key]

        def read(column: str) -> pa.Table:
            place = inside(self._lake.table(file.table.name), file.path)
            with filesystem_errors(place.uri):
                return pq.read_table(place.path, columns=[column], filesystem=place.filesystem, partitioning=None)

        text = file.statistics.text(file.writer.writer.metadata, read)
        self._done.append(NewFile(file.table.name, file.path, size, file.rows, file.day, text))


def discard(lake: Lake, files: list[NewFile]) -> None:
    """Deletes files that no commit will name. What can't be deleted now is left to `vacuum`."""
    for file in files:
        with suppress(KafkascopeError):
            file.place(lake).delete()


def _repeating(schema: pa.Schema) -> list[str]:
    """Columns worth a dictionary. Offsets, times and the ids of exchanges hardly repeat: trying takes a tenth of the
    writing time, and makes larger files."""
    return [name for field in schema for name, kind in _leaves(field.name, field.type) if _may_repeat(name, kind)]


def _leaves(name: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{name}.{field.name}", field.type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{name}.list.element", kind.value_type)
    else:
        yield name, kind


def _may_repeat(name: str, kind: pa.DataType) -> bool:
    return not (name == EXCHANGE_ID or pa.types.is_timestamp(kind) or pa.types.is_int64(kind))


def _same(word: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(word, pa.string()), count)


def _times(rows: pa.Table, table: LakeTable) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The time of each row, in microseconds, and whether it is known."""
    moments = rows.column(table.time).cast(pa.int64())
    if table.otherwise:
        moments = pc.coalesce(moments, rows.column(table.otherwise).cast(pa.int64()))
    return pc.fill_null(moments, 0).to_numpy(), pc.is_valid(moments).to_numpy()


def _in_time(
    rows: pa.Table, times: Ints, has_time: npt.NDArray[np.bool_]
) -> tuple[pa.Table, Ints, npt.NDArray[np.bool_]]:
    """Sorts rows that come connection by connection. Rows that a task met in recorded order stay: moving nested rows
    costs as much as writing them, and queries by the hour skip row groups as well."""
    known = times[has_time]
    if (np.maximum.accumulate(known) - known).max(initial=0) <= MOST_DISORDER_US:
        return rows, times, has_time
    order = np.argsort(times, kind="stable")
    return rows.take(pa.array(order)), times[order], has_time[order]
