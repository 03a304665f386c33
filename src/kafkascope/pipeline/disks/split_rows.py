"""Reads a split of a log file into rows of the lake's tables. Damage is a row of `quarantine`, and reading goes on at
the next batch; batches that the lake has are left out."""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.capture.exchanges.exchange_columns import TIME
from kafkascope.codec.records.record_types import Record
from kafkascope.columnar.decode import ERROR
from kafkascope.errors import DecodeError, InputError, NotFoundError
from kafkascope.lake.log_tables import (
    CONTROL_RECORDS,
    LOG_BATCHES,
    LOG_RECORDS,
    LOG_SEGMENTS,
    LOG_TABLES,
    PRODUCER_SNAPSHOTS,
    record_table_name,
)
from kafkascope.lake.shape import to_lake
from kafkascope.lake.tables import LakeTable, record_table, table_named
from kafkascope.logs.batch_columns import read_batch_columns
from kafkascope.logs.batches import Batch, Damage, DamageKind, read_batches
from kafkascope.logs.files import PRODUCER_SNAPSHOT, SNAPSHOT
from kafkascope.logs.producer_snapshot import read_producer_snapshot
from kafkascope.logs.record_columns import RecordColumns, RecordTable
from kafkascope.logs.rows import sequence_of
from kafkascope.logs.typed_records import control_type, framer_of
from kafkascope.logs.window import Window
from kafkascope.pipeline.disks.known_offsets import is_new
from kafkascope.pipeline.disks.log_inputs import LogInput
from kafkascope.pipeline.disks.place_disk import open_file
from kafkascope.pipeline.disks.splits import LogSplit

_HARMLESS = (DamageKind.UNFINISHED, DamageKind.ZEROS)
_WRONG_CRC, _UNDECODED = "crc", "undecoded"
# Years 1 to 9999 in milliseconds since 1970; negative ones mean none.
_LAST_MS = 253_402_300_799_999
# Rows of Python objects that wait to be a table.
_MOST_ROWS = 4_096


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table of the lake, without ingest and date."""

    table: LakeTable
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Trouble:
    """A row of `quarantine`: where, what, and how many bytes are lost. `message` is the type of a record."""

    position: int | None
    kind: str
    detail: str
    size: int
    message: str | None = None
    version: int | None = None


@dataclass(slots=True)
class Tally:
    """What a split had that was new. `end_position` is after the last whole batch, new or not."""

    start_position: int
    end_position: int
    first_offset: int | None = None
    end_offset: int | None = None
    batches: int = 0
    records: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    leader_epoch: int | None = None
    damaged_bytes: int = 0
    damaged_places: int = 0

    def add(self, batches: pa.RecordBatch) -> None:
        offsets, last = _numbers(batches, "base_offset"), _numbers(batches, "last_offset")
        # A compressed message of magic 0 or 1 is called by its last offset.
        first, end = int(offsets.min()), int(last.max()) + 1
        self.first_offset = first if self.first_offset is None else min(first, self.first_offset)
        self.end_offset = end if self.end_offset is None else max(end, self.end_offset)
        self.batches += len(batches)
        self.records += pc.sum(pc.fill_null(batches.column("records_count"), 1)).as_py()
        epoch = int(_numbers(batches, "leader_epoch").max())
        self.leader_epoch = epoch if self.leader_epoch is None else max(epoch, self.leader_epoch)
        times = _numbers(batches, "max_timestamp_ms")
        times = times[_has_time(times)]
        if len(times):
            first, last_ms = int(times.min()), int(times.max())
            self.first_ms = first if self.first_ms is None else min(first, self.first_ms)
            self.last_ms = last_ms if self.last_ms is None else max(last_ms, self.last_ms)


@dataclass(slots=True)
class SplitReader:
    """Reads one split. With `tables` only theirs are read; `contents` adds the records of users' topics. `takes` leaves
    out batches by their columns, before their records are decoded."""

    split: LogSplit
    contents: bool = False
    tables: Collection[str] | None = None
    takes: Callable[[pa.RecordBatch], npt.NDArray[np.bool_] | None] = lambda _: None
    tally: Tally = field(init=False)

    def __post_init__(self) -> None:
        self.tally = Tally(self.split.start, self.split.start)

    def items(self) -> Iterator[Rows | Trouble]:
        """`NotFoundError` if the file is gone, or another. The row of `log_segments` is the last one."""
        split = self.split
        if split.input.kind == PRODUCER_SNAPSHOT:
            if self._wants(PRODUCER_SNAPSHOTS):
                yield producer_rows(split.input)
            return
        with split.open() as window:
            if not split.is_sound(window):
                raise NotFoundError(f"{split.input.uri}: its batches moved while it was read")
            topic = split.input.topic
            typed = topic is not None and framer_of(topic) is not None and self._wants_types()
            columns = RecordColumns(topic) if typed and topic is not None else None
            yield from self._batches(window, columns)
            if columns is not None:
                for item in columns.finish():
                    yield from self._typed(item)
        if self._wants(LOG_SEGMENTS):
            yield Rows(table_named(LOG_SEGMENTS), self._segment())

    def _wants(self, table: str) -> bool:
        return self.tables is None or table in self.tables

    def _wants_types(self) -> bool:
        return self.tables is None or any(name not in LOG_TABLES for name in self.tables)

    def _batches(self, window: Window, columns: RecordColumns | None) -> Iterator[Rows | Trouble]:
        split, tally = self.split, self.tally
        is_known, waiting = False, None
        for item in read_batch_columns(window, split.start, split.end, last=split.input.last):
            if isinstance(item, Damage):
                if item.kind in _HARMLESS:
                    continue
                if is_known:
                    # Between batches that the lake has, it has this too.
                    waiting = item
                else:
                    yield self._damaged(item)
                continue
            final = len(item) - 1
            tally.end_position = item.column("position")[final].as_py() + item.column("size_bytes")[final].as_py()
            new = is_new(split.known, _numbers(item, "last_offset"), _numbers(item, "leader_epoch"))
            if waiting is not None and new[0]:
                yield self._damaged(waiting)
            is_known, waiting = not new[-1], None
            rows = item if new.all() else item.filter(pa.array(new))
            if len(rows):
                tally.add(rows)
                passed = self.takes(rows)
                rows = rows if passed is None else rows.filter(pa.array(passed))
            if len(rows):
                yield from self._of_batches(window, rows)
                if columns is not None:
                    yield from self._of_records(columns.add(window, rows))
        if waiting is not None:
            yield self._damaged(waiting)

    def _of_records(self, items: Iterator[RecordTable | Damage]) -> Iterator[Rows | Trouble]:
        for item in items:
            if isinstance(item, RecordTable):
                yield from self._typed(item)
            elif item.length:
                yield self._damaged(item)
            else:
                yield Trouble(item.position, _UNDECODED, item.detail, 0)

    def _damaged(self, damage: Damage) -> Trouble:
        self.tally.damaged_bytes += damage.length
        self.tally.damaged_places += 1
        return Trouble(damage.position, damage.kind.value, damage.detail, damage.length)

    def _of_batches(self, window: Window, rows: pa.RecordBatch) -> Iterator[Rows | Trouble]:
        if self._wants(LOG_BATCHES):
            yield Rows(table_named(LOG_BATCHES), self._batch_rows(rows))
        wrong = rows.filter(pc.invert(rows.column("crc_ok")))
        for row in wrong.select(["position", "size_bytes"]).to_pylist():
            detail = "the stored checksum isn't that of the batch"
            yield Trouble(row["position"], _WRONG_CRC, detail, row["size_bytes"])
        if self._wants(CONTROL_RECORDS):
            yield from self._records(window, rows.filter(rows.column("is_control")), self._control_row, CONTROL_RECORDS)
        if self.contents and self._wants(LOG_RECORDS) and framer_of(self.split.input.topic) is None:
            order = rows.filter(pc.invert(rows.column("is_control")))
            yield from self._records(window, order, self._record_row, LOG_RECORDS)

    def _records(
        self, window: Window, batches: pa.RecordBatch, row_of: Callable[[Batch, Record], dict[str, object]], name: str
    ) -> Iterator[Rows | Trouble]:
        waiting: list[dict[str, object]] = []
        for position in batches.column("position").to_pylist():
            batch = next(read_batches(window, position, unpack_sets=True))
            if isinstance(batch, Damage):
                continue
            try:
                waiting += [row_of(batch, record) for record in batch.records()]
            except DecodeError as error:
                detail = str(error).partition(": ")[2]
                yield Trouble(position, DamageKind.UNREADABLE.value, detail, batch.size)
            if len(waiting) >= _MOST_ROWS:
                yield self._row_table(name, waiting)
                waiting = []
        if waiting:
            yield self._row_table(name, waiting)

    def _row_table(self, name: str, rows: list[dict[str, object]]) -> Rows:
        table = table_named(name)
        count = len(rows)
        known = self._same(count)
        written = _times(np.array([row["timestamp_ms"] for row in rows], np.int64))
        arrays = []
        fields = [column for column in table.file_schema if column.name != "ingest_id"]
        for column in fields:
            if column.name == "written_at":
                arrays.append(written)
            elif column.name in known:
                arrays.append(known[column.name])
            else:
                arrays.append(pa.array([row[column.name] for row in rows], column.type))
        return Rows(table, pa.table(arrays, schema=pa.schema(fields)))

    def _control_row(self, batch: Batch, record: Record) -> dict[str, object]:
        typed = control_type(record)
        value = typed.value
        return {
            **_of_record(batch, record),
            "type": typed.type,
            "version": typed.version,
            "coordinator_epoch": None if value is None else value.get("coordinatorEpoch"),
            "leader_id": None if value is None else value.get("leaderId"),
            "value": None if value is None else json.dumps(value),
        }

    def _record_row(self, batch: Batch, record: Record) -> dict[str, object]:
        return {
            **_of_record(batch, record),
            "sequence": sequence_of(batch.header, record),
            "key": record.key,
            "value": record.value,
            "headers": [{"key": key, "value": value} for key, value in record.headers],
        }

    def _batch_rows(self, rows: pa.RecordBatch) -> pa.Table:
        made = {
            "written_at": _times(_numbers(rows, "max_timestamp_ms")),
            "delete_horizon_at": _times(_numbers(rows, "delete_horizon_ms", -1)),
            **self._same(len(rows)),
        }
        fields = [column for column in table_named(LOG_BATCHES).file_schema if column.name != "ingest_id"]
        arrays = [
            made[column.name] if column.name in made else rows.column(column.name).cast(column.type)
            for column in fields
        ]
        return pa.table(arrays, schema=pa.schema(fields))

    def _typed(self, item: RecordTable) -> Iterator[Rows | Trouble]:
        name = record_table_name(item.type)
        if not self._wants(name):
            return
        rows = item.rows
        good = np.ones(len(rows), np.bool_)
        for side in ("key", "value"):
            if side in rows.column_names:
                wrong = pc.is_valid(pc.struct_field(rows.column(side), ERROR)).to_numpy(zero_copy_only=False)
                for at in np.flatnonzero(wrong & good).tolist():
                    detail = f"offset {rows.column('offset')[at].as_py()}: {rows.column(side)[at].as_py()[ERROR]}"
                    yield Trouble(None, _UNDECODED, detail, 0, item.type, rows.column("version")[at].as_py())
                good &= ~wrong
        rows = rows if good.all() else rows.filter(pa.array(good))
        if not len(rows):
            return
        made = {
            "written_at": _times(rows.column("timestamp_ms").to_numpy()),
            **{side: _content(rows.column(side)) for side in ("key", "value") if side in rows.column_names},
            **self._same(len(rows)),
        }
        table = record_table(item.type)
        fields = [column for column in table.file_schema if column.name != "ingest_id"]
        arrays = [made[field.name] if field.name in made else rows.column(field.name) for field in fields]
        yield Rows(table, pa.table(arrays, schema=pa.schema(fields)))

    def _same(self, count: int) -> dict[str, pa.Array]:
        """The columns that are the same in all rows of a file."""
        log = self.split.input
        snapshot = (log.base_offset or 0) if log.kind == SNAPSHOT else None
        return {
            "broker": _repeated(log.broker, pa.int32(), count),
            "topic": _repeated(log.topic, pa.string(), count),
            "partition": _repeated(log.partition, pa.int32(), count),
            "snapshot_offset": _repeated(snapshot, pa.int64(), count),
            "capture_uri": _repeated(log.uri, pa.string(), count),
        }

    def _segment(self) -> pa.Table:
        log, tally = self.split.input, self.tally
        row = {
            "broker": log.broker,
            "topic": log.topic,
            "partition": log.partition,
            "kind": log.kind,
            "base_offset": log.base_offset,
            "snapshot_epoch": log.snapshot_epoch,
            "first_offset": tally.first_offset,
            "end_offset": tally.end_offset,
            "batches": tally.batches,
            "records": tally.records,
            "first_at": None if tally.first_ms is None else tally.first_ms * 1000,
            "last_at": None if tally.last_ms is None else tally.last_ms * 1000,
            "leader_epoch": tally.leader_epoch,
            "size_bytes": log.size,
            "start_position": tally.start_position,
            "end_position": tally.end_position,
            "damaged_bytes": tally.damaged_bytes,
            "is_last": log.last,
            "log_start_offset": log.log_start_offset,
            "high_watermark": log.high_watermark,
            "recovery_point": log.recovery_point,
            "clean_until": log.clean_until,
            "listed_segments": log.listed,
            "topic_id": log.topic_id,
            "cluster_id": log.cluster_id,
            "capture_uri": log.uri,
        }
        return _file_rows(table_named(LOG_SEGMENTS), [row]).rows


def producer_rows(log: LogInput) -> Rows | Trouble:
    """All of a producer snapshot."""
    try:
        producers = read_producer_snapshot(log.uri, open_file(log.uri))
    except InputError as error:
        return Trouble(None, PRODUCER_SNAPSHOT, str(error).removeprefix(f"{log.uri}: "), log.size)
    known = {
        "broker": log.broker,
        "topic": log.topic,
        "partition": log.partition,
        "offset": log.base_offset,
        "topic_id": log.topic_id,
        "cluster_id": log.cluster_id,
        "capture_uri": log.uri,
    }
    rows = [{**known, **producer} for producer in producers]
    for row in rows:
        written, first = row.pop("timestamp"), row["current_txn_first_offset"]
        row["written_at"] = written * 1000 if 0 <= written <= _LAST_MS else None
        row["current_txn_first_offset"] = first if first >= 0 else None
    return _file_rows(table_named(PRODUCER_SNAPSHOTS), rows)


def _file_rows(table: LakeTable, rows: list[dict[str, Any]]) -> Rows:
    schema = pa.schema([column for column in table.file_schema if column.name != "ingest_id"])
    return Rows(table, pa.table([pa.array([row[c.name] for row in rows], c.type) for c in schema], schema=schema))


def _of_record(batch: Batch, record: Record) -> dict[str, object]:
    return {
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "leader_epoch": batch.header.partition_leader_epoch,
        "producer_id": batch.header.producer_id,
        "producer_epoch": batch.header.producer_epoch,
    }


def _numbers(rows: pa.RecordBatch, name: str, missing: int = 0) -> npt.NDArray[np.int64]:
    column = rows.column(name)
    if column.null_count:
        column = pc.fill_null(column, missing)
    numbers: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _has_time(milliseconds: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return (milliseconds >= 0) & (milliseconds <= _LAST_MS)


def _times(milliseconds: npt.NDArray[np.int64]) -> pa.Array:
    known = _has_time(milliseconds)
    return pa.array(np.where(known, milliseconds, 0) * 1000, mask=~known).cast(TIME)


def _repeated(value: object, type_: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, type_) if value is None else pa.repeat(pa.scalar(value, type_), count)


def _content(structs: pa.ChunkedArray) -> pa.Array:
    """As the lake has them, without the error."""
    whole = structs.combine_chunks() if structs.num_chunks != 1 else structs.chunk(0)
    fields = [column for column in whole.type if column.name != ERROR]
    arrays = to_lake(pa.table([whole.field(column.name) for column in fields], schema=pa.schema(fields)))
    content = [_one_chunk(column) for column in arrays.columns]
    return pa.StructArray.from_arrays(content, fields=list(arrays.schema), mask=pc.is_null(whole))


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
