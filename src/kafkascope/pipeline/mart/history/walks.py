"""Turns the sorted events of streams groups and of quorums into their marts. Runs inside a Spark task, goes through one
group after the other, and stores the state of each at every mark of the plan."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

import pyarrow as pa

from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import QuorumHistory, QuorumWalk
from kafkascope.health.streams.events import StreamsEvent
from kafkascope.health.streams.group_health import health_of
from kafkascope.health.streams.timeline import StreamsWalk
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MART_STATE
from kafkascope.pipeline.mart.base.links import STATE, WALKS, state_row
from kafkascope.pipeline.mart.base.multi_writer import SegmentFiles
from kafkascope.pipeline.mart.base.new_files import OUTDATED
from kafkascope.pipeline.mart.base.row_files import RowFiles, events_from, rare_gc
from kafkascope.pipeline.mart.increments.plan import EVERY_ROW, Plan
from kafkascope.pipeline.mart.names.facts import LakeFacts
from kafkascope.pipeline.mart.names.silence import Silence

_LAST_ORDER = 99

_MartRows = Iterator[tuple[str, Any]]


class Walk(Protocol):
    """Of one group or cluster."""

    def feed(self, event: Any, /) -> None: ...
    def seen(self, at: int, broker: str, /) -> None: ...
    def taken(self) -> _MartRows:
        """Rows that no later event changes."""
        ...

    def state(self) -> object: ...
    def finish(self) -> _MartRows: ...
    @property
    def is_as_assumed(self) -> bool:
        """Whether rows taken earlier are still right."""
        ...


class _Streams:
    event = StreamsEvent

    def __init__(self, group_id: str, state: object = None) -> None:
        self._group_id, self._walk = group_id, StreamsWalk(state)

    def feed(self, event: StreamsEvent) -> None:
        self._walk.feed(event)

    def seen(self, at: int, _: str) -> None:
        self._walk.feed(StreamsEvent("seen", at, _LAST_ORDER, self._group_id))

    def taken(self) -> _MartRows:
        """None: a timeline has all its rows until the end."""
        return iter(())

    def state(self) -> object:
        return self._walk.state()

    def finish(self) -> _MartRows:
        timeline = self._walk.finish()
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

    @property
    def is_as_assumed(self) -> bool:
        return True


class _Quorum:
    event = QuorumEvent

    def __init__(self, _: str, state: object = None) -> None:
        self._walk = QuorumWalk(state)

    def feed(self, event: QuorumEvent) -> None:
        self._walk.feed(event)

    def seen(self, at: int, broker: str) -> None:
        self._walk.feed(QuorumEvent("seen", at, _LAST_ORDER, broker=broker))

    def taken(self) -> _MartRows:
        return _quorum_rows(self._walk.taken())

    def state(self) -> object:
        return self._walk.state()

    def finish(self) -> _MartRows:
        return _quorum_rows(self._walk.finish())

    @property
    def is_as_assumed(self) -> bool:
        return self._walk.is_as_assumed


def _quorum_rows(history: QuorumHistory) -> _MartRows:
    for replica in history.replicas:
        yield "quorum_replicas", replica
    for happening in history.events:
        yield "quorum_events", happening


STREAMS_WALK, QUORUM_WALK = _Streams, _Quorum
# What a group's columns are, the broker of an event, and the event or the state.
_Row = tuple[tuple[Any, ...], str | None, Any]
_Emit = Callable[[int, str, Any], None]


def walked(
    kind: Any, keys: tuple[Any, ...], rows: Iterable[_Row], facts: LakeFacts, plan: Plan,
    emit: _Emit, keep: Callable[[int, str], None],
) -> bool:  # fmt: skip
    """Goes through one group: `emit` gets rows with the start of their segment, `keep` the text of the state at a mark.
    Returns False if rows that were taken from the walk earlier are wrong by now."""
    walk: Walk = kind(keys[0])
    silence = Silence(facts.recorded)
    marks, start = list(plan.marks), plan.since

    def mark() -> None:
        nonlocal start
        at = marks.pop(0)
        for name, row in walk.taken():
            emit(start, name, row)
        state = {"last": silence.last, "brokers": list(silence.brokers), "walk": walk.state()}
        keep(at, json.dumps(state))
        start = at

    for _, broker, event in rows:
        if isinstance(event, str):
            walk, silence = _resumed(kind, keys, event, facts)
            continue
        at = event.at_us
        while marks and marks[0] <= at:
            mark()
        for tick in silence.before(at):
            walk.seen(*tick)
        walk.feed(event)
        silence.met(at, broker)
    while marks:
        mark()
    for tick in silence.after():
        walk.seen(*tick)
    for name, row in walk.finish():
        emit(start, name, row)
    return walk.is_as_assumed


def _resumed(kind: Any, keys: tuple[Any, ...], text: str, facts: LakeFacts) -> tuple[Walk, Silence]:
    """`ValueError` for a state that no walk leaves."""
    state = json.loads(text)
    last, brokers = state["last"], state["brokers"]
    if not (last is None or type(last) is int) or not all(isinstance(broker, str) for broker in brokers):
        raise ValueError("no walk leaves such a silence")
    return kind(keys[0], state["walk"]), Silence(facts.recorded, last, brokers)


def streams_rows(group_id: str, rows: Iterable[tuple[str, str | None, Any]], facts: LakeFacts) -> _MartRows:
    """The marts of one streams group, from all its events."""
    made: list[tuple[str, Any]] = []
    events = (((group_id,), broker, event) for _, broker, event in rows)
    walked(
        _Streams, (group_id,), events, facts, EVERY_ROW, lambda _, name, row: made.append((name, row)), lambda *_: None
    )
    return iter(made)


def writer(
    lake: Lake, plan: Plan, kind: Any, keys: Sequence[str], facts: LakeFacts
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow` that returns the new files as JSON. `keys` are the columns that separate one walk
    from the next; the first is its name."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[_Row]:
        for batch in batches:
            columns = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
            whose = zip(*(columns[name] for name in keys), strict=True)
            events = events_from(kind.event, columns)
            for place, text in enumerate(columns[STATE]):
                if text is not None:
                    events[place] = text
            yield from zip(whose, columns["broker"], events, strict=True)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files: dict[int, RowFiles] = {}
        states = SegmentFiles(lake, plan)
        listed: list[str] = []
        with rare_gc():
            for whose, group in groupby(rows(batches), itemgetter(0)):

                def emit(start: int, name: str, row: Any, key: Any = whose[0]) -> None:
                    if start not in files:
                        files[start] = RowFiles(lake, plan.prefix(start))
                    files[start].add(name, row, key)

                def keep(at: int, text: str, of: tuple[Any, ...] = whose) -> None:
                    states.add(
                        MART_STATE, state_row(plan, at, WALKS, {**dict(zip(keys, of, strict=True)), STATE: text})
                    )

                if not walked(kind, whose, group, facts, plan, emit, keep):
                    listed.append(OUTDATED)
        listed += [json.dumps(asdict(file)) for of_segment in files.values() for file in of_segment.close()]
        yield pa.record_batch([pa.array([*listed, *states.close()], pa.string())], names=["file"])

    return write
