"""Corrects what `captures` reports about a file's end once a later ingest has landed: what was unfinished there is
counted by that ingest, which has the rest of it or knows that it is lost."""

from collections.abc import Iterable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from kafkascope.lake.active import ActiveFile, active_files
from kafkascope.lake.file_names import COMPACTED
from kafkascope.lake.home import Lake
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.read.visible_rows import CAPTURES, rows_of, table_as_stored
from kafkascope.lake.tables import INGEST_ID
from kafkascope.lake.write.files import Files, NewFile

# Columns of counts, and the part of each that holds only until another ingest resumes this one.
PENDING_COLUMNS = {
    "frames": "pending_frames",
    "lost_bytes": "pending_bytes",
    "lost_places": "pending_places",
    # For packets that come after a missing one, which may still arrive.
    "tls_bytes": "pending_tls_bytes",
    "tcp_bytes": "pending_tcp_bytes",
}


def settled(lake: Lake, captures: DeltaTable, ingests: Iterable[str]) -> tuple[list[ActiveFile], list[NewFile]]:
    """Files of `captures` that have rows of these ingests with pending counts, and their replacements."""
    names = frozenset(ingests)
    table = table_as_stored(CAPTURES, captures)
    removed: list[ActiveFile] = []
    added: list[NewFile] = []
    if not names or not {*PENDING_COLUMNS.values()} <= {*table.schema.names}:
        return removed, added
    for file in active_files(captures):
        if file.ingest is not None and file.ingest not in names:
            continue
        with filesystem_errors(lake.table(CAPTURES).uri):
            rows = rows_of(lake, CAPTURES, table.file_schema, [file]).to_table()
        chosen = pc.is_in(rows.column(INGEST_ID), value_set=pa.array(sorted(names), pa.string()))
        open_ = [pc.greater(pc.fill_null(rows.column(name), 0), 0) for name in PENDING_COLUMNS.values()]
        if not pc.any(pc.and_(chosen, reduce(pc.or_, open_))).as_py():
            continue
        for count, pending in PENDING_COLUMNS.items():
            rest = pc.subtract(rows.column(count), pc.fill_null(rows.column(pending), 0))
            rows = _with(rows, count, pc.if_else(chosen, pc.max_element_wise(rest, 0), rows.column(count)))
            rows = _with(rows, pending, pc.if_else(chosen, 0, rows.column(pending)))
        writer = Files(lake, file.ingest or "", None if file.ingest else COMPACTED)
        writer.add(table, rows)
        removed.append(file)
        added += writer.close()
    return removed, added


def _with(rows: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)
