"""Walks the metadata log of a cluster and gives what held from when to when, and what changed in partitions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kafkascope.health.disks.image import Facts, Key, MetadataImage
from kafkascope.health.disks.metadata_records import MetadataRecord
from kafkascope.health.disks.rows import MetadataRow, PartitionEvent
from kafkascope.health.disks.runs import Run

METADATA_AT, PARTITION_EVENTS = "metadata_at", "partition_events"
_BEGIN, _END, _ABORT = "begin_transaction_record", "end_transaction_record", "abort_transaction_record"
READ_TYPES = (_BEGIN, _END, _ABORT)

MartRows = Iterator[tuple[str, Any]]


def history_of(cluster_id: str | None, records: Iterable[MetadataRecord], runs: Sequence[Run]) -> MartRows:
    """`records` in order: those of the runs' snapshots at their offsets, those of the log after them."""
    history = _History(cluster_id)
    runs_left = list(runs)
    run: Run | None = None
    for record in records:
        at = record.offset if record.snapshot_offset is None else record.snapshot_offset
        while runs_left and at >= runs_left[0].base:
            if run is not None or history.open:
                yield from history.leave(run.end if run is not None else at)
            run = runs_left.pop(0)
            history.enter(MetadataImage())
        if run is None or at < run.base or (record.snapshot_offset is None and at >= run.end):
            continue
        if record.snapshot_offset is not None and record.file != run.snapshot:
            continue
        yield from history.read(record, at)
    yield from history.finish()


class _History:
    def __init__(self, cluster_id: str | None) -> None:
        self.cluster_id = cluster_id
        self.open: dict[Key, tuple[Facts, int, int | None]] = {}
        self._image = MetadataImage()
        self._in_transaction: list[MetadataRecord] | None = None
        self._last_at: int | None = None

    def enter(self, image: MetadataImage) -> None:
        self._image, self._in_transaction = image, None

    def leave(self, offset: int) -> MartRows:
        """What held at the end of a run isn't known to hold any longer."""
        for key in list(self.open):
            yield self._close(key, offset, self._last_at)

    def read(self, record: MetadataRecord, at: int) -> MartRows:
        if record.at_us is not None:
            self._last_at = record.at_us
        if record.type == _BEGIN:
            self._in_transaction = []
        elif record.type == _ABORT:
            self._in_transaction = None
        elif record.type == _END:
            held, self._in_transaction = self._in_transaction or [], None
            for earlier in held:
                yield from self._apply(earlier, at, record.at_us)
        elif self._in_transaction is not None:
            self._in_transaction.append(record)
        else:
            yield from self._apply(record, at, record.at_us)

    def finish(self) -> MartRows:
        for key in list(self.open):
            yield self._close(key, None, None)

    def _apply(self, record: MetadataRecord, at: int, at_us: int | None) -> MartRows:
        for key, facts in self._image.apply(record.type, record.value):
            before = self.open.get(key)
            if key[0] == "partition" and record.snapshot_offset is None:
                event = self._event(key, None if before is None else before[0], facts, at, at_us)
                if event is not None:
                    yield PARTITION_EVENTS, event
            if before is not None:
                yield self._close(key, at, at_us)
            if facts is not None:
                self.open[key] = (facts, at, at_us)

    def _close(self, key: Key, to_offset: int | None, to_at: int | None) -> tuple[str, MetadataRow]:
        facts, from_offset, from_at = self.open.pop(key)
        row = MetadataRow(self.cluster_id, key[0], **facts)
        return METADATA_AT, replace(row, from_offset=from_offset, from_at=from_at, to_offset=to_offset, to_at=to_at)

    def _event(
        self, key: Key, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, at: int, at_us: int | None
    ) -> PartitionEvent | None:
        facts = after or before
        assert facts is not None
        old, new = before or _NOTHING, after or _NOTHING
        if before is None or after is None:
            kind = "created" if before is None else "deleted"
        elif old["leader"] != new["leader"]:
            kind = "leader"
        elif sorted(old["isr"]) != sorted(new["isr"]):
            kind = "isr"
        elif old["replicas"] != new["replicas"]:
            kind = "replicas"
        else:
            return None
        return PartitionEvent(
            self.cluster_id, at_us, at, kind, facts["topic"], key[1], key[2], old["leader"], new["leader"],
            facts["leader_epoch"], old["isr"], new["isr"], old["replicas"], new["replicas"],
        )  # fmt: skip


_NOTHING: Mapping[str, Any] = {"leader": None, "isr": [], "replicas": []}
