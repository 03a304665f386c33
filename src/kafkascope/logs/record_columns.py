"""Reads the records of Kafka's own topics as Arrow tables, one per type, without credentials. A batch or record that
can't be read is a row of its own, and reading goes on."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.codec.message import decode
from kafkascope.codec.records.record_types import Record, RecordBatch
from kafkascope.columnar.decode import decode_columns
from kafkascope.columnar.tables import ERROR, full_schema
from kafkascope.errors import DecodeError
from kafkascope.limits import MAX_LOG_TABLE_BYTES
from kafkascope.logs.batch_columns import read_batch_columns
from kafkascope.logs.batches import Damage, DamageKind, read_batches
from kafkascope.logs.hidden import is_open_setting
from kafkascope.logs.typed_records import Framed, Framer
from kafkascope.logs.window import Window
from kafkascope.schema.catalog import index

_CONFIG = "ConfigRecord"
_COMMON = (
    ("offset", pa.int64()),
    ("timestamp_ms", pa.int64()),
    ("leader_epoch", pa.int32()),
    ("producer_id", pa.int64()),
    ("version", pa.int16()),
)


@dataclass(frozen=True, slots=True)
class RecordTable:
    """Records of one type: `key` and `value` are structs with the columns of their messages, null for none."""

    type: str
    rows: pa.Table


@dataclass(slots=True)
class _Waiting:
    """Records of one type that aren't a table yet."""

    common: list[tuple[int, int, int, int, int | None]] = field(default_factory=list)
    framed: list[Framed] = field(default_factory=list)


class RecordColumns:
    """Collects the records of batches until they are worth a table. A record of an unknown type or version is a
    `Damage` of no bytes at its batch: the batch itself was read."""

    def __init__(self, framer: Framer) -> None:
        self._framer = framer
        self._waiting: dict[str, _Waiting] = {}
        self._held = 0

    def add(self, window: Window, batches: pa.RecordBatch) -> Iterator[RecordTable | Damage]:
        """`batches` are rows of `BATCH_COLUMNS`; control batches are left out."""
        order = batches.filter(pc.invert(batches.column("is_control")))
        for position in order.column("position").to_pylist():
            item = next(read_batches(window, position, unpack_sets=True))
            if isinstance(item, Damage):
                continue
            try:
                records = item.records()
            except DecodeError as error:
                yield Damage(item.position, item.size, DamageKind.UNREADABLE, str(error).partition(": ")[2])
                continue
            for record in records:
                framed = self._framer(record)
                if problem := _problem(framed):
                    detail = f"offset {record.offset}: {problem}"
                    yield Damage(item.position, 0, DamageKind.UNREADABLE, detail)
                    continue
                _add(self._waiting.setdefault(framed.type or "", _Waiting()), item.header, record, framed)
                self._held += len(framed.key) + len(framed.value or b"")
            if self._held > MAX_LOG_TABLE_BYTES:
                yield from self.finish()

    def finish(self) -> Iterator[RecordTable]:
        waiting, self._waiting, self._held = self._waiting, {}, 0
        yield from _tables(waiting)


def read_record_columns(
    window: Window, framer: Framer, start: int = 0, end: int | None = None, *, last: bool = False
) -> Iterator[RecordTable | Damage]:
    """In the order of the file within each table."""
    columns = RecordColumns(framer)
    for item in read_batch_columns(window, start, end, last=last):
        if isinstance(item, Damage):
            yield item
        else:
            yield from columns.add(window, item)
    yield from columns.finish()


def _problem(framed: Framed) -> str | None:
    if framed.problem is not None or framed.value_message is None:
        return framed.problem
    if framed.version is None or framed.version not in index()[framed.value_message].versions:
        return f"{framed.value_message} has no version {framed.version}"
    return None


def _add(waiting: _Waiting, batch: RecordBatch, record: Record, framed: Framed) -> None:
    epoch, producer = batch.partition_leader_epoch, batch.producer_id
    waiting.common.append((record.offset, record.timestamp, epoch, producer, framed.version))
    waiting.framed.append(framed)


def _tables(waiting: dict[str, _Waiting]) -> Iterator[RecordTable]:
    for type_, records in sorted(waiting.items()):
        columns = zip(_COMMON, zip(*records.common, strict=True), strict=True)
        rows = {name: pa.array(values, kind) for (name, kind), values in columns}
        first = records.framed[0]
        if first.key_message is not None:
            rows["key"] = _structs(first.key_message, [(one.key_version, one.key) for one in records.framed])
        name = first.value_message or f"{type_}Value"
        rows["value"] = _structs(name, [(one.version or 0, one.value) for one in records.framed])
        yield RecordTable(type_, pa.table(rows))


def _structs(name: str, bodies: list[tuple[int, bytes | None]]) -> pa.Array:
    """Each version is decoded by itself; all have the columns of the message."""
    schema = full_schema(name)
    by_version: dict[int, list[int]] = {}
    for at, (version, body) in enumerate(bodies):
        if body is not None:
            by_version.setdefault(version, []).append(at)
    parts, order = [], []
    for version, places in by_version.items():
        parts.append(decode_columns(name, version, pa.array([bodies[at][1] for at in places], pa.binary())))
        order += places
    table = pa.concat_tables(parts) if parts else schema.empty_table()
    if name == _CONFIG:
        table = _with_open_settings(table, [bodies[at] for at in order])
    place = {at: row for row, at in enumerate(order)}
    whole = table.take(pa.array([place.get(at) for at in range(len(bodies))], pa.int64())).combine_chunks()
    fields = [column for column in schema if column.name != ERROR]
    arrays = [_one_chunk(whole.column(column.name)) for column in [*fields, schema.field(ERROR)]]
    missing = pa.array([at not in place for at in range(len(bodies))])
    return pa.StructArray.from_arrays(arrays, fields=[*fields, schema.field(ERROR)], mask=missing)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _with_open_settings(table: pa.Table, bodies: list[tuple[int, bytes | None]]) -> pa.Table:
    """The kernel hides all values of settings; those that aren't passwords come back."""
    values: list[str | None] = []
    kinds, names = table.column("resource_type").to_pylist(), table.column("name").to_pylist()
    for kind, setting, (version, body) in zip(kinds, names, bodies, strict=True):
        shown = is_open_setting(kind, setting) and body is not None
        values.append(decode(_CONFIG, version, body).value["value"] if shown and body is not None else None)
    at = table.schema.get_field_index("value")
    return table.set_column(at, table.schema.field(at), pa.array(values, pa.string()))
