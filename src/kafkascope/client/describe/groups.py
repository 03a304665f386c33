"""Every broker's list of groups in, one list out: each group with type, state, members and coordinator."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import FAILURES, LEFT_OUT, Gap, gap, merged, no_answer
from kafkascope.client.describe.values import Node
from kafkascope.errors import UsageError

if TYPE_CHECKING:
    from kafkascope.client.answer import Answer
    from kafkascope.client.cluster import Cluster

TYPES = ("classic", "consumer", "share", "streams")
# In Kafka's own spelling, over all types.
STATES = (
    *("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling"),
    "NotReady",
)
# How each type is described: the API, and the field that names the groups.
DESCRIBE = {
    "classic": ("DescribeGroups", "groups"),
    "consumer": ("ConsumerGroupDescribe", "groupIds"),
    "share": ("ShareGroupDescribe", "groupIds"),
    "streams": ("StreamsGroupDescribe", "groupIds"),
}
# Groups described in one request.
BATCH = 100
DESCRIBE_BIT = 8  # of AuthorizedOperations: Describe
NOT_ASKED = -(2**31)


@dataclass(frozen=True, slots=True)
class Group:
    """`members` is None where the group may not be described. `protocol` is that of a classic group: `consumer`,
    `connect`, or empty for offsets without members."""

    group_id: str
    type: str
    state: str | None
    members: int | None
    coordinator: Node
    protocol: str


@dataclass(frozen=True, slots=True)
class Groups:
    """`complete` is False where only groups that we may describe are listed."""

    groups: tuple[Group, ...]
    complete: bool | None
    gaps: tuple[Gap, ...]

    @property
    def lacks(self) -> tuple[Gap, ...]:
        """The gaps, and one more where groups may be left out: for views that do not tell `complete`."""
        return self.gaps if self.complete is not False else (*self.gaps, _LEFT_OUT)


_LEFT_OUT = Gap(
    "groups that we may not describe",
    "ListGroups",
    LEFT_OUT,
    needs="Describe on Cluster",
    detail="brokers leave them out of the list, and do not say so",
)


def listed(value: Mapping[str, Any], node: Node) -> list[Group]:
    """A ListGroups answer. A broker lists the groups that it coordinates. Before version 5 all groups were classic,
    before version 4 their state was not told."""
    return [
        Group(
            one["groupId"],
            (one.get("groupType") or "classic").lower(),
            one.get("groupState") or None,
            None,
            node,
            one["protocolType"],
        )
        for one in value["groups"]
    ]


def kept(groups: Iterable[Group], types: Iterable[str] = (), states: Iterable[str] = ()) -> list[Group]:
    """Those of these types and states, in any case; none given means all."""
    wanted_types = {one.lower() for one in types}
    wanted_states = {one.lower() for one in states}
    return [
        one
        for one in groups
        if (not wanted_types or one.type in wanted_types)
        and (not wanted_states or (one.state or "").lower() in wanted_states)
    ]


def check_states(states: Iterable[str]) -> None:
    """A state that no type has would find nothing, for ever."""
    for state in states:
        if state.lower() not in {one.lower() for one in STATES}:
            from difflib import get_close_matches

            near = get_close_matches(state, STATES, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(STATES)}"
            raise UsageError(f"no group has the state '{state}'; {hint}")


def counted(value: Mapping[str, Any], api: str) -> tuple[dict[str, tuple[str, int]], list[Gap]]:
    """A describe answer of any type: group to state and number of members."""
    found, gaps = {}, []
    for one in value["groups"]:
        if one["errorCode"]:
            name = None if one["errorCode"] == 29 else one["groupId"]
            gaps.append(gap(f"members of {one['groupId']}", api, one["errorCode"], name, one.get("errorMessage")))
        else:
            found[one["groupId"]] = (one["groupState"], len(one["members"]))
    return found, gaps


def operations_tell(operations: int) -> bool | None:
    """Whether Describe on the cluster is ours, from its authorized operations; None where they were not told."""
    return None if operations == NOT_ASKED else bool(operations >> DESCRIBE_BIT & 1)


async def describe_groups(
    cluster: "Cluster", types: Iterable[str] = (), states: Iterable[str] = (), *, members: bool = True
) -> Groups:
    """`members` False leaves the describe calls out."""
    from kafkascope.client.describe.asking import brokers_only, each_node

    check_states(states)
    brokers_only(cluster, "groups")
    answers, gaps = await each_node(cluster, "groups", "ListGroups", lambda node: _list(cluster, node))
    found: list[Group] = []
    for node, answer in answers.items():
        code = answer.value["errorCode"]
        if code:
            gaps.append(gap(f"groups of node {node.node_id}", "ListGroups", code))
        found += listed(answer.value, node)
    found = kept(found, types)
    if members:
        found = await _count(cluster, found, gaps)
    found = kept(found, (), states)
    ordered = tuple(sorted(found, key=lambda one: (one.type, one.group_id)))
    return Groups(ordered, await _complete(cluster), merged(gaps))


async def _list(cluster: "Cluster", node: Node) -> "Answer":
    from kafkascope.client.describe.asking import settled
    from kafkascope.client.targets import Node as NodeTarget

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        return gap("groups", "ListGroups", value["errorCode"]) if value["errorCode"] else None

    answer, _ = await settled(cluster, "ListGroups", {}, verdict, to=NodeTarget(node.node_id))
    return answer


async def _count(cluster: "Cluster", groups: list[Group], gaps: list[Gap]) -> list[Group]:
    from kafkascope.client.describe.asking import each, lacking
    from kafkascope.client.targets import Node as NodeTarget

    by_place: dict[tuple[int, str], list[str]] = defaultdict(list)
    for one in groups:
        by_place[one.coordinator.node_id, one.type].append(one.group_id)
    jobs = []
    for (node, kind), names in by_place.items():
        if kind not in DESCRIBE:
            continue
        lack = await lacking(cluster, DESCRIBE[kind][0], f"members of {kind} groups")
        if lack is not None:
            gaps.append(lack)
            continue
        jobs += [(node, kind, names[at : at + BATCH]) for at in range(0, len(names), BATCH)]

    async def ask(job: tuple[int, str, list[str]]) -> tuple[dict[str, tuple[str, int]], list[Gap]]:
        api, field = DESCRIBE[job[1]]
        try:
            answer = await cluster.call(api, {field: job[2]}, to=NodeTarget(job[0]))
        except FAILURES as error:
            silent.append(no_answer(f"members of {job[1]} groups of node {job[0]}", api, error))
            return {}, []
        return counted(answer.value, api)

    silent: list[Gap] = []
    told: dict[str, tuple[str, int]] = {}
    for some, more in await each(jobs, ask):
        told |= some
        # a group that ended between the two questions, or moved, is as it was listed
        gaps += [one for one in more if one.needs]
    gaps += silent
    return [
        replace(one, state=told[one.group_id][0], members=told[one.group_id][1]) if one.group_id in told else one
        for one in groups
    ]


async def _complete(cluster: "Cluster") -> bool | None:
    """Without Describe on the cluster, brokers leave out groups that we may not describe, and do not say so. None where
    nobody tells."""
    from kafkascope.client.describe.asking import serves
    from kafkascope.client.targets import AnyBroker

    if await serves(cluster, "DescribeCluster") is None:
        return None
    try:
        answer = await cluster.call("DescribeCluster", {"includeClusterAuthorizedOperations": True}, to=AnyBroker())
    except FAILURES:
        return None
    return operations_tell(answer.value["clusterAuthorizedOperations"])
