"""The records that one fetch acquired in one partition, and the acknowledgement of each. Marking a record costs little:
marks go to the broker with the next request."""

from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from itertools import count, repeat
from typing import TYPE_CHECKING

from kafkascope.client.share.values import Acknowledge, AcknowledgeRange, DeliveryId, SharePartition
from kafkascope.codec.records.record_data import Record
from kafkascope.errors import UsageError

if TYPE_CHECKING:
    from kafkascope.client.consumer.share_consumer import ShareConsumer

# Plain numbers: they are used for each record.
_ACCEPT, _RELEASE, _REJECT = int(Acknowledge.ACCEPT), int(Acknowledge.RELEASE), int(Acknowledge.REJECT)
_PAST = {1: "accepted", 2: "released", 3: "rejected"}


class Marked:
    """What marking a record returns: it may be awaited, and there is nothing to wait for."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_MARKED = Marked()


class ShareRecord:
    """A record that the application holds. `accept`, `release` and `reject` end that, `renew` restarts its lock."""

    __slots__ = ("_index", "_record", "batch")

    def __init__(self, batch: "ShareBatch", index: int, record: Record) -> None:
        self.batch, self._index, self._record = batch, index, record

    @property
    def topic(self) -> str:
        return self.batch.topic

    @property
    def partition(self) -> int:
        return self.batch.partition

    @property
    def offset(self) -> int:
        return self._record.offset

    @property
    def timestamp(self) -> int:
        return self._record.timestamp

    @property
    def key(self) -> bytes | None:
        return self._record.key

    @property
    def value(self) -> bytes | None:
        return self._record.value

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        return self._record.headers

    @property
    def delivery_count(self) -> int:
        return self.batch.delivery_counts[self._index]

    @property
    def lock_until(self) -> datetime | None:
        """When its lock ends, as far as is known here; None once it isn't held any more."""
        return self.batch._lock_until(self._record.offset)

    @property
    def acknowledged(self) -> str | None:
        """`accepted`, `released` or `rejected`; None while the application holds it."""
        return _PAST.get(self.batch._marks[self._index])

    def accept(self) -> Marked:
        """It is processed: nobody gets it again."""
        batch, index = self.batch, self._index
        # As `_mark` does: a call takes as long as all of this.
        if batch._marks[index] or batch._consumer._closed:
            batch._check_open(index)
        batch._marks[index] = _ACCEPT
        if not batch._listed:
            batch._list()
        return _MARKED

    def release(self) -> Marked:
        """It may be delivered again."""
        return self.batch._mark(self._index, _RELEASE)

    def reject(self) -> Marked:
        """It can't be processed: nobody gets it again."""
        return self.batch._mark(self._index, _REJECT)

    def renew(self) -> Marked:
        """Restarts its lock (4.2 and later). The record stays with the application."""
        self.batch._check_open(self._index)
        return self.batch._renew(self._record.offset, self._record.offset)

    def __repr__(self) -> str:
        # Keys and values may be private.
        return f"ShareRecord({self.topic}-{self.partition}, offset {self.offset}, delivery {self.delivery_count})"


class ShareBatch:
    """Iterating it gives each record as a `ShareRecord`; `records` are the codec's own. Acknowledging the batch covers
    the records in it that weren't acknowledged one by one."""

    __slots__ = (
        "__weakref__",
        "_consumer",
        "_delivery",
        "_listed",
        "_marks",
        "_sent",
        "delivery_counts",
        "lock_timeout",
        "partition",
        "records",
        "share_partition",
        "topic",
    )

    def __init__(
        self,
        consumer: "ShareConsumer",
        topic: str,
        share_partition: SharePartition,
        delivery: DeliveryId,
        records: list[Record],
        delivery_counts: list[int],
        lock_timeout: float,
    ) -> None:
        self.topic, self.share_partition, self.partition = topic, share_partition, share_partition.partition
        self._delivery = delivery
        self.records, self.delivery_counts = records, delivery_counts
        self.lock_timeout = lock_timeout
        self._consumer = consumer
        self._marks = bytearray(len(records))
        self._sent = bytearray(len(records))
        self._listed = False

    @property
    def node(self) -> int:
        return self._delivery.node

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[ShareRecord]:
        # Without a Python frame per record.
        return map(ShareRecord, repeat(self), count(), self.records)

    @property
    def open(self) -> int:
        """How many of its records are not acknowledged."""
        return self._marks.count(0)

    def accept(self) -> Marked:
        return self._mark_rest(Acknowledge.ACCEPT)

    def release(self) -> Marked:
        return self._mark_rest(Acknowledge.RELEASE)

    def reject(self) -> Marked:
        return self._mark_rest(Acknowledge.REJECT)

    def renew(self) -> Marked:
        return self._renew(self.records[0].offset, self.records[-1].offset)

    def _mark(self, index: int, kind: int) -> Marked:
        if self._marks[index] or self._consumer._closed:
            self._check_open(index)
        self._marks[index] = kind
        # After the mark: another thread takes marks once it has set this to False.
        if not self._listed:
            self._list()
        return _MARKED

    def _list(self) -> None:
        self._listed = True
        self._consumer._marked(self)

    def _mark_rest(self, kind: Acknowledge) -> Marked:
        self._consumer._check_running()
        self._marks = self._marks.replace(b"\0", bytes((kind,)))
        if not self._listed:
            self._list()
        return _MARKED

    def _renew(self, first: int, last: int) -> Marked:
        self._consumer._renew(self, first, last)
        return _MARKED

    def _check_open(self, index: int) -> None:
        if self._marks[index]:
            place = f"{self.topic}-{self.partition} offset {self.records[index].offset}"
            raise UsageError(f"{place} is {_PAST[self._marks[index]]} already")
        self._consumer._check_running()

    def _lock_until(self, offset: int) -> datetime | None:
        until = self._consumer._lock_until(self, offset)
        return None if until is None else datetime.fromtimestamp(until, UTC)

    def _take_marks(self) -> list[AcknowledgeRange]:
        """Those made since the last time, as ranges of neighbouring offsets."""
        self._listed = False
        marks, sent, records = bytes(self._marks), self._sent, self.records
        ranges: list[AcknowledgeRange] = []
        kind = marks[0]
        first, last = records[0].offset, records[-1].offset
        if kind and last - first == len(marks) - 1 and marks.count(kind) == len(marks) and not any(sent):
            self._sent = bytearray(marks)
            return [AcknowledgeRange(first, last, kind)]
        start = -1
        for index, mark in enumerate(marks):
            if not mark or sent[index]:
                continue
            offset = records[index].offset
            if start >= 0 and mark == kind and offset == last + 1:
                last = offset
                continue
            if start >= 0:
                ranges.append(AcknowledgeRange(first, last, kind))
            start, first, last, kind = index, offset, offset, mark
        if start >= 0:
            ranges.append(AcknowledgeRange(first, last, kind))
        self._sent = bytearray(marks)
        return ranges
