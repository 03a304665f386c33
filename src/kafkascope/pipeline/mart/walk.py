"""Events of groups, sorted, in; files of the marts that `health/` makes of them out. It runs inside a Spark task and
holds one group's events at a time."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter, itemgetter
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
from kafkascope.lake.marts import CLUSTER_ID, MARTS
from kafkascope.pipeline.mart.facts import Facts
from kafkascope.pipeline.mart.silence import with_seen

# Rows of a mart that are written together.
_SOME = 20_000
_LAST = 99
_OF_GROUP = frozenset(("heartbeat", "described", "offsets"))
_AT, _BROKER = attrgetter("at_us"), attrgetter("broker")

Found = Iterator[tuple[str, Any]]
# Key, broker, and the values of each kind of event that a row may become.
Row = tuple[Any, ...]


def share_rows(group_id: str, rows: Iterable[Row], facts: Facts) -> Found:
    """Of one group. What describes it is kept apart from what the ledger walks."""
    group: list[ShareGroupEvent] = []
    brokers: set[str | None] = set()

    def ledger() -> Iterator[ShareEvent]:
        for _, broker, event, of_group in rows:
            brokers.add(broker)
            if event[0] in _OF_GROUP:
                group.append(ShareGroupEvent._make(of_group))
            else:
                yield ShareEvent._make(event)

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
    timeline = timeline_of(StreamsEvent._make(event) for _, _, event in told)
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

    events = (QuorumEvent._make(event) for _, _, event in rows)
    history = history_of(with_seen(events, _AT, _BROKER, seen, facts.recorded))
    for replica in history.replicas:
        yield "quorum_replicas", replica
    for happening in history.events:
        yield "quorum_events", happening


KINDS: dict[Any, tuple[Any, ...]] = {
    share_rows: (ShareEvent, ShareGroupEvent),
    streams_rows: (StreamsEvent,),
    quorum_rows: (QuorumEvent,),
}
Walk = Callable[[Any, Iterable[Row], Facts], Found]


def writer(
    lake: Lake, prefix: str, walk: Walk, key: str, facts: Facts
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`: it gives the new files as JSON."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = Files(lake, "", prefix)
        kept: dict[str, list[tuple[Any, Any]]] = {}
        rows = (row for batch in batches for row in _rows(batch, key, KINDS[walk], facts.topics))
        for one, group in groupby(rows, itemgetter(0)):
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


def _rows(batch: pa.RecordBatch, key: str, kinds: tuple[Any, ...], topics: dict[str, str]) -> Iterator[Row]:
    """Nulls of a column that has a default are that default; a topic that has an id alone gets its name."""
    columns = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    if "topic" in columns:
        columns["topic"] = [
            topics.get(topic_id) if topic is None else topic
            for topic, topic_id in zip(columns["topic"], columns["topic_id"], strict=True)
        ]
    made = []
    for kind in kinds:
        of_kind = []
        for name in kind._fields:
            default = kind._field_defaults.get(name)
            values = columns[name]
            of_kind.append(values if default is None else [default if one is None else one for one in values])
        made.append(zip(*of_kind, strict=True))
    return zip(columns[key], columns["broker"], *made, strict=True)


def _table(name: str, rows: list[tuple[Any, Any]]) -> pa.Table:
    """`rows` are keys of walks and what they gave."""
    columns = []
    for field in MARTS[name].schema:
        values = [key if field == CLUSTER_ID else getattr(row, field.name) for key, row in rows]
        if pa.types.is_map(field.type):
            values = [list(value.items()) for value in values]
        plain = pa.int64() if pa.types.is_timestamp(field.type) else field.type
        columns.append(pa.array(values, plain).cast(field.type) if plain != field.type else pa.array(values, plain))
    return pa.table(columns, schema=MARTS[name].schema)
