"""Events of groups, sorted, in; files of the marts that `health/` makes of them out. It runs inside a Spark task and
holds one group's events at a time."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from kafkascope.health.quorum import history_of
from kafkascope.health.quorum_signals import QuorumEvent
from kafkascope.health.share_events import ShareEvent
from kafkascope.health.share_group_health import ShareGroupEvent, share_group_health
from kafkascope.health.share_ledger import share_deliveries
from kafkascope.health.streams_health import health_of
from kafkascope.health.streams_signals import StreamsEvent
from kafkascope.health.streams_timeline import timeline_of
from kafkascope.lake.files import Files
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS

# Rows of a mart that are written together.
_SOME = 20_000
_OF_GROUP = frozenset(("heartbeat", "described", "offsets"))

Row = dict[str, Any]
Found = Iterator[tuple[str, Any]]


def share_rows(rows: Iterable[Row]) -> Found:
    """Of one group."""
    ledger, group = [], []
    for row in rows:
        if row["kind"] in _OF_GROUP:
            group.append(_event(ShareGroupEvent, row))
        else:
            ledger.append(_event(ShareEvent, row))
            if row["kind"] == "seen":
                group.append(_event(ShareGroupEvent, row))
    deliveries = list(share_deliveries(ledger))
    for delivery in deliveries:
        yield "share_deliveries", delivery
    for minute in share_group_health(deliveries, group):
        yield "share_group_health", minute


def streams_rows(rows: Iterable[Row]) -> Found:
    """Of one group."""
    timeline = timeline_of(_event(StreamsEvent, row) for row in rows)
    if timeline is None:
        return
    for name, found in (
        ("streams_tasks", timeline.tasks),
        ("streams_moves", timeline.moves),
        ("streams_unheld", timeline.unheld),
        ("streams_lost_members", timeline.lost),
        ("streams_statuses", timeline.statuses),
        ("streams_group_health", health_of(timeline)),
    ):
        for one in found:
            yield name, one


def quorum_rows(rows: Iterable[Row]) -> Found:
    """Of one cluster."""
    history = history_of(_event(QuorumEvent, row) for row in rows)
    for replica in history.replicas:
        yield "quorum_replicas", replica
    for happening in history.events:
        yield "quorum_events", happening


def _event(kind: Any, row: Row) -> Any:
    """Nulls of a column that has a default are that default."""
    defaults = kind._field_defaults
    return kind._make(
        defaults.get(name) if (value := row.get(name)) is None and name in defaults else value for name in kind._fields
    )


def writer(
    lake: Lake, prefix: str, walk: Callable[[Iterable[Row]], Found], key: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`: it gives the new files as JSON."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = Files(lake, "", prefix)
        kept: dict[str, list[Any]] = {}
        rows = (row for batch in batches for row in batch.to_pylist())
        for _, group in groupby(rows, itemgetter(key)):
            for name, row in walk(group):
                some = kept.setdefault(name, [])
                some.append(row)
                if len(some) >= _SOME:
                    files.add(MARTS[name], _table(name, some))
                    some.clear()
        for name, some in kept.items():
            if some:
                files.add(MARTS[name], _table(name, some))
        said = [json.dumps(asdict(file)) for file in files.close()]
        yield pa.record_batch([pa.array(said, pa.string())], names=["file"])

    return write


def _table(name: str, rows: list[Any]) -> pa.Table:
    columns = []
    for field in MARTS[name].schema:
        values = [getattr(row, field.name) for row in rows]
        if pa.types.is_map(field.type):
            values = [list(value.items()) for value in values]
        plain = pa.int64() if pa.types.is_timestamp(field.type) else field.type
        columns.append(pa.array(values, plain).cast(field.type) if plain != field.type else pa.array(values, plain))
    return pa.table(columns, schema=MARTS[name].schema)
