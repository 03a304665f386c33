"""Counts what partitions hold: batches, records, bytes, compressions, record types and transactions."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kafkascope.limits import MAX_FOLLOWED_PRODUCERS
from kafkascope.logs.batches import Batch, Damage
from kafkascope.logs.directories import LogFile


@dataclass(slots=True)
class PartitionStats:
    """One partition of one broker. `open_transactions` are producers whose last transaction has no marker yet, with its
    first offset: the smallest holds the last stable offset back."""

    files: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    damaged_bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    earliest_ms: int | None = None
    latest_ms: int | None = None
    compressions: Counter[str] = field(default_factory=Counter)
    record_types: Counter[str] = field(default_factory=Counter)
    tombstones: int = 0
    committed: int = 0
    aborted: int = 0
    open_transactions: dict[int, int] = field(default_factory=dict)

    def add(self, item: Batch) -> None:
        batch = item.header
        self.batches += 1
        self.records += batch.records_count or 0
        self.size_bytes += item.size
        self.compressions[batch.compression] += 1
        if self.first_offset is None or batch.base_offset < self.first_offset:
            self.first_offset = batch.base_offset
        if self.last_offset is None or batch.last_offset > self.last_offset:
            self.last_offset = batch.last_offset
        if batch.max_timestamp >= 0:
            self.latest_ms = max(self.latest_ms or 0, batch.max_timestamp)
            first = (
                batch.max_timestamp if batch.has_delete_horizon or batch.base_timestamp < 0 else batch.base_timestamp
            )
            self.earliest_ms = first if self.earliest_ms is None else min(self.earliest_ms, first)
        opened = self.open_transactions
        if batch.is_transactional and not batch.is_control and len(opened) < MAX_FOLLOWED_PRODUCERS:
            opened.setdefault(batch.producer_id, batch.base_offset)

    def end_transaction(self, producer_id: int, marker: str) -> None:
        self.open_transactions.pop(producer_id, None)
        if marker == "COMMIT":
            self.committed += 1
        elif marker == "ABORT":
            self.aborted += 1


class Stats:
    """Over all partitions, in the order in which they came."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[int | None, str | None, int | None, str], PartitionStats] = {}

    def of(self, file: LogFile) -> PartitionStats:
        """Snapshots apart from segments: they hold the same records."""
        return self.partitions.setdefault((*file.place, file.kind), PartitionStats())

    def damage(self, file: LogFile, damage: Damage) -> None:
        self.of(file).damaged_bytes += damage.length

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "broker": broker,
                "topic": topic,
                "partition": partition,
                "type": kind,
                "files": stats.files,
                "batches": stats.batches,
                "records": stats.records,
                "size_bytes": stats.size_bytes,
                "damaged_bytes": stats.damaged_bytes,
                "first_offset": stats.first_offset,
                "last_offset": stats.last_offset,
                "earliest_ms": stats.earliest_ms,
                "latest_ms": stats.latest_ms,
                "compressions": dict(stats.compressions),
                "record_types": dict(sorted(stats.record_types.items())),
                "tombstones": stats.tombstones,
                "committed_transactions": stats.committed,
                "aborted_transactions": stats.aborted,
                "open_transactions": [
                    {"producer_id": producer, "first_offset": offset}
                    for producer, offset in stats.open_transactions.items()
                ],
            }
            for (broker, topic, partition, kind), stats in self.partitions.items()
        ]
