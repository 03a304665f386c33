"""What Spark's offset log keeps of a batch: the acquired ranges that are its records, and the ledger of earlier batches
that the group may deliver again. As JSON and back, the same value; its size is bounded by limits.

    {"version": 1, "batch": 7, "member": "YkD…", "at": 1763500000000,
     "records": [["orders", "z1V…", 0, 3, [[120, 499, 1, 30000], …], 87], …],
     "accept": [["z1V…", 0, [[100, 119]]], …], "reject": [], "dead": []}

An entry of `records` is topic, topic id, partition, the newest leader epoch of its record batches, the ranges (first
and last offset, delivery count, and when the first lock ended, in ms after `at`), and the bytes of a record in the log,
for the size of fetches."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from kafkascope.client.routing import uuid_key
from kafkascope.client.share.values import SharePartition
from kafkascope.codec.json_form import parse_uuid
from kafkascope.errors import InputError
from kafkascope.pipeline.share.ranges import OffsetSet

VERSION = 1
Sets = dict[SharePartition, OffsetSet]


class LoggedRange(NamedTuple):
    """Acquired offsets; `until` is the end of their first lock, in ms after the batch's `at`."""

    first: int
    last: int
    delivery_count: int
    until: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class PartitionRanges:
    """Ranges ascend. `epoch` is −1 if unknown, `record_bytes` 0."""

    topic: str
    partition: SharePartition
    epoch: int
    ranges: tuple[LoggedRange, ...]
    record_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BatchOffset:
    """`batch` counts the batches of this query with records. `accept` and `reject` are of earlier, committed batches:
    their acknowledgements had no positive result when this batch was made. `dead` are records of this batch that go to
    the dead letters instead of the stream."""

    batch: int
    member: str
    at: int = 0
    records: tuple[PartitionRanges, ...] = ()
    dead: tuple[PartitionRanges, ...] = ()
    accept: Sets = field(default_factory=dict)
    reject: Sets = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(part.size for entry in self.records for part in entry.ranges)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "batch": self.batch,
            "member": self.member,
            "at": self.at,
            "records": _rows(self.records),
            "dead": _rows(self.dead),
            "accept": _set_rows(self.accept),
            "reject": _set_rows(self.reject),
        }


def parse_offset(value: Mapping[str, Any]) -> BatchOffset:
    """`InputError` for what this version never wrote: a checkpoint of another source, or of a later version."""
    if not isinstance(value, Mapping) or value.get("version") != VERSION:
        raise InputError(
            "this isn't a checkpoint of kafkascope-share, or a later version wrote it; use another checkpoint"
        )
    try:
        return BatchOffset(
            _whole(value["batch"]),
            str(value["member"]),
            _whole(value["at"]),
            _entries(value["records"]),
            _entries(value["dead"]),
            _sets(value["accept"]),
            _sets(value["reject"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the checkpoint's offset can't be read: {type(error).__name__}; use another one") from None


def _rows(entries: Iterable[PartitionRanges]) -> list[Any]:
    return [
        [entry.topic, uuid_key(entry.partition.topic_id), entry.partition.partition, entry.epoch,
         [list(part) for part in entry.ranges], entry.record_bytes]
        for entry in entries
    ]  # fmt: skip


def _entries(rows: Any) -> tuple[PartitionRanges, ...]:
    return tuple(
        PartitionRanges(
            str(topic), _partition(topic_id, number), _whole(epoch), _ascending(ranges), _whole(more[0]) if more else 0
        )
        for topic, topic_id, number, epoch, ranges, *more in rows
    )


def _ascending(rows: Any) -> tuple[LoggedRange, ...]:
    ranges = tuple(_logged(*part) for part in rows)
    if not ranges or any(part.first <= before.last for before, part in pairwise(ranges)):
        raise ValueError
    return ranges


def _logged(first: Any, last: Any, count: Any, until: Any) -> LoggedRange:
    part = LoggedRange(_whole(first), _whole(last), _whole(count), _whole(until))
    if not 0 <= part.first <= part.last:
        raise ValueError
    return part


def _set_rows(sets: Sets) -> list[Any]:
    return [
        [uuid_key(partition.topic_id), partition.partition, [list(part) for part in offsets]]
        for partition, offsets in sorted(sets.items())
        if offsets
    ]


def _sets(rows: Any) -> Sets:
    return {
        _partition(topic_id, number): OffsetSet((_whole(first), _whole(last)) for first, last in ranges)
        for topic_id, number, ranges in rows
    }


def _partition(topic_id: Any, number: Any) -> SharePartition:
    return SharePartition(parse_uuid(topic_id), _whole(number))


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError
    return value
