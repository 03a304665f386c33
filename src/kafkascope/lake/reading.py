"""A table of the lake in, its visible rows out: those of ingests that `captures` names. An ingest that is under way, or
was killed, shows nothing."""

from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from kafkascope.errors import InputError, NotFoundError
from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.commit import find_table
from kafkascope.lake.files import pending
from kafkascope.lake.home import Lake
from kafkascope.lake.place import told
from kafkascope.lake.tables import CAPTURES as CAPTURES_SCHEMA
from kafkascope.lake.tables import DATE, INGEST_ID, LakeTable, table_named

CAPTURES = "captures"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CALENDAR = tuple(
    (end - _EPOCH) // timedelta(microseconds=1)
    for end in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
)
FOLLOWS = "follows"
# In the options of a file that was shorter once: the digest that it had then.
GROWN_FROM = "grown_from"


def visible_ingests(lake: Lake) -> frozenset[str]:
    """Those that `captures` names."""
    return frozenset(row[INGEST_ID] for row in captures_rows(lake, [INGEST_ID]))


def visible_names(lake: Lake) -> frozenset[str]:
    """Names whose files show: ingests, and of those that no other goes on from what is pending too."""
    rows = captures_rows(lake, [INGEST_ID, FOLLOWS])
    named = frozenset(row[INGEST_ID] for row in rows)
    followed = frozenset(one for row in rows for one in row[FOLLOWS] or ())
    return named | frozenset(pending(one) for one in named - followed)


def captures_rows(lake: Lake, columns: list[str]) -> list[dict[str, Any]]:
    """Of every recording that is in the lake. A row without the name of its ingest is nobody's: it is refused."""
    table = find_table(lake, CAPTURES)
    if table is None:
        return []
    place = lake.table(CAPTURES)
    with told(place.uri):
        found = ds.FileSystemDataset.from_paths(
            [f"{place.path}/{file.path}" for file in active_files(table)],
            schema=pa.schema([CAPTURES_SCHEMA.field(name) for name in columns]),
            format=ds.ParquetFileFormat(),
            filesystem=place.filesystem,
        ).to_table()
    rows: list[dict[str, Any]] = of_a_calendar(found).to_pylist()
    if INGEST_ID in columns and not all(row[INGEST_ID] for row in rows):
        raise InputError(f"{place.uri}: a row without {INGEST_ID}; kafkascope writes no such row")
    return rows


def of_a_calendar(rows: pa.Table) -> pa.Table:
    """A time that no calendar has is null: nobody could write it."""
    for index, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            raw = rows.column(index).cast(pa.int64())
            known = pc.and_(pc.greater_equal(raw, _CALENDAR[0]), pc.less_equal(raw, _CALENDAR[1]))
            rows = rows.set_column(index, field, pc.if_else(known, raw, None).cast(field.type))
    return rows


def pending_rows(lake: Lake, name: str, ingests: AbstractSet[str], columns: list[str] | None = None) -> pa.Table:
    """What these ingests left pending in a table, whether it shows or not; without the date."""
    found = find_table(lake, name)
    table = _known(name) if found is None else table_as_found(name, found)
    names = {pending(one) for one in ingests}
    # Compaction leaves such files alone.
    files = [] if found is None else [file for file in active_files(found) if file.ingest in names]
    place = lake.table(name)
    with told(place.uri):
        return ds.FileSystemDataset.from_paths(
            [f"{place.path}/{file.path}" for file in files],
            schema=table.file_schema,
            format=ds.ParquetFileFormat(),
            filesystem=place.filesystem,
        ).to_table(columns=columns)


def is_visible(name: str, file: ActiveFile, ingests: AbstractSet[str]) -> bool:
    return name == CAPTURES or file.ingest is None or file.ingest in ingests


def visible_files(lake: Lake, name: str, ingests: AbstractSet[str] | None = None) -> list[str]:
    """Paths within the table's folder. Where `ingests` are given, rows of files that `must_filter` names have to be
    chosen by their `ingest_id` too."""
    table = find_table(lake, name)
    return [] if table is None else [file.path for file in _visible(lake, name, table, None, ingests)]


def must_filter(path: str) -> bool:
    """Whether a file may hold rows of ingests that came later than those that a reader has chosen."""
    return ActiveFile(path, 0, 0, None, None, None).compacted


def dataset(lake: Lake, name: str, ingests: AbstractSet[str] | None = None) -> ds.Dataset:
    """The visible rows as an Arrow dataset, for DuckDB, Polars and pyarrow; empty where the table is not there yet. A
    filter on the date or the time opens only the files that can have such rows."""
    found = find_table(lake, name)
    table = _known(name) if found is None else table_as_found(name, found)
    files = [] if found is None else _visible(lake, name, found, table.time, ingests)
    place = lake.table(name)
    with told(place.uri):
        rows = ds.FileSystemDataset.from_paths(
            [f"{place.path}/{file.path}" for file in files],
            schema=table.schema,
            format=ds.ParquetFileFormat(),
            filesystem=place.filesystem,
            partitions=[holds(table, file) for file in files],
        )
    if ingests is not None and name != CAPTURES and any(file.compacted for file in files):
        return rows.filter(pc.field(INGEST_ID).isin(pa.array(sorted(ingests), pa.string())))
    return rows


def _visible(
    lake: Lake, name: str, table: DeltaTable, time: str | None, ingests: AbstractSet[str] | None
) -> list[ActiveFile]:
    files = active_files(table, time)
    # After the table: what compaction has merged by then, `captures` names.
    seen = visible_names(lake) if ingests is None else ingests
    return [file for file in files if is_visible(name, file, seen)]


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
    """The table as it stands in the lake, which may be wider than this kafkascope knows it, or one that it does not."""
    found = find_table(lake, name)
    return _known(name) if found is None else table_as_found(name, found)


def _known(name: str) -> LakeTable:
    try:
        return table_named(name)
    except NotFoundError:
        from kafkascope.lake.catalog_tables import CATALOG
        from kafkascope.lake.marts import MARTS

        made = {**MARTS, **CATALOG}
        if name not in made:
            raise
        return made[name]


def table_as_found(name: str, found: DeltaTable) -> LakeTable:
    schema = pa.schema(found.schema().to_arrow())
    try:
        known = _known(name)
    except NotFoundError:
        times = [field.name for field in schema if pa.types.is_timestamp(field.type)]
        dated = DATE in found.metadata().partition_columns
        return LakeTable(name, schema, times[0] if dated and times else None)
    return LakeTable(name, schema, known.time, known.otherwise)
