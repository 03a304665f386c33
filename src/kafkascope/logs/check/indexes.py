"""Compares the indexes of a segment with its batches, while these are read in order. It reports only entries that would
make a look-up wrong: up to Kafka 4.0 an entry may name the last of several batches that were appended together."""

from collections import deque

from kafkascope.codec.records.record_types import RecordBatch
from kafkascope.errors import KafkascopeError
from kafkascope.logs.check.finding import FindingList
from kafkascope.logs.index_files import (
    OffsetEntry,
    TimeEntry,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)

_ABORT = 0


class OffsetIndexCheck:
    """Every entry is the start of a batch, and no batch before it has the entry's offset."""

    __slots__ = ("_entries", "_findings")

    def __init__(self, path: str, base_offset: int, findings: FindingList) -> None:
        self._findings = findings
        self._entries: deque[OffsetEntry] = deque()
        try:
            read = read_offset_index(path, base_offset)
        except KafkascopeError as error:
            findings.add("offset index", _detail(path, error))
            return
        if read.left_over:
            findings.add("offset index", f"its last {read.left_over} bytes aren't an entry")
        previous = OffsetEntry(-1, -1)
        for entry in read.entries:
            if entry.offset <= previous.offset or entry.position <= previous.position:
                detail = f"{entry.offset} at byte {entry.position} is after {previous.offset} at {previous.position}"
                findings.add("offset index", detail, offset=entry.offset)
                continue
            self._entries.append(entry)
            previous = entry

    def batch(self, position: int, batch: RecordBatch) -> None:
        entries = self._entries
        while entries and entries[0].position <= position:
            entry = entries.popleft()
            if entry.position < position:
                self._findings.add(
                    "offset index", f"byte {entry.position} isn't the start of a batch", offset=entry.offset
                )
            elif entry.offset < batch.last_offset:
                detail = f"points to offset {entry.offset}, but the batch there ends with {batch.last_offset}"
                self._findings.add("offset index", detail, position=position, offset=entry.offset)

    def end(self) -> None:
        for entry in self._entries:
            self._findings.add("offset index", f"byte {entry.position} is after the last batch", offset=entry.offset)


class TimeIndexCheck:
    """No batch up to an entry's offset is later than the entry's time."""

    __slots__ = ("_entries", "_findings", "_last", "_latest")

    def __init__(self, path: str, base_offset: int, findings: FindingList) -> None:
        self._findings = findings
        self._entries: deque[TimeEntry] = deque()
        self._latest = -1
        self._last = base_offset - 1
        try:
            read = read_time_index(path, base_offset)
        except KafkascopeError as error:
            findings.add("time index", _detail(path, error))
            return
        if read.left_over:
            findings.add("time index", f"its last {read.left_over} bytes aren't an entry")
        previous = TimeEntry(-1, -1)
        for entry in read.entries:
            if entry.timestamp <= previous.timestamp or entry.offset < previous.offset:
                before = f"{previous.timestamp} with {previous.offset}"
                detail = f"time {entry.timestamp} with offset {entry.offset} comes after {before}"
                findings.add("time index", detail, offset=entry.offset)
                continue
            self._entries.append(entry)
            previous = entry

    def batch(self, batch: RecordBatch) -> None:
        entries = self._entries
        while entries and entries[0].offset < batch.last_offset:
            self._settle(entries.popleft())
        self._latest = max(self._latest, batch.max_timestamp)
        self._last = batch.last_offset

    def end(self) -> None:
        for entry in self._entries:
            if entry.offset > self._last:
                self._findings.add("time index", f"offset {entry.offset} is after the last batch", offset=entry.offset)
            else:
                self._settle(entry)

    def _settle(self, entry: TimeEntry) -> None:
        if self._latest > entry.timestamp:
            detail = (
                f"has {entry.timestamp} as the latest time up to offset {entry.offset}, but a record has {self._latest}"
            )
            self._findings.add("time index", detail, offset=entry.offset)


class TransactionIndexCheck:
    """Its entries are the abort markers of the segment."""

    __slots__ = ("_findings", "_named", "_seen")

    def __init__(self, path: str, findings: FindingList) -> None:
        self._findings = findings
        self._named: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        try:
            read = read_transaction_index(path)
        except KafkascopeError as error:
            findings.add("transaction index", _detail(path, error))
            return
        if read.left_over:
            findings.add("transaction index", f"its last {read.left_over} bytes aren't an entry")
        self._named = {entry.last_offset: entry.producer_id for entry in read.entries}

    def aborted(self, offset: int, producer_id: int) -> None:
        self._seen[offset] = producer_id

    def end(self, last_offset: int) -> None:
        for offset, producer in self._named.items():
            if self._seen.get(offset) != producer:
                what = "is after the last batch" if offset > last_offset else "isn't an abort marker of that producer"
                self._findings.add("transaction index", f"offset {offset} of producer {producer} {what}", offset=offset)


def _detail(path: str, error: KafkascopeError) -> str:
    return str(error).removeprefix(f"{path}: ")
