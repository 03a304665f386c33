"""Reads log directories as a stream of events: files, batches, records, entries, damage. One file at a time, with flat
memory; what can't be opened is reported and left out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kafkascope.codec.records.record_types import Record, RecordBatch
from kafkascope.errors import DecodeError, InputError, KafkascopeError, NotFoundError
from kafkascope.logs.batch_columns import sound_headers
from kafkascope.logs.batches import Batch, Damage, DamageKind, read_batches
from kafkascope.logs.directories import LogFile, list_files
from kafkascope.logs.files import (
    FOREIGN,
    INDEXES,
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
    foreign: int = 0

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
            self.foreign += file.left_alone == FOREIGN
            yield FileEvent(file, None)
            return
        try:
            if file.has_batches:
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
        decoder = decoder_of(file.topic) if self.typed else None
        is_known = file.kind != UNKNOWN_FILE
        self.files += is_known
        with Window(file.path) as window:
            if not is_known:
                refuse_foreign(window)
                self.files += 1
            start = sound_start(window, self.selection, file)
            read = self._of_window if self.dumps is None else self._lines
            events = read(file, window, start, decoder)
            if self.selection.within_files:
                yield from named_first(file, events)
            else:
                yield FileEvent(file, None)
                yield from events

    def _lines(self, file: LogFile, window: Window, start: int, decoder: Decoder | None) -> Iterator[LogEvent]:
        assert self.dumps is not None
        lines = JsonLines(file, self.dumps, records=self.records, selection=self.selection)
        unpacks = self._unpacks(decoder)
        for item in lines.of_window(window, start, last=file.last or file.named, unpack_sets=unpacks):
            if isinstance(item, Lines):
                yield LinesEvent(file, item)
            elif isinstance(item, CarefulRecord):
                yield from self._record(file, item.batch, item.record, decoder)
            else:
                yield from self._item(file, item, decoder)

    def _of_window(self, file: LogFile, window: Window, start: int, decoder: Decoder | None) -> Iterator[LogEvent]:
        last, unpacks = file.last or file.named, self._unpacks(decoder)
        if not self.selection.within_files:
            for item in read_batches(window, start, last=last, unpack_sets=unpacks):
                yield from self._item(file, item, decoder)
            return
        for items in sound_headers(window, start, last=last, unpack_sets=unpacks):
            if isinstance(items, tuple):
                _, _, headers, rows = items
                chosen, is_past = self.selection.of_headers(headers[:, :rows])
                for position in chosen[0].tolist():
                    yield from self._item(file, next(read_batches(window, position)), decoder)
            else:
                is_past = isinstance(items, Batch) and self.selection.is_past(items.header.base_offset)
                if not is_past:
                    yield from self._item(file, items, decoder)
            if is_past:
                return

    def _unpacks(self, decoder: Decoder | None) -> bool:
        """Whether to unpack compressed messages of magic 0 and 1."""
        return self.records or decoder is not None

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
            if self.selection.takes_record(record):
                yield from self._record(file, batch, record, decoder)

    def _record(
        self, file: LogFile, batch: RecordBatch, record: Record, decoder: Decoder | None
    ) -> Iterator[RecordEvent]:
        typed = control_type(record) if batch.is_control else decoder(record) if decoder else None
        if not self.selection.types or (typed and typed.type in self.selection.types):
            yield RecordEvent(file, batch, record, typed)


def refuse_foreign(window: Window) -> None:
    """`InputError` for a file without any batch. Brokers have no files of its name."""
    first = next(read_batches(window), None)
    if isinstance(first, Batch) or (first is not None and first.length < window.size):
        return
    what = "it has no record batch" if window.size else "it is empty"
    raise InputError(
        f"{window.path}: {FOREIGN}: {what}, and no broker names a file so; name a segment, such as {0:020}.log, or a"
        " folder of them; `kafkascope read` reads recordings"
    )


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
