"""Makes rows of fetched records: the columns of the source, from record batches and what the offset of Spark's batch
has about them. Only offsets of its ranges become rows."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kafkascope.client.routing import uuid_key
from kafkascope.codec.records.budget import Budget
from kafkascope.codec.records.record_columns import RecordColumns
from kafkascope.codec.records.record_data import Record, RecordBatch, decode_records
from kafkascope.pipeline.share.batch_offset import PartitionRanges

_TIME = pa.timestamp("us", tz="UTC")
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_HEADERS = pa.list_(_HEADER)
SHARE_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", _TIME),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", _HEADERS),
        ("_delivery_count", pa.int32()),
        ("_lock_until", _TIME),
    ]
)
_US_PER_MS = 1_000
# A timestamp beyond these has no microseconds in 64 bits: no producer means it.
_MOST_MS = 9_223_372_036_854_775
# Offset, timestamp, key, value, headers.
_Columns = list[pa.Array]


class Rows:
    """Of one partition's ranges; `at` is the time of day, in ms, that their locks count from."""

    def __init__(self, entry: PartitionRanges, at: int) -> None:
        self._first, self._last = entry.ranges[0].first, entry.ranges[-1].last
        self._topic = pa.scalar(entry.topic, pa.string())
        self._topic_id = pa.scalar(uuid_key(entry.partition.topic_id), pa.string())
        self._partition = pa.scalar(entry.partition.partition, pa.int32())
        firsts, lasts, counts, untils = zip(*entry.ranges, strict=True)
        self._firsts, self._lasts = np.array(firsts, np.int64), np.array(lasts, np.int64)
        self._counts = np.array(counts, np.int32)
        self._untils = (np.array(untils, np.int64) + at) * _US_PER_MS
        self._columns = RecordColumns()

    def of(self, data: bytes, batches: Sequence[RecordBatch], first: int = 0) -> list[pa.RecordBatch]:
        """From the offset `first` on. `batches` are those of `data`, in order, with payloads instead of records."""
        parts: list[_Columns] = []
        budget = Budget()
        pending = False
        first = max(first, self._first)
        for batch in batches:
            if self._columns.add(batch, first, self._last, budget, "batch[0]"):
                pending = True
                continue
            if pending:
                parts.append(_of_buffers(self._columns))
                pending = False
            records = (part.records or () for part in decode_records(data[batch.start : batch.end]).batches)
            parts.append(_of_records([record for held in records for record in held]))
        if pending:
            parts.append(_of_buffers(self._columns))
        return [rows for part in parts if len(rows := self._chosen(part, first))]

    def _chosen(self, columns: _Columns, first: int) -> pa.RecordBatch:
        offsets = columns[0].to_numpy()
        ranges = np.searchsorted(self._firsts, offsets, "right") - 1
        chosen = (offsets >= first) & (offsets <= self._lasts[ranges])
        if not chosen.all():
            columns = [column.filter(pa.array(chosen)) for column in columns]
            ranges = ranges[chosen]
        count = len(ranges)
        return pa.RecordBatch.from_arrays(
            [
                pa.repeat(self._topic, count),
                pa.repeat(self._topic_id, count),
                pa.repeat(self._partition, count),
                *columns,
                pa.array(self._counts[ranges]),
                pa.array(self._untils[ranges]).cast(_TIME),
            ],
            schema=SHARE_SCHEMA,
        )


def _of_buffers(columns: RecordColumns) -> _Columns:
    rows, headers, buffers = columns.take()
    (offsets, times, keys, key_ends, key_bytes, values, value_ends, value_bytes, *more) = map(pa.py_buffer, buffers)
    header_ends, name_ends, name_bytes, contents, content_ends, content_bytes = more
    names = pa.Array.from_buffers(pa.string(), headers, [None, name_ends, name_bytes])
    held = pa.Array.from_buffers(pa.binary(), headers, [contents, content_ends, content_bytes])
    pairs = pa.Array.from_buffers(_HEADER, headers, [None], children=[names, held])
    return [
        pa.Array.from_buffers(pa.int64(), rows, [None, offsets]),
        pa.Array.from_buffers(_TIME, rows, [None, times]),
        pa.Array.from_buffers(pa.binary(), rows, [keys, key_ends, key_bytes]),
        pa.Array.from_buffers(pa.binary(), rows, [values, value_ends, value_bytes]),
        pa.Array.from_buffers(_HEADERS, rows, [None, header_ends], children=[pairs]),
    ]


def _of_records(records: Sequence[Record]) -> _Columns:
    return [
        pa.array([record.offset for record in records], pa.int64()),
        pa.array([_microseconds(record.timestamp) for record in records], pa.int64()).cast(_TIME),
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array([[{"key": key, "value": value} for key, value in record.headers] for record in records], _HEADERS),
    ]


def _microseconds(milliseconds: int) -> int | None:
    return milliseconds * _US_PER_MS if -_MOST_MS <= milliseconds <= _MOST_MS else None
