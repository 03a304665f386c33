"""Writes records beyond the delivery limit of a query into a Delta table, each once, before they are rejected."""

from datetime import UTC, datetime

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from kafkascope.errors import InputError
from kafkascope.lake.home import Lake
from kafkascope.lake.place import place_of
from kafkascope.pipeline.share.batch_offset import BatchOffset
from kafkascope.pipeline.share.options import ShareOptions
from kafkascope.pipeline.share.read import read_ranges
from kafkascope.pipeline.share.rows import SHARE_SCHEMA

DEAD_LETTER_SCHEMA = SHARE_SCHEMA.append(pa.field("group", pa.string())).append(
    pa.field("dead_at", pa.timestamp("us", tz="UTC"))
)


def write_dead_letters(batch: BatchOffset, options: ShareOptions) -> None:
    """Again for the same batch, it adds nothing."""
    assert options.dead_letters is not None
    place = place_of(options.dead_letters)
    storage = Lake(place, "").storage_options or None
    name = f"kafkascope-share {options.group} {batch.member}"
    try:
        if DeltaTable.is_deltatable(place.uri, storage):
            version = DeltaTable(place.uri, storage_options=storage).transaction_version(name)
            if version is not None and version >= batch.batch:
                return
        write_deltalake(
            place.uri,
            _table(batch, options),
            mode="append",
            storage_options=storage,
            commit_properties=CommitProperties(app_transactions=[Transaction(name, batch.batch)]),
        )
    except (DeltaError, OSError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{options.dead_letters}: dead letters can't be written: {reason}") from None


def _table(batch: BatchOffset, options: ShareOptions) -> pa.Table:
    batches = [rows for entry in batch.dead for rows in read_ranges(entry, batch.at, options)]
    table = pa.Table.from_batches(batches, SHARE_SCHEMA)
    count = len(table)
    now = pa.scalar(datetime.now(UTC), pa.timestamp("us", tz="UTC"))
    table = table.append_column("group", pa.repeat(pa.scalar(options.group, pa.string()), count))
    return table.append_column("dead_at", pa.repeat(now, count)).cast(DEAD_LETTER_SCHEMA)
