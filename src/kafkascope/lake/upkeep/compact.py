"""Merges the small files of each day into larger ones; everyone who reads or ingests meanwhile keeps seeing the same
rows."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.dataset as ds

from kafkascope.errors import InputError
from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.file_names import COMPACTED, PENDING
from kafkascope.lake.home import Lake
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.read.visible_rows import is_visible, superseded_names, table_in, visible_names
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.upkeep.superseded import without
from kafkascope.lake.write.commit import find_table, maintain
from kafkascope.lake.write.files import NO_DATE, Files, discard

# What Spark reads in one task (spark.sql.files.maxPartitionBytes).
TARGET_BYTES = 128 << 20
# Files of half that size are left alone: merging them again would gain little.
_SMALL_BYTES = TARGET_BYTES // 2
# A day may have this many files without harm.
MOST_SMALL = 8
_LOOKS = 8


@dataclass(frozen=True, slots=True)
class Merged:
    table: str
    date: date | None
    files: int
    bytes_before: int
    bytes_after: int
    rows: int


def compact(
    lake: Lake, names: Iterable[str] | None = None, *, most_small: int = MOST_SMALL, target_bytes: int = TARGET_BYTES
) -> list[Merged]:
    """Merges only files of visible ingests, once the rows that they supersede are out. If another process changes the
    same files, this one backs off."""
    merged: list[Merged] = []
    selected = list(lake.tables() if names is None else names)
    superseded = superseded_names(lake)

    def small_of(name: str) -> list[ActiveFile]:
        files = without(lake, name, superseded)
        return files if len(files) > most_small else []

    # Most tables have nothing to merge, and opening them waits for the store.
    with ThreadPoolExecutor(_LOOKS) as pool:
        several = [(name, files) for name, files in zip(selected, pool.map(small_of, selected), strict=True) if files]
    seen = visible_names(lake) if several else frozenset()
    for name, files_of in several:
        for files in _portions(name, files_of, seen, most_small, target_bytes):
            done = _merge(lake, table_in(lake, name), files)
            if done is None:
                break
            merged.append(done)
    return merged


def _portions(
    name: str, files: list[ActiveFile], seen: frozenset[str], most_small: int, target_bytes: int
) -> Iterator[list[ActiveFile]]:
    """Groups of files, each to be merged into one."""
    days: dict[date | None, list[ActiveFile]] = {}
    for file in files:
        # The files of a mart belong to its writer, those of other tools to them. Rows without a date expire with their
        # ingest, and pending rows go when another ingest resumes theirs, so they stay separate.
        whole = file.ingest is not None and not file.ingest.endswith(PENDING)
        ours = file.compacted or (whole and is_visible(name, file, seen))
        if ours and file.size < target_bytes // 2 and file.date != NO_DATE:
            days.setdefault(file.date, []).append(file)
    for small in days.values():
        if len(small) <= most_small:
            continue
        portion: list[ActiveFile] = []
        for file in small:
            portion.append(file)
            if sum(file.size for file in portion) >= target_bytes:
                yield portion
                portion = []
        if len(portion) > 1:
            yield portion


def _merge(lake: Lake, table: LakeTable, files: list[ActiveFile]) -> Merged | None:
    delta = find_table(lake, table.name)
    if delta is None or not {file.path for file in files} <= {file.path for file in active_files(delta)}:
        return None
    writer = Files(lake, "", COMPACTED)
    try:
        for rows in _rows(lake, table, files):
            writer.add(table, rows)
        made = writer.close()
    except BaseException:
        writer.abort()
        raise
    count = sum(file.rows for file in files)
    if sum(file.rows for file in made) != count or len(made) != 1:
        discard(lake, made)
        raise InputError(
            f"{lake.table(table.name).uri}: {len(files)} files don't have the {count} rows that its log reports"
        )
    if not maintain(delta, files, made, data_change=False):
        discard(lake, made)
        return None
    return Merged(table.name, files[0].date, len(files), sum(file.size for file in files), made[0].size, count)


def _rows(lake: Lake, table: LakeTable, files: list[ActiveFile]) -> Iterator[pa.Table]:
    place = lake.table(table.name)
    with filesystem_errors(place.uri):
        rows = ds.FileSystemDataset.from_paths(
            [f"{place.path}/{file.path}" for file in files],
            schema=table.file_schema,
            format=ds.ParquetFileFormat(),
            filesystem=place.filesystem,
        )
        # One file after another, with little read-ahead: a portion is large when decompressed.
        for batch in rows.to_batches(batch_readahead=2, fragment_readahead=1):
            yield pa.Table.from_batches([batch], table.file_schema)
