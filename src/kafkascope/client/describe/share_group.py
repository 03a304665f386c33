"""Answers about a share group in, `ShareGroup` out: state, members, every partition's offsets, and what stands still.

Lag is what the broker says (DescribeShareGroupOffsets, 4.2 and later): of records between start and end, those that are
acknowledged or archived do not count, so end less start is more. Brokers of 4.1 do not say it: it is unknown there.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import FAILURES, Gap, first, gap, merged, no_answer, refused
from kafkascope.client.describe.offsets import LATEST, Offset, offsets_of
from kafkascope.client.describe.values import Assigned, Node, Place, Setting, assigned, known, places, total

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
    assignment: tuple[Assigned, ...]


@dataclass(frozen=True, slots=True)
class SharePartition:
    """`start_offset` is None where the group has not read from it. `standing_still` needs two looks: None after one."""

    topic: str
    partition: int
    leader_epoch: int | None
    start_offset: int | None
    end_offset: int | None
    lag: int | None
    members: tuple[str, ...]
    standing_still: bool | None = None


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """`lag` is the sum over the partitions; None where that of one is unknown."""

    group_id: str
    state: str
    coordinator: Node | None
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
        return tuple(f"{one.topic}-{one.partition}" for one in self.partitions if one.standing_still)


def members_of(group: Mapping[str, Any]) -> tuple[ShareMember, ...]:
    found = (
        ShareMember(
            one["memberId"],
            one["clientId"],
            one["clientHost"],
            one["rackId"],
            one["memberEpoch"],
            tuple(sorted(one["subscribedTopicNames"])),
            assigned(one["assignment"]["topicPartitions"]),
        )
        for one in group["members"]
    )
    return tuple(sorted(found, key=lambda one: (one.client_id, one.member_id)))


def partitions_of(
    offsets: Mapping[str, Any] | None, members: Iterable[ShareMember], ends: Mapping[Place, Offset]
) -> tuple[tuple[SharePartition, ...], list[Gap]]:
    """`offsets` is the group's part of a DescribeShareGroupOffsets answer. Partitions that a member has count too."""
    holders: dict[Place, list[str]] = defaultdict(list)
    for member in members:
        for place in places(member.assignment):
            holders[place].append(member.member_id)
    found: dict[Place, SharePartition] = {}
    gaps: list[Gap] = []
    for topic in offsets["topics"] if offsets else ():
        name = topic["topicName"]
        for one in topic["partitions"]:
            place = (name, one["partitionIndex"])
            if one["errorCode"]:
                what = f"offsets of {name}-{one['partitionIndex']}"
                gaps.append(gap(what, "DescribeShareGroupOffsets", one["errorCode"], name, one["errorMessage"]))
                continue
            start = known(one["startOffset"])
            # without a start there is no lag, though a broker may say 0
            lag = None if start is None else known(one.get("lag", -1))
            found[place] = SharePartition(*place, known(one["leaderEpoch"]), start, None, lag, ())
    for place in holders.keys() - found.keys():
        found[place] = SharePartition(*place, None, None, None, None, ())
    rows = (
        replace(
            one, end_offset=ends[place].offset if place in ends else None, members=tuple(sorted(holders.get(place, ())))
        )
        for place, one in found.items()
    )
    return tuple(sorted(rows, key=lambda one: (one.topic, one.partition))), gaps


def share_group_of(
    group: Mapping[str, Any],
    offsets: Mapping[str, Any] | None,
    ends: Mapping[Place, Offset],
    *,
    coordinator: Node | None = None,
    settings: tuple[Setting, ...] = (),
    gaps: Iterable[Gap] = (),
) -> ShareGroup:
    """`group` is the group's part of a ShareGroupDescribe answer without an error."""
    members = members_of(group)
    partitions, more = partitions_of(offsets, members, ends)
    read = [one for one in partitions if one.start_offset is not None]
    return ShareGroup(
        group["groupId"],
        group["groupState"],
        coordinator,
        group["groupEpoch"],
        group["assignmentEpoch"],
        group["assignorName"],
        total(one.lag for one in read) if read else None,
        members,
        partitions,
        settings,
        merged([*gaps, *more]),
    )


def compared(before: ShareGroup, now: ShareGroup) -> ShareGroup:
    """`now` with what stands still: partitions that had lag at the first look, and of which nothing was acknowledged,
    rejected or archived until the second."""
    earlier = {(one.topic, one.partition): one for one in before.partitions}
    return replace(
        now, partitions=tuple(_compared(earlier.get((one.topic, one.partition)), one) for one in now.partitions)
    )


def _compared(before: SharePartition | None, now: SharePartition) -> SharePartition:
    if before is None or before.start_offset is None or now.start_offset is None:
        return now
    if before.lag is None or now.lag is None:
        # a start that stays says nothing of the records behind it
        return replace(now, standing_still=False) if now.start_offset != before.start_offset else now
    done_before, done_now = _done(before), _done(now)
    if done_before is not None and done_now is not None:
        moved = done_now != done_before
    else:
        moved = now.start_offset != before.start_offset or now.lag < before.lag
    return replace(now, standing_still=before.lag > 0 and not moved)


def _done(one: SharePartition) -> int | None:
    """A number that grows with every record that is done with: the end less what is left."""
    return None if one.end_offset is None or one.lag is None else one.end_offset - one.lag


async def describe_share_group(cluster: "Cluster", group_id: str) -> ShareGroup:
    """RefusedError where the group is not there, is of another type, or may not be described at all."""
    from kafkascope.client.describe.asking import brokers_only, group_target, lacking, node_of, settled
    from kafkascope.client.describe.configs import group_settings

    brokers_only(cluster, "groups")
    lack = await lacking(cluster, "ShareGroupDescribe", f"share group {group_id}")
    if lack is not None:
        raise refused(lack)
    target = group_target(group_id)

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        group = first(value["groups"], "ShareGroupDescribe")
        if not group["errorCode"]:
            return None
        return gap(
            f"share group {group_id}", "ShareGroupDescribe", group["errorCode"], _about(group), group["errorMessage"]
        )

    def _about(group: Mapping[str, Any]) -> str | None:
        return None if group["errorCode"] == 29 else group_id

    answer, lack = await settled(cluster, "ShareGroupDescribe", {"groupIds": [group_id]}, verdict, to=target)
    if lack is not None:
        raise refused(lack, answer.address)
    offsets, gaps = await _offsets(cluster, group_id)
    group = first(answer.value["groups"], answer.api)
    wanted = {(one.topic, one.partition) for one in partitions_of(offsets, members_of(group), {})[0]}
    ends, more = await offsets_of(cluster, wanted, LATEST)
    settings, unset = await group_settings(cluster, group_id, "share.")
    return share_group_of(
        group, offsets, ends, coordinator=node_of(answer), settings=settings, gaps=[*gaps, *more, *unset]
    )


async def _offsets(cluster: "Cluster", group_id: str) -> tuple[Mapping[str, Any] | None, list[Gap]]:
    from kafkascope.client.describe.asking import group_target, lacking, settled

    api, what = "DescribeShareGroupOffsets", "start offsets and lag"

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        group = first(value["groups"], api)
        return gap(what, api, group["errorCode"], group_id, group["errorMessage"]) if group["errorCode"] else None

    lack = await lacking(cluster, api, what)
    if lack is not None:
        return None, [lack]
    asked = {"groups": [{"groupId": group_id, "topics": None}]}
    try:
        # apart, since the coordinator asks those of the share state for it: one that hangs holds up no other answer
        with cluster.part():
            answer, lack = await settled(cluster, api, asked, verdict, to=group_target(group_id), apart=True)
    except FAILURES as error:
        return None, [no_answer(what, api, error)]
    return (None, [lack]) if lack is not None else (first(answer.value["groups"], api), [])
