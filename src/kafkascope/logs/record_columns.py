"""Reads the records of Kafka's own topics as Arrow tables, one per type, without credentials. A batch or record that
can't be read is a row of its own, and reading goes on."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.codec.message import decode
from kafkascope.columnar.decode import decode_columns
from kafkascope.columnar.tables import ERROR, full_schema
from kafkascope.limits import MAX_LOG_TABLE_BYTES
from kafkascope.logs.batch_columns import read_batch_columns
from kafkascope.logs.batches import Damage
from kafkascope.logs.hidden import is_open_setting
from kafkascope.logs.record_frames import Frames, RecordFrames
from kafkascope.logs.window import Window

_CONFIG = "ConfigRecord"


@dataclass(frozen=True, slots=True)
class RecordTable:
    """Records of one type: `key` and `value` are structs with the columns of their messages, null for none."""

    type: str
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class _Part:
    """Records of one type, with what they have of their batches."""

    frames: Frames
    leader_epoch: pa.Array
    producer_id: pa.Array


class RecordColumns:
    """Collects the records of batches until they are worth a table. A record of an unknown type or version is a
    `Damage` of no bytes at its batch: the batch itself was read."""

    def __init__(self, topic: str) -> None:
        self._frames = RecordFrames(topic)
        self._waiting: dict[str, list[_Part]] = {}
        self._held = 0

    def add(self, window: Window, batches: pa.RecordBatch) -> Iterator[RecordTable | Damage]:
        """`batches` are rows of `BATCH_COLUMNS`; control batches are left out."""
        order = batches.filter(pc.invert(batches.column("is_control")))
        careful = pc.or_(pc.less(order.column("magic"), 2), pc.invert(order.column("crc_ok")))
        positions = order.column("position").to_numpy()
        epochs, producers = order.column("leader_epoch"), order.column("producer_id")
        for item in self._frames.read(window, positions, careful.to_numpy(zero_copy_only=False)):
            if isinstance(item, Damage):
                yield item
                continue
            batch = pa.array(item.batch)
            part = _Part(item, epochs.take(batch), producers.take(batch))
            self._waiting.setdefault(item.type, []).append(part)
            self._held += item.value.nbytes + (0 if item.key is None else item.key.nbytes)
            if self._held > MAX_LOG_TABLE_BYTES:
                yield from self.finish()

    def finish(self) -> Iterator[RecordTable]:
        waiting, self._waiting, self._held = self._waiting, {}, 0
        for type_, parts in sorted(waiting.items()):
            yield RecordTable(type_, _table(parts))


def read_record_columns(
    window: Window, topic: str, start: int = 0, end: int | None = None, *, last: bool = False
) -> Iterator[RecordTable | Damage]:
    """Of a topic of Kafka's own, in the order of the file within each table."""
    columns = RecordColumns(topic)
    for item in read_batch_columns(window, start, end, last=last):
        if isinstance(item, Damage):
            yield item
        else:
            yield from columns.add(window, item)
    yield from columns.finish()


def _table(parts: list[_Part]) -> pa.Table:
    frames = [part.frames for part in parts]
    first = frames[0]
    version = np.concatenate([part.version for part in frames])
    rows: dict[str, pa.Array] = {
        "offset": pa.array(np.concatenate([part.offset for part in frames])),
        "timestamp_ms": pa.array(np.concatenate([part.timestamp for part in frames])),
        "leader_epoch": _joined([part.leader_epoch for part in parts]),
        "producer_id": _joined([part.producer_id for part in parts]),
        "version": pa.array(version.astype(np.int16), mask=version < 0),
    }
    if first.key_message is not None:
        keys = _joined([part.key for part in frames if part.key is not None])
        rows["key"] = _structs(first.key_message, np.full(len(version), first.key_version), keys)
    rows["value"] = _structs(first.value_message, version, _joined([part.value for part in frames]))
    return pa.table(rows)


def _joined(arrays: list[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _structs(name: str, versions: npt.NDArray[np.int64], bodies: pa.Array) -> pa.Array:
    """Each version is decoded by itself; all have the columns of the message."""
    schema = full_schema(name)
    present = bodies.is_valid().to_numpy(zero_copy_only=False) if bodies.null_count else np.ones(len(bodies), np.bool_)
    parts, places = [], []
    for version in np.unique(versions[present]).tolist():
        rows = np.flatnonzero(present & (versions == version))
        chosen = bodies if len(rows) == len(bodies) else bodies.take(pa.array(rows))
        table = decode_columns(name, version, chosen)
        parts.append(_with_open_settings(table, version, chosen) if name == _CONFIG else table)
        places.append(rows)
    table = pa.concat_tables(parts) if parts else schema.empty_table()
    if len(parts) != 1 or len(table) != len(bodies):
        order = np.full(len(bodies), -1)
        if places:
            order[np.concatenate(places)] = np.arange(len(table))
        table = table.take(pa.array(order, mask=~present))
    fields = [*(column for column in schema if column.name != ERROR), schema.field(ERROR)]
    arrays = [_one_chunk(table.column(column.name)) for column in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=None if present.all() else pa.array(~present))


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _with_open_settings(table: pa.Table, version: int, bodies: pa.Array) -> pa.Table:
    """The kernel hides all values of settings; those that aren't passwords come back."""
    values: list[str | None] = []
    kinds, names = table.column("resource_type").to_pylist(), table.column("name").to_pylist()
    for row, (kind, setting) in enumerate(zip(kinds, names, strict=True)):
        shown = is_open_setting(kind, setting)
        values.append(decode(_CONFIG, version, bodies[row].as_py()).value["value"] if shown else None)
    at = table.schema.get_field_index("value")
    return table.set_column(at, table.schema.field(at), pa.array(values, pa.string()))
