"""Builds hundreds of frames for every (API, version) from a seed, as flat arrays that a kernel picks from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import numpy as np

from bench import traffic_values as values
from bench.traffic_kernel import Frames
from bench.traffic_world import Case, Value, World
from kafkascope.codec.frame import encode_frame
from kafkascope.schema.layouts.layout import LayoutField, layout

# Of one (API, version): exchanges whose bodies differ. Correlation and client ids are patched for each frame sent.
_VARIANTS = 400
_CLIENT_ID = "client-0000000"
_Builder = Callable[[World], Case]
# How often within its role; the role's first two open a connection.
_Share = tuple[str, int, _Builder, float]

_PRODUCER: tuple[_Share, ...] = (
    ("ApiVersions", 4, values.api_versions, 0),
    ("Metadata", 13, values.metadata, 3),
    ("InitProducerId", 5, values.init_producer_id, 0.3),
    ("Produce", 9, values.produce, 40),
    ("Produce", 12, values.produce, 40),
)
_OLD_PRODUCER: tuple[_Share, ...] = (
    ("ApiVersions", 2, values.api_versions, 0),
    ("Metadata", 8, values.metadata, 3),
    ("Produce", 7, values.produce, 40),
    ("Produce", 8, values.produce, 40),
)
_CONSUMER: tuple[_Share, ...] = (
    ("ApiVersions", 4, values.api_versions, 0),
    ("Metadata", 13, values.metadata, 2),
    ("FindCoordinator", 6, values.find_coordinator, 0.5),
    ("ListOffsets", 10, values.list_offsets, 3),
    ("OffsetFetch", 9, values.offset_fetch, 3),
    ("ConsumerGroupHeartbeat", 1, values.group_heartbeat, 10),
    ("OffsetCommit", 9, values.offset_commit, 12),
    ("OffsetCommit", 10, values.offset_commit, 6),
    ("Fetch", 12, values.fetch, 20),
    ("Fetch", 17, values.fetch, 40),
)
_OLD_CONSUMER: tuple[_Share, ...] = (
    ("ApiVersions", 3, values.api_versions, 0),
    ("Metadata", 9, values.metadata, 2),
    ("FindCoordinator", 2, values.find_coordinator, 0.5),
    ("JoinGroup", 7, values.join_group, 2),
    ("SyncGroup", 5, values.sync_group, 2),
    ("ListOffsets", 5, values.list_offsets, 3),
    ("OffsetFetch", 7, values.offset_fetch, 3),
    ("Heartbeat", 4, values.heartbeat, 10),
    ("OffsetCommit", 7, values.offset_commit, 15),
    ("Fetch", 10, values.fetch, 25),
    ("Fetch", 11, values.fetch, 25),
)
_SHARE_CONSUMER: tuple[_Share, ...] = (
    ("ApiVersions", 4, values.api_versions, 0),
    ("Metadata", 13, values.metadata, 2),
    ("ShareGroupHeartbeat", 1, values.group_heartbeat, 8),
    ("ShareFetch", 1, values.share_fetch, 30),
    ("ShareFetch", 2, values.share_fetch, 30),
    ("ShareAcknowledge", 1, values.share_acknowledge, 10),
    ("ShareAcknowledge", 2, values.share_acknowledge, 10),
)
_STREAMS: tuple[_Share, ...] = (
    ("ApiVersions", 4, values.api_versions, 0),
    ("Metadata", 12, values.metadata, 2),
    ("StreamsGroupHeartbeat", 0, values.streams_heartbeat, 10),
    ("Fetch", 17, values.fetch, 30),
    ("Produce", 13, values.produce, 20),
    ("TxnOffsetCommit", 5, values.txn_offset_commit, 6),
    ("EndTxn", 5, values.end_txn, 6),
)
_ADMIN: tuple[_Share, ...] = (
    ("ApiVersions", 3, values.api_versions, 0),
    ("Metadata", 12, values.metadata, 5),
    ("DescribeQuorum", 2, values.describe_quorum, 20),
    ("DescribeQuorum", 1, values.describe_quorum, 5),
    ("DescribeGroups", 5, values.describe_groups, 10),
    ("ListGroups", 5, values.list_groups, 10),
    ("DescribeConfigs", 4, values.describe_configs, 5),
    ("DescribeTopicPartitions", 0, values.topic_partitions, 10),
    ("BrokerHeartbeat", 1, values.broker_heartbeat, 20),
    ("WriteShareGroupState", 0, values.write_share_state, 20),
)
_REPLICA: tuple[_Share, ...] = (
    ("ApiVersions", 3, values.api_versions, 0),
    ("OffsetForLeaderEpoch", 3, values.leader_epochs, 2),
    ("Fetch", 11, values.REPLICA_FETCH, 98),
)
# The last is the one connection with many bytes.
ROLES = (_PRODUCER, _OLD_PRODUCER, _CONSUMER, _OLD_CONSUMER, _SHARE_CONSUMER, _STREAMS, _ADMIN, _REPLICA)
# Of 20 connections that are not the replica's, and what one of them says against the others, in bytes.
CONNECTIONS_OF_ROLE = (2, 5, 2, 5, 2, 2, 2)
BYTES_OF_ROLE = (3, 3, 4, 4, 4, 3, 0.7)


@dataclass(frozen=True, slots=True)
class Pool:
    pairs: tuple[tuple[str, int], ...]
    frames: Frames


def make_pool(seed: int) -> Pool:
    world = World(Random(seed))
    builders: dict[tuple[str, int, _Builder], None] = {}
    for role in ROLES:
        builders |= {(api, version, builder): None for api, version, builder, _ in role}
    shape = (len(builders), 2, _VARIANTS)
    at, size = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    waits, silent = np.zeros((len(builders), _VARIANTS), np.bool_), np.zeros((len(builders), _VARIANTS), np.bool_)
    parts: list[bytes] = []
    end = 0
    for pair, (api, version, builder) in enumerate(builders):
        for variant in range(_VARIANTS):
            case = builder(world)
            for direction, (kind, value) in enumerate((("Request", case.request), ("Response", case.response))):
                frame = _frame(f"{api}{kind}", version, value)
                at[pair, direction, variant], size[pair, direction, variant] = end, len(frame)
                parts.append(frame)
                end += len(frame)
            waits[pair, variant], silent[pair, variant] = case.waits, case.silent
    keys = list(builders)
    widest = max(map(len, ROLES))
    chances, choices = np.ones((len(ROLES), widest)), np.full((len(ROLES), widest), -1, np.int64)
    for number, role in enumerate(ROLES):
        choices[number, : len(role)] = [keys.index(share[:3]) for share in role]
        weights = np.array([share[3] for share in role])
        chances[number, : len(role)] = np.cumsum(weights) / weights.sum()
    apis = [api for api, _, _ in keys]
    frames = Frames(
        data=np.frombuffer(b"".join(parts), np.uint8).copy(),
        at=at,
        size=size,
        waits=waits,
        silent=silent,
        pipelined=np.array([api == "Produce" for api in apis]),
        split=np.array([api in ("Fetch", "ShareFetch") for api in apis]),
        chances=chances,
        choices=choices,
        opening=choices[:, :2].copy(),
    )
    return Pool(tuple((api, version) for api, version, _ in keys), frames)


def _frame(name: str, version: int, value: Value) -> bytes:
    header = {"clientId": _CLIENT_ID} if name.endswith("Request") else None
    return encode_frame(name, version, _fit(_fields(name, version), value), header)


@cache
def _fields(name: str, version: int) -> tuple[LayoutField, ...]:
    return layout(name, version).fields


def _fit(fields: tuple[LayoutField, ...], value: Value) -> Value:
    """What of `value` this version has."""
    return {field.name: _fit_one(field, value[field.name]) for field in fields if field.name in value}


def _fit_one(field: LayoutField, value: Any) -> Any:
    if value is None or not field.fields:
        return value
    return [_fit(field.fields, item) for item in value] if field.array else _fit(field.fields, value)
