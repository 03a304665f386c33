"""Checks a partition, file by file in the order of its offsets. Findings come as soon as a file is done."""

import os
from collections.abc import Iterator
from itertools import pairwise

from kafkascope.codec.records.control import TYPES, control_record
from kafkascope.errors import DecodeError, KafkascopeError
from kafkascope.logs.batches import Batch, Damage
from kafkascope.logs.check.finding import Finding, FindingList
from kafkascope.logs.check.indexes import OffsetIndexCheck, TimeIndexCheck, TransactionIndexCheck
from kafkascope.logs.check.producers import Producers
from kafkascope.logs.directories import LogFile
from kafkascope.logs.files import LEADER_EPOCHS, PRODUCER_SNAPSHOT, SEGMENT, SMALL_FILES
from kafkascope.logs.producer_snapshot import read_producer_snapshot
from kafkascope.logs.small_files import read_small_file
from kafkascope.logs.typed_records import INTERNAL_TOPICS

_RECOVERY_POINTS = "recovery-point-offset-checkpoint"


class PartitionCheck:
    """What is known of one partition of one broker between its files."""

    __slots__ = ("epochs", "last_epoch", "last_offset", "producers", "segments", "sequenced")

    def __init__(self, topic: str | None = None) -> None:
        self.producers = Producers()
        # A coordinator writes what producers commit, with their ids, and always with sequence 0.
        self.sequenced = topic not in INTERNAL_TOPICS
        self.last_offset: int | None = None
        self.last_epoch = -1
        self.segments = 0
        self.epochs: dict[int, int] = {}


class SegmentCheck:
    """One segment or snapshot: its batches in order, then `end`."""

    __slots__ = ("_aborts", "_findings", "_in_order", "_index", "_partition", "_start", "_times")

    def __init__(self, file: LogFile, partition: PartitionCheck) -> None:
        self._start = file.base_offset or 0 if file.kind == SEGMENT else 0
        self._partition = partition
        self._findings = FindingList(file.path)
        self._index: OffsetIndexCheck | None = None
        self._times: TimeIndexCheck | None = None
        self._aborts: TransactionIndexCheck | None = None
        self._in_order = True
        if file.kind == SEGMENT and file.base_offset is not None:
            self._open_indexes(file, file.base_offset)

    def batch(self, item: Batch) -> None:
        batch, place = item.header, {"position": item.position, "offset": item.header.base_offset}
        findings, partition = self._findings, self._partition
        if not batch.crc_ok:
            findings.add("crc", f"{item.size} bytes have another checksum than {batch.crc}", **place)
            return
        last = partition.last_offset
        if last is not None and batch.base_offset <= last:
            check = "offset goes back" if self._in_order else "segments overlap"
            findings.add(check, f"offset {batch.base_offset} comes after {last}", **place)
        elif batch.last_offset < batch.base_offset or batch.base_offset < self._start:
            detail = f"offsets {batch.base_offset} to {batch.last_offset}, the segment starts at {self._start}"
            findings.add("offset outside segment", detail, **place)
        if last is not None and batch.base_offset != last + 1:
            partition.producers.missing_before(batch.base_offset)
        if batch.magic > 1 and 0 <= batch.partition_leader_epoch < partition.last_epoch:
            detail = f"epoch {batch.partition_leader_epoch} comes after {partition.last_epoch}"
            findings.add("leader epoch goes back", detail, **place)
        self._compare_epoch(item)
        if partition.sequenced:
            partition.producers.add(batch, item.position, findings)
        partition.last_offset = max(last if last is not None else -1, batch.last_offset)
        partition.last_epoch = max(partition.last_epoch, batch.partition_leader_epoch)
        self._in_order = True
        if self._index:
            self._index.batch(item.position, batch)
        if self._times:
            self._times.batch(batch)
        if self._aborts and batch.is_control:
            self._find_aborts(item)

    def damage(self, item: Damage) -> None:
        self._findings.add(item.kind, f"{item.length} bytes: {item.detail}", position=item.position)
        if item.kind.value in ("bad header", "unreadable batch", "torn tail"):
            # What was in it is unknown: the next batch of a producer can have any sequence.
            self._partition.producers.missing_before((self._partition.last_offset or -1) + 1)

    def end(self) -> Iterator[Finding]:
        self._partition.segments += 1
        if self._index:
            self._index.end()
        if self._times:
            self._times.end()
        if self._aborts:
            last = self._partition.last_offset
            self._aborts.end(-1 if last is None else last)
        yield from self._findings.take()

    def _open_indexes(self, file: LogFile, base_offset: int) -> None:
        self._in_order = False
        stem = file.path.removesuffix(".log")
        if os.path.exists(f"{stem}.index"):
            self._index = OffsetIndexCheck(f"{stem}.index", base_offset, self._findings)
        elif file.size and not file.named and os.path.exists(file.path):
            self._findings.add("missing index", f"there is no {os.path.basename(stem)}.index")
        if os.path.exists(f"{stem}.timeindex"):
            self._times = TimeIndexCheck(f"{stem}.timeindex", base_offset, self._findings)
        if os.path.exists(f"{stem}.txnindex"):
            self._aborts = TransactionIndexCheck(f"{stem}.txnindex", self._findings)

    def _compare_epoch(self, item: Batch) -> None:
        epoch = item.header.partition_leader_epoch
        if item.header.magic < 2 or epoch == self._partition.last_epoch:
            return
        start = self._partition.epochs.get(epoch)
        if start is not None and item.header.base_offset < start:
            detail = f"epoch {epoch} starts at {start}, its first batch has offset {item.header.base_offset}"
            self._findings.add("leader epochs disagree", detail, position=item.position, offset=item.header.base_offset)

    def _find_aborts(self, item: Batch) -> None:
        try:
            records = item.records()
        except DecodeError:
            return
        for record in records:
            control = control_record(record)
            if self._aborts and control.type is not None and TYPES.get(control.type, ("",))[0] == "ABORT":
                self._aborts.aborted(record.offset, item.header.producer_id)


class Checker:
    """All files of a directory, in the order of `list_files`."""

    def __init__(self) -> None:
        self._place: tuple[str, tuple[int | None, str | None, int | None]] | None = None
        self._partition = PartitionCheck()
        self._recovery: dict[tuple[str, str, int], int] = {}

    def segment(self, file: LogFile) -> SegmentCheck:
        """For a segment; a snapshot is checked by itself."""
        return SegmentCheck(file, self._partition if file.kind == SEGMENT else PartitionCheck())

    def enter(self, file: LogFile) -> Iterator[Finding]:
        """Before anything else of a file: what is known of a partition that is complete now."""
        place = (file.folder, file.place)
        if place != self._place:
            yield from self.leave()
            self._place = place
            self._partition = PartitionCheck(file.topic)

    def leave(self) -> Iterator[Finding]:
        """After the last file of a partition."""
        if self._place is None or not self._partition.segments:
            return
        folder = self._place[0]
        _, topic, number = self._place[1]
        flushed = self._recovery.get((os.path.dirname(folder), topic or "", -1 if number is None else number))
        end = -1 if self._partition.last_offset is None else self._partition.last_offset
        self._partition.segments = 0
        if flushed is not None and end + 1 < flushed and end >= 0:
            detail = f"the log ends at offset {end}, but it was flushed up to {flushed} ({_RECOVERY_POINTS})"
            yield Finding("log ends too early", folder, None, end, detail)

    def other(self, file: LogFile) -> Iterator[Finding]:
        """Any file that has no batches."""
        findings = FindingList(file.path)
        try:
            if file.kind == PRODUCER_SNAPSHOT:
                read_producer_snapshot(file.path)
            elif file.kind in SMALL_FILES:
                self._remember(file, read_small_file(file.path, file.kind), findings)
        except FileNotFoundError:
            return
        except KafkascopeError as error:
            check = "producer snapshot" if file.kind == PRODUCER_SNAPSHOT else "small file"
            findings.add(check, str(error).removeprefix(f"{file.path}: "))
        yield from findings.take()

    def _remember(self, file: LogFile, content: dict[str, object], findings: FindingList) -> None:
        if file.kind == LEADER_EPOCHS:
            rows: list[dict[str, int]] = content["epochs"]  # type: ignore[assignment]
            # The first epoch starts with the log start offset, which deleting records moves into a segment.
            self._partition.epochs = {row["epoch"]: row["start_offset"] for row in rows[1:]}
            pairs = [(row["epoch"], row["start_offset"]) for row in rows]
            if any(later[0] <= earlier[0] or later[1] < earlier[1] for earlier, later in pairwise(pairs)):
                findings.add("small file", "its epochs or their start offsets go back")
        elif os.path.basename(file.path) == _RECOVERY_POINTS:
            entries: list[dict[str, object]] = content["offsets"]  # type: ignore[assignment]
            for entry in entries:
                key = (file.folder, str(entry["topic"]), int(str(entry["partition"])))
                self._recovery[key] = int(str(entry["offset"]))
