"""Summarizes a lake: tables with rows, files, bytes and times, and ingests by their state."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.file_names import PENDING
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import CAPTURES, is_visible, open_as_of_now, table_as_stored, visible_rows
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.upkeep.retention import HalfDone, half_done
from kafkascope.lake.write.heartbeat import Running, running_now

# Opening a table spends most of its time waiting for its log.
_OPENED_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class TableInfo:
    """Counts visible rows. `hidden_files` were committed by ingests that aren't visible, or not yet."""

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
    opened, seen = open_as_of_now(lake, lake.tables())
    known = {name: table_as_stored(name, table) for name, table in opened.items()}
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        listed = pool.map(lambda name: active_files(opened[name], known[name].time, known[name].otherwise), opened)
        files = dict(zip(opened, listed, strict=True))
    tables = tuple(_table(lake, known[name], some, seen) for name, some in files.items())
    return LakeInfo(
        uri=lake.uri,
        format=lake.format,
        tables=tables,
        recordings=next((table.rows for table in tables if table.name == CAPTURES), 0),
        ingests=sum(not name.endswith(PENDING) for name in seen),
        running=tuple(running_now(lake)),
        half_done=tuple(half_done(lake, files)),
    )


def _table(lake: Lake, table: LakeTable, files: list[ActiveFile], seen: frozenset[str]) -> TableInfo:
    shown = [file for file in files if is_visible(table.name, file, seen)]
    return TableInfo(
        name=table.name,
        rows=visible_rows(lake, table, shown, seen),
        files=len(shown),
        bytes=sum(file.size for file in shown),
        first_at=min((file.first for file in shown if file.first is not None), default=None),
        last_at=max((file.last for file in shown if file.last is not None), default=None),
        hidden_files=len(files) - len(shown),
    )
