"""Walks the partitions of share groups, one after the other, and writes their deliveries. Runs inside a Spark task and
holds one portion of a partition's events at a time."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkascope.health.share.book import FOREVER
from kafkascope.health.share.counted import ACKNOWLEDGED_OUTCOMES, MINUTE_US
from kafkascope.health.share.events import Delivery, ShareEvent
from kafkascope.health.share.ledger import Ledger
from kafkascope.health.share.limit import LimitEvidence, decided, is_undecided, limit_of
from kafkascope.health.state import decoded, encoded
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import CLUSTER_ID, MART_STATE, MARTS
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.write.files import NewFile, discard
from kafkascope.pipeline.mart.base.links import STATE, WALKS, state_row
from kafkascope.pipeline.mart.base.multi_writer import SegmentFiles
from kafkascope.pipeline.mart.base.new_files import OUTDATED, OutdatedError
from kafkascope.pipeline.mart.base.row_files import RowFiles, events_from, rare_gc
from kafkascope.pipeline.mart.increments.plan import Plan
from kafkascope.pipeline.mart.names.facts import LakeFacts
from kafkascope.pipeline.mart.share.ranges import events_of
from kafkascope.pipeline.mart.share.routes import WALK_KEYS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LAST_ORDER = 99
DELIVERIES = MARTS["share_deliveries"]
# Rows that the delivery limit of their group decides, once all its partitions have been walked. No commit names them.
_UNDECIDED = LakeTable(DELIVERIES.name, DELIVERIES.schema.append(CLUSTER_ID), None)

# A group of one cluster.
Group = tuple[str, str | None]


@dataclass(slots=True)
class Walked:
    """`brokers` are those that the events of a group name. `unsettled` are by mark the first minute of a group that has
    a delivery whose row isn't known there; None without one. `late` are minutes before the plan's start to which
    acknowledgements came."""

    files: list[NewFile] = field(default_factory=list)
    brokers: dict[Group, set[str]] = field(default_factory=dict)
    unsettled: dict[Group, list[int | None]] = field(default_factory=dict)
    late: dict[Group, set[int]] = field(default_factory=dict)


class PartitionWalk:
    """Of one partition of a group."""

    def __init__(
        self, group_id: str, events: Iterable[ShareEvent], facts: LakeFacts, group_end: int | None,
        state: Any = None,
    ) -> None:  # fmt: skip
        """`state` is what an earlier walk left: `ValueError` for one that none leaves."""
        self._group_id, self._facts, self._group_end = group_id, facts, group_end
        self._events, self._next = iter(events), list[ShareEvent]()
        if state is None:
            self._ledger, self.brokers, self._undecided = Ledger(), set[str](), list[Delivery]()
        else:
            ledger, rest = state
            self._ledger = Ledger(state=ledger)
            self.brokers, self._undecided = decoded(rest, _Rest)

    @property
    def evidence(self) -> LimitEvidence:
        return self._ledger.evidence

    @property
    def unsettled_minute(self) -> int | None:
        """The first minute of a row that is still to come."""
        times = [row.outcome_at if row.acquired_at is None else row.acquired_at for row in self._undecided]
        since = min((at for at in (*times, self._ledger.unsettled_since) if at is not None), default=None)
        return None if since is None else since // MINUTE_US

    def state(self) -> object:
        return [self._ledger.state(), encoded((self.brokers, self._undecided), _Rest)]

    def before(self, end: int) -> Iterator[Delivery]:
        """Rows that the events before a time settle. What the limit of the group decides comes in the end."""
        for delivery in self._ledger.walked(self._events_before(end)):
            if is_undecided(delivery):
                self._undecided.append(delivery)
            else:
                yield delivery

    def finish(self) -> Iterator[Delivery]:
        """All other rows, undecided ones among them."""
        yield from self.before(FOREVER)
        yield from self._undecided
        yield from self._ledger.deliveries(self._until_the_end())

    def _events_before(self, end: int) -> Iterator[ShareEvent]:
        brokers = self.brokers
        for event in chain(self._next, self._events):
            if event[1] >= end:
                self._next = [event]
                return
            broker = event.broker
            if broker is not None and broker not in brokers:
                brokers.add(broker)
            yield event
        self._next = []

    def _until_the_end(self) -> Iterator[ShareEvent]:
        """The recording of a broker goes on after its last event, and the group after this partition's."""
        ends = {broker: times[-1][1] for broker in self.brokers if (times := self._facts.recorded.get(broker))}
        for broker, at in sorted(ends.items()):
            yield ShareEvent("seen", at, _LAST_ORDER, self._group_id, broker=broker)
        if self._group_end is not None:
            yield ShareEvent("seen", self._group_end, _LAST_ORDER, self._group_id)


# Of the state of a walk: brokers, and rows that the limit of the group decides.
_Rest: Any = tuple[set[str], list[Delivery]]


def walk_partitions(lake: Lake, plan: Plan, events: "DataFrame", facts: LakeFacts, ends: Mapping[Group, int]) -> Walked:
    """`events` lie together by partition, in time order. `ends` is when the recording shows a group last.
    `OutdatedError` if rows before the plan's start lack what is known now."""
    walked, undecided = Walked(), []
    evidence: dict[Group, list[LimitEvidence]] = {}
    for row in events.mapInArrow(_writer(lake, plan, facts, ends), "kind string, value string").collect():
        if row.kind == OUTDATED:
            raise OutdatedError
        value = json.loads(row.value)
        if row.kind == "file":
            walked.files.append(NewFile(**value))
        elif row.kind == "undecided":
            undecided.append(NewFile(**value))
        else:
            group = (value["group_id"], value["cluster"])
            walked.brokers.setdefault(group, set()).update(value["brokers"])
            walked.late.setdefault(group, set()).update(value["late"])
            before = walked.unsettled.get(group, [None] * len(plan.marks))
            walked.unsettled[group] = [_first(*pair) for pair in zip(before, value["unsettled"], strict=True)]
            evidence.setdefault(group, []).append(_evidence(value))
    if undecided:
        limits = {group: limit_of(parts) for group, parts in evidence.items()}
        files = RowFiles(lake, plan.prefix(plan.tail))
        for group, delivery in _rows(lake, undecided):
            files.add(DELIVERIES.name, decided(delivery, limits[group]))
        walked.files += files.close()
        discard(lake, undecided)
    return walked


def _first(some: int | None, other: int | None) -> int | None:
    return min((minute for minute in (some, other) if minute is not None), default=None)


class _Files:
    """One task's, by the segments of their rows."""

    def __init__(self, lake: Lake, plan: Plan) -> None:
        self._lake, self._plan = lake, plan
        self._decided = {start: RowFiles(lake, plan.prefix(start)) for start in plan.starts}
        self._undecided = RowFiles(lake, f"{plan.prefix(plan.tail)}-undecided")
        self._states = SegmentFiles(lake, plan)

    def walk(self, walk: PartitionWalk, keys: tuple[Any, ...], topic: str | None) -> dict[str, Any]:
        """Returns what its group has to know."""
        unsettled, late = list[int | None](), set[int]()
        start = self._plan.since
        for mark in self._plan.marks:
            self._add(start, walk.before(mark), late)
            unsettled.append(walk.unsettled_minute)
            text = json.dumps([topic, walk.state()])
            state = {**dict(zip(WALK_KEYS, keys, strict=True)), STATE: text}
            self._states.add(MART_STATE, state_row(self._plan, mark, WALKS, state))
            start = mark
        self._add(start, walk.before(FOREVER), late)
        self._add_last(start, walk.finish(), late, keys[1])
        return {
            "group_id": keys[0], "cluster": keys[1], "brokers": sorted(walk.brokers), "unsettled": unsettled,
            "late": sorted(late), **asdict(walk.evidence),
        }  # fmt: skip

    def _add(self, start: int, rows: Iterator[Delivery], late: set[int]) -> None:
        files = self._decided[start]
        for delivery in self._noted(rows, late) if self._plan.since else rows:
            files.add(DELIVERIES.name, delivery)

    def _add_last(self, start: int, rows: Iterator[Delivery], late: set[int], cluster: str | None) -> None:
        files = self._decided[start]
        for delivery in self._noted(rows, late):
            if is_undecided(delivery):
                self._undecided.add(DELIVERIES.name, delivery, cluster, _UNDECIDED)
            else:
                files.add(DELIVERIES.name, delivery)

    def _noted(self, rows: Iterator[Delivery], late: set[int]) -> Iterator[Delivery]:
        since = self._plan.since
        for delivery in rows:
            at = delivery.outcome_at
            if at is not None and at < since and delivery.outcome in ACKNOWLEDGED_OUTCOMES:
                late.add(at // MINUTE_US)
            yield delivery

    def close(self) -> list[tuple[str, str]]:
        """Kind and text of each file."""
        files = [("file", file) for rows in self._decided.values() for file in rows.close()]
        files += [("undecided", file) for file in self._undecided.close()]
        return [(kind, json.dumps(asdict(file))) for kind, file in files] + [
            ("file", text) for text in self._states.close()
        ]


def _writer(
    lake: Lake, plan: Plan, facts: LakeFacts, ends: Mapping[Group, int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`: files, and what the partitions of a group show together, as JSON."""

    def events(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ShareEvent | str]]:
        for batch in batches:
            for columns in events_of(batch):
                # A topic that has an id alone gets its name.
                columns["topic"] = [
                    facts.topics.get(topic_id) if topic is None else topic
                    for topic, topic_id in zip(columns["topic"], columns["topic_id"], strict=True)
                ]
                whose = zip(*(columns[name] for name in WALK_KEYS), strict=True)
                made: list[Any] = events_from(ShareEvent, columns)
                for place, text in enumerate(columns.get(STATE, ())):
                    if text is not None:
                        made[place] = text
                yield from zip(whose, made, strict=True)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files, texts = _Files(lake, plan), list[tuple[str, str]]()
        with rare_gc():
            for keys, partition in groupby(events(batches), itemgetter(0)):
                group_id, cluster, topic_id, _ = keys
                topic, state = facts.topics.get(topic_id), None
                rest: Iterator[Any] = (event for _, event in partition)
                first = next(rest)
                if isinstance(first, str):
                    named, state = _stored(first)
                    if named != topic:
                        texts.append((OUTDATED, ""))
                else:
                    rest = chain((first,), rest)
                walk = PartitionWalk(group_id, rest, facts, ends.get((group_id, cluster)), state)
                texts.append(("shown", json.dumps(files.walk(walk, keys, topic))))
        texts += files.close()
        columns = [pa.array([text[index] for text in texts], pa.string()) for index in range(2)]
        yield pa.record_batch(columns, names=["kind", "value"])

    return write


def _stored(text: str) -> tuple[str | None, object]:
    """The topic's name, as it was known, and the state of the walk; `ValueError` for what no walk leaves."""
    topic, state = json.loads(text)
    if not (topic is None or isinstance(topic, str)):
        raise ValueError("no walk names such a topic")
    return topic, state


def _evidence(value: dict[str, Any]) -> LimitEvidence:
    archived, passed = ({int(count): at for count, at in value[name].items()} for name in ("archived", "passed"))
    return LimitEvidence(archived, passed)


def _rows(lake: Lake, files: list[NewFile]) -> Iterator[tuple[Group, Delivery]]:
    names = DELIVERIES.schema.names
    for file in files:
        place = file.place(lake)
        with filesystem_errors(place.uri), place.filesystem.open_input_file(place.path) as stream:
            for batch in pq.ParquetFile(stream).iter_batches():
                columns = {
                    field.name: (column.cast(pa.int64()) if pa.types.is_timestamp(field.type) else column).to_pylist()
                    for field, column in zip(batch.schema, batch.columns, strict=True)
                }
                groups = zip(columns["group_id"], columns[CLUSTER_ID.name], strict=True)
                rows = zip(*(columns[name] for name in names), strict=True)
                for group, row in zip(groups, rows, strict=True):
                    yield group, Delivery(*row)
