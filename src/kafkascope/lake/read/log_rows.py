"""Reads one page of a table of log directories, in the order of topic, partition, offset and broker, with filters.
Memory doesn't grow with the table."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.lake.home import Lake
from kafkascope.lake.log_tables import LOG_BATCHES, LOG_SEGMENTS, LOG_TABLES, record_types
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.read.visible_rows import dataset

_BATCH_ROWS = 65_536


def listed_tables() -> frozenset[str]:
    """Names of the tables that have such rows."""
    return frozenset({*LOG_TABLES, *record_types()})


def offset_column(table: str) -> str:
    return "base_offset" if table in (LOG_BATCHES, LOG_SEGMENTS) else "offset"


@dataclass(frozen=True, slots=True)
class LogFilters:
    """`offset` is the lowest one to show."""

    topic: str = ""
    partition: int | None = None
    broker: int | None = None
    offset: int | None = None


def log_rows(lake: Lake, table: str, filters: LogFilters, skip: int, count: int) -> tuple[list[dict[str, Any]], bool]:
    """Rows after the first `skip`, at most `count`, and whether there are more."""
    offset = offset_column(table)
    order = [(name, "ascending") for name in ("topic", "partition", offset, "broker", "capture_uri")]
    rows = dataset(lake, table)
    most, where = skip + count + 1, _where(filters, offset)
    first: pa.Table | None = None
    with filesystem_errors(lake.table(table).uri):
        scanned = rows.to_batches(columns=[name for name, _ in order], filter=where, batch_size=_BATCH_ROWS)
        for batch in scanned:
            part = pa.Table.from_batches([batch])
            first = part if first is None else pa.concat_tables([first, part])
            if len(first) > 2 * most:
                first = _smallest(first, order, most)
        if first is None or len(first) <= skip:
            return [], False
        kept = _smallest(first, order, most).slice(skip, count + 1)
        chosen = rows.to_table(filter=_of(kept, offset, where))
    whole = chosen.take(pc.sort_indices(chosen, sort_keys=order))
    keys = {tuple(row.values()) for row in kept.slice(0, count).to_pylist()}
    names = [name for name, _ in order]
    listed = [row for row in whole.to_pylist() if tuple(row[name] for name in names) in keys]
    return listed[:count], len(kept) > count


def _where(filters: LogFilters, offset: str) -> pc.Expression | None:
    parts = []
    if filters.topic:
        parts.append(pc.field("topic") == filters.topic)
    if filters.partition is not None:
        parts.append(pc.field("partition") == filters.partition)
    if filters.broker is not None:
        parts.append(pc.field("broker") == filters.broker)
    if filters.offset is not None:
        parts.append(pc.field(offset) >= filters.offset)
    where: pc.Expression | None = None
    for part in parts:
        where = part if where is None else where & part
    return where


def _smallest(rows: pa.Table, order: list[tuple[str, str]], most: int) -> pa.Table:
    return rows.take(pc.sort_indices(rows, sort_keys=order)[:most])


def _of(kept: pa.Table, offset: str, where: pc.Expression | None) -> pc.Expression:
    """A condition that few more rows meet than those."""
    chosen = pc.field("topic").isin(pc.unique(kept["topic"]))
    offsets = pc.unique(kept[offset])
    chosen &= pc.field(offset).isin(offsets) | (pc.field(offset).is_null() if offsets.null_count else pc.scalar(False))
    return chosen if where is None else chosen & where
