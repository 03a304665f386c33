"""A lake in, an account of it out: tables with rows, files, bytes and times, and ingests by their state."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.commit import find_table
from kafkascope.lake.files import PENDING
from kafkascope.lake.home import FORMAT, Lake
from kafkascope.lake.reading import CAPTURES, is_visible, table_as_found, visible_names
from kafkascope.lake.retention import HalfDone, half_done
from kafkascope.lake.running import Running, running_ingests

# Opening a table waits for its log most of the time.
_OPENED_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class TableInfo:
    """Of the visible rows. `hidden_files` are committed by ingests that are not visible, or not yet."""

    name: str
    rows: int
    files: int
    bytes: int
    first_at: datetime | None
    last_at: datetime | None
    hidden_files: int


@dataclass(frozen=True, slots=True)
class LakeInfo:
    uri: str
    format: int
    tables: tuple[TableInfo, ...]
    recordings: int
    ingests: int
    running: tuple[Running, ...]
    half_done: tuple[HalfDone, ...]


def info(lake: Lake) -> LakeInfo:
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        names = lake.tables()
        found = zip(names, pool.map(lambda name: _files(lake, name), names), strict=True)
        files = {name: some for name, some in found if some is not None}
    seen = visible_names(lake)
    tables = tuple(_table(name, some, seen) for name, some in files.items())
    now = datetime.now(UTC)
    return LakeInfo(
        uri=lake.uri,
        format=FORMAT,
        tables=tables,
        recordings=next((table.rows for table in tables if table.name == CAPTURES), 0),
        ingests=sum(not one.endswith(PENDING) for one in seen),
        running=tuple(run for run in running_ingests(lake) if run.alive(now)),
        half_done=tuple(half_done(lake, files)),
    )


def _files(lake: Lake, name: str) -> list[ActiveFile] | None:
    """All that its log names; None where there is no such table yet."""
    found = find_table(lake, name)
    return None if found is None else active_files(found, table_as_found(name, found).time)


def _table(name: str, files: list[ActiveFile], seen: frozenset[str]) -> TableInfo:
    shown = [file for file in files if is_visible(name, file, seen)]
    lows = [file.low for file in shown if file.low is not None]
    highs = [file.high for file in shown if file.high is not None]
    return TableInfo(
        name=name,
        rows=sum(file.rows for file in shown),
        files=len(shown),
        bytes=sum(file.size for file in shown),
        first_at=min(lows, default=None),
        last_at=max(highs, default=None),
        hidden_files=len(files) - len(shown),
    )
