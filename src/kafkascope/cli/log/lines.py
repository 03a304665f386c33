"""Prints files, batches and records of log directories, one per line, under the file that they are in."""

import json
import sys
from typing import Any

from kafkascope.cli.terminal import cut, paint, width
from kafkascope.formatting import count, printable, size
from kafkascope.logs.reader import BatchEvent, DamageEvent, EntryEvent, FileEvent, LogEvent, RecordEvent
from kafkascope.logs.rows import entry_row, record_row, sequence_of
from kafkascope.times import moment_of, readable

_OFFSET_DIGITS = 12
_BYTES_SHOWN = 60


class Lines:
    """Fits one line on a terminal; in a pipe it's complete."""

    def __init__(self) -> None:
        self._room = width() if sys.stdout.isatty() else None

    def show(self, event: LogEvent) -> None:
        if isinstance(event, FileEvent):
            self._file(event)
        elif isinstance(event, BatchEvent):
            self._batch(event)
        elif isinstance(event, RecordEvent):
            self._record(event)
        elif isinstance(event, EntryEvent):
            row = {
                key: value for key, value in entry_row(event.file, event.entry).items() if key not in ("kind", "file")
            }
            self._print("  " + "  ".join(f"{name} {value}" for name, value in row.items()))
        elif isinstance(event, DamageEvent):
            damage = event.damage
            text = f"  {damage.kind.value} at byte {damage.position}: {damage.detail}; {count(damage.length, 'byte')}"
            self._print(text, "dim" if event.harmless else "red")

    def _file(self, event: FileEvent) -> None:
        file = event.file
        owner = f", broker {file.broker}" if file.broker is not None else ""
        why = f" - left alone: {file.left_alone}" if file.left_alone else ""
        self._print(f"{file.path}  {file.kind}{owner}, {size(file.size)}{why}", "dim" if why else "bold")
        if event.content is not None:
            self._print(f"  {compact(event.content)}")

    def _batch(self, event: BatchEvent) -> None:
        batch = event.batch.header
        records = "packed" if batch.records_count is None else count(batch.records_count, "record")
        parts = [f"{batch.base_offset}-{batch.last_offset}".rjust(_OFFSET_DIGITS), time_text(batch.max_timestamp)]
        parts += [records, size(event.batch.size), batch.compression]
        if batch.magic < 2:
            parts.append(f"magic {batch.magic}")
        if batch.producer_id >= 0:
            parts.append(f"producer {batch.producer_id}/{batch.producer_epoch}")
        if batch.base_sequence >= 0:
            parts.append(f"sequence {batch.base_sequence}")
        parts += [name for name, is_so in _flags(batch) if is_so]
        self._print("  ".join(parts), *(() if batch.crc_ok else ("red",)))

    def _record(self, event: RecordEvent) -> None:
        record, typed = event.record, event.typed
        parts = [str(record.offset).rjust(_OFFSET_DIGITS), time_text(record.timestamp)]
        if typed is None:
            row = record_row(event.file, event.batch, record, None)
            parts += [f"key {shown(record.key)}", f"value {shown(record.value)}"]
            parts += [f"headers {compact(row['headers'])}"] if record.headers else []
            sequence = sequence_of(event.batch, record)
            self._print("  ".join(parts + ([f"sequence {sequence}"] if sequence >= 0 else [])))
            return
        version = "" if typed.version is None else f" v{typed.version}"
        parts.append(paint((typed.type or "unknown") + version, "green" if typed.problem is None else "yellow"))
        if typed.key is not None:
            parts.append(compact(typed.key))
        if typed.value is not None:
            parts.append(compact(typed.value))
        elif typed.problem is None:
            parts.append("tombstone")
        if typed.problem is not None:
            parts.append(typed.problem)
        self._print("  ".join(parts))

    def _print(self, text: str, *styles: str) -> None:
        text = "".join(c if c == "\033" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
        if self._room is not None and "\033" not in text:
            text = text if len(text) < self._room else cut(text, self._room - 1) + "…"
        print(paint(text, *styles))


def _flags(batch: Any) -> list[tuple[str, bool]]:
    return [
        ("transactional", batch.is_transactional),
        ("control", batch.is_control),
        ("delete horizon", batch.has_delete_horizon),
        ("append time", batch.timestamp_type == "LogAppendTime"),
        ("WRONG CRC", not batch.crc_ok),
    ]


def compact(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def shown(data: bytes | None) -> str:
    """Text as it is, other bytes as hex."""
    if data is None:
        return "null"
    part = data[:_BYTES_SHOWN]
    more = "" if len(data) <= _BYTES_SHOWN else f"… ({len(data)} bytes)"
    try:
        text = part.decode()
    except UnicodeDecodeError:
        return f"0x{part.hex()}{more}"
    return (f"'{text}'" if text.isprintable() else f"0x{part.hex()}") + more


def time_text(milliseconds: int) -> str:
    moment = moment_of(milliseconds * 1000) if milliseconds >= 0 else None
    return "no time".ljust(23) if moment is None else readable(moment, 3)
