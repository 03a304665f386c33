"""Decides without I/O which acquired records become a batch, which are redeliveries of committed ones, and what is
acknowledged when: nothing before Spark has committed it, and nothing is handed out twice."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from struct import Struct

from kafkascope.client.share.member import ShareMember
from kafkascope.client.share.values import NOT_HELD, Acknowledge, AcknowledgeResult, Delivery, SharePartition
from kafkascope.limits import MAX_BATCH_RANGES
from kafkascope.pipeline.share.batch_offset import BatchOffset, LoggedRange, PartitionRanges, Sets
from kafkascope.pipeline.share.ledger import Ledger, copied, spans

# A lock is renewed when less than this part of its time is left.
_RENEW_AT = 0.5
_DEFAULT_LOCK = 30.0
# Ends of locks as close as this are one.
_SAME_MS = 1_000
_BATCH_START = Struct(">qii")
_BATCH_OVERHEAD = 12
_EVERYTHING = 2**63 - 1
_Fresh = tuple[int, int, int, float]


@dataclass(slots=True)
class BatchCounts:
    """Of records, since the start: handed to Spark; lock ended before their batch was committed; known from a committed
    batch when they were delivered again."""

    handed_out: int = 0
    expired: int = 0
    known_again: int = 0


class Batches:
    """`open` is the batch that Spark has in hand, `committed` the number of the last one that it committed."""

    def __init__(self, member: ShareMember, start: BatchOffset, *, renews: bool) -> None:
        self.member = member
        self.ledger = Ledger()
        self.ledger.restore(start)
        self.counts = BatchCounts()
        self.renews = renews
        self.lock = _DEFAULT_LOCK
        self.open: BatchOffset | None = None
        self.committed = -1
        # What was delivered more often goes to the dead letters; None if nothing does.
        self.most_deliveries: int | None = None
        # Nothing from these offsets on is handed out; None without such an end.
        self.targets: Mapping[SharePartition, int] | None = None
        self._epochs: dict[SharePartition, int] = {}
        # Of a record, by the last delivery.
        self._record_bytes: dict[SharePartition, float] = {}

    def before_poll(self, now: float) -> None:
        """Takes over what was delivered, and renews locks."""
        deliveries = self.member.deliveries
        while deliveries:
            self._take_over(deliveries.popleft(), now)
        if self.renews:
            for partition, acquired, until in list(self.member.waiting()):
                if now < until < now + self.lock * _RENEW_AT:
                    self.member.acknowledge(now, partition, acquired.first, acquired.last, Acknowledge.RENEW)

    def take_results(self) -> list[AcknowledgeResult]:
        results, self.member.results = self.member.results, []
        for result in results:
            if result.code == 0:
                self.ledger.confirm(result.partition, result.first, result.last, result.type)
        return results

    def fresh(self, now: float) -> dict[SharePartition, list[_Fresh]]:
        """Locked records that no committed batch had, while none is open: first and last offset, delivery count, end
        of the lock."""
        fresh: dict[SharePartition, list[_Fresh]] = {}
        for partition, acquired, until in self.member.waiting():
            if until <= now:
                continue
            end = _EVERYTHING if self.targets is None else self.targets.get(partition, 0) - 1
            for part in self.ledger.fresh(partition, acquired.first, min(acquired.last, end)):
                fresh.setdefault(partition, []).append((part.first, part.last, acquired.delivery_count, until))
        return {partition: _disjoint(parts) for partition, parts in fresh.items()}

    def fresh_offsets(self, now: float) -> int:
        return sum(last - first + 1 for parts in self.fresh(now).values() for first, last, _, _ in parts)

    def make(self, start: BatchOffset, limit: int, now: float, clock: float) -> BatchOffset | None:
        """The batch after `start`; `clock` is the time of day at `now`. None if there's nothing for it."""
        records: list[PartitionRanges] = []
        dead: list[PartitionRanges] = []
        left, ranges_left = limit, MAX_BATCH_RANGES
        for partition, parts in sorted(self.fresh(now).items()):
            kept: tuple[list[LoggedRange], list[LoggedRange]] = ([], [])
            for first, last, count, until in parts:
                if not left or not ranges_left:
                    break
                part = LoggedRange(first, min(last, first + left - 1), count, round((until - now) * 1000))
                left -= part.size
                ranges = kept[self.most_deliveries is not None and count > self.most_deliveries]
                if ranges and _continues(ranges[-1], part):
                    ranges[-1] = ranges[-1]._replace(last=part.last)
                else:
                    ranges.append(part)
                    ranges_left -= 1
            for entries, ranges in zip((records, dead), kept, strict=True):
                if ranges:
                    name, epoch = self.member.names[partition.topic_id], self._epochs.get(partition, -1)
                    size = round(self._record_bytes.get(partition, 0))
                    entries.append(PartitionRanges(name, partition, epoch, tuple(ranges), size))
        if not records and not dead:
            return None
        batch = BatchOffset(
            batch=start.batch + 1,
            member=start.member,
            at=round(clock * 1000),
            records=tuple(records),
            dead=tuple(dead),
            accept=copied(self.ledger.accept),
            reject=copied(self.ledger.reject),
        )
        self.counts.handed_out += batch.size
        self.open = batch
        return batch

    def commit(self, offset: BatchOffset, now: float, release: Sets, reject: Sets) -> None:
        """Spark has committed this batch: its records are accepted, except those that the application has released or
        rejected."""
        if offset.batch <= self.committed:
            return
        ours = self.open is not None and self.open.batch == offset.batch
        self.committed = offset.batch
        for partition, first, last in spans(offset.records):
            for kind, start, end in _kinds(partition, first, last, release, reject):
                self._commit(partition, start, end, kind, now, ours=ours)
        for partition, first, last in spans(offset.dead):
            self._commit(partition, first, last, Acknowledge.REJECT, now, ours=ours)
        if ours:
            self.open = None

    def prune(self, starts: Mapping[SharePartition, int], done: set[SharePartition]) -> None:
        """The group is done with what is before these offsets, and with everything in `done`."""
        for partition, start in starts.items():
            self.ledger.prune(partition, _EVERYTHING if partition in done else start)

    def _commit(
        self, partition: SharePartition, first: int, last: int, kind: Acknowledge, now: float, *, ours: bool
    ) -> None:
        """Acknowledged where the lock is still ours; the rest is redelivered, and the ledger knows it."""
        self.ledger.commit(partition, first, last, kind)
        before = len(self.member.results)
        # Also where a renewal is under way.
        self.member.acknowledge(now, partition, first, last, kind)
        if ours:
            refused = self.member.results[before:]
            self.counts.expired += sum(result.records for result in refused if result.code == NOT_HELD)

    def _take_over(self, delivery: Delivery, now: float) -> None:
        """Its record data is dropped: executors fetch what they need."""
        self.lock = delivery.lock
        partition = delivery.partition
        self._epochs[partition] = max(_newest_epoch(delivery.data), self._epochs.get(partition, -1))
        self._record_bytes[partition] = len(delivery.data) / delivery.offsets
        for first, last, _ in delivery.acquired:
            for part, kind in list(self.ledger.known(partition, first, last)):
                self.counts.known_again += part.size
                self.member.acknowledge(now, partition, part.first, part.last, kind)


def _disjoint(parts: list[_Fresh]) -> list[_Fresh]:
    """In order, each offset once: a late response of an old leader may have what the new one has locked too."""
    disjoint: list[_Fresh] = []
    end = -1
    for first, last, count, until in sorted(parts):
        if last >= end:
            disjoint.append((max(first, end), last, count, until))
            end = last + 1
    return disjoint


def _continues(previous: LoggedRange, part: LoggedRange) -> bool:
    same = previous.last == part.first - 1 and previous.delivery_count == part.delivery_count
    return same and abs(previous.until - part.until) < _SAME_MS


def _kinds(
    partition: SharePartition, first: int, last: int, release: Sets, reject: Sets
) -> Iterator[tuple[Acknowledge, int, int]]:
    """The range in parts by how they are acknowledged; what is both released and rejected is released."""
    rest = [(first, last)]
    for kind, sets in ((Acknowledge.RELEASE, release), (Acknowledge.REJECT, reject)):
        if partition not in sets:
            continue
        others: list[tuple[int, int]] = []
        for start, end in rest:
            for part in sets[partition].within(start, end):
                yield kind, part.first, part.last
            others += sets[partition].missing(start, end)
        rest = others
    for start, end in rest:
        yield Acknowledge.ACCEPT, start, end


def _newest_epoch(data: bytes) -> int:
    """The newest leader epoch in the headers of its batches; −1 without one."""
    epoch, position = -1, 0
    while position + _BATCH_START.size <= len(data):
        _, length, leader_epoch = _BATCH_START.unpack_from(data, position)
        if length <= 0:
            break
        epoch = max(epoch, leader_epoch)
        position += _BATCH_OVERHEAD + length
    return epoch
