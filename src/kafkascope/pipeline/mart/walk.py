"""Events of groups, sorted, in; files of the marts that `health/` makes of them out. It runs inside a Spark task and
holds one group's events at a time."""

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
from kafkascope.pipeline.mart.facts import Facts
from kafkascope.pipeline.mart.share_ranges import Columns, events_of
from kafkascope.pipeline.mart.silence import with_seen

# Rows of a mart that are written together.
_SOME = 20_000
# More than come and go with some events and some rows.
_OBJECTS = 200_000
_LAST = 99
_OF_GROUP = frozenset(("heartbeat", "described", "offsets"))
_AT, _BROKER = attrgetter("at_us"), attrgetter("broker")

Found = Iterator[tuple[str, Any]]
# Keys, broker, event.
Row = tuple[Any, ...]


def share_rows(group_id: str, rows: Iterable[Row], facts: Facts) -> Found:
    """Of one group. What describes it is kept apart from what the ledger walks."""
    group: list[ShareGroupEvent] = []
    brokers: set[str | None] = set()

    def ledger() -> Iterator[ShareEvent]:
        for _, broker, event in rows:
            brokers.add(broker)
            if event[0] in _OF_GROUP:
                group.append(event)
            else:
                yield event

    def seen(at: int, broker: str) -> ShareEvent:
        return ShareEvent("seen", at, _LAST, group_id, broker=broker)

    deliveries = []
    for delivery in share_deliveries(with_seen(ledger(), _AT, _BROKER, seen, facts.recorded)):
        deliveries.append(delivery)
        yield "share_deliveries", delivery
    ends = [times[-1][1] for address, times in facts.recorded.items() if address in brokers]
    group += [ShareGroupEvent("seen", end, _LAST, group_id) for end in ends]
    for minute in share_group_health(deliveries, group):
        yield "share_group_health", minute


def streams_rows(group_id: str, rows: Iterable[Row], facts: Facts) -> Found:
    """Of one group."""

    def seen(at: int, broker: str) -> Row:
        return group_id, broker, StreamsEvent("seen", at, _LAST, group_id)

    told = with_seen(rows, lambda row: int(row[2][1]), itemgetter(1), seen, facts.recorded)
    timeline = timeline_of(event for _, _, event in told)
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


def quorum_rows(_: str, rows: Iterable[Row], facts: Facts) -> Found:
    """Of one cluster."""

    def seen(at: int, broker: str) -> QuorumEvent:
        return QuorumEvent("seen", at, _LAST, broker=broker)

    events = (event for _, _, event in rows)
    history = history_of(with_seen(events, _AT, _BROKER, seen, facts.recorded))
    for replica in history.replicas:
        yield "quorum_replicas", replica
    for happening in history.events:
        yield "quorum_events", happening


def share_columns(batch: pa.RecordBatch, facts: Facts) -> Iterator[tuple[Columns, list[Any]]]:
    """A topic that has an id alone gets its name."""
    for columns in events_of(batch):
        columns["topic"] = [
            facts.topics.get(topic_id) if topic is None else topic
            for topic, topic_id in zip(columns["topic"], columns["topic_id"], strict=True)
        ]
        events = _events(ShareEvent, columns)
        of_group = [at for at, kind in enumerate(columns["kind"]) if kind in _OF_GROUP]
        if of_group:
            some = {name: [columns[name][at] for at in of_group] for name in ShareGroupEvent._fields}
            for at, event in zip(of_group, _events(ShareGroupEvent, some), strict=True):
                events[at] = event
        yield columns, events


def columns_of(kind: Any) -> "Reading":
    def read(batch: pa.RecordBatch, _: Facts) -> Iterator[tuple[Columns, list[Any]]]:
        columns = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
        yield columns, _events(kind, columns)

    return read


def _events(kind: Any, columns: Columns) -> list[Any]:
    """Nulls of a column that has a default are that default."""
    given = []
    for name in kind._fields:
        default, values = kind._field_defaults.get(name), columns[name]
        given.append(values if default is None else [default if one is None else one for one in values])
    # As `_make` does it, without a call in Python for each of millions.
    return list(map(tuple.__new__, repeat(kind), zip(*given, strict=True)))


Reading = Callable[[pa.RecordBatch, Facts], Iterator[tuple[Columns, list[Any]]]]
Walk = Callable[[Any, Iterable[Row], Facts], Found]
READINGS: dict[Any, Reading] = {
    share_rows: share_columns,
    streams_rows: columns_of(StreamsEvent),
    quorum_rows: columns_of(QuorumEvent),
}


def writer(
    lake: Lake, prefix: str, walk: Walk, keys: Sequence[str], facts: Facts
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`: it gives the new files as JSON. `keys` are the columns that tell one walk from the
    next; the first is its name."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        for batch in batches:
            for columns, events in READINGS[walk](batch, facts):
                whose = zip(*(columns[name] for name in keys), strict=True)
                yield from zip(whose, columns["broker"], events, strict=True)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = Files(lake, "", prefix)
        kept: dict[str, list[tuple[Any, Any]]] = {}
        with _collecting_seldom():
            for (one, *_), group in groupby(rows(batches), itemgetter(0)):
                for name, row in walk(one, group, facts):
                    some = kept.setdefault(name, [])
                    some.append((one, row))
                    if len(some) >= _SOME:
                        files.add(MARTS[name], _table(name, some))
                        some.clear()
            for name, some in kept.items():
                if some:
                    files.add(MARTS[name], _table(name, some))
        said = [json.dumps(asdict(file)) for file in files.close()]
        yield pa.record_batch([pa.array(said, pa.string())], names=["file"])

    return write


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Events and rows are many and hold no circles: looking for these every 700 objects is a third of a walk."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _table(name: str, kept: list[tuple[Any, Any]]) -> pa.Table:
    """`kept` are keys of walks and what they gave."""
    schema = MARTS[name].schema
    names = [field.name for field in schema if field != CLUSTER_ID]
    keys, rows = zip(*kept, strict=True)
    given: dict[str, Any] = dict(zip(names, zip(*map(attrgetter(*names), rows), strict=True), strict=True))
    columns = []
    for field in schema:
        values = given.get(field.name, keys)
        if pa.types.is_map(field.type):
            values = [list(value.items()) for value in values]
        plain = pa.int64() if pa.types.is_timestamp(field.type) else field.type
        columns.append(pa.array(values, plain).cast(field.type) if plain != field.type else pa.array(values, plain))
    return pa.table(columns, schema=schema)
