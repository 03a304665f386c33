"""Rows of a lake that come from log directories, and what the careful reader has of the same files, in one form."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkascope.codec.records.record_types import Record, RecordBatch
from kafkascope.columnar.decode import full_schema
from kafkascope.lake.home import open_lake
from kafkascope.lake.log_tables import (
    CONTROL_RECORDS,
    LOG_BATCHES,
    LOG_RECORDS,
    LOG_SEGMENTS,
    record_schema,
    record_table_name,
    record_types,
)
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.shape import to_lake
from kafkascope.logs.directories import LogFile
from kafkascope.logs.files import SNAPSHOT
from kafkascope.logs.reader import BatchEvent, DamageEvent, LogReader, RecordEvent
from kafkascope.logs.rows import batch_row, sequence_of
from kafkascope.logs.typed_records import framer_of, message_names
from tests.columnar.expected import expected, without_nulls

# What depends on the ingest, and what is a form of another column.
_APART = {"ingest_id", "date"}
Rows = dict[str, list[dict[str, Any]]]
RECORDS = (CONTROL_RECORDS, LOG_RECORDS, *record_types())


def lake_log_rows(lake: str) -> Rows:
    """All rows but those of `log_segments`, sorted; times are milliseconds."""
    home = open_lake(lake)
    names = [name for name in home.tables() if name in (LOG_BATCHES, *RECORDS)]
    return {name: sorted_rows(map(plain_row, dataset(home, name).to_table().to_pylist())) for name in names}


def segments(lake: str) -> list[dict[str, Any]]:
    return [plain_row(row) for row in dataset(open_lake(lake), LOG_SEGMENTS).to_table().to_pylist()]


def covered(lake: str) -> dict[str, tuple[int, int, int, int]]:
    """Segments by name of their file: batches, records, end offset, end position, over all ingests and splits."""
    totals: dict[str, tuple[int, int, int, int]] = {}
    for row in segments(lake):
        batches, records, end, position = totals.get(row["capture_uri"], (0, 0, -1, 0))
        totals[row["capture_uri"]] = (
            batches + row["batches"],
            records + row["records"],
            max(end, row.get("end_offset", -1)),
            max(position, row["end_position"]),
        )
    return totals


def troubles(lake: str) -> Counter[tuple[str, str, int]]:
    rows = dataset(open_lake(lake), "quarantine").to_table().to_pylist()
    return Counter((row["capture_uri"], row["kind"], row["bytes"]) for row in rows)


def read_log_rows(*paths: Path, contents: bool = False) -> Rows:
    """The same from `logs.reader`."""
    rows: Rows = {}
    for event in LogReader(tuple(map(str, paths)), records=contents).events():
        if isinstance(event, BatchEvent):
            rows.setdefault(LOG_BATCHES, []).append(_batch(event))
        elif isinstance(event, RecordEvent):
            for name, row in _record(event):
                rows.setdefault(name, []).append(row)
    return {name: sorted_rows(table) for name, table in rows.items()}


def read_troubles(*paths: Path) -> Counter[tuple[str, str, int]]:
    events = LogReader(tuple(map(str, paths))).events()
    return Counter(
        (event.file.path, event.damage.kind.value, event.damage.length)
        for event in events
        if isinstance(event, DamageEvent) and not event.harmless
    )


def plain_row(row: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in row.items() if name not in _APART}
    for name in ("written_at", "delete_horizon_at"):
        if plain.get(name) is not None:
            plain[name] = round(plain[name].timestamp() * 1000)
    result: dict[str, Any] = without_nulls(plain)
    return result


def _batch(event: BatchEvent) -> dict[str, Any]:
    row = batch_row(event.file, event.batch)
    row["written_at"] = _time(row.pop("max_timestamp_ms"))
    row["delete_horizon_at"] = row.pop("delete_horizon_ms")
    row["capture_uri"] = row.pop("file")
    row["snapshot_offset"] = _snapshot(event.file)
    del row["kind"]
    result: dict[str, Any] = without_nulls(row)
    return result


def _record(event: RecordEvent) -> Iterable[tuple[str, dict[str, Any]]]:
    file, batch, record = event.file, event.batch, event.record
    row = {
        "broker": file.broker,
        "topic": file.topic,
        "partition": file.partition,
        "offset": record.offset,
        "written_at": _time(record.timestamp),
        "leader_epoch": batch.partition_leader_epoch,
        "producer_id": batch.producer_id,
        "snapshot_offset": _snapshot(file),
        "capture_uri": file.path,
    }
    if batch.is_control:
        assert event.typed is not None
        name = CONTROL_RECORDS
        row |= {"producer_epoch": batch.producer_epoch, "type": event.typed.type, "version": event.typed.version}
    elif event.typed is not None:
        assert event.typed.type is not None and event.typed.problem is None
        name = record_table_name(event.typed.type)
        row |= {"version": event.typed.version} | _content(file, record)
    else:
        name = LOG_RECORDS
        row |= _bytes(batch, record)
    yield name, without_nulls(row)


def _content(file: LogFile, record: Record) -> dict[str, Any]:
    """Key and value by the careful codec, in the types of the lake."""
    framer = framer_of(file.topic)
    assert framer is not None
    framed = framer(record)
    assert framed.type is not None
    key_message, value_message = message_names()[framed.type]
    content: dict[str, Any] = {}
    if key_message is not None:
        content["key"] = _struct(key_message, framed.key_version, framed.key)
    if framed.value is not None:
        assert framed.version is not None
        content["value"] = _struct(value_message, framed.version, framed.value)
    assert set(content) <= set(record_schema(framed.type).names)
    return content


def _struct(message: str, version: int, body: bytes) -> dict[str, Any]:
    row = expected((message, version, None), body)
    table = to_lake(pa.Table.from_pylist([row], schema=full_schema(message)))
    values: dict[str, Any] = table.to_pylist()[0]
    return values


def _bytes(batch: RecordBatch, record: Record) -> dict[str, Any]:
    return {
        "producer_epoch": batch.producer_epoch,
        "sequence": sequence_of(batch, record),
        "key": record.key,
        "value": record.value,
        "headers": [{"key": key, "value": value} for key, value in record.headers],
    }


def _time(milliseconds: int) -> int | None:
    return None if milliseconds < 0 else milliseconds


def _snapshot(file: LogFile) -> int | None:
    return (file.base_offset or 0) if file.kind == SNAPSHOT else None


def sorted_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["capture_uri"], row.get("offset", row.get("position", 0)), repr(row)))
