"""Divides log files into splits: a file each, a large segment cut where its index names a batch. A split whose file was
replaced since isn't sound; the next ingest reads what it is then."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kafkascope.codec.records.record_types import RecordBatch
from kafkascope.errors import KafkascopeError
from kafkascope.logs.batches import Batch, read_batches
from kafkascope.logs.files import SEGMENT
from kafkascope.logs.index_files import OffsetEntry, read_offset_index
from kafkascope.logs.window import WINDOW_BYTES, Window
from kafkascope.pipeline.disks.known_offsets import Known, KnownLog, KnownLogs
from kafkascope.pipeline.disks.log_inputs import LogInput
from kafkascope.pipeline.disks.place_disk import open_file

# Fewer bytes don't justify a task of their own; more make the last task of many a long one.
_LEAST_BYTES, _MOST_BYTES = 8 << 20, 256 << 20
# A short split doesn't read more than it needs, and most batches at once.
_LEAST_AHEAD = 1 << 16
# Several tasks for each core, since not all take the same time.
_PER_CORE = 3


@dataclass(frozen=True, slots=True)
class LogSplit:
    """The batches of a file that begin at `start` or later, and before `end`. `first_offset` is that of the batch at
    `start`, if that isn't 0; `known` is what the lake has of the log."""

    input: LogInput
    start: int = 0
    end: int | None = None
    first_offset: int | None = None
    known: tuple[Known, ...] = ()

    @property
    def size(self) -> int:
        return (self.input.size if self.end is None else self.end) - self.start

    def open(self, *, glance: bool = False) -> Window:
        """A glance looks at a few batches."""
        ahead = _LEAST_AHEAD if glance else min(WINDOW_BYTES, max(_LEAST_AHEAD, self.size))
        return Window(self.input.uri, open_file(self.input.uri), self.input.size, ahead)

    def is_sound(self, window: Window) -> bool:
        """Whether its first batch is where the plan saw it."""
        return not self.start or self.start == window.size or base_offset_at(window, self.start) == self.first_offset


def split_bytes(total: int, cores: int) -> int:
    return min(_MOST_BYTES, max(_LEAST_BYTES, total // (_PER_CORE * max(cores, 1))))


def splits_of(inputs: Iterable[LogInput], known: KnownLogs, most: int) -> Iterator[LogSplit]:
    """`most` is how many bytes a split has at most, if its index allows."""
    for log in inputs:
        split = LogSplit(log)
        if log.kind == SEGMENT and (earlier := known.get(log.key)) is not None:
            split = _resumed(log, earlier)
        yield from _cut(split, most)


def shared(logs: Sequence[LogInput], known: KnownLogs, cores: int) -> Iterator[tuple[LogSplit, ...]]:
    """Splits in their order, small ones together: a task costs more than reading a few megabytes."""
    most = split_bytes(sum(log.size for log in logs), cores)
    together: list[LogSplit] = []
    size = 0
    for split in splits_of(logs, known, most):
        if together and size + split.size > most:
            yield tuple(together)
            together, size = [], 0
        together.append(split)
        size += split.size
    if together:
        yield tuple(together)


def _resumed(log: LogInput, earlier: KnownLog) -> LogSplit:
    """After what the lake has of the segment, if the next batch is where that ended, and of the same leader: a later
    one may have replaced batches before it. Otherwise from its beginning, without the batches that the lake has."""
    base = log.base_offset or 0
    split = LogSplit(log, known=earlier.from_offset(base))
    offset, position, epoch = (earlier.ends or {}).get(base, (0, 0, -1))
    if not 0 < position < log.size:
        return split
    resumed = replace(split, start=position, first_offset=offset)
    try:
        with resumed.open(glance=True) as window:
            batch = _batch_at(window, position)
            follows = batch is not None and batch.base_offset == offset and batch.partition_leader_epoch <= epoch
            return resumed if follows else split
    except KafkascopeError:
        return split


def _cut(split: LogSplit, most: int) -> Iterator[LogSplit]:
    if split.size < 3 * most // 2 or split.input.base_offset is None or split.input.kind != SEGMENT:
        yield split
        return
    parts = -(-split.size // most)
    wanted = [split.start + split.size * part // parts for part in range(1, parts)]
    for position, offset in _batches_at(split, wanted):
        if position > split.start:
            yield replace(split, end=position)
            split = replace(split, start=position, first_offset=offset)
    yield split


def _batches_at(split: LogSplit, wanted: list[int]) -> Iterator[tuple[int, int]]:
    """(position, base offset) of batches at or after these positions, by the index. A segment isn't cut at a batch
    that isn't as the index names it."""
    entries = index_of(split.input)
    try:
        with split.open(glance=True) as window:
            for position in wanted:
                at = bisect_left(entries, position, key=lambda entry: entry.position)
                if at == len(entries) or entries[at].position >= split.input.size:
                    continue
                offset = base_offset_at(window, entries[at].position, entries[at].offset)
                if offset is not None:
                    yield entries[at].position, offset
    except KafkascopeError:
        return


def index_of(log: LogInput) -> tuple[OffsetEntry, ...]:
    """Nothing without a readable index."""
    uri = log.uri.removesuffix(".log") + ".index"
    try:
        return read_offset_index(uri, log.base_offset or 0, open_file(uri)).entries
    except KafkascopeError:
        return ()


def base_offset_at(window: Window, position: int, last_offset: int | None = None) -> int | None:
    """The base offset of a whole batch there with the right checksum, and that last offset if it's known."""
    batch = _batch_at(window, position)
    return None if batch is None or last_offset not in (None, batch.last_offset) else batch.base_offset


def _batch_at(window: Window, position: int) -> RecordBatch | None:
    batch = next(read_batches(window, position), None)
    return batch.header if isinstance(batch, Batch) and batch.header.crc_ok else None
