"""A lake in, an account of it out: tables with rows, files, bytes and times, and ingests by their state."""

from dataclasses import dataclass
from datetime import UTC, datetime

from kafkascope.lake.active import active_files
from kafkascope.lake.commit import find_table
from kafkascope.lake.files import PENDING
from kafkascope.lake.home import FORMAT, Lake
from kafkascope.lake.reading import CAPTURES, is_visible, table_in, visible_names
from kafkascope.lake.retention import HalfDone, half_done
from kafkascope.lake.running import Running, running_ingests


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
    seen = visible_names(lake)
    tables = tuple(table for table in (_table(lake, name, seen) for name in lake.tables()) if table is not None)
    now = datetime.now(UTC)
    return LakeInfo(
        uri=lake.uri,
        format=FORMAT,
        tables=tables,
        recordings=next((table.rows for table in tables if table.name == CAPTURES), 0),
        ingests=sum(not one.endswith(PENDING) for one in seen),
        running=tuple(run for run in running_ingests(lake) if run.alive(now)),
        half_done=tuple(half_done(lake)),
    )


def _table(lake: Lake, name: str, seen: frozenset[str]) -> TableInfo | None:
    found = find_table(lake, name)
    if found is None:
        return None
    time = table_in(lake, name).time
    files = active_files(found, time)
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
