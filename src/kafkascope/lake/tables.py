"""Declares the tables of the lake by name: their columns, and the column that provides their date."""

from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from kafkascope.capture.exchanges.exchange_columns import SCHEMA as EXCHANGES
from kafkascope.capture.exchanges.exchange_columns import TIME
from kafkascope.columnar.decode import ERROR, full_schema
from kafkascope.columnar.tables import snake_case
from kafkascope.errors import NotFoundError
from kafkascope.lake.log_tables import LOG_TABLES, WRITTEN_AT, record_schema, record_table_name, record_types
from kafkascope.lake.shape import lake_schema
from kafkascope.schema.catalog import apis

INGEST_ID = "ingest_id"
EXCHANGE_ID = "exchange_id"
DATE = "date"

# The columns of its exchange that every body repeats, so that most questions need no join.
KEYS = pa.schema(
    [
        ("exchange_id", pa.string()),
        ("connection_id", pa.string()),
        ("request_at", TIME),
        ("response_at", TIME),
        ("client_id", pa.string()),
        ("client_address", pa.string()),
        ("broker_address", pa.string()),
        ("api_version", pa.int16()),
        ("error", pa.string()),
    ]
)
CONNECTIONS = pa.schema(
    [
        ("connection_id", pa.string()),
        ("client_address", pa.string()),
        ("broker_address", pa.string()),
        ("protocol", pa.string()),
        ("client_software", pa.string()),
        ("opened", pa.bool_()),
        ("closed", pa.string()),
        ("first_at", TIME),
        ("last_at", TIME),
        ("closed_at", TIME),
        ("client_bytes", pa.int64()),
        ("broker_bytes", pa.int64()),
        ("client_gap_bytes", pa.int64()),
        ("broker_gap_bytes", pa.int64()),
        ("retransmitted_bytes", pa.int64()),
        ("duplicated_bytes", pa.int64()),
        ("conflict_bytes", pa.int64()),
    ]
)
CAPTURES_SCHEMA = pa.schema(
    [
        ("ingest_id", pa.string()),
        ("capture_uri", pa.string()),
        ("kind", pa.string()),
        ("digest", pa.string()),
        ("bytes", pa.int64()),
        ("packets", pa.int64()),
        ("log_lines", pa.int64()),
        ("first_at", TIME),
        ("last_at", TIME),
        ("frames", pa.int64()),
        ("exchanges", pa.int64()),
        ("lost_bytes", pa.int64()),
        ("lost_places", pa.int64()),
        ("pending_frames", pa.int64()),
        ("pending_bytes", pa.int64()),
        ("pending_places", pa.int64()),
        ("pending_tls_bytes", pa.int64()),
        ("pending_tcp_bytes", pa.int64()),
        ("tls_bytes", pa.int64()),
        ("tcp_bytes", pa.int64()),
        ("quarantined", pa.int64()),
        ("ingested_at", TIME),
        ("options", pa.string()),
        ("follows", pa.list_(pa.string())),
    ]
)
# The state that a later ingest resumes, by connection: places and numbers, never bytes.
UNFINISHED_SCHEMA = pa.schema([("connection_id", pa.string()), ("last_at", TIME), ("state", pa.string())])
QUARANTINE = pa.schema(
    [
        ("capture_uri", pa.string()),
        ("packet", pa.int64()),
        ("recorded_at", TIME),
        ("connection_id", pa.string()),
        ("exchange_id", pa.string()),
        ("kind", pa.string()),
        ("message", pa.string()),
        ("api_version", pa.int16()),
        ("detail", pa.string()),
        ("bytes", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class LakeTable:
    """`schema` is complete, including the columns that every row has. `time` is the column that provides the date,
    `otherwise` the one for rows without such a time."""

    name: str
    schema: pa.Schema
    time: str | None
    otherwise: str | None = None

    @property
    def partition_by(self) -> list[str]:
        return [DATE] if self.time else []

    @property
    def file_schema(self) -> pa.Schema:
        """Without the columns that the folder's name has."""
        return pa.schema([field for field in self.schema if field.name not in self.partition_by])


def _table(name: str, schema: pa.Schema, time: str | None, otherwise: str | None = None) -> LakeTable:
    if INGEST_ID not in schema.names:
        schema = schema.append(pa.field(INGEST_ID, pa.string()))
    if time:
        schema = schema.append(pa.field(DATE, pa.date32()))
    return LakeTable(name, schema, time, otherwise)


@cache
def _fixed() -> dict[str, LakeTable]:
    tables = (
        _table("captures", CAPTURES_SCHEMA, None),
        _table("connections", CONNECTIONS, "first_at"),
        # A response alone has no request.
        _table("exchanges", EXCHANGES, "request_at", "response_at"),
        _table("unfinished", UNFINISHED_SCHEMA, None),
        _table("quarantine", QUARANTINE, "recorded_at"),
        *(_table(name, schema, time) for name, (schema, time) in LOG_TABLES.items()),
    )
    return {table.name: table for table in tables}


def body_table_name(message: str) -> str:
    """`ShareFetchRequest` becomes `share_fetch_request`."""
    return snake_case(message)


@cache
def _bodies() -> dict[str, str]:
    return {
        body_table_name(f"{api}{kind}"): f"{api}{kind}" for api in apis().values() for kind in ("Request", "Response")
    }


@cache
def body_table(message: str, *, contents: bool = False) -> LakeTable:
    """The table of one request or response."""
    columns = full_schema(message, contents=contents)
    columns = columns.remove(columns.get_field_index(ERROR))
    schema = pa.schema([*KEYS, *lake_schema(columns)])
    return _table(body_table_name(message), schema, "request_at", "response_at")


def recorded_names() -> list[str]:
    """Names of the tables that an ingest fills."""
    return [*_fixed(), *_bodies(), *record_types()]


@cache
def record_table(type_: str) -> LakeTable:
    """The table of one type of Kafka's own records."""
    return _table(record_table_name(type_), record_schema(type_), WRITTEN_AT)


def message_of(name: str) -> str | None:
    """`share_fetch_request` becomes `ShareFetchRequest`."""
    return _bodies().get(name)


def table_named(name: str, *, contents: bool = False) -> LakeTable:
    table = _fixed().get(name)
    if table is not None:
        return table
    type_ = record_types().get(name)
    if type_ is not None:
        return record_table(type_)
    message = message_of(name)
    if message is None:
        raise NotFoundError(f"unknown table {name}")
    return body_table(message, contents=contents)
