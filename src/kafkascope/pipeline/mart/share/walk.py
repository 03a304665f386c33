"""Walks the partitions of share groups, one after the other, and writes their deliveries. Runs inside a Spark task and
holds one portion of a partition's events at a time."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkascope.health.share.events import Delivery, ShareEvent
from kafkascope.health.share.ledger import Ledger
from kafkascope.health.share.limit import LimitEvidence, decided, is_undecided, limit_of
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import CLUSTER_ID, MARTS
from kafkascope.lake.place import filesystem_errors
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.write.files import NewFile, discard
from kafkascope.pipeline.mart.base.row_files import RowFiles, events_from, rare_gc
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
    """`brokers` are those that the events of a group name."""

    files: list[NewFile] = field(default_factory=list)
    brokers: dict[Group, set[str]] = field(default_factory=dict)


class PartitionWalk:
    """Of one partition of a group."""

    def __init__(self, group_id: str, facts: LakeFacts, group_end: int | None) -> None:
        self._group_id, self._facts, self._group_end = group_id, facts, group_end
        self._ledger = Ledger()
        self.brokers: set[str] = set()

    @property
    def evidence(self) -> LimitEvidence:
        return self._ledger.evidence

    def deliveries(self, events: Iterable[ShareEvent]) -> Iterator[Delivery]:
        return self._ledger.deliveries(self._until_the_end(events))

    def _until_the_end(self, events: Iterable[ShareEvent]) -> Iterator[ShareEvent]:
        """The recording of a broker goes on after its last event, and the group after this partition's."""
        brokers = self.brokers
        for event in events:
            broker = event.broker
            if broker is not None and broker not in brokers:
                brokers.add(broker)
            yield event
        ends = {broker: times[-1][1] for broker in brokers if (times := self._facts.recorded.get(broker))}
        for broker, at in sorted(ends.items()):
            yield ShareEvent("seen", at, _LAST_ORDER, self._group_id, broker=broker)
        if self._group_end is not None:
            yield ShareEvent("seen", self._group_end, _LAST_ORDER, self._group_id)


def walk_partitions(
    lake: Lake, prefix: str, events: "DataFrame", facts: LakeFacts, ends: Mapping[Group, int]
) -> Walked:
    """`events` lie together by partition, in time order. `ends` is when the recording shows a group last."""
    walked, undecided = Walked(), []
    evidence: dict[Group, list[LimitEvidence]] = {}
    for row in events.mapInArrow(_writer(lake, prefix, facts, ends), "kind string, value string").collect():
        value = json.loads(row.value)
        if row.kind == "file":
            walked.files.append(NewFile(**value))
        elif row.kind == "undecided":
            undecided.append(NewFile(**value))
        else:
            group = (value["group_id"], value["cluster"])
            walked.brokers.setdefault(group, set()).update(value["brokers"])
            evidence.setdefault(group, []).append(_evidence(value))
    if undecided:
        limits = {group: limit_of(parts) for group, parts in evidence.items()}
        files = RowFiles(lake, prefix)
        for group, delivery in _rows(lake, undecided):
            files.add(DELIVERIES.name, decided(delivery, limits[group]))
        walked.files += files.close()
        discard(lake, undecided)
    return walked


def _writer(
    lake: Lake, prefix: str, facts: LakeFacts, ends: Mapping[Group, int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`: files, and what the partitions of a group show together, as JSON."""

    def events(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ShareEvent]]:
        for batch in batches:
            for columns in events_of(batch):
                # A topic that has an id alone gets its name.
                columns["topic"] = [
                    facts.topics.get(topic_id) if topic is None else topic
                    for topic, topic_id in zip(columns["topic"], columns["topic_id"], strict=True)
                ]
                whose = zip(*(columns[name] for name in WALK_KEYS), strict=True)
                yield from zip(whose, events_from(ShareEvent, columns), strict=True)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files, open_rows = RowFiles(lake, prefix), RowFiles(lake, f"{prefix}-undecided")
        shown: list[dict[str, Any]] = []
        with rare_gc():
            for (group_id, cluster, *_), partition in groupby(events(batches), itemgetter(0)):
                walk = PartitionWalk(group_id, facts, ends.get((group_id, cluster)))
                for delivery in walk.deliveries(event for _, event in partition):
                    if is_undecided(delivery):
                        open_rows.add(DELIVERIES.name, delivery, cluster, _UNDECIDED)
                    else:
                        files.add(DELIVERIES.name, delivery)
                limit = asdict(walk.evidence)
                shown.append({"group_id": group_id, "cluster": cluster, "brokers": sorted(walk.brokers), **limit})
        values = [("file", asdict(file)) for file in files.close()]
        values += [("undecided", asdict(file)) for file in open_rows.close()]
        values += [("shown", value) for value in shown]
        texts = [(kind, json.dumps(value)) for kind, value in values]
        columns = [pa.array([text[index] for text in texts], pa.string()) for index in range(2)]
        yield pa.record_batch(columns, names=["kind", "value"])

    return write


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
