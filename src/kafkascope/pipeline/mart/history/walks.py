"""Turns the sorted events of streams groups and of quorums into their marts. Runs inside a Spark task and holds one
group's events at a time."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa

from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import history_of
from kafkascope.health.streams.events import StreamsEvent
from kafkascope.health.streams.group_health import health_of
from kafkascope.health.streams.timeline import timeline_of
from kafkascope.lake.home import Lake
from kafkascope.pipeline.mart.base.row_files import RowFiles, events_from, rare_gc
from kafkascope.pipeline.mart.names.facts import LakeFacts
from kafkascope.pipeline.mart.names.silence import with_seen

_LAST_ORDER = 99
_AT, _BROKER = attrgetter("at_us"), attrgetter("broker")

_MartRows = Iterator[tuple[str, Any]]
# Keys, broker, event.
_Row = tuple[Any, ...]


def streams_rows(group_id: str, rows: Iterable[_Row], facts: LakeFacts) -> _MartRows:
    """The marts of one streams group."""

    def seen(at: int, broker: str) -> _Row:
        return group_id, broker, StreamsEvent("seen", at, _LAST_ORDER, group_id)

    ticked = with_seen(rows, lambda row: int(row[2][1]), itemgetter(1), seen, facts.recorded)
    timeline = timeline_of(event for _, _, event in ticked)
    if timeline is None:
        return
    for name, mart_rows in (
        ("streams_tasks", timeline.tasks),
        ("streams_moves", timeline.moves),
        ("streams_unheld", timeline.unheld),
        ("streams_lost_members", timeline.lost),
        ("streams_statuses", timeline.statuses),
        ("streams_group_health", health_of(timeline)),
    ):
        for row in mart_rows:
            yield name, row


def quorum_rows(_: str, rows: Iterable[_Row], facts: LakeFacts) -> _MartRows:
    """The marts of one cluster."""

    def seen(at: int, broker: str) -> QuorumEvent:
        return QuorumEvent("seen", at, _LAST_ORDER, broker=broker)

    events = (event for _, _, event in rows)
    history = history_of(with_seen(events, _AT, _BROKER, seen, facts.recorded))
    for replica in history.replicas:
        yield "quorum_replicas", replica
    for happening in history.events:
        yield "quorum_events", happening


_Walk = Callable[[Any, Iterable[_Row], LakeFacts], _MartRows]
_EVENTS: dict[Any, Any] = {streams_rows: StreamsEvent, quorum_rows: QuorumEvent}


def writer(
    lake: Lake, prefix: str, walk: _Walk, keys: Sequence[str], facts: LakeFacts
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow` that returns the new files as JSON. `keys` are the columns that separate one walk
    from the next; the first is its name."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[_Row]:
        for batch in batches:
            columns = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
            whose = zip(*(columns[name] for name in keys), strict=True)
            yield from zip(whose, columns["broker"], events_from(_EVENTS[walk], columns), strict=True)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = RowFiles(lake, prefix)
        with rare_gc():
            for (key, *_), group in groupby(rows(batches), itemgetter(0)):
                for name, row in walk(key, group, facts):
                    files.add(name, row, key)
        new_files = [json.dumps(asdict(file)) for file in files.close()]
        yield pa.record_batch([pa.array(new_files, pa.string())], names=["file"])

    return write
