"""Removes pending rows from the tables once an ingest that resumes theirs has landed, with the same requests written
whole. From then on every reader of Delta sees what our readers see.

An ingest that dies before this step has landed all the same: our readers hide such rows by their `ingest_id`, and the
next ingest or `vacuum` removes them."""

from concurrent.futures import ThreadPoolExecutor

from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import CAPTURES, superseded_names, table_as_stored
from kafkascope.lake.upkeep.foreign import divide, rows_by_name
from kafkascope.lake.write.commit import ATTEMPTS, find_table, maintain

# A commit spends most of its time waiting for the store.
_AT_ONCE = 8


def remove_superseded(lake: Lake) -> None:
    names = superseded_names(lake)
    if names:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda name: without(lake, name, names), lake.tables()))


def without(lake: Lake, name: str, names: frozenset[str]) -> list[ActiveFile]:
    """The table's files once rows with these `ingest_id`s are removed. If other processes keep changing it, some stay
    until the next time."""
    files: list[ActiveFile] = []
    for _ in range(ATTEMPTS):
        table = find_table(lake, name)
        files = [] if table is None else active_files(table)
        if table is None or name == CAPTURES or not names:
            return files
        known = table_as_stored(name, table)
        foreign = [file for file in files if file.foreign]
        merged = [file for file in foreign if names & rows_by_name(lake, known, file).keys()]
        if merged:
            for file in merged:
                divide(lake, known, file)
            continue
        gone = [file for file in files if file.ingest in names]
        if not gone or maintain(table, gone, data_change=True):
            return [file for file in files if file not in gone]
    return files
