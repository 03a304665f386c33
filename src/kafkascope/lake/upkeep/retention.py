"""Removes what a lake no longer needs: leftovers of ingests that died, days before a date, files that no log names.
Readers see each table as before or as after."""

import json
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow import fs

from kafkascope.errors import InputError
from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.file_names import ingest_of, pending
from kafkascope.lake.home import DELTA_LOG, Lake
from kafkascope.lake.inside import inside
from kafkascope.lake.place import Place, readable
from kafkascope.lake.read.visible_rows import (
    CAPTURES,
    dataset,
    superseded_names,
    table_in,
    visible_ingests,
    visible_names,
)
from kafkascope.lake.tables import table_named
from kafkascope.lake.upkeep.foreign import divide, rows_by_name
from kafkascope.lake.write.commit import ATTEMPTS, MAINTENANCE, commit, find_table, is_in, maintain, transaction_version
from kafkascope.lake.write.files import NO_DATE, NewFile
from kafkascope.lake.write.heartbeat import INGESTS, SILENCE, alive_names, end, running_ingests

# A reader that opened a file before it was removed may still be reading it.
SAFE_AGE = timedelta(hours=24)
# Compaction and marts have no heartbeat: their files may still be committed.
UNSIGNED_AGE = timedelta(hours=1)
# Tables that are opened at once.
_LOOKS = 8


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """Rows that were removed from a table; their files stay until `vacuum` deletes them."""

    table: str
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """`deleted` files are gone from the disk; `waiting` ones aren't old enough yet."""

    ingests: tuple[str, ...]
    taken_out: tuple[RemovedRows, ...]
    deleted_files: int
    deleted_bytes: int
    waiting_files: int
    waiting_bytes: int


@dataclass(frozen=True, slots=True)
class HalfDone:
    """An ingest that committed to some tables, isn't in `captures`, and isn't running."""

    ingest_id: str
    tables: tuple[str, ...]
    rows: int
    files: int
    bytes: int


def half_done(lake: Lake, tables: Mapping[str, list[ActiveFile]] | None = None) -> list[HalfDone]:
    """`tables` are files by table, if known."""
    files_by_ingest: dict[str, dict[str, list[ActiveFile]]] = {}
    for name, files in (_all_files(lake) if tables is None else tables).items():
        for file in files if name != CAPTURES else ():
            for ingest, part in _by_name(lake, name, file):
                files_by_ingest.setdefault(ingest, {}).setdefault(name, []).append(part)
    # Keep this order: an ingest that began since has no files here, one that ended since is in `captures`.
    alive = alive_names(lake)
    gone = files_by_ingest.keys() - alive - visible_names(lake) - superseded_names(lake)
    return [_half_done(ingest, files_by_ingest[ingest]) for ingest in sorted(gone)]


def _by_name(lake: Lake, name: str, file: ActiveFile) -> list[tuple[str, ActiveFile]]:
    """The ingests whose rows a file has, with their share of it. Nothing that compaction has merged is half done."""
    if not file.foreign:
        return [] if file.ingest is None else [(file.ingest, file)]
    counts = rows_by_name(lake, table_in(lake, name), file)
    total = max(1, sum(counts.values()))
    return [(name, replace(file, rows=rows, size=file.size * rows // total)) for name, rows in counts.items()]


def _all_files(lake: Lake) -> dict[str, list[ActiveFile]]:
    opened = {name: find_table(lake, name) for name in lake.tables()}
    return {name: active_files(table) for name, table in opened.items() if table is not None}


def _half_done(ingest: str, tables: dict[str, list[ActiveFile]]) -> HalfDone:
    files = [file for group in tables.values() for file in group]
    return HalfDone(
        ingest, tuple(sorted(tables)), sum(file.rows for file in files), len(files), sum(file.size for file in files)
    )


def vacuum(lake: Lake, *, dry_run: bool = False, age: timedelta = SAFE_AGE) -> Vacuumed:
    """`dry_run` counts what would be deleted. Files of a running ingest are kept, and all that are younger than
    `age`."""
    taken: dict[str, RemovedRows] = {}
    ingests = []
    superseded = superseded_names(lake)
    landed = visible_ingests(lake)
    _divide(lake, lambda names: not names <= landed, dry_run)
    for name in lake.tables() if superseded else ():
        out = _remove_rows(lake, name, lambda file: file.ingest in superseded, dry_run)
        if out.files:
            taken[name] = out
    for ingest in half_done(lake):
        rows = _remove_half_done(lake, ingest, dry_run=dry_run)
        if rows is None:
            continue
        ingests.append(ingest.ingest_id)
        for out in rows:
            taken[out.table] = _sum(taken.get(out.table), out)
    if not dry_run:
        _delete_signs(lake)
    return Vacuumed(tuple(ingests), tuple(taken.values()), *delete_unnamed(lake, age, dry_run=dry_run))


def delete_unnamed(lake: Lake, age: timedelta, *, dry_run: bool = False) -> tuple[int, int, int, int]:
    """Deletes the files that no table names if they were left `age` ago. Returns files and bytes that are deleted, and
    those that wait."""
    deleted = waiting = deleted_bytes = waiting_bytes = 0
    # To open a table waits for its store.
    with ThreadPoolExecutor(_LOOKS) as pool:
        for files in pool.map(lambda name: _unnamed(lake, name, age), _folders(lake)):
            for place, size, old in files:
                if not old:
                    waiting, waiting_bytes = waiting + 1, waiting_bytes + size
                elif dry_run or place.delete():
                    deleted, deleted_bytes = deleted + 1, deleted_bytes + size
    return deleted, deleted_bytes, waiting, waiting_bytes


def _divide(lake: Lake, chosen: Callable[[AbstractSet[str]], bool], dry_run: bool, day: date | None = None) -> None:
    """Rewrites files of other tools as our own if `chosen` accepts the `ingest_id`s of their rows: the next steps work
    with names of files."""
    for name in () if dry_run else lake.tables():
        delta = find_table(lake, name)
        for file in active_files(delta) if delta is not None and name != CAPTURES else ():
            if file.foreign and (day is None or file.date == day):
                table = table_in(lake, name)
                names = rows_by_name(lake, table, file).keys()
                if names and chosen(names):
                    divide(lake, table, file)


def expire(lake: Lake, before: date, *, dry_run: bool = False) -> list[RemovedRows]:
    """Removes whole days before `before` from every table that has dates; marts follow at their next build. `captures`
    keeps its rows: they record what was ingested, and keep the same recording from being ingested again. Rows without a
    date go with their ingest, once all of its recordings end before that day."""
    seen, over, landed = visible_names(lake), _over(lake, before), visible_ingests(lake)
    _divide(lake, lambda names: bool(names & over), dry_run, NO_DATE)
    _divide(lake, lambda names: not names <= landed, dry_run)

    def old(file: ActiveFile) -> bool:
        # A running ingest keeps its files: otherwise it would land with only a part of them.
        if file.ingest is not None and file.ingest not in seen:
            return False
        if file.date == NO_DATE:
            return file.ingest in over
        return file.date is not None and file.date < before

    taken = [_remove_rows(lake, name, old, dry_run) for name in lake.tables() if name != CAPTURES]
    return [out for out in taken if out.files]


def _over(lake: Lake, before: date) -> frozenset[str]:
    """Ingests whose recordings all end before that day."""
    rows = dataset(lake, CAPTURES).to_table(columns=["ingest_id", "last_at"])
    limit = datetime(before.year, before.month, before.day, tzinfo=UTC)
    ended = pc.fill_null(pc.less(rows.column("last_at"), limit), False)
    lasting = set(rows.filter(pc.invert(ended)).column("ingest_id").to_pylist())
    over = frozenset(rows.column("ingest_id").to_pylist()) - lasting
    return over | frozenset(pending(name) for name in over)


def _remove_rows(
    lake: Lake, name: str, chosen: Callable[[ActiveFile], bool], dry_run: bool, ingest: str | None = None
) -> RemovedRows:
    for _ in range(ATTEMPTS):
        table = find_table(lake, name)
        files = [file for file in active_files(table) if chosen(file)] if table is not None else []
        removed = RemovedRows(name, sum(file.rows for file in files), len(files), sum(file.size for file in files))
        if table is None or not files or dry_run:
            return removed
        version = transaction_version(table, ingest) if ingest is not None else None
        out = [(ingest, version + 1)] if ingest is not None and version is not None and is_in(version) else []
        if maintain(table, files, data_change=True, transactions=out):
            return removed
    raise InputError(f"{lake.table(name).uri}: other processes keep changing this table; try again later")


def _remove_half_done(lake: Lake, ingest: HalfDone, *, dry_run: bool) -> list[RemovedRows] | None:
    """Returns None if the ingest finished after all."""

    def of_ingest(file: ActiveFile) -> bool:
        return file.ingest == ingest.ingest_id

    if dry_run:
        return [_remove_rows(lake, name, of_ingest, dry_run) for name in ingest.tables]
    # Update `captures` first: if the driver wakes up, it can't land any more.
    if not _tell(lake, ingest.ingest_id):
        return None
    taken = []
    kept: dict[str, list[ActiveFile]] = {}
    for name in ingest.tables:
        table = find_table(lake, name)
        kept[name] = [file for file in active_files(table) if of_ingest(file)] if table is not None else []
        if ingest.ingest_id in alive_names(lake):
            break
        taken.append(_remove_rows(lake, name, of_ingest, dry_run, ingest.ingest_id))
    # Check again: a second run of the same ingest may have relied on what was removed just after it began.
    if not _tell(lake, ingest.ingest_id):
        for out in taken:
            _put_back(lake, out.table, kept[out.table], ingest.ingest_id)
        return None
    return taken


def _tell(lake: Lake, ingest: str) -> bool:
    """Makes the ingest's transaction in `captures` even and higher. Returns False if the ingest is visible."""
    for _ in range(ATTEMPTS):
        captures = find_table(lake, CAPTURES)
        if captures is None:
            commit(lake, table_named(CAPTURES), [], MAINTENANCE)
            continue
        if ingest in visible_names(lake):
            return False
        version = transaction_version(captures, ingest) or 0
        if maintain(captures, (), data_change=False, transactions=[(ingest, version + 2 - version % 2)]):
            return True
    raise InputError(f"{lake.table(CAPTURES).uri}: other processes keep changing this table; try again later")


def _put_back(lake: Lake, name: str, files: list[ActiveFile], ingest: str) -> None:
    again = [
        NewFile(
            name, file.path, file.size, file.rows, file.date.isoformat() if file.date else None,
            json.dumps({"numRecords": file.rows}),
        )
        for file in files
    ]  # fmt: skip
    for _ in range(ATTEMPTS):
        table = find_table(lake, name)
        version = transaction_version(table, ingest) if table is not None else None
        if table is None or version is None or is_in(version):
            return
        if maintain(table, (), again, data_change=True, transactions=[(ingest, version + 1)]):
            return
    raise InputError(
        f"{lake.table(name).uri}: ingest {ingest} lost its rows here to a vacuum; ingest the recordings into a new lake"
    )


def _delete_signs(lake: Lake) -> None:
    """Deletes the heartbeats of ingests that died or never began, and the progress files of their tasks."""
    now = datetime.now(UTC)
    for run in running_ingests(lake):
        if not run.alive(now):
            end(lake, run)
    alive = alive_names(lake)
    for info in inside(lake.place, INGESTS).inside():
        dead = info.base_name.split("-")[0] not in alive and info.type == fs.FileType.File
        if dead and now - info.mtime >= SILENCE:
            inside(lake.place, f"{INGESTS}/{info.base_name}").delete()


def _folders(lake: Lake) -> list[str]:
    """Tables, and folders of tables whose first commit never happened."""
    names = (info.base_name for info in lake.place.inside() if info.type == fs.FileType.Directory)
    return sorted(name for name in names if name[0] not in "._")


def _unnamed(lake: Lake, name: str, age: timedelta) -> list[tuple[Place, int, bool]]:
    """Files that the table's newest version doesn't have: place, size, whether they may be deleted."""
    place = lake.table(name)
    # Keep this order: the log names a file whose ingest ends in between.
    infos = [info for info in place.inside(deep=True) if info.type == fs.FileType.File]
    alive = alive_names(lake)
    table = find_table(lake, name)
    named = {file.path for file in active_files(table)} if table is not None else set()
    removed = _removed(table, timedelta(0)) if table is not None else set()
    long_removed = _removed(table, age) if table is not None else set()
    now = datetime.now(UTC)
    unnamed = []
    for info in infos:
        path = info.path[len(place.path) + 1 :]
        ingest = ingest_of(path)
        if path in named or path.startswith(f"{DELTA_LOG}/") or not path.endswith(".parquet") or ingest in alive:
            continue
        least = age if ingest is not None else max(age, UNSIGNED_AGE)
        old = path in long_removed if path in removed else now - info.mtime >= least
        unnamed.append((inside(place, path), info.size, old))
    return unnamed


def _removed(table: DeltaTable, age: timedelta) -> set[str]:
    """Files that were removed from the table that long ago, in whole hours."""
    hours = -int(-age.total_seconds() // 3600)
    with readable(table.table_uri):
        return set(table.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False))


def _sum(total: RemovedRows | None, other: RemovedRows) -> RemovedRows:
    if total is None:
        return other
    return RemovedRows(total.table, total.rows + other.rows, total.files + other.files, total.bytes + other.bytes)
