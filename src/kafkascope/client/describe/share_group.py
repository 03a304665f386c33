"""Describes a share group: state, members, the offsets of every partition, and which partitions are stalled.

Lag is the broker's (DescribeShareGroupOffsets, 4.2 and later): records between start and end that are acknowledged or
archived don't count, so end less start is more. Brokers of 4.1 don't report it: it's unknown there.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import FAILURES, Gap, error_gap, failure_gap, merge_gaps, only_row, refused_error
from kafkascope.client.describe.offsets import LATEST, Offset, fetch_offsets
from kafkascope.client.describe.values import (
    NodeAddress,
    Setting,
    TopicAssignment,
    TopicPartition,
    known_or_none,
    sum_or_none,
    topic_assignments,
    topic_partitions,
)

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster


@dataclass(frozen=True, slots=True)
class ShareMember:
    member_id: str
    client_id: str
    host: str
    rack: str | None
    member_epoch: int
    subscriptions: tuple[str, ...]
    assignment: tuple[TopicAssignment, ...]


@dataclass(frozen=True, slots=True)
class SharePartition:
    """`start_offset` is None if the group hasn't read the partition. `standing_still` is None after only one look."""

    topic: str
    partition: int
    leader_epoch: int | None
    start_offset: int | None
    end_offset: int | None
    lag: int | None
    members: tuple[str, ...]
    standing_still: bool | None = None


@dataclass(frozen=True, slots=True)
class ShareGroupView:
    """`lag` is the sum over the partitions; None if one is unknown."""

    group_id: str
    state: str
    coordinator: NodeAddress | None
    group_epoch: int
    assignment_epoch: int
    assignor: str
    lag: int | None
    members: tuple[ShareMember, ...]
    partitions: tuple[SharePartition, ...]
    settings: tuple[Setting, ...]
    gaps: tuple[Gap, ...]

    @property
    def standing_still(self) -> tuple[str, ...]:
        return tuple(
            f"{partition.topic}-{partition.partition}" for partition in self.partitions if partition.standing_still
        )


def _members(group: Mapping[str, Any]) -> tuple[ShareMember, ...]:
    members = (
        ShareMember(
            member["memberId"],
            member["clientId"],
            member["clientHost"],
            member["rackId"],
            member["memberEpoch"],
            tuple(sorted(member["subscribedTopicNames"])),
            topic_assignments(member["assignment"]["topicPartitions"]),
        )
        for member in group["members"]
    )
    return tuple(sorted(members, key=lambda member: (member.client_id, member.member_id)))


def _partitions(
    offsets: Mapping[str, Any] | None, members: Iterable[ShareMember], ends: Mapping[TopicPartition, Offset]
) -> tuple[tuple[SharePartition, ...], list[Gap]]:
    """`offsets` is the group's part of a DescribeShareGroupOffsets response. Includes partitions that members have."""
    holders: dict[TopicPartition, list[str]] = defaultdict(list)
    for member in members:
        for place in topic_partitions(member.assignment):
            holders[place].append(member.member_id)
    by_key: dict[TopicPartition, SharePartition] = {}
    gaps: list[Gap] = []
    for topic in offsets["topics"] if offsets else ():
        name = topic["topicName"]
        for partition in topic["partitions"]:
            place = (name, partition["partitionIndex"])
            if partition["errorCode"]:
                label = f"offsets of {name}-{partition['partitionIndex']}"
                gaps.append(
                    error_gap(
                        label, "DescribeShareGroupOffsets", partition["errorCode"], name, partition["errorMessage"]
                    )
                )
                continue
            start = known_or_none(partition["startOffset"])
            # without a start there is no lag, though a broker may report 0
            lag = None if start is None else known_or_none(partition.get("lag", -1))
            by_key[place] = SharePartition(*place, known_or_none(partition["leaderEpoch"]), start, None, lag, ())
    for place in holders.keys() - by_key.keys():
        by_key[place] = SharePartition(*place, None, None, None, None, ())
    rows = (
        replace(
            row, end_offset=ends[place].offset if place in ends else None, members=tuple(sorted(holders.get(place, ())))
        )
        for place, row in by_key.items()
    )
    return tuple(sorted(rows, key=lambda row: (row.topic, row.partition))), gaps


def share_group_of(
    group: Mapping[str, Any],
    offsets: Mapping[str, Any] | None,
    ends: Mapping[TopicPartition, Offset],
    *,
    coordinator: NodeAddress | None = None,
    settings: tuple[Setting, ...] = (),
    gaps: Iterable[Gap] = (),
) -> ShareGroupView:
    """`group` is the group's part of a ShareGroupDescribe response without an error."""
    members = _members(group)
    partitions, offset_gaps = _partitions(offsets, members, ends)
    read = [partition for partition in partitions if partition.start_offset is not None]
    return ShareGroupView(
        group["groupId"],
        group["groupState"],
        coordinator,
        group["groupEpoch"],
        group["assignmentEpoch"],
        group["assignorName"],
        sum_or_none(partition.lag for partition in read) if read else None,
        members,
        partitions,
        settings,
        merge_gaps([*gaps, *offset_gaps]),
    )


def mark_stalled(before: ShareGroupView, now: ShareGroupView) -> ShareGroupView:
    """`now` with stalled partitions: those that had lag at the first look, and in which nothing was acknowledged,
    rejected or archived until the second."""
    earlier = {(partition.topic, partition.partition): partition for partition in before.partitions}
    return replace(
        now,
        partitions=tuple(
            _mark_stalled(earlier.get((partition.topic, partition.partition)), partition)
            for partition in now.partitions
        ),
    )


def _mark_stalled(before: SharePartition | None, now: SharePartition) -> SharePartition:
    if before is None or before.start_offset is None or now.start_offset is None:
        return now
    if before.lag is None or now.lag is None:
        # records after an unchanged start may have been finished
        return replace(now, standing_still=False) if now.start_offset != before.start_offset else now
    done_before, done_now = _processed_offset(before), _processed_offset(now)
    if done_before is not None and done_now is not None:
        moved = done_now != done_before
    else:
        moved = now.start_offset != before.start_offset or now.lag < before.lag
    return replace(now, standing_still=before.lag > 0 and not moved)


def _processed_offset(partition: SharePartition) -> int | None:
    """A number that grows with every finished record: the end less the lag."""
    return None if partition.end_offset is None or partition.lag is None else partition.end_offset - partition.lag


async def describe_share_group(cluster: "Cluster", group_id: str) -> ShareGroupView:
    """RefusedError if the group doesn't exist, is of another type, or may not be described at all."""
    from kafkascope.client.describe.calls import (
        call_with_retries,
        group_target,
        missing_api_gap,
        require_brokers,
        responding_node,
    )
    from kafkascope.client.describe.configs import group_settings

    require_brokers(cluster, "groups")
    gap = await missing_api_gap(cluster, "ShareGroupDescribe", f"share group {group_id}")
    if gap is not None:
        raise refused_error(gap)
    target = group_target(group_id)

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        group = only_row(value["groups"], "ShareGroupDescribe")
        if not group["errorCode"]:
            return None
        return error_gap(
            f"share group {group_id}", "ShareGroupDescribe", group["errorCode"], _about(group), group["errorMessage"]
        )

    def _about(group: Mapping[str, Any]) -> str | None:
        return None if group["errorCode"] == 29 else group_id

    response, gap = await call_with_retries(cluster, "ShareGroupDescribe", {"groupIds": [group_id]}, verdict, to=target)
    if gap is not None:
        raise refused_error(gap, response.address)
    offsets, gaps = await _fetch_offsets(cluster, group_id)
    group = only_row(response.value["groups"], response.api)
    keys = {(row.topic, row.partition) for row in _partitions(offsets, _members(group), {})[0]}
    ends, end_gaps = await fetch_offsets(cluster, keys, LATEST)
    settings, unset = await group_settings(cluster, group_id, "share.")
    return share_group_of(
        group, offsets, ends, coordinator=responding_node(response), settings=settings, gaps=[*gaps, *end_gaps, *unset]
    )


async def _fetch_offsets(cluster: "Cluster", group_id: str) -> tuple[Mapping[str, Any] | None, list[Gap]]:
    from kafkascope.client.describe.calls import call_with_retries, group_target, missing_api_gap

    api, label = "DescribeShareGroupOffsets", "start offsets and lag"

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        group = only_row(value["groups"], api)
        return (
            error_gap(label, api, group["errorCode"], group_id, group["errorMessage"]) if group["errorCode"] else None
        )

    gap = await missing_api_gap(cluster, api, label)
    if gap is not None:
        return None, [gap]
    request = {"groups": [{"groupId": group_id, "topics": None}]}
    try:
        # apart, since the coordinator asks the share coordinators for it: one that hangs delays no other response
        with cluster.part():
            response, gap = await call_with_retries(
                cluster, api, request, verdict, to=group_target(group_id), apart=True
            )
    except FAILURES as error:
        return None, [failure_gap(label, api, error)]
    return (None, [gap]) if gap is not None else (only_row(response.value["groups"], api), [])
