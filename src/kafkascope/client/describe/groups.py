"""Lists the groups of every broker with their type, state, number of members and coordinator."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import FAILURES, LEFT_OUT, Gap, error_gap, failure_gap, merge_gaps
from kafkascope.client.describe.values import NodeAddress
from kafkascope.errors import UsageError
from kafkascope.formatting import close_names, did_you_mean

if TYPE_CHECKING:
    from kafkascope.client.answer import Answer
    from kafkascope.client.cluster import Cluster

_TYPES = ("classic", "consumer", "share", "streams")
# States of all types, in Kafka's own spelling.
_STATES = (
    *("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling"),
    "NotReady",
)
# How each type is described: the API, and the field with the names of groups.
_DESCRIBE = {
    "classic": ("DescribeGroups", "groups"),
    "consumer": ("ConsumerGroupDescribe", "groupIds"),
    "share": ("ShareGroupDescribe", "groupIds"),
    "streams": ("StreamsGroupDescribe", "groupIds"),
}
# Groups per describe request.
_BATCH = 100
_DESCRIBE_BIT = 8  # bit of AuthorizedOperations: Describe
NOT_ASKED = -(2**31)


@dataclass(frozen=True, slots=True)
class GroupListing:
    """`members` is None if the group may not be described. `protocol` is a classic group's: `consumer`, `connect`, or
    empty for offsets without members."""

    group_id: str
    type: str
    state: str | None
    members: int | None
    coordinator: NodeAddress
    protocol: str


@dataclass(frozen=True, slots=True)
class GroupList:
    """`complete` is False where only groups that we may describe are listed."""

    groups: tuple[GroupListing, ...]
    complete: bool | None
    gaps: tuple[Gap, ...]

    @property
    def lacks(self) -> tuple[Gap, ...]:
        """The gaps, and one more if groups may be left out: for views without `complete`."""
        return self.gaps if self.complete is not False else (*self.gaps, _HIDDEN_GROUPS)


_HIDDEN_GROUPS = Gap(
    "groups that we may not describe",
    "ListGroups",
    LEFT_OUT,
    needs="Describe on Cluster",
    detail="brokers silently leave them out of the list",
)


def listed_groups(value: Mapping[str, Any], node: NodeAddress) -> list[GroupListing]:
    """From a ListGroups response. A broker lists the groups that it coordinates. Before version 5 all groups were
    classic, before version 4 their state wasn't reported."""
    return [
        GroupListing(
            group["groupId"],
            (group.get("groupType") or "classic").lower(),
            group.get("groupState") or None,
            None,
            node,
            group["protocolType"],
        )
        for group in value["groups"]
    ]


def filter_groups(
    groups: Iterable[GroupListing], types: Iterable[str] = (), states: Iterable[str] = ()
) -> list[GroupListing]:
    """Groups of these types and states, whatever their case; none given means all."""
    wanted_types = {name.lower() for name in types}
    wanted_states = {name.lower() for name in states}
    return [
        group
        for group in groups
        if (not wanted_types or group.type in wanted_types)
        and (not wanted_states or (group.state or "").lower() in wanted_states)
    ]


def check_states(states: Iterable[str]) -> None:
    """Refuses a state that no type has, which would never find anything."""
    for state in states:
        if state.lower() not in {name.lower() for name in _STATES}:
            hint = did_you_mean(close_names(state, _STATES), f"the states are {', '.join(_STATES)}")
            raise UsageError(f"no group has the state '{state}'{hint}")


def member_counts(value: Mapping[str, Any], api: str) -> tuple[dict[str, tuple[str, int]], list[Gap]]:
    """From a describe response of any type: state and number of members by group."""
    counts, gaps = {}, []
    for group in value["groups"]:
        if group["errorCode"]:
            name = None if group["errorCode"] == 29 else group["groupId"]
            gaps.append(
                error_gap(f"members of {group['groupId']}", api, group["errorCode"], name, group.get("errorMessage"))
            )
        else:
            counts[group["groupId"]] = (group["groupState"], len(group["members"]))
    return counts, gaps


def may_describe(operations: int) -> bool | None:
    """Whether we have Describe on the cluster, from its authorized operations; None if they weren't reported."""
    return None if operations == NOT_ASKED else bool(operations >> _DESCRIBE_BIT & 1)


async def describe_groups(
    cluster: "Cluster", types: Iterable[str] = (), states: Iterable[str] = (), *, members: bool = True
) -> GroupList:
    """`members` False leaves the describe calls out."""
    from kafkascope.client.describe.calls import map_nodes, require_brokers

    check_states(states)
    require_brokers(cluster, "groups")
    responses, gaps = await map_nodes(cluster, "groups", "ListGroups", lambda node: _list_groups(cluster, node))
    groups: list[GroupListing] = []
    for node, response in responses.items():
        code = response.value["errorCode"]
        if code:
            gaps.append(error_gap(f"groups of node {node.node_id}", "ListGroups", code))
        groups += listed_groups(response.value, node)
    groups = filter_groups(groups, types)
    if members:
        groups = await _count_members(cluster, groups, gaps)
    groups = filter_groups(groups, (), states)
    ordered = tuple(sorted(groups, key=lambda group: (group.type, group.group_id)))
    return GroupList(ordered, await _is_complete(cluster), merge_gaps(gaps))


async def _list_groups(cluster: "Cluster", node: NodeAddress) -> "Answer":
    from kafkascope.client.describe.calls import call_with_retries
    from kafkascope.client.targets import Node

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        return error_gap("groups", "ListGroups", value["errorCode"]) if value["errorCode"] else None

    response, _ = await call_with_retries(cluster, "ListGroups", {}, verdict, to=Node(node.node_id))
    return response


async def _count_members(cluster: "Cluster", groups: list[GroupListing], gaps: list[Gap]) -> list[GroupListing]:
    from kafkascope.client.describe.calls import map_limited, missing_api_gap
    from kafkascope.client.targets import Node

    by_place: dict[tuple[int, str], list[str]] = defaultdict(list)
    for group in groups:
        by_place[group.coordinator.node_id, group.type].append(group.group_id)
    jobs = []
    for (node, kind), names in by_place.items():
        if kind not in _DESCRIBE:
            continue
        gap = await missing_api_gap(cluster, _DESCRIBE[kind][0], f"members of {kind} groups")
        if gap is not None:
            gaps.append(gap)
            continue
        jobs += [(node, kind, names[start : start + _BATCH]) for start in range(0, len(names), _BATCH)]

    async def ask(job: tuple[int, str, list[str]]) -> tuple[dict[str, tuple[str, int]], list[Gap]]:
        api, field = _DESCRIBE[job[1]]
        try:
            response = await cluster.call(api, {field: job[2]}, to=Node(job[0]))
        except FAILURES as error:
            silent.append(failure_gap(f"members of {job[1]} groups of node {job[0]}", api, error))
            return {}, []
        return member_counts(response.value, api)

    silent: list[Gap] = []
    counts: dict[str, tuple[str, int]] = {}
    for node_counts, node_gaps in await map_limited(jobs, ask):
        counts |= node_counts
        # a group that ended or moved between the two calls stays as listed
        gaps += [gap for gap in node_gaps if gap.needs]
    gaps += silent
    return [
        replace(group, state=counts[group.group_id][0], members=counts[group.group_id][1])
        if group.group_id in counts
        else group
        for group in groups
    ]


async def _is_complete(cluster: "Cluster") -> bool | None:
    """Without Describe on the cluster, brokers silently leave out groups that we may not describe. None if unknown."""
    from kafkascope.client.describe.calls import served_versions
    from kafkascope.client.targets import AnyBroker

    if await served_versions(cluster, "DescribeCluster") is None:
        return None
    try:
        response = await cluster.call("DescribeCluster", {"includeClusterAuthorizedOperations": True}, to=AnyBroker())
    except FAILURES:
        return None
    return may_describe(response.value["clusterAuthorizedOperations"])
