"""Upgrades a lake of an earlier format: tables whose columns were renamed are rewritten, each in one commit. After an
interruption it continues the next time."""

import os
from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from kafkascope.errors import InputError
from kafkascope.lake.active import active_files
from kafkascope.lake.file_names import COMPACTED, INGEST_PREFIX
from kafkascope.lake.home import LAKE_FORMAT, SIGN, Lake, ensure_lake, find_lake, sign_of
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.read.former_names import FORMER_NAMES
from kafkascope.lake.read.visible_rows import rows_of, table_as_stored
from kafkascope.lake.tables import INGEST_ID, LakeTable
from kafkascope.lake.write.commit import (
    ATTEMPTS,
    MAINTENANCE,
    add_action,
    find_table,
    transaction_properties,
    transaction_version,
)
from kafkascope.lake.write.files import Files, NewFile, discard
from kafkascope.lake.write.heartbeat import running_now


def lake_to_write(uri: str | os.PathLike[str]) -> Lake:
    """The lake at a place, created if that is empty or missing, and upgraded."""
    return upgraded(ensure_lake(uri))


def upgraded(lake: Lake) -> Lake:
    if lake.format == LAKE_FORMAT:
        return lake
    busy = running_now(lake)
    if busy:
        raise InputError(
            f"{lake.uri}: an ingest of an earlier kafkascope is under way (process {busy[0].pid} on {busy[0].host});"
            f" run this again once it has ended, so that the lake can be brought to format {LAKE_FORMAT}"
        )
    for name, columns in FORMER_NAMES.items():
        _rename(lake, name, {former: column for column, former in columns.items()})
    lake.place.child(SIGN).write(sign_of(lake.id))
    return find_lake(lake.uri)


def _rename(lake: Lake, name: str, names: dict[str, str]) -> None:
    for _ in range(ATTEMPTS):
        delta = find_table(lake, name)
        if delta is None:
            return
        former = table_as_stored(name, delta)
        if not names.keys() & set(former.schema.names):
            return
        fields = [field.with_name(names.get(field.name, field.name)) for field in former.schema]
        renamed = replace(former, schema=pa.schema(fields))
        files = _written(lake, delta, former, renamed)
        turn = (transaction_version(delta, MAINTENANCE) or 0) + 1
        try:
            delta.create_write_transaction(
                [add_action(file, data_change=False) for file in files],
                mode="overwrite",
                schema=Schema.from_arrow(renamed.schema),
                partition_by=renamed.partition_by,
                commit_properties=transaction_properties((MAINTENANCE, turn), retries=0),
            )
        except DeltaError:
            # Another commit came in between: its rows are needed too.
            discard(lake, files)
        else:
            return
    raise InputError(f"{lake.table(name).uri}: other programs keep changing it; run this again once they have ended")


def _written(lake: Lake, delta: DeltaTable, former: LakeTable, renamed: LakeTable) -> list[NewFile]:
    """All rows under the new names. A file of one ingest keeps the ingest in its name."""
    writers: dict[str, Files] = {}
    mart = f"mart-{uuid4().hex}"
    try:
        for file in active_files(delta):
            with filesystem_errors(lake.table(former.name).uri):
                for batch in rows_of(lake, former.name, former.file_schema, [file]).to_batches():
                    rows = pa.Table.from_batches([batch], former.file_schema).rename_columns(renamed.file_schema.names)
                    if INGEST_ID not in rows.column_names:
                        parts = iter([(mart, rows)])
                    elif file.compacted:
                        parts = iter([(COMPACTED, rows)])
                    else:
                        parts = _by_ingest(rows)
                    for prefix, part in parts:
                        writers.setdefault(prefix, Files(lake, "", prefix)).add(renamed, part)
        return [file for writer in writers.values() for file in writer.close()]
    except BaseException:
        for writer in writers.values():
            writer.abort()
        raise


def _by_ingest(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Rows of no ingest are never visible, so they are left out."""
    for ingest in pc.unique(rows.column(INGEST_ID).drop_null()).to_pylist():
        yield f"{INGEST_PREFIX}{ingest}", rows.filter(pc.equal(rows.column(INGEST_ID), ingest))
