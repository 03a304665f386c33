"""Declares the columns of what log directories become: segments, batches, and one table for each type of Kafka's own
records. All of them name broker, topic and partition."""

from functools import cache

import pyarrow as pa

from kafkascope.capture.exchanges.exchange_columns import TIME
from kafkascope.columnar.decode import ERROR, full_schema
from kafkascope.columnar.tables import snake_case
from kafkascope.lake.shape import lake_type
from kafkascope.logs.typed_records import message_names

LOG_SEGMENTS, LOG_BATCHES, LOG_RECORDS, CONTROL_RECORDS, PRODUCER_SNAPSHOTS = (
    "log_segments",
    "log_batches",
    "log_records",
    "control_records",
    "producer_snapshots",
)
# The time that most rows have.
WRITTEN_AT = "written_at"

_PLACE = [("broker", pa.int32()), ("topic", pa.string()), ("partition", pa.int32())]
_FILE = ("capture_uri", pa.string())
_SEGMENTS = pa.schema(
    [
        *_PLACE,
        ("kind", pa.string()),
        ("base_offset", pa.int64()),
        ("snapshot_epoch", pa.int32()),
        ("first_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("batches", pa.int64()),
        ("records", pa.int64()),
        ("first_at", TIME),
        ("last_at", TIME),
        ("leader_epoch", pa.int32()),
        ("size_bytes", pa.int64()),
        ("start_position", pa.int64()),
        ("end_position", pa.int64()),
        ("damaged_bytes", pa.int64()),
        ("is_last", pa.bool_()),
        ("log_start_offset", pa.int64()),
        ("high_watermark", pa.int64()),
        ("recovery_point", pa.int64()),
        ("clean_until", pa.int64()),
        ("listed_segments", pa.list_(pa.int64())),
        ("topic_id", pa.string()),
        ("cluster_id", pa.string()),
        _FILE,
    ]
)
_BATCHES = pa.schema(
    [
        *_PLACE,
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("records_count", pa.int32()),
        (WRITTEN_AT, TIME),
        ("leader_epoch", pa.int32()),
        ("size_bytes", pa.int64()),
        ("position", pa.int64()),
        ("magic", pa.int8()),
        ("compression", pa.string()),
        ("timestamp_type", pa.string()),
        ("delete_horizon_at", TIME),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("base_sequence", pa.int32()),
        ("last_sequence", pa.int32()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
        ("crc", pa.int64()),
        ("crc_ok", pa.bool_()),
        ("snapshot_offset", pa.int64()),
        _FILE,
    ]
)
# What every record has.
_RECORD = [
    *_PLACE,
    ("offset", pa.int64()),
    (WRITTEN_AT, TIME),
    ("leader_epoch", pa.int32()),
    ("producer_id", pa.int64()),
]
_ORIGIN = [("snapshot_offset", pa.int64()), _FILE]
_CONTROL = pa.schema(
    [
        *_RECORD,
        ("producer_epoch", pa.int16()),
        ("type", pa.string()),
        ("version", pa.int16()),
        ("coordinator_epoch", pa.int32()),
        ("leader_id", pa.int32()),
        ("value", pa.string()),
        *_ORIGIN,
    ]
)
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_RECORDS = pa.schema(
    [
        *_RECORD,
        ("producer_epoch", pa.int16()),
        ("sequence", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(_HEADER)),
        *_ORIGIN,
    ]
)
_PRODUCERS = pa.schema(
    [
        *_PLACE,
        ("offset", pa.int64()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("last_sequence", pa.int32()),
        ("last_offset", pa.int64()),
        ("offset_delta", pa.int32()),
        (WRITTEN_AT, TIME),
        ("coordinator_epoch", pa.int32()),
        ("current_txn_first_offset", pa.int64()),
        ("topic_id", pa.string()),
        ("cluster_id", pa.string()),
        _FILE,
    ]
)
# Name to columns, and the one that provides the date. A segment has none: its row says what was read, and `expire`
# keeps it.
LOG_TABLES: dict[str, tuple[pa.Schema, str | None]] = {
    LOG_SEGMENTS: (_SEGMENTS, None),
    LOG_BATCHES: (_BATCHES, WRITTEN_AT),
    LOG_RECORDS: (_RECORDS, WRITTEN_AT),
    CONTROL_RECORDS: (_CONTROL, WRITTEN_AT),
    PRODUCER_SNAPSHOTS: (_PRODUCERS, WRITTEN_AT),
}


@cache
def record_types() -> dict[str, str]:
    """`offset_commit` to `OffsetCommit`, for every type of Kafka's own records."""
    return {snake_case(type_): type_ for type_ in message_names()}


def record_table_name(type_: str) -> str:
    """`OffsetCommit` becomes `offset_commit`."""
    return snake_case(type_)


@cache
def record_schema(type_: str) -> pa.Schema:
    """`key` and `value` have the columns of their messages; a metadata record has no key."""
    key, value = message_names()[type_]
    content = [(name, _struct(message)) for name, message in (("key", key), ("value", value)) if message is not None]
    return pa.schema([*_RECORD, ("version", pa.int16()), *content, *_ORIGIN])


def _struct(message: str) -> pa.DataType:
    columns = [field for field in full_schema(message) if field.name != ERROR]
    return lake_type(pa.struct([pa.field(field.name, field.type) for field in columns]))
