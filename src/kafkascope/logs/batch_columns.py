"""Reads the batches of a segment as Arrow tables, one row per batch, close to the speed of the disk. Damage is a row of
its own, and reading goes on at the next batch: both are those of `read_batches`, which decides wherever the kernel
stops."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from crc32c import crc32c

from kafkascope.codec.records.record_types import COMPRESSIONS, RecordBatch
from kafkascope.columnar.batch_headers import HEADER_FIELDS, read_headers
from kafkascope.logs.batches import Batch, Damage, read_batches
from kafkascope.logs.window import Window

_ROWS = 16_384
_CRC_START = 21
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime", "NoTimestampType")
_LOG_APPEND, _TRANSACTIONAL, _CONTROL, _DELETE_HORIZON = 1 << 3, 1 << 4, 1 << 5, 1 << 6
_WORDS = pa.dictionary(pa.int8(), pa.string())
# The names of `rows.batch_row`, without those that are the same for all of a file.
BATCH_COLUMNS = pa.schema(
    [
        ("position", pa.int64()),
        ("size_bytes", pa.int64()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("records_count", pa.int32()),
        ("magic", pa.int8()),
        ("compression", _WORDS),
        ("timestamp_type", _WORDS),
        ("max_timestamp_ms", pa.int64()),
        ("delete_horizon_ms", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("base_sequence", pa.int32()),
        ("last_sequence", pa.int32()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
        ("crc", pa.int64()),
        ("crc_ok", pa.bool_()),
    ]
)
_AT = {name: index for index, name in enumerate(HEADER_FIELDS)}
Numbers = npt.NDArray[np.int64]


def read_batch_columns(
    window: Window, start: int = 0, end: int | None = None, *, last: bool = False
) -> Iterator[pa.RecordBatch | Damage]:
    """Tables of `BATCH_COLUMNS` and damage, in the order of the file. `start`, `end` and `last` are those of
    `read_batches`: `start` is the start of a batch."""
    for item in sound_headers(window, start, end, last=last):
        if isinstance(item, tuple):
            _, _, numbers, rows = item
            yield _table(numbers[:, :rows], np.full(rows, 2))
        elif isinstance(item, Batch):
            yield _row(item)
        else:
            yield item


def sound_headers(
    window: Window, start: int = 0, end: int | None = None, *, last: bool = False, unpack_sets: bool = False
) -> Iterator[tuple[bytes, int, Numbers, int] | Batch | Damage]:
    """Headers of batches of magic 2 with the right checksum, as many as are in memory: the bytes that hold them, the
    position of the first byte in the file, `HEADER_FIELDS` by column, and how many. They hold until the next are read.
    Everything else as the careful reader gives it."""
    numbers = np.empty((len(HEADER_FIELDS), _ROWS), np.int64)
    position, previous = start, -1
    while position < window.size and (end is None or position < end):
        data, at = window.stretch(position)
        rows, _ = read_headers(data, at, position - at, numbers)
        if not rows and at:
            # Perhaps only the start of the next batch is in memory.
            data, at = window.stretch(position, again=True)
            rows, _ = read_headers(data, at, position - at, numbers)
        rows = _before(numbers, rows, end)
        sound = _sound(data, position - at, numbers, rows)
        if sound:
            final = sound - 1
            yield data, position - at, numbers, sound
            position = int(numbers[_AT["position"], final] + numbers[_AT["size_bytes"], final])
            previous = int(numbers[_AT["last_offset"], final])
            continue
        item = next(read_batches(window, position, last=last, unpack_sets=unpack_sets, previous=previous))
        yield item
        if isinstance(item, Batch):
            position += item.size
            previous = item.header.last_offset
        else:
            position += item.length


def _before(numbers: Numbers, rows: int, end: int | None) -> int:
    """How many of them begin before `end`."""
    return rows if end is None else int(np.searchsorted(numbers[_AT["position"], :rows], end))


def _sound(data: bytes, place: int, numbers: Numbers, rows: int) -> int:
    """How many batches come before the first one with a wrong checksum: that one is left to the careful reader."""
    view = memoryview(data)
    starts = (numbers[_AT["position"], :rows] - place).tolist()
    sizes, stored = numbers[_AT["size_bytes"], :rows].tolist(), numbers[_AT["crc"], :rows].tolist()
    for row, (at, size, crc) in enumerate(zip(starts, sizes, stored, strict=True)):
        if crc32c(view[at + _CRC_START : at + size]) != crc:
            return row
    return rows


def _table(numbers: Numbers, magic: Numbers, crc_ok: bool = True) -> pa.RecordBatch:
    number = {name: numbers[index] for name, index in _AT.items()}
    attributes, sequence = number["attributes"], number["base_sequence"]
    rows = numbers.shape[1]
    # Sequences turn over to 0; −1 without a producer.
    delta = number["last_offset"] - number["base_offset"]
    last_sequence = np.where(sequence < 0, -1, (sequence + delta) & 0x7FFF_FFFF)
    horizon = (attributes & _DELETE_HORIZON != 0) & (magic > 1)
    kind = np.where(magic == 0, 2, (attributes & _LOG_APPEND != 0).astype(np.int64))
    values = {
        **{name: column.copy() for name, column in number.items()},
        "magic": magic,
        "last_sequence": last_sequence,
        "is_transactional": (attributes & _TRANSACTIONAL != 0) & (magic > 1),
        "is_control": (attributes & _CONTROL != 0) & (magic > 1),
        "crc_ok": np.full(rows, crc_ok),
    }
    made: dict[str, pa.Array] = {
        "compression": _words(attributes & 7, COMPRESSIONS),
        "timestamp_type": _words(kind, _TIMESTAMP_TYPES),
        "delete_horizon_ms": pa.array(number["base_timestamp_ms"].copy(), mask=~horizon),
        "records_count": pa.array(number["records_count"].astype(np.int32), mask=number["records_count"] < 0),
    }
    columns = [
        made[field.name] if field.name in made else pa.array(values[field.name].astype(field.type.to_pandas_dtype()))
        for field in BATCH_COLUMNS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=BATCH_COLUMNS)


def _words(numbers: Numbers, names: tuple[str, ...]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int8)), pa.array(names))


def _row(item: Batch) -> pa.RecordBatch:
    """The row of a batch that the careful reader has read."""
    batch: RecordBatch = item.header
    values = {
        "position": item.position,
        "size_bytes": item.size,
        "base_offset": batch.base_offset,
        "leader_epoch": batch.partition_leader_epoch,
        "crc": batch.crc,
        "attributes": batch.attributes,
        "last_offset": batch.last_offset,
        "base_timestamp_ms": batch.base_timestamp,
        "max_timestamp_ms": batch.max_timestamp,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "records_count": -1 if batch.records_count is None else batch.records_count,
    }
    numbers = np.array([[values[name]] for name in HEADER_FIELDS], np.int64)
    return _table(numbers, np.array([batch.magic]), batch.crc_ok)
