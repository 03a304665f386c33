"""Narrows a split of a segment to the offsets and times that a query asks for, by the segment's own indexes. Every
batch that has such a record stays; an offset index that doesn't fit its segment narrows nothing."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.errors import KafkascopeError
from kafkascope.logs.files import SEGMENT
from kafkascope.logs.index_files import read_time_index
from kafkascope.pipeline.disks.log_inputs import LogInput
from kafkascope.pipeline.disks.place_disk import open_file
from kafkascope.pipeline.disks.splits import LogSplit, base_offset_at, index_of


@dataclass(frozen=True, slots=True)
class Bounds:
    """Both offsets are inclusive; times are milliseconds. None is open."""

    first_offset: int | None = None
    last_offset: int | None = None
    from_ms: int | None = None

    def may_have(self, log: LogInput) -> bool:
        """By a segment's name."""
        return self.last_offset is None or log.kind != SEGMENT or (log.base_offset or 0) <= self.last_offset

    def takes(self, batches: pa.RecordBatch) -> npt.NDArray[np.bool_] | None:
        """Which batches may have such records, by their headers."""
        taken = np.ones(len(batches), np.bool_)
        if self.first_offset is not None:
            taken &= batches.column("last_offset").to_numpy() >= self.first_offset
        if self.last_offset is not None:
            taken &= batches.column("base_offset").to_numpy() <= self.last_offset
        if self.from_ms is not None:
            latest = batches.column("max_timestamp_ms").to_numpy()
            taken &= (latest >= self.from_ms) | (latest < 0)
        return None if taken.all() else taken

    def narrowed(self, split: LogSplit) -> LogSplit:
        log = split.input
        if self == Bounds() or log.kind != SEGMENT or log.base_offset is None:
            return split
        entries = index_of(log)
        first = max((bound for bound in (self.first_offset, self._after(log)) if bound is not None), default=None)
        try:
            with split.open(glance=True) as window:
                if first is not None:
                    # The last entry before it: its batch ends with that offset.
                    for entry in reversed(entries):
                        if entry.offset < first and entry.position > split.start:
                            offset = base_offset_at(window, entry.position, entry.offset)
                            if offset is not None and (split.end is None or entry.position < split.end):
                                split = replace(split, start=entry.position, first_offset=offset)
                            break
                if self.last_offset is not None:
                    # What follows the first batch that ends there or later is later.
                    after = [entry for entry in entries if entry.offset >= self.last_offset][1:2]
                    end = after[0].position if after else None
                    if end is not None and split.start < end < (split.end or log.size):
                        offset = base_offset_at(window, end, after[0].offset)
                        if offset is not None and offset > self.last_offset:
                            split = replace(split, end=end)
        except KafkascopeError:
            return split
        return split

    def _after(self, log: LogInput) -> int | None:
        """The offset before which the time index says that all records are too early."""
        if self.from_ms is None:
            return None
        uri = log.uri.removesuffix(".log") + ".timeindex"
        try:
            entries = read_time_index(uri, log.base_offset or 0, open_file(uri)).entries
        except KafkascopeError:
            return None
        times = [entry.timestamp for entry in entries]
        if times != sorted(times):
            return None
        early = [entry.offset + 1 for entry in entries if entry.timestamp < self.from_ms]
        return early[-1] if early else None
