"""Runs `log`: lines, JSON, statistics or checks of log directories."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from kafkascope.cli.log.lines import Lines, time_text
from kafkascope.cli.output import json_text, print_json
from kafkascope.cli.tables import grid
from kafkascope.cli.terminal import note
from kafkascope.errors import InputError, KafkascopeError, NotFoundError
from kafkascope.formatting import count, number, printable, size
from kafkascope.logs.batches import Damage, read_batches
from kafkascope.logs.check.checker import Checker
from kafkascope.logs.check.finding import Finding, Severity
from kafkascope.logs.directories import LogFile, list_files
from kafkascope.logs.files import FOREIGN, OF_BATCHES, UNKNOWN_FILE
from kafkascope.logs.reader import (
    BatchEvent,
    DamageEvent,
    EntryEvent,
    FileEvent,
    LinesEvent,
    LogEvent,
    LogReader,
    RecordEvent,
    refuse_foreign,
)
from kafkascope.logs.rows import Row, batch_row, damage_row, entry_row, file_row, finding_row, record_row
from kafkascope.logs.selection import Selection
from kafkascope.logs.stats import PartitionStats, Stats
from kafkascope.logs.window import Window

_BAD_INPUT = InputError.exit_code


class Command:
    """Every way ends with 3 if a file, or bytes in it, couldn't be read, though the others were."""

    def __init__(self, paths: tuple[str, ...], selection: Selection, *, records: bool) -> None:
        self._paths = paths
        self._failed = False
        self._batches = self._records = self._damaged = 0
        self._reader = LogReader(paths, selection, records, on_bad=self._bad)

    def lines(self) -> int:
        lines = Lines()
        for event in self._events():
            lines.show(event)
        return self._end()

    def json_lines(self) -> int:
        write = sys.stdout.write
        self._reader.dumps = json_text
        for event in self._events():
            if isinstance(event, LinesEvent):
                write(event.lines.text)
            else:
                write(json_text(row_of(event)))
                write("\n")
        return self._end()

    def stats(self, *, as_json: bool) -> int:
        stats = Stats()
        for event in self._events():
            _count(stats, event)
        if as_json:
            print_json({"partitions": stats.rows()})
        else:
            _print_stats(stats)
        return self._end()

    def check(self, *, as_json: bool) -> int:
        """1 for a finding that isn't normal."""
        severities: Counter[str] = Counter()
        for finding in self._findings():
            severities[finding.severity] += 1
            if as_json:
                sys.stdout.write(json_text(finding_row(finding)) + "\n")
            else:
                _print_finding(finding)
        if not self._batches and not self._reader.files:
            return self._end()
        text = ", ".join(f"{number} {severity}" for severity, number in severities.items()) or "no findings"
        foreign = self._reader.foreign
        aside = f", {count(foreign, 'file')} not of a Kafka log left alone" if foreign else ""
        note(f"{count(self._reader.files, 'file')} checked, {count(self._batches, 'batch', 'batches')}{aside}: {text}")
        if self._failed:
            return _BAD_INPUT
        return int(any(severity != Severity.INFO for severity in severities))

    def _events(self) -> Iterator[LogEvent]:
        for event in self._reader.events():
            if isinstance(event, BatchEvent):
                self._batches += 1
                if not event.batch.header.crc_ok:
                    self._damaged_at(event.file, event.batch.position, event.batch.size, "wrong checksum")
            elif isinstance(event, RecordEvent):
                self._records += 1
            elif isinstance(event, LinesEvent):
                self._batches += event.lines.batches
                self._records += event.lines.records
            elif isinstance(event, DamageEvent) and not event.harmless:
                what = f"{event.damage.kind.value}, {event.damage.detail}"
                self._damaged_at(event.file, event.damage.position, event.damage.length, what)
            yield event

    def _damaged_at(self, file: LogFile, position: int, length: int, what: str) -> None:
        self._damaged += length
        self._note(f"{file.path} at byte {number(position)}: {what}")
        self._failed = True

    def _findings(self) -> Iterator[Finding]:
        checker = Checker()
        for path in self._paths:
            try:
                for file in list_files(path):
                    if not self._reader.selection.takes_file(file):
                        continue
                    if file.left_alone is not None:
                        self._reader.foreign += file.left_alone == FOREIGN
                    else:
                        yield from checker.enter(file)
                        yield from self._check_file(checker, file)
            except KafkascopeError as error:
                self._bad(error)
        yield from checker.leave()

    def _check_file(self, checker: Checker, file: LogFile) -> Iterator[Finding]:
        is_known = file.kind != UNKNOWN_FILE
        self._reader.files += is_known
        if not file.has_batches:
            yield from checker.other(file)
            return
        segment = checker.segment(file)
        try:
            with Window(file.path) as window:
                if not is_known:
                    refuse_foreign(window)
                    self._reader.files += 1
                for item in read_batches(window, last=file.last or file.named):
                    if isinstance(item, Damage):
                        segment.damage(item)
                    else:
                        self._batches += 1
                        segment.batch(item)
                yield from segment.end()
        except NotFoundError:
            return

    def _bad(self, error: KafkascopeError) -> None:
        """One path that can't be read is the result; beside others it's a remark."""
        if len(self._paths) == 1 and not self._reader.files:
            raise error
        self._note(str(error))
        self._failed = True

    def _note(self, text: str) -> None:
        note(printable(f"kafkascope: {text}"))

    def _end(self) -> int:
        sys.stdout.flush()
        reader = self._reader
        if not reader.files and reader.left_alone in (0, reader.foreign) and not self._failed:
            filtered = "" if reader.selection.everything else ", or the filters exclude all of them"
            others = f"; {count(reader.foreign, 'other file')}" if reader.foreign else ""
            raise NotFoundError(f"{', '.join(self._paths)}: no files of a Kafka log{filtered}{others}")
        parts = [count(self._reader.files, "file"), count(self._batches, "batch", "batches")]
        parts += [count(self._records, "record")] if self._records else []
        parts += [f"{number(self._reader.left_alone)} left alone"] if self._reader.left_alone else []
        parts += [f"{size(self._damaged)} damaged"] if self._damaged else []
        note(f"{', '.join(parts)} read")
        if self._failed:
            return _BAD_INPUT
        return int(self._reader.selection.within_files and not self._batches and not self._records)


def row_of(event: LogEvent) -> Row:
    if isinstance(event, BatchEvent):
        return batch_row(event.file, event.batch)
    if isinstance(event, RecordEvent):
        return record_row(event.file, event.batch, event.record, event.typed)
    if isinstance(event, FileEvent):
        return file_row(event.file, event.content)
    if isinstance(event, DamageEvent):
        return damage_row(event.file, event.damage)
    assert isinstance(event, EntryEvent)
    return entry_row(event.file, event.entry)


def _count(stats: Stats, event: LogEvent) -> None:
    if isinstance(event, BatchEvent):
        stats.of(event.file).add(event.batch)
    elif isinstance(event, DamageEvent):
        stats.damage(event.file, event.damage)
    elif isinstance(event, FileEvent) and event.file.has_batches and event.file.left_alone is None:
        stats.of(event.file).files += 1
    elif isinstance(event, RecordEvent):
        partition = stats.of(event.file)
        if event.typed is not None:
            partition.record_types[event.typed.type or "unknown"] += 1
            if event.batch.is_control:
                partition.end_transaction(event.batch.producer_id, event.typed.type or "")
        if event.record.value is None:
            partition.tombstones += 1


def _print_stats(stats: Stats) -> None:
    head = ["broker", "topic", "files", "batches", "records", "size", "offsets", "latest", "open txns"]
    rows = [
        [
            "" if broker is None else str(broker),
            _topic(topic, partition, kind),
            number(counts.files),
            number(counts.batches),
            number(counts.records),
            size(counts.size_bytes),
            "" if counts.first_offset is None else f"{counts.first_offset}-{counts.last_offset}",
            "" if counts.latest_ms is None else time_text(counts.latest_ms),
            str(len(counts.open_transactions) or ""),
        ]
        for (broker, topic, partition, kind), counts in stats.partitions.items()
        if counts.batches or counts.damaged_bytes
    ]
    grid(head, rows, right="files,batches,records,size")
    _print_types(stats.partitions.values())


def _print_types(partitions: Iterable[PartitionStats]) -> None:
    types: Counter[str] = Counter()
    for partition in partitions:
        types.update(partition.record_types)
    if types:
        print()
        grid(["records", "type"], [[number(times), name] for name, times in types.most_common()], right="records")


def _topic(topic: str | None, partition: int | None, kind: str) -> str:
    name = "?" if topic is None else f"{topic}-{partition}"
    return name if kind == OF_BATCHES[0] else f"{name} ({kind})"


def _print_finding(finding: Finding) -> None:
    from kafkascope.cli.terminal import paint

    style = "red" if finding.severity == Severity.CRITICAL else "yellow" if finding.severity != Severity.INFO else "dim"
    places = [f"at byte {finding.position}"] if finding.position is not None else []
    places += [f"offset {finding.offset}"] if finding.offset is not None else []
    place = f" {', '.join(places)}" if places else ""
    print(paint(printable(f"{finding.severity}  {finding.check}: {finding.file}{place}: {finding.detail}"), style))
