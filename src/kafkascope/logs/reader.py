"""Reads log directories as a stream of events: files, batches, records, entries, damage. One file at a time, with flat
memory; what can't be opened is reported and left out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kafkascope.codec.records.record_types import Record, RecordBatch
from kafkascope.errors import DecodeError, KafkascopeError, NotFoundError
from kafkascope.logs.batches import Batch, Damage, DamageKind, read_batches
from kafkascope.logs.directories import LogFile, list_files
from kafkascope.logs.files import (
    INDEXES,
    OF_BATCHES,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    SMALL_FILES,
    TIME_INDEX,
    UNKNOWN_FILE,
)
from kafkascope.logs.index_files import read_offset_index, read_time_index, read_transaction_index
from kafkascope.logs.json_lines import CarefulRecord, Dumps, JsonLines, Lines
from kafkascope.logs.producer_snapshot import read_producer_snapshot
from kafkascope.logs.rows import Row
from kafkascope.logs.selection import Selection
from kafkascope.logs.small_files import read_small_file
from kafkascope.logs.typed_records import Decoder, TypedRecord, control_type, decoder_of
from kafkascope.logs.window import Window

NORMAL_ENDS = (DamageKind.UNFINISHED, DamageKind.ZEROS)


@dataclass(frozen=True, slots=True)
class FileEvent:
    """A file, before what is in it. `content` is all of a small one."""

    file: LogFile
    content: Row | None


@dataclass(frozen=True, slots=True)
class BatchEvent:
    """A batch that the selection takes."""

    file: LogFile
    batch: Batch


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """A record. `typed` is None for one of a user's topic."""

    file: LogFile
    batch: RecordBatch
    record: Record
    typed: TypedRecord | None


@dataclass(frozen=True, slots=True)
class EntryEvent:
    """An entry of an index, or a producer of a snapshot."""

    file: LogFile
    entry: object


@dataclass(frozen=True, slots=True)
class DamageEvent:
    """Bytes that couldn't be read. `harmless` is the normal end of a file that is being written."""

    file: LogFile
    damage: Damage
    harmless: bool


@dataclass(frozen=True, slots=True)
class LinesEvent:
    """Batches and records as lines of JSON."""

    file: LogFile
    lines: Lines


LogEvent = LinesEvent | FileEvent | BatchEvent | RecordEvent | EntryEvent | DamageEvent


@dataclass(slots=True)
class LogReader:
    """`records` asks for those of users' topics too. With `dumps`, which writes a row as JSON, most batches and records
    come as lines. `on_bad` gets an error about a file or folder that can't be read;
    files that vanish meanwhile, as on a running broker, aren't an error."""

    paths: tuple[str, ...]
    selection: Selection = field(default_factory=Selection)
    records: bool = False
    typed: bool = True
    dumps: Dumps | None = None
    on_bad: Callable[[KafkascopeError], None] = lambda _: None
    files: int = 0
    left_alone: int = 0

    def events(self) -> Iterator[LogEvent]:
        for path in self.paths:
            try:
                for file in list_files(path):
                    yield from self._file(file)
            except KafkascopeError as error:
                self.on_bad(error)

    def _file(self, file: LogFile) -> Iterator[LogEvent]:
        if not self.selection.takes_file(file):
            return
        if file.left_alone is not None:
            self.left_alone += 1
            yield FileEvent(file, None)
            return
        try:
            if file.kind in OF_BATCHES or (file.kind == UNKNOWN_FILE and file.named):
                yield from self._batches(file)
            elif not self.selection.within_files:
                yield from self._other(file)
        except NotFoundError:
            if file.named:
                raise
        except KafkascopeError as error:
            self.on_bad(error)

    def _other(self, file: LogFile) -> Iterator[LogEvent]:
        self.files += 1
        if file.kind in SMALL_FILES:
            yield FileEvent(file, read_small_file(file.path, file.kind))
            return
        yield FileEvent(file, None)
        # Beside its segment an index says nothing new: its entries are for those who ask for it.
        if file.named and file.kind in (*INDEXES, PRODUCER_SNAPSHOT):
            for entry in entries_of(file):
                yield EntryEvent(file, entry)

    def _batches(self, file: LogFile) -> Iterator[LogEvent]:
        self.files += 1
        decoder = decoder_of(file.topic) if self.typed else None
        with Window(file.path) as window:
            if self.selection.within_files:
                yield from named_first(file, self._of_window(file, window, decoder))
            else:
                yield FileEvent(file, None)
                read = self._of_window if self.dumps is None else self._lines
                yield from read(file, window, decoder)

    def _lines(self, file: LogFile, window: Window, decoder: Decoder | None) -> Iterator[LogEvent]:
        assert self.dumps is not None
        lines = JsonLines(file, self.dumps, records=self.records)
        for item in lines.of_window(window, 0, last=file.last or file.named):
            if isinstance(item, Lines):
                yield LinesEvent(file, item)
            elif isinstance(item, CarefulRecord):
                yield RecordEvent(file, item.batch, item.record, _typed(item.batch, item.record, decoder))
            else:
                yield from self._item(file, item, decoder)

    def _of_window(self, file: LogFile, window: Window, decoder: Decoder | None) -> Iterator[LogEvent]:
        start = sound_start(window, self.selection, file)
        for item in read_batches(window, start, last=file.last or file.named, unpack_sets=self.records):
            if isinstance(item, Batch) and self.selection.is_past(item.header.base_offset):
                return
            yield from self._item(file, item, decoder)

    def _item(self, file: LogFile, item: Batch | Damage, decoder: Decoder | None) -> Iterator[LogEvent]:
        if isinstance(item, Damage):
            yield DamageEvent(file, item, item.kind in NORMAL_ENDS)
        elif self.selection.takes_batch(item.header):
            yield from self._batch(file, item, decoder)

    def _batch(self, file: LogFile, item: Batch, decoder: Decoder | None) -> Iterator[LogEvent]:
        batch = item.header
        unpacked = batch.is_control or decoder is not None or self.records
        if not self.selection.types:
            yield BatchEvent(file, item)
        if not unpacked or (self.selection.types and decoder is None and not batch.is_control):
            return
        try:
            records = item.records()
        except DecodeError as error:
            detail = str(error).partition(": ")[2] or str(error)
            yield DamageEvent(file, Damage(item.position, item.size, DamageKind.UNREADABLE, detail), False)
            return
        for record in records:
            if not self.selection.takes_record(record):
                continue
            typed = _typed(batch, record, decoder)
            if not self.selection.types or (typed and typed.type in self.selection.types):
                yield RecordEvent(file, batch, record, typed)


def _typed(batch: RecordBatch, record: Record, decoder: Decoder | None) -> TypedRecord | None:
    return control_type(record) if batch.is_control else decoder(record) if decoder else None


def named_first(file: LogFile, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
    """The file before its first event; nothing at all of a file of which nothing is taken."""
    for number, event in enumerate(events):
        if not number:
            yield FileEvent(file, None)
        yield event


def entries_of(file: LogFile) -> Iterator[object]:
    base = file.base_offset or 0
    if file.kind == OFFSET_INDEX:
        yield from read_offset_index(file.path, base).entries
    elif file.kind == TIME_INDEX:
        yield from read_time_index(file.path, base).entries
    elif file.kind == PRODUCER_SNAPSHOT:
        yield from read_producer_snapshot(file.path)
    else:
        yield from read_transaction_index(file.path).entries


def sound_start(window: Window, selection: Selection, file: LogFile) -> int:
    """Where to start by the segment's index, unless the index is wrong."""
    start = selection.start_of(file)
    if not start:
        return 0
    first = next(read_batches(window, start), None)
    wanted = selection.first_offset or 0
    if isinstance(first, Batch) and first.header.crc_ok and first.header.base_offset <= wanted:
        return start
    return 0
