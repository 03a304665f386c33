"""Declares the marts by name: the columns made from the rows of `health/` and from the statements about APIs."""

import dataclasses
from typing import Any, get_type_hints

import pyarrow as pa

from kafkascope.capture.exchanges.exchange_columns import TIME
from kafkascope.health.disks.rows import (
    CompactionWaste,
    DeadGroup,
    GroupOffset,
    LogHealth,
    MetadataRow,
    OpenTransaction,
    PartitionEvent,
    ShareAgreement,
    ShareState,
)
from kafkascope.health.quorum.rows import QuorumHappening, QuorumReplica
from kafkascope.health.share.events import Delivery
from kafkascope.health.share.group_health import ShareGroupHealth
from kafkascope.health.streams.group_health import StreamsGroupHealth
from kafkascope.health.streams.rows import GroupStatus, LostMember, StreamsMove, StreamsTask, UnheldTask
from kafkascope.lake.tables import LakeTable

_TEXT, _INT, _LONG, _FLAG = pa.string(), pa.int32(), pa.int64(), pa.bool_()
_TYPES = {str: _TEXT, bool: _FLAG, int: _LONG, float: pa.float64()}


def schema_of(row: type) -> pa.Schema:
    """Derives columns from the fields of a dataclass; integers named `…_at` are times."""
    hints = get_type_hints(row)
    return pa.schema([pa.field(field.name, _type(field.name, hints[field.name])) for field in dataclasses.fields(row)])


def _type(name: str, hint: Any) -> pa.DataType:
    inside = [type_ for type_ in getattr(hint, "__args__", ()) if type_ not in (type(None), Ellipsis)]
    origin = getattr(hint, "__origin__", None)
    if origin in (tuple, list):
        return pa.list_(_TYPES[inside[0]])
    if origin is dict:
        return pa.map_(_TYPES[inside[0]], _TYPES[inside[1]])
    if origin is None and inside:
        return _type(name, inside[0])
    if hint in _TYPES:
        return TIME if hint is int and name.endswith("_at") else _TYPES[hint]
    # A Literal of strings.
    return _TEXT


API_LATENCY = pa.schema(
    [
        ("minute_at", TIME),
        ("api", _TEXT),
        ("broker_address", _TEXT),
        ("long_poll", _FLAG),
        ("calls", _LONG),
        ("unanswered", _LONG),
        ("errors", _LONG),
        ("request_bytes", _LONG),
        ("response_bytes", _LONG),
        ("p50_us", _LONG),
        ("p95_us", _LONG),
        ("p99_us", _LONG),
        ("max_us", _LONG),
        ("slowest_exchange_id", _TEXT),
    ]
)
API_ERRORS = pa.schema(
    [
        ("minute_at", TIME),
        ("api", _TEXT),
        ("error_code", pa.int16()),
        ("error", _TEXT),
        ("client_id", _TEXT),
        ("broker_address", _TEXT),
        ("calls", _LONG),
        ("first_at", TIME),
        ("last_at", TIME),
        ("first_exchange_id", _TEXT),
    ]
)
THROTTLING = pa.schema(
    [
        ("minute_at", TIME),
        ("api", _TEXT),
        ("client_id", _TEXT),
        ("broker_address", _TEXT),
        ("calls", _LONG),
        ("throttled", _LONG),
        ("throttle_ms", _LONG),
        ("max_throttle_ms", _INT),
        ("longest_exchange_id", _TEXT),
    ]
)
CLIENT_VERSIONS = pa.schema(
    [
        ("client_software", _TEXT),
        ("client_id", _TEXT),
        ("api_key", pa.int16()),
        ("api", _TEXT),
        ("api_version", pa.int16()),
        ("calls", _LONG),
        ("connections", _LONG),
        ("first_at", TIME),
        ("last_at", TIME),
        ("first_release", _TEXT),
        ("last_release", _TEXT),
        ("in_newest_release", _FLAG),
        ("last_exchange_id", _TEXT),
    ]
)
TOPICS_SCHEMA = pa.schema(
    [
        ("topic_id", _TEXT),
        ("topic", _TEXT),
        ("cluster_id", _TEXT),
        ("internal", _FLAG),
        ("partitions", _LONG),
        ("first_at", TIME),
        ("last_at", TIME),
    ]
)
BROKERS = pa.schema(
    [
        ("broker_address", _TEXT),
        ("cluster_id", _TEXT),
        ("node_id", _LONG),
        ("host", _TEXT),
        ("port", _LONG),
        ("rack", _TEXT),
        ("calls", _LONG),
        ("first_at", TIME),
        ("last_at", TIME),
    ]
)
GROUPS_SCHEMA = pa.schema(
    [
        ("group_id", _TEXT),
        ("cluster_id", _TEXT),
        ("group_type", _TEXT),
        ("protocol_type", _TEXT),
        ("state", _TEXT),
        ("coordinator", _TEXT),
        ("members", _LONG),
        ("calls", _LONG),
        ("first_at", TIME),
        ("last_at", TIME),
    ]
)
FINDINGS = pa.schema(
    [
        ("rule", _TEXT),
        ("severity", _TEXT),
        ("subject_kind", _TEXT),
        ("subject", _TEXT),
        ("from_at", TIME),
        ("to_at", TIME),
        ("summary", _TEXT),
        ("figures", _TEXT),  # a JSON object
        ("advice", _TEXT),
        ("evidence", pa.list_(_TEXT)),
    ]
)
INCIDENTS = pa.schema(
    [
        ("cause", _TEXT),
        ("severity", _TEXT),
        ("subject_kind", _TEXT),
        ("subject", _TEXT),
        ("from_at", TIME),
        ("to_at", TIME),
        ("title", _TEXT),
        ("explanation", _TEXT),
        ("confidence", _TEXT),
        ("disproof", _TEXT),
        ("impact", _TEXT),  # a JSON object
        ("advice", _TEXT),
        ("consequences", _TEXT),  # a JSON array
        ("notes", pa.list_(_TEXT)),
    ]
)

# What an increment of the marts goes on from: the builds of all marts, and by part the state at each checkpoint.
MART_STATE_SCHEMA = pa.schema([("part", _TEXT), ("checkpoint_at", TIME), ("key", _TEXT), ("state", _TEXT)])
# Which connection made calls of each row of `client_versions`, so that none counts twice.
CLIENT_CONNECTIONS = pa.schema(
    [
        ("client_software", _TEXT),
        ("client_id", _TEXT),
        ("api_key", pa.int16()),
        ("api", _TEXT),
        ("api_version", pa.int16()),
        ("connection_id", _TEXT),
    ]
)

# Marts about one cluster; a lake may have several.
CLUSTER_ID = pa.field("cluster_id", _TEXT)

MARTS = {
    name: LakeTable(name, schema, None)
    for name, schema in (
        ("share_deliveries", schema_of(Delivery)),
        ("share_group_health", schema_of(ShareGroupHealth)),
        ("streams_tasks", schema_of(StreamsTask)),
        ("streams_moves", schema_of(StreamsMove)),
        ("streams_unheld", schema_of(UnheldTask)),
        ("streams_lost_members", schema_of(LostMember)),
        ("streams_statuses", schema_of(GroupStatus)),
        ("streams_group_health", schema_of(StreamsGroupHealth)),
        ("quorum_replicas", schema_of(QuorumReplica).append(CLUSTER_ID)),
        ("quorum_events", schema_of(QuorumHappening).append(CLUSTER_ID)),
        ("api_latency", API_LATENCY),
        ("api_errors", API_ERRORS),
        ("throttling", THROTTLING),
        ("client_versions", CLIENT_VERSIONS),
        ("topics", TOPICS_SCHEMA),
        ("brokers", BROKERS),
        ("groups", GROUPS_SCHEMA),
        ("metadata_at", schema_of(MetadataRow)),
        ("partition_events", schema_of(PartitionEvent)),
        ("group_offsets", schema_of(GroupOffset)),
        ("share_state", schema_of(ShareState)),
        ("share_agreement", schema_of(ShareAgreement)),
        ("open_transactions", schema_of(OpenTransaction)),
        ("dead_groups", schema_of(DeadGroup)),
        ("compaction_waste", schema_of(CompactionWaste)),
        ("log_health", schema_of(LogHealth)),
        ("findings", FINDINGS),
        ("incidents", INCIDENTS),
    )
}

MART_STATE, MART_CONNECTIONS = "mart_state", "mart_connections"
# Tables that only the next build of the marts reads.
KEPT = {
    MART_STATE: LakeTable(MART_STATE, MART_STATE_SCHEMA, None),
    MART_CONNECTIONS: LakeTable(MART_CONNECTIONS, CLIENT_CONNECTIONS, None),
}
