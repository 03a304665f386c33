"""Turns the sorted events of groups and clusters into the marts of `health/`. Runs inside a Spark task and holds one
group's events at a time."""

import gc
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby, repeat
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa

from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import history_of
from kafkascope.health.share.events import ShareEvent
from kafkascope.health.share.group_health import ShareGroupEvent, share_group_health
from kafkascope.health.share.ledger import share_deliveries
from kafkascope.health.streams.events import StreamsEvent
from kafkascope.health.streams.group_health import health_of
from kafkascope.health.streams.timeline import timeline_of
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import CLUSTER_ID, MARTS
from kafkascope.lake.write.files import Files
from kafkascope.pipeline.mart.facts import LakeFacts
from kafkascope.pipeline.mart.share_ranges import Columns, events_of
from kafkascope.pipeline.mart.silence import with_seen

# Rows of a mart that are written together.
_PORTION_ROWS = 20_000
# More objects than some events and rows allocate.
_GC_OBJECTS = 200_000
_LAST_ORDER = 99
_GROUP_KINDS = frozenset(("heartbeat", "described", "offsets"))
_AT, _BROKER = attrgetter("at_us"), attrgetter("broker")

_MartRows = Iterator[tuple[str, Any]]
# Keys, broker, event.
_Row = tuple[Any, ...]


def share_rows(group_id: str, rows: Iterable[_Row], facts: LakeFacts) -> _MartRows:
    """The marts of one share group. Its descriptions are kept apart from the events that the ledger walks."""
    group: list[ShareGroupEvent] = []
    brokers: set[str | None] = set()

    def ledger() -> Iterator[ShareEvent]:
        for _, broker, event in rows:
            brokers.add(broker)
            if event[0] in _GROUP_KINDS:
                group.append(event)
            else:
                yield event

    def seen(at: int, broker: str) -> ShareEvent:
        return ShareEvent("seen", at, _LAST_ORDER, group_id, broker=broker)

    deliveries = []
    for delivery in share_deliveries(with_seen(ledger(), _AT, _BROKER, seen, facts.recorded)):
        deliveries.append(delivery)
        yield "share_deliveries", delivery
    ends = [times[-1][1] for address, times in facts.recorded.items() if address in brokers]
    group += [ShareGroupEvent("seen", end, _LAST_ORDER, group_id) for end in ends]
    for minute in share_group_health(deliveries, group):
        yield "share_group_health", minute


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


def _share_events(batch: pa.RecordBatch, facts: LakeFacts) -> Iterator[tuple[Columns, list[Any]]]:
    """Adds the name of a topic that has only an id."""
    for columns in events_of(batch):
        columns["topic"] = [
            facts.topics.get(topic_id) if topic is None else topic
            for topic, topic_id in zip(columns["topic"], columns["topic_id"], strict=True)
        ]
        events = _events(ShareEvent, columns)
        of_group = [at for at, kind in enumerate(columns["kind"]) if kind in _GROUP_KINDS]
        if of_group:
            group_columns = {name: [columns[name][at] for at in of_group] for name in ShareGroupEvent._fields}
            for at, event in zip(of_group, _events(ShareGroupEvent, group_columns), strict=True):
                events[at] = event
        yield columns, events


def _reader_of(kind: Any) -> "_EventReader":
    def read(batch: pa.RecordBatch, _: LakeFacts) -> Iterator[tuple[Columns, list[Any]]]:
        columns = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
        yield columns, _events(kind, columns)

    return read


def _events(kind: Any, columns: Columns) -> list[Any]:
    """Nulls in a column with a default become the default."""
    field_values = []
    for name in kind._fields:
        default, values = kind._field_defaults.get(name), columns[name]
        field_values.append(values if default is None else [default if value is None else value for value in values])
    # The same as `_make`, without a Python call for each of millions.
    return list(map(tuple.__new__, repeat(kind), zip(*field_values, strict=True)))


_EventReader = Callable[[pa.RecordBatch, LakeFacts], Iterator[tuple[Columns, list[Any]]]]
_Walk = Callable[[Any, Iterable[_Row], LakeFacts], _MartRows]
_EVENT_READERS: dict[Any, _EventReader] = {
    share_rows: _share_events,
    streams_rows: _reader_of(StreamsEvent),
    quorum_rows: _reader_of(QuorumEvent),
}


def writer(
    lake: Lake, prefix: str, walk: _Walk, keys: Sequence[str], facts: LakeFacts
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow` that returns the new files as JSON. `keys` are the columns that separate one walk
    from the next; the first is its name."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[_Row]:
        for batch in batches:
            for columns, events in _EVENT_READERS[walk](batch, facts):
                whose = zip(*(columns[name] for name in keys), strict=True)
                yield from zip(whose, columns["broker"], events, strict=True)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = Files(lake, "", prefix)
        buffered: dict[str, list[tuple[Any, Any]]] = {}
        with _rare_gc():
            for (key, *_), group in groupby(rows(batches), itemgetter(0)):
                for name, row in walk(key, group, facts):
                    portion = buffered.setdefault(name, [])
                    portion.append((key, row))
                    if len(portion) >= _PORTION_ROWS:
                        files.add(MARTS[name], _table(name, portion))
                        portion.clear()
            for name, portion in buffered.items():
                if portion:
                    files.add(MARTS[name], _table(name, portion))
        new_files = [json.dumps(asdict(file)) for file in files.close()]
        yield pa.record_batch([pa.array(new_files, pa.string())], names=["file"])

    return write


@contextmanager
def _rare_gc() -> Iterator[None]:
    """Events and rows are many and have no cycles: searching for cycles every 700 objects takes a third of a walk."""
    before = gc.get_threshold()
    gc.set_threshold(_GC_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _table(name: str, portion: list[tuple[Any, Any]]) -> pa.Table:
    """`portion` has keys of walks and their rows."""
    schema = MARTS[name].schema
    names = [field.name for field in schema if field != CLUSTER_ID]
    keys, rows = zip(*portion, strict=True)
    values_by_name: dict[str, Any] = dict(zip(names, zip(*map(attrgetter(*names), rows), strict=True), strict=True))
    columns = []
    for field in schema:
        values = values_by_name.get(field.name, keys)
        if pa.types.is_map(field.type):
            values = [list(value.items()) for value in values]
        plain = pa.int64() if pa.types.is_timestamp(field.type) else field.type
        columns.append(pa.array(values, plain).cast(field.type) if plain != field.type else pa.array(values, plain))
    return pa.table(columns, schema=schema)
