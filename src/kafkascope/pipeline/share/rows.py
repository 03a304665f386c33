"""Makes rows of records: the columns of the source, from records and what the batch's offset says of them."""

from collections.abc import Sequence

import pyarrow as pa

from kafkascope.client.routing import uuid_key
from kafkascope.codec.records.record_data import Record
from kafkascope.pipeline.share.batch_offset import PartitionRanges

_TIME = pa.timestamp("us", tz="UTC")
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
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


def rows(entry: PartitionRanges, records: Sequence[Record], delivery_count: int, lock_until_ms: int) -> pa.RecordBatch:
    """All of one range."""
    count = len(records)
    headers = [record.headers for record in records]
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(entry.topic, pa.string()), count),
            pa.repeat(pa.scalar(uuid_key(entry.partition.topic_id), pa.string()), count),
            pa.repeat(pa.scalar(entry.partition.partition, pa.int32()), count),
            pa.array([record.offset for record in records], pa.int64()),
            pa.array([_microseconds(record.timestamp) for record in records], pa.int64()).cast(_TIME),
            pa.array([record.key for record in records], pa.binary()),
            pa.array([record.value for record in records], pa.binary()),
            _headers(headers) if any(headers) else _no_headers(count),
            pa.repeat(pa.scalar(delivery_count, pa.int32()), count),
            pa.repeat(pa.scalar(lock_until_ms * _US_PER_MS, pa.int64()), count).cast(_TIME),
        ],
        schema=SHARE_SCHEMA,
    )


def _microseconds(milliseconds: int) -> int | None:
    return milliseconds * _US_PER_MS if -_MOST_MS <= milliseconds <= _MOST_MS else None


def _headers(headers: list[tuple[tuple[str, bytes | None], ...]]) -> pa.Array:
    return pa.array([[{"key": key, "value": value} for key, value in each] for each in headers], _HEADERS)


def _no_headers(count: int) -> pa.Array:
    return pa.repeat(pa.scalar([], _HEADERS), count)
