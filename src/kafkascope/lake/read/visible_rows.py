"""Reads the visible rows of a table: those whose ingest `captures` names, whichever tool wrote the file. An ingest that
is running, or was killed, has no visible rows."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from kafkascope.errors import InputError, NotFoundError
from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.file_names import pending
from kafkascope.lake.home import Lake
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.tables import CAPTURES_SCHEMA, DATE, INGEST_ID, LakeTable, recorded_names, table_named
from kafkascope.lake.write.commit import LANDING, find_table, transaction_version
from kafkascope.times import microseconds_of

CAPTURES = "captures"
_CALENDAR = tuple(microseconds_of(end) for end in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)))
FOLLOWS = "follows"
# Opening a table spends most of its time waiting for its log.
_OPENED_AT_ONCE = 8
# How many ingests may land while the tables are being opened.
_LOOKS = 10
# In the options of a file that was shorter before: its digest then.
GROWN_FROM = "grown_from"


def visible_ingests(lake: Lake) -> frozenset[str]:
    """The ingests that `captures` names."""
    return frozenset(row[INGEST_ID] for row in captures_rows(lake, [INGEST_ID]))


def visible_names(lake: Lake) -> frozenset[str]:
    """Values of `ingest_id` in visible rows: ingests, and the pending name of those that no other ingest resumes."""
    return _names(lake, find_table(lake, CAPTURES))


def superseded_names(lake: Lake) -> frozenset[str]:
    """The names of pending rows that another ingest has written whole."""
    rows = captures_rows(lake, [FOLLOWS])
    return frozenset(pending(name) for row in rows for name in row[FOLLOWS] or ())


def _names(lake: Lake, captures: DeltaTable | None) -> frozenset[str]:
    rows = _captures_rows(lake, captures, [INGEST_ID, FOLLOWS])
    named = frozenset(row[INGEST_ID] for row in rows)
    followed = frozenset(name for row in rows for name in row[FOLLOWS] or ())
    return named | frozenset(pending(name) for name in named - followed)


def open_as_of_now(lake: Lake, names: Iterable[str]) -> tuple[dict[str, DeltaTable], frozenset[str]]:
    """Those of the tables that exist, and the names of their visible rows, as of one moment. If an ingest lands in
    between, it starts over, because rows that the ingest supersedes then leave the tables."""
    needed = list(names)
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        for _ in range(_LOOKS):
            turn = _turn(find_table(lake, CAPTURES))
            opened = zip(needed, pool.map(lambda name: find_table(lake, name), needed), strict=True)
            tables = {name: table for name, table in opened if table is not None}
            # After the tables: `captures` names whatever compaction has merged by then.
            captures = find_table(lake, CAPTURES)
            if _turn(captures) == turn:
                break
    return tables, _names(lake, captures)


def _turn(captures: DeltaTable | None) -> int:
    return 0 if captures is None else transaction_version(captures, LANDING) or 0


def captures_rows(lake: Lake, columns: list[str]) -> list[dict[str, Any]]:
    """Rows of all recordings in the lake. A row without the name of its ingest belongs to none: it is refused."""
    return _captures_rows(lake, find_table(lake, CAPTURES), columns)


def _captures_rows(lake: Lake, table: DeltaTable | None, columns: list[str]) -> list[dict[str, Any]]:
    if table is None:
        return []
    place = lake.table(CAPTURES)
    with filesystem_errors(place.uri):
        content = ds.FileSystemDataset.from_paths(
            [f"{place.path}/{file.path}" for file in active_files(table)],
            schema=pa.schema([CAPTURES_SCHEMA.field(name) for name in columns]),
            format=ds.ParquetFileFormat(),
            filesystem=place.filesystem,
        ).to_table()
    rows: list[dict[str, Any]] = within_calendar(content).to_pylist()
    if INGEST_ID in columns and not all(row[INGEST_ID] for row in rows):
        raise InputError(f"{place.uri}: a row without {INGEST_ID}; kafkascope doesn't write such rows")
    return rows


def within_calendar(rows: pa.Table) -> pa.Table:
    """Impossible times become null: they couldn't be written."""
    for index, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            raw = rows.column(index).cast(pa.int64())
            known = pc.and_(pc.greater_equal(raw, _CALENDAR[0]), pc.less_equal(raw, _CALENDAR[1]))
            rows = rows.set_column(index, field, pc.if_else(known, raw, None).cast(field.type))
    return rows


def pending_rows(lake: Lake, name: str, ingests: AbstractSet[str], columns: list[str] | None = None) -> pa.Table:
    """The pending rows of these ingests in a table, visible or not; without the date."""
    delta = find_table(lake, name)
    table = known_table(name) if delta is None else table_as_stored(name, delta)
    names = {pending(name) for name in ingests}
    # Compaction leaves such files alone, other tools don't.
    files = [] if delta is None else [file for file in active_files(delta) if file.foreign or file.ingest in names]
    with filesystem_errors(lake.table(name).uri):
        return rows_of(lake, name, table.file_schema, files).to_table(columns=columns, filter=is_of(names))


def rows_of(lake: Lake, name: str, schema: pa.Schema, files: Iterable[ActiveFile]) -> ds.Dataset:
    """All rows of these files."""
    place = lake.table(name)
    return ds.FileSystemDataset.from_paths(
        [f"{place.path}/{file.path}" for file in files],
        schema=schema,
        format=ds.ParquetFileFormat(),
        filesystem=place.filesystem,
    )


def is_of(names: AbstractSet[str]) -> pc.Expression:
    return pc.field(INGEST_ID).isin(pa.array(sorted(names), pa.string()))


def is_visible(name: str, file: ActiveFile, names: AbstractSet[str]) -> bool:
    """If a file may have visible rows; if `must_filter` returns true, they are selected by their `ingest_id`."""
    return name == CAPTURES or file.ingest is None or file.ingest in names


def must_filter(table: LakeTable, file: ActiveFile, *, now: bool = True) -> bool:
    """If a file may have hidden rows. Rows that compaction has merged are visible `now`, but not to a reader that chose
    its names earlier."""
    return table.name != CAPTURES and INGEST_ID in table.schema.names and (file.foreign or (file.compacted and not now))


def visible_rows(lake: Lake, table: LakeTable, files: Iterable[ActiveFile], names: AbstractSet[str]) -> int:
    """How many rows of these files are visible. Only files of other tools are opened."""
    shown = [file for file in files if is_visible(table.name, file, names)]
    mixed = [file for file in shown if must_filter(table, file)]
    count = sum(file.rows for file in shown) - sum(file.rows for file in mixed)
    if mixed:
        with filesystem_errors(lake.table(table.name).uri):
            count += rows_of(lake, table.name, table.file_schema, mixed).count_rows(filter=is_of(names))
    return count


def visible_files(lake: Lake, name: str) -> list[str]:
    """Paths relative to the table's folder. Rows in files of other tools have to be selected by their `ingest_id`."""
    tables, names = open_as_of_now(lake, [name])
    return [file.path for table in tables.values() for file in active_files(table) if is_visible(name, file, names)]


def dataset(lake: Lake, name: str, ingests: AbstractSet[str] | None = None) -> ds.Dataset:
    """The visible rows as an Arrow dataset, for DuckDB, Polars and pyarrow; empty if the table doesn't exist yet. A
    filter on the date or the time opens only the files that can have such rows. `ingests` are `visible_names` of an
    earlier moment."""
    if ingests is None:
        tables, seen = open_as_of_now(lake, [name])
        delta = tables.get(name)
    else:
        delta, seen = find_table(lake, name), frozenset(ingests)
    table = known_table(name) if delta is None else table_as_stored(name, delta)
    files = [] if delta is None else [f for f in active_files(delta, table.time) if is_visible(name, f, seen)]
    place = lake.table(name)
    with filesystem_errors(place.uri):
        rows = ds.FileSystemDataset.from_paths(
            [f"{place.path}/{file.path}" for file in files],
            schema=table.schema,
            format=ds.ParquetFileFormat(),
            filesystem=place.filesystem,
            partitions=[holds(table, file) for file in files],
        )
    if any(must_filter(table, file, now=ingests is None) for file in files):
        return rows.filter(is_of(seen))
    return rows


def holds(table: LakeTable, file: ActiveFile) -> pc.Expression:
    """What is true of every row of a file."""
    known = pc.scalar(True)
    if table.time and file.date is not None:
        known = pc.field(DATE) == pa.scalar(file.date, pa.date32())
    if table.time and file.low is not None and file.high is not None:
        type_ = table.schema.field(table.time).type
        known &= pc.field(table.time) >= pa.scalar(file.low, type_)
        known &= pc.field(table.time) <= pa.scalar(file.high, type_)
    return known


def table_in(lake: Lake, name: str) -> LakeTable:
    """The table as the lake has it, which may be wider than in this kafkascope, or unknown to it."""
    delta = find_table(lake, name)
    return known_table(name) if delta is None else table_as_stored(name, delta)


def known_names() -> list[str]:
    """Names of all tables that a lake can have."""
    from kafkascope.lake.marts import KEPT, MARTS
    from kafkascope.lake.write.catalog_tables import CATALOG

    return sorted([*recorded_names(), *MARTS, *KEPT, *CATALOG])


def known_table(name: str) -> LakeTable:
    try:
        return table_named(name)
    except NotFoundError:
        from kafkascope.lake.marts import KEPT, MARTS
        from kafkascope.lake.write.catalog_tables import CATALOG

        made = {**MARTS, **KEPT, **CATALOG}
        if name not in made:
            raise
        return made[name]


def table_as_stored(name: str, delta: DeltaTable) -> LakeTable:
    schema = pa.schema(delta.schema().to_arrow())
    try:
        known = known_table(name)
    except NotFoundError:
        times = [field.name for field in schema if pa.types.is_timestamp(field.type)]
        dated = DATE in delta.metadata().partition_columns
        return LakeTable(name, schema, times[0] if dated and times else None)
    return LakeTable(name, schema, known.time, known.otherwise)
