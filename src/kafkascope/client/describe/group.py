"""Describes a classic or consumer group: members, their assignments, and the lag of every partition."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import GROUP_ID_NOT_FOUND, Gap, error_gap, merge_gaps, only_row, refused_error
from kafkascope.client.describe.offsets import LATEST, Offset, fetch_offsets
from kafkascope.client.describe.values import (
    NodeAddress,
    TopicAssignment,
    TopicPartition,
    topic_assignments,
    topic_partitions,
    total_lag,
)
from kafkascope.errors import DecodeError, UsageError

if TYPE_CHECKING:
    from kafkascope.client.answer import Answer
    from kafkascope.client.cluster import Cluster

_DEAD = "Dead"
_UNSUPPORTED_VERSION = 35  # a broker that knows the consumer protocol but has it switched off
_INVALID_GROUP_ID = 24  # the empty id: only classic groups may have it
_MEMBER_TYPES = {0: "classic", 1: "consumer"}


@dataclass(frozen=True, slots=True)
class GroupMember:
    """`target` and `member_epoch` are of the consumer protocol. `subscriptions` is None if the member's protocol isn't
    a consumer's, whose bytes can't be read."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    protocol: str
    member_epoch: int | None
    subscriptions: tuple[str, ...] | None
    regex: str | None
    assignment: tuple[TopicAssignment, ...]
    target: tuple[TopicAssignment, ...] | None


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """`lag` is the end less the committed offset; None without either, negative if that offset is past the end."""

    topic: str
    partition: int
    current_offset: int | None
    end_offset: int | None
    lag: int | None
    member: str | None


@dataclass(frozen=True, slots=True)
class ConsumerGroupView:
    """`lag` is the sum over partitions with a committed offset, where an offset past the end counts 0; None if one is
    unknown. Epochs are of the consumer protocol."""

    group_id: str
    type: str
    state: str
    coordinator: NodeAddress | None
    group_epoch: int | None
    assignment_epoch: int | None
    protocol_type: str
    assignor: str
    lag: int | None
    members: tuple[GroupMember, ...]
    partitions: tuple[GroupPartition, ...]
    gaps: tuple[Gap, ...]

    @property
    def past_end(self) -> tuple[str, ...]:
        """Partitions whose committed offset is past the end: records that were read are gone, or somebody set the
        offset."""
        return tuple(
            f"{partition.topic}-{partition.partition}"
            for partition in self.partitions
            if partition.lag is not None and partition.lag < 0
        )


def _consumer_members(group: Mapping[str, Any]) -> tuple[GroupMember, ...]:
    """Members of a group in a ConsumerGroupDescribe response."""
    members = (
        GroupMember(
            member["memberId"],
            member["instanceId"],
            member["clientId"],
            member["clientHost"],
            member["rackId"],
            _MEMBER_TYPES.get(member.get("memberType", -1), "consumer"),
            member["memberEpoch"],
            tuple(sorted(member["subscribedTopicNames"])),
            member["subscribedTopicRegex"] or None,
            topic_assignments(member["assignment"]["topicPartitions"]),
            topic_assignments(member["targetAssignment"]["topicPartitions"]),
        )
        for member in group["members"]
    )
    return tuple(sorted(members, key=lambda member: (member.client_id, member.member_id)))


def _classic_members(group: Mapping[str, Any]) -> tuple[GroupMember, ...]:
    """Members of a group in a DescribeGroups response. Subscriptions and assignments are bytes of the group's
    protocol."""
    readable = group["protocolType"] == "consumer"
    members = (
        GroupMember(
            member["memberId"],
            member.get("groupInstanceId"),
            member["clientId"],
            member["clientHost"],
            None,
            "classic",
            None,
            _subscription(member["memberMetadata"]) if readable else None,
            None,
            _assignment(member["memberAssignment"]) if readable else (),
            None,
        )
        for member in group["members"]
    )
    return tuple(sorted(members, key=lambda member: (member.client_id, member.member_id)))


def _subscription(data: bytes) -> tuple[str, ...] | None:
    value = _embedded("ConsumerProtocolSubscription", data)
    return None if value is None else tuple(sorted(value["topics"]))


def _assignment(data: bytes) -> tuple[TopicAssignment, ...]:
    value = _embedded("ConsumerProtocolAssignment", data) or {"assignedPartitions": ()}
    rows = (
        TopicAssignment(topic["topic"], tuple(sorted(topic["partitions"]))) for topic in value["assignedPartitions"]
    )
    return tuple(sorted(rows, key=lambda row: row.topic))


def _embedded(name: str, data: bytes) -> Mapping[str, Any] | None:
    """Two bytes of version, then the message. A version newer than the catalog is read as the newest, as consumers
    do."""
    from kafkascope.codec.message import decode
    from kafkascope.schema.catalog import message

    if len(data) < 2:
        return None
    version = min(int.from_bytes(data[:2]), message(name).all_versions()[-1])
    try:
        return decode(name, version, data[2:]).value
    except (DecodeError, UsageError):
        return None


def _partitions(
    members: Iterable[GroupMember], committed: Mapping[TopicPartition, Offset], ends: Mapping[TopicPartition, Offset]
) -> tuple[GroupPartition, ...]:
    """Partitions with a committed offset, and those that a member has."""
    holders: dict[TopicPartition, list[str]] = defaultdict(list)
    for member in members:
        for place in topic_partitions(member.assignment):
            holders[place].append(member.member_id)
    rows = []
    for place in sorted({*holders, *committed}):
        offset, end = committed.get(place), ends.get(place)
        current = offset.offset if offset else None
        lag = None if current is None or end is None else end.offset - current
        holder = holders.get(place)
        rows.append(
            GroupPartition(*place, current, end.offset if end else None, lag, ", ".join(holder) if holder else None)
        )
    return tuple(rows)


def group_of(
    group: Mapping[str, Any],
    committed: Mapping[TopicPartition, Offset],
    ends: Mapping[TopicPartition, Offset],
    *,
    coordinator: NodeAddress | None = None,
    gaps: Iterable[Gap] = (),
) -> ConsumerGroupView:
    """`group` is from a ConsumerGroupDescribe or DescribeGroups response; its fields show which."""
    modern = "groupEpoch" in group
    members = _consumer_members(group) if modern else _classic_members(group)
    partitions = _partitions(members, committed, ends)
    lags = [partition.lag for partition in partitions if partition.current_offset is not None]
    return ConsumerGroupView(
        group["groupId"],
        "consumer" if modern else "classic",
        group["groupState"],
        coordinator,
        group["groupEpoch"] if modern else None,
        group["assignmentEpoch"] if modern else None,
        "consumer" if modern else group["protocolType"],
        group["assignorName"] if modern else group["protocolData"],
        total_lag(lags) if lags else None,
        members,
        partitions,
        merge_gaps(gaps),
    )


async def describe_group(cluster: "Cluster", group_id: str) -> ConsumerGroupView:
    """RefusedError if the group doesn't exist, is a share or streams group, or may not be described."""
    from kafkascope.client.describe.calls import require_brokers, responding_node
    from kafkascope.client.describe.committed import fetch_committed

    require_brokers(cluster, "groups")
    response = await _fetch_group(cluster, group_id)
    group = only_row(response.value["groups"], response.api)
    committed, gaps = await fetch_committed(cluster, group_id)
    members = _consumer_members(group) if "groupEpoch" in group else _classic_members(group)
    keys = {(row.topic, row.partition) for row in _partitions(members, committed, {})}
    ends, offset_gaps = await fetch_offsets(cluster, keys, LATEST)
    return group_of(group, committed, ends, coordinator=responding_node(response), gaps=[*gaps, *offset_gaps])


async def _fetch_group(cluster: "Cluster", group_id: str) -> "Answer":
    from kafkascope.client.describe.calls import call_with_retries, group_target, served_versions

    gap: Gap | None = None
    for api, field in (("ConsumerGroupDescribe", "groupIds"), ("DescribeGroups", "groups")):
        if await served_versions(cluster, api) is None:
            continue

        def verdict(value: Mapping[str, Any], api: str = api) -> Gap | None:
            group = only_row(value["groups"], api)
            code = group["errorCode"]
            if not code and api == "DescribeGroups" and group["groupState"] == _DEAD:
                # how brokers report it before version 6
                return error_gap(f"group {group_id}", api, GROUP_ID_NOT_FOUND, group_id)
            name = None if code == 29 else group_id
            return error_gap(f"group {group_id}", api, code, name, group.get("errorMessage")) if code else None

        response, gap = await call_with_retries(cluster, api, {field: [group_id]}, verdict, to=group_target(group_id))
        if gap is None:
            return response
        if gap.code not in (GROUP_ID_NOT_FOUND, _UNSUPPORTED_VERSION, _INVALID_GROUP_ID):
            raise refused_error(gap, response.address)
    raise refused_error(
        gap or error_gap(f"group {group_id}", "DescribeGroups", GROUP_ID_NOT_FOUND, group_id, "no such group")
    )
