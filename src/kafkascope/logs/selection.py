"""Selects files, batches and records by topic, offset, time and record type. What a file's name or a batch's header
rules out isn't read or unpacked."""

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from kafkascope.codec.records.record_types import Record, RecordBatch
from kafkascope.columnar.batch_headers import HEADER_FIELDS
from kafkascope.errors import KafkascopeError
from kafkascope.logs.directories import LogFile
from kafkascope.logs.files import SEGMENT
from kafkascope.logs.index_files import read_offset_index

_BASE, _LAST, _LATEST = (HEADER_FIELDS.index(name) for name in ("base_offset", "last_offset", "max_timestamp_ms"))
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Selection:
    """Ends are exclusive, None is open. Times are milliseconds, as Kafka has them. Topics are patterns."""

    topics: tuple[str, ...] = ()
    first_offset: int | None = None
    end_offset: int | None = None
    from_ms: int | None = None
    until_ms: int | None = None
    types: Collection[str] = ()

    @property
    def everything(self) -> bool:
        return self == Selection()

    @property
    def within_files(self) -> bool:
        """Whether it's about offsets, times or types, which only batches have."""
        limits = (self.first_offset, self.end_offset, self.from_ms, self.until_ms)
        return bool(self.types) or any(limit is not None for limit in limits)

    def takes_file(self, file: LogFile) -> bool:
        if self.topics and not (file.topic and any(fnmatchcase(file.topic, pattern) for pattern in self.topics)):
            return False
        return not (file.kind == SEGMENT and self.is_past(file.base_offset or 0))

    def is_past(self, offset: int) -> bool:
        """Whether nothing from this offset on is wanted."""
        return self.end_offset is not None and offset >= self.end_offset

    def takes_batch(self, batch: RecordBatch) -> bool:
        if self.first_offset is not None and batch.last_offset < self.first_offset:
            return False
        if self.is_past(batch.base_offset):
            return False
        # A header has the time of its latest record alone, and none in magic 0.
        return self.from_ms is None or batch.max_timestamp < 0 or batch.max_timestamp >= self.from_ms

    def of_headers(self, headers: Numbers) -> tuple[Numbers, bool]:
        """Of columns of `HEADER_FIELDS` those whose batches `takes_batch` takes, and whether one is past the end."""
        rows = headers.shape[1]
        if self.end_offset is not None:
            past = np.flatnonzero(headers[_BASE] >= self.end_offset)
            rows = int(past[0]) if len(past) else rows
        taken = np.ones(rows, np.bool_)
        if self.first_offset is not None:
            taken &= headers[_LAST, :rows] >= self.first_offset
        if self.from_ms is not None:
            taken &= (headers[_LATEST, :rows] < 0) | (headers[_LATEST, :rows] >= self.from_ms)
        chosen = headers[:, :rows] if taken.all() else np.compress(taken, headers[:, :rows], axis=1)
        return chosen, rows < headers.shape[1]

    def takes_record(self, record: Record) -> bool:
        if self.first_offset is not None and record.offset < self.first_offset:
            return False
        if self.is_past(record.offset):
            return False
        if self.from_ms is not None and record.timestamp < self.from_ms:
            return False
        return self.until_ms is None or record.timestamp < self.until_ms

    def start_of(self, file: LogFile) -> int:
        """A position at or before the first wanted offset, by the segment's own index; 0 without one."""
        if self.first_offset is None or file.kind != SEGMENT or file.base_offset is None:
            return 0
        try:
            entries = read_offset_index(file.path.removesuffix(".log") + ".index", file.base_offset).entries
        except KafkascopeError:
            return 0
        at = bisect_right(entries, self.first_offset, key=lambda entry: entry.offset)
        return entries[at - 1].position if at else 0
