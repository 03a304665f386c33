"""Answers about a classic or consumer group in, `ConsumerGroup` out: members, what each has, every partition's lag."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import GROUP_ID_NOT_FOUND, Gap, first, gap, merged, refused
from kafkascope.client.describe.offsets import LATEST, Offset, offsets_of
from kafkascope.client.describe.values import Assigned, Node, Place, assigned, places, waiting
from kafkascope.errors import DecodeError, UsageError

if TYPE_CHECKING:
    from kafkascope.client.answer import Answer
    from kafkascope.client.cluster import Cluster

DEAD = "Dead"
UNSUPPORTED_VERSION = 35  # a broker that knows the consumer protocol, and has it switched off
INVALID_GROUP_ID = 24  # the empty id: classic groups alone may have it
MEMBER_TYPES = {0: "classic", 1: "consumer"}


@dataclass(frozen=True, slots=True)
class GroupMember:
    """`target` and `member_epoch` are those of the consumer protocol. `subscriptions` is None where a member's protocol
    is not a consumer's and its bytes are its own business."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    protocol: str
    member_epoch: int | None
    subscriptions: tuple[str, ...] | None
    regex: str | None
    assignment: tuple[Assigned, ...]
    target: tuple[Assigned, ...] | None


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """`lag` is the end less the committed offset; None without either, below 0 where that offset is past the end."""

    topic: str
    partition: int
    current_offset: int | None
    end_offset: int | None
    lag: int | None
    member: str | None


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """`lag` is the sum over partitions with a committed offset, one past the end as 0; None where that of one is
    unknown. Epochs are those of the consumer protocol."""

    group_id: str
    type: str
    state: str
    coordinator: Node | None
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
        """Partitions whose committed offset is past the end: records that were read are gone, or somebody set it so."""
        return tuple(f"{one.topic}-{one.partition}" for one in self.partitions if one.lag is not None and one.lag < 0)


def consumer_members(group: Mapping[str, Any]) -> tuple[GroupMember, ...]:
    """Of a ConsumerGroupDescribe answer's group."""
    found = (
        GroupMember(
            one["memberId"],
            one["instanceId"],
            one["clientId"],
            one["clientHost"],
            one["rackId"],
            MEMBER_TYPES.get(one.get("memberType", -1), "consumer"),
            one["memberEpoch"],
            tuple(sorted(one["subscribedTopicNames"])),
            one["subscribedTopicRegex"] or None,
            assigned(one["assignment"]["topicPartitions"]),
            assigned(one["targetAssignment"]["topicPartitions"]),
        )
        for one in group["members"]
    )
    return tuple(sorted(found, key=lambda one: (one.client_id, one.member_id)))


def classic_members(group: Mapping[str, Any]) -> tuple[GroupMember, ...]:
    """Of a DescribeGroups answer's group. What members subscribe to and have is in bytes of the protocol's own."""
    readable = group["protocolType"] == "consumer"
    found = (
        GroupMember(
            one["memberId"],
            one.get("groupInstanceId"),
            one["clientId"],
            one["clientHost"],
            None,
            "classic",
            None,
            _subscription(one["memberMetadata"]) if readable else None,
            None,
            _assignment(one["memberAssignment"]) if readable else (),
            None,
        )
        for one in group["members"]
    )
    return tuple(sorted(found, key=lambda one: (one.client_id, one.member_id)))


def _subscription(data: bytes) -> tuple[str, ...] | None:
    value = _embedded("ConsumerProtocolSubscription", data)
    return None if value is None else tuple(sorted(value["topics"]))


def _assignment(data: bytes) -> tuple[Assigned, ...]:
    value = _embedded("ConsumerProtocolAssignment", data) or {"assignedPartitions": ()}
    rows = (Assigned(one["topic"], tuple(sorted(one["partitions"]))) for one in value["assignedPartitions"])
    return tuple(sorted(rows, key=lambda one: one.topic))


def _embedded(name: str, data: bytes) -> Mapping[str, Any] | None:
    """A version in two bytes, then the message. A version that is newer than the catalog reads as the newest, which is
    how consumers do it."""
    from kafkascope.codec.message import decode
    from kafkascope.schema.catalog import message

    if len(data) < 2:
        return None
    version = min(int.from_bytes(data[:2]), message(name).all_versions()[-1])
    try:
        return decode(name, version, data[2:]).value
    except (DecodeError, UsageError):
        return None


def partitions_of(
    members: Iterable[GroupMember], committed: Mapping[Place, Offset], ends: Mapping[Place, Offset]
) -> tuple[GroupPartition, ...]:
    """Those with a committed offset, and those that a member has."""
    holders: dict[Place, list[str]] = defaultdict(list)
    for member in members:
        for place in places(member.assignment):
            holders[place].append(member.member_id)
    rows = []
    for place in sorted({*holders, *committed}):
        at, end = committed.get(place), ends.get(place)
        current = at.offset if at else None
        lag = None if current is None or end is None else end.offset - current
        holder = holders.get(place)
        rows.append(
            GroupPartition(*place, current, end.offset if end else None, lag, ", ".join(holder) if holder else None)
        )
    return tuple(rows)


def group_of(
    group: Mapping[str, Any],
    committed: Mapping[Place, Offset],
    ends: Mapping[Place, Offset],
    *,
    coordinator: Node | None = None,
    gaps: Iterable[Gap] = (),
) -> ConsumerGroup:
    """`group` is of a ConsumerGroupDescribe or of a DescribeGroups answer; its fields tell which."""
    modern = "groupEpoch" in group
    members = consumer_members(group) if modern else classic_members(group)
    partitions = partitions_of(members, committed, ends)
    at = [one.lag for one in partitions if one.current_offset is not None]
    return ConsumerGroup(
        group["groupId"],
        "consumer" if modern else "classic",
        group["groupState"],
        coordinator,
        group["groupEpoch"] if modern else None,
        group["assignmentEpoch"] if modern else None,
        "consumer" if modern else group["protocolType"],
        group["assignorName"] if modern else group["protocolData"],
        waiting(at) if at else None,
        members,
        partitions,
        merged(gaps),
    )


async def describe_group(cluster: "Cluster", group_id: str) -> ConsumerGroup:
    """RefusedError where the group is not there, is a share or streams group, or may not be described."""
    from kafkascope.client.describe.asking import brokers_only, node_of
    from kafkascope.client.describe.committed import committed_of

    brokers_only(cluster, "groups")
    answer = await _found(cluster, group_id)
    group = first(answer.value["groups"], answer.api)
    committed, gaps = await committed_of(cluster, group_id)
    members = consumer_members(group) if "groupEpoch" in group else classic_members(group)
    wanted = {(one.topic, one.partition) for one in partitions_of(members, committed, {})}
    ends, more = await offsets_of(cluster, wanted, LATEST)
    return group_of(group, committed, ends, coordinator=node_of(answer), gaps=[*gaps, *more])


async def _found(cluster: "Cluster", group_id: str) -> "Answer":
    from kafkascope.client.describe.asking import group_target, serves, settled

    lack: Gap | None = None
    for api, field in (("ConsumerGroupDescribe", "groupIds"), ("DescribeGroups", "groups")):
        if await serves(cluster, api) is None:
            continue

        def verdict(value: Mapping[str, Any], api: str = api) -> Gap | None:
            group = first(value["groups"], api)
            code = group["errorCode"]
            if not code and api == "DescribeGroups" and group["groupState"] == DEAD:
                # how brokers say it before version 6
                return gap(f"group {group_id}", api, GROUP_ID_NOT_FOUND, group_id)
            name = None if code == 29 else group_id
            return gap(f"group {group_id}", api, code, name, group.get("errorMessage")) if code else None

        answer, lack = await settled(cluster, api, {field: [group_id]}, verdict, to=group_target(group_id))
        if lack is None:
            return answer
        if lack.code not in (GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION, INVALID_GROUP_ID):
            raise refused(lack, answer.address)
    raise refused(lack or gap(f"group {group_id}", "DescribeGroups", GROUP_ID_NOT_FOUND, group_id, "no such group"))
