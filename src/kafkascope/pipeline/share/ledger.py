"""Remembers the offsets of committed batches whose acknowledgement has no positive result yet, so that none is handed
out twice. It has no I/O."""

from collections.abc import Iterable, Iterator

from kafkascope.client.share.values import Acknowledge, Range, SharePartition
from kafkascope.pipeline.share.batch_offset import BatchOffset, PartitionRanges, Sets
from kafkascope.pipeline.share.ranges import OffsetSet

_ACCEPT, _REJECT = int(Acknowledge.ACCEPT), int(Acknowledge.REJECT)


class Ledger:
    """`accept` and `reject` are of committed batches: what is delivered again of them is acknowledged so."""

    def __init__(self) -> None:
        self.accept: Sets = {}
        self.reject: Sets = {}

    @property
    def offsets(self) -> int:
        return sum(offsets.offsets for sets in (self.accept, self.reject) for offsets in sets.values())

    @property
    def ranges(self) -> int:
        return sum(offsets.ranges for sets in (self.accept, self.reject) for offsets in sets.values())

    def restore(self, offset: BatchOffset) -> None:
        """What earlier runs left."""
        for kept, sets in ((self.accept, offset.accept), (self.reject, offset.reject)):
            for partition, offsets in sets.items():
                for first, last in offsets:
                    kept.setdefault(partition, OffsetSet()).add(first, last)

    def commit(self, partition: SharePartition, first: int, last: int, kind: int) -> None:
        """The sink has these; `kind` is how they are to be acknowledged. Released ones are redelivered."""
        kept = {_ACCEPT: self.accept, _REJECT: self.reject}.get(kind)
        if kept is not None:
            kept.setdefault(partition, OffsetSet()).add(first, last)

    def confirm(self, partition: SharePartition, first: int, last: int, kind: int) -> None:
        """The broker has stored the acknowledgement: these aren't redelivered."""
        kept = {_ACCEPT: self.accept, _REJECT: self.reject}.get(kind)
        if kept is not None and partition in kept:
            self._remove(kept, partition, first, last)

    def prune(self, partition: SharePartition, start_offset: int) -> None:
        """The share partition starts here: nothing before it is delivered any more."""
        for kept in (self.accept, self.reject):
            if partition in kept:
                self._remove(kept, partition, 0, start_offset - 1)

    def known(self, partition: SharePartition, first: int, last: int) -> Iterator[tuple[Range, int]]:
        """The parts that a committed batch had, and their acknowledgement."""
        for kind, kept in ((_ACCEPT, self.accept), (_REJECT, self.reject)):
            if partition in kept:
                for part in list(kept[partition].within(first, last)):
                    yield part, kind

    def fresh(self, partition: SharePartition, first: int, last: int) -> list[Range]:
        """The parts that no committed batch had."""
        parts = [Range(first, last)]
        for sets in (self.accept, self.reject):
            if partition in sets:
                parts = [rest for part in parts for rest in sets[partition].missing(part.first, part.last)]
        return parts

    @staticmethod
    def _remove(kept: Sets, partition: SharePartition, first: int, last: int) -> None:
        kept[partition].remove(first, last)
        if not kept[partition]:
            del kept[partition]


def copied(sets: Sets) -> Sets:
    return {partition: OffsetSet(offsets) for partition, offsets in sets.items()}


def spans(entries: Iterable[PartitionRanges]) -> Iterator[tuple[SharePartition, int, int]]:
    for entry in entries:
        for part in entry.ranges:
            yield entry.partition, part.first, part.last
