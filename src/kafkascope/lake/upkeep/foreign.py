"""Splits files that another tool wrote, an OPTIMIZE for example, if the rows of some ingests have to go and others
stay."""

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from kafkascope.errors import InputError
from kafkascope.lake.active import ActiveFile
from kafkascope.lake.file_names import COMPACTED
from kafkascope.lake.home import Lake
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.read.visible_rows import is_of, rows_of, table_as_stored, visible_ingests
from kafkascope.lake.tables import INGEST_ID, LakeTable
from kafkascope.lake.write.commit import find_table, maintain
from kafkascope.lake.write.files import NO_DATE, Files, discard

# A file never changes, and an ingest that follows a folder looks at the same ones again.
_MOST_KNOWN = 100_000
_known: dict[tuple[str, str, str], dict[str, int]] = {}


def rows_by_name(lake: Lake, table: LakeTable, file: ActiveFile) -> dict[str, int]:
    """Counts the rows of a file by `ingest_id`. Only that column is read."""
    if INGEST_ID not in table.schema.names:
        return {}
    key = (lake.id, table.name, file.path)
    if key not in _known:
        with filesystem_errors(lake.table(table.name).uri):
            ids = rows_of(lake, table.name, table.file_schema, [file]).to_table(columns=[INGEST_ID]).column(0)
        counts = {
            value["values"]: value["counts"] for value in ids.value_counts().to_pylist() if value["values"] is not None
        }
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[key] = counts
    return _known[key]


def divide(lake: Lake, table: LakeTable, file: ActiveFile) -> bool:
    """Writes the same rows to files of our own: pending and half-done ones under the name of their ingest, the others
    merged; rows without a date by ingest, since they expire with it. Returns False if another process changed the file
    meanwhile, or the file has rows of no ingest."""
    delta = find_table(lake, table.name)
    if delta is None:
        return False
    table = table_as_stored(table.name, delta)
    names = rows_by_name(lake, table, file).keys()
    merged = frozenset() if file.date == NO_DATE else names & visible_ingests(lake)
    writers = [Files(lake, name) for name in sorted(names - merged)]
    if merged:
        writers.append(Files(lake, "", COMPACTED))
    chosen = [*([name] for name in sorted(names - merged)), *([merged] if merged else [])]
    made = []
    try:
        for writer, some in zip(writers, chosen, strict=True):
            for rows in _rows(lake, table, file, frozenset(some)):
                writer.add(table, rows)
            made += writer.close()
        whole = sum(part.rows for part in made) == file.rows
        landed = whole and maintain(delta, [file], made, data_change=False)
    except BaseException:
        for writer in writers:
            with suppress(InputError):
                writer.abort()
        raise
    if not landed:
        discard(lake, made)
    return landed


def _rows(lake: Lake, table: LakeTable, file: ActiveFile, names: frozenset[str]) -> Iterator[pa.Table]:
    with filesystem_errors(lake.table(table.name).uri):
        rows = rows_of(lake, table.name, table.file_schema, [file])
        for batch in rows.to_batches(filter=is_of(names), batch_readahead=2, fragment_readahead=1):
            if batch.num_rows:
                yield pa.Table.from_batches([batch], table.file_schema)
