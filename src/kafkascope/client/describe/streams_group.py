"""Answers about a streams group in, `StreamsGroup` out: topology, members by process, tasks, lag, what it waits for.

Lag of the input topics is reckoned as Kafka's own tool does: of the partitions of active tasks, the end less the
committed offset, or less the first offset where none is committed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import Gap, first, gap, merged, refused
from kafkascope.client.describe.offsets import EARLIEST, LATEST, Offset, offsets_of, topics_of
from kafkascope.client.describe.streams_values import (
    InputPartition,
    InternalTopic,
    StreamsGroup,
    StreamsMember,
    StreamsProcess,
    Subtopology,
    TaskOffset,
    TopologyNode,
)
from kafkascope.client.describe.streams_waits import statuses_of, tasks_of, waits_of
from kafkascope.client.describe.values import Node, Place, Setting, waiting

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

NODE_KINDS = {1: "SOURCE", 2: "PROCESSOR", 3: "SINK"}
DESCRIPTIONS = {0: "NOT_REQUESTED", 1: "NOT_STORED", 2: "ERROR", 3: "AVAILABLE"}


def subtopologies_of(group: Mapping[str, Any]) -> tuple[Subtopology, ...]:
    topology = group["topology"] or {}
    graph = {
        one["subtopologyId"]: tuple(map(_node, one["nodes"]))
        for one in (group.get("topologyDescription") or {}).get("subtopologies", ())
    }
    return tuple(
        Subtopology(
            one["subtopologyId"],
            tuple(sorted(one["sourceTopics"])),
            _internal(one["repartitionSourceTopics"]),
            tuple(sorted(one["repartitionSinkTopics"])),
            _internal(one["stateChangelogTopics"]),
            graph.get(one["subtopologyId"], ()),
        )
        for one in sorted(topology.get("subtopologies") or (), key=lambda one: one["subtopologyId"])
    )


def _internal(topics: Iterable[Mapping[str, Any]]) -> tuple[InternalTopic, ...]:
    found = (InternalTopic(one["name"], one["partitions"], one["replicationFactor"]) for one in topics)
    return tuple(sorted(found, key=lambda one: one.name))


def _node(one: Mapping[str, Any]) -> TopologyNode:
    kind = NODE_KINDS.get(one["nodeType"], str(one["nodeType"]))
    lists = (tuple(one[name]) for name in ("stores", "successors"))
    return TopologyNode(one["name"], kind, tuple(one["sourceTopics"]), one["sinkTopic"], *lists)


def processes_of(group: Mapping[str, Any]) -> tuple[StreamsProcess, ...]:
    members: dict[str, list[StreamsMember]] = defaultdict(list)
    endpoints: dict[str, str] = {}
    for one in group["members"]:
        endpoint = one["userEndpoint"]
        if endpoint:
            endpoints[one["processId"]] = f"{endpoint['host']}:{endpoint['port']}"
        members[one["processId"]].append(
            StreamsMember(
                one["memberId"],
                one["instanceId"],
                one["clientId"],
                one["clientHost"],
                one["rackId"],
                one["memberEpoch"],
                one["topologyEpoch"],
                one["isClassic"],
                tasks_of(one["assignment"]),
                tasks_of(one["targetAssignment"]),
                _task_offsets(one),
                tuple(sorted((tag["key"], tag["value"]) for tag in one["clientTags"])),
            )
        )
    return tuple(
        StreamsProcess(name, endpoints.get(name), tuple(sorted(some, key=lambda one: (one.client_id, one.member_id))))
        for name, some in sorted(members.items(), key=lambda item: (min(m.client_id for m in item[1]), item[0]))
    )


def _task_offsets(member: Mapping[str, Any]) -> tuple[TaskOffset, ...]:
    offsets, ends = (
        {f"{row['subtopologyId']}_{row['partition']}": row["offset"] for row in member[name]}
        for name in ("taskOffsets", "taskEndOffsets")
    )
    return tuple(
        TaskOffset(
            task,
            offsets.get(task),
            ends.get(task),
            max(0, ends[task] - offsets[task]) if task in offsets and task in ends else None,
        )
        for task in sorted({*offsets, *ends})
    )


def input_places(group: Mapping[str, Any]) -> dict[Place, str]:
    """Partitions that active tasks read, from source and repartition topics, each with its task."""
    parts = {one.subtopology_id: one for one in subtopologies_of(group)}
    found: dict[Place, str] = {}
    for member in group["members"]:
        for row in member["assignment"]["activeTasks"]:
            part = parts.get(row["subtopologyId"])
            if part is None:
                continue
            topics = [*part.source_topics, *(one.name for one in part.repartition_source_topics)]
            for partition in row["partitions"]:
                for topic in topics:
                    found[topic, partition] = f"{part.subtopology_id}_{partition}"
    return found


def streams_group_of(
    group: Mapping[str, Any],
    committed: Mapping[Place, Offset],
    firsts: Mapping[Place, Offset],
    ends: Mapping[Place, Offset],
    topics: Mapping[str, int] | None,
    *,
    coordinator: Node | None = None,
    settings: tuple[Setting, ...] = (),
    gaps: Iterable[Gap] = (),
) -> StreamsGroup:
    """`group` is the group's part of a StreamsGroupDescribe answer without an error, `topics` the number of partitions
    of those that exist, None where it is not known."""
    parts = subtopologies_of(group)
    processes = processes_of(group)
    members = [member for process in processes for member in process.members]
    epoch = group["topology"]["epoch"] if group["topology"] else None
    statuses = statuses_of(parts, epoch, members, topics)
    inputs = tuple(_input(place, task, committed, firsts, ends) for place, task in sorted(input_places(group).items()))
    described = group.get("topologyDescriptionStatus")
    return StreamsGroup(
        group["groupId"],
        group["groupState"],
        coordinator,
        group["groupEpoch"],
        group["assignmentEpoch"],
        group.get("assignorName"),
        epoch,
        None if described is None else DESCRIPTIONS.get(described, str(described)),
        waiting(one.lag for one in inputs) if inputs else None,
        parts,
        processes,
        inputs,
        statuses,
        waits_of(group["groupState"], group["groupEpoch"], group["assignmentEpoch"], members, statuses),
        settings,
        merged(gaps),
    )


def _input(
    place: Place,
    task: str,
    committed: Mapping[Place, Offset],
    firsts: Mapping[Place, Offset],
    ends: Mapping[Place, Offset],
) -> InputPartition:
    end, current = ends.get(place), committed.get(place)
    base = current or firsts.get(place)
    return InputPartition(
        *place,
        task,
        current.offset if current else None,
        current.leader_epoch if current else None,
        end.offset if end else None,
        None if end is None or base is None else end.offset - base.offset,
    )


async def describe_streams_group(cluster: "Cluster", group_id: str) -> StreamsGroup:
    """RefusedError where the group is not there, is of another type, or may not be described at all."""
    from kafkascope.client.describe.asking import brokers_only, each, group_target, lacking, node_of, serves, settled
    from kafkascope.client.describe.committed import committed_of
    from kafkascope.client.describe.configs import group_settings

    api, what = "StreamsGroupDescribe", f"streams group {group_id}"
    brokers_only(cluster, "groups")
    lack = await lacking(cluster, api, what)
    if lack is not None:
        raise refused(lack)

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        group = first(value["groups"], api)
        name = None if group["errorCode"] == 29 else group_id
        return gap(what, api, group["errorCode"], name, group["errorMessage"]) if group["errorCode"] else None

    asked: dict[str, Any] = {"groupIds": [group_id]}
    versions = await serves(cluster, api)
    if versions is not None and versions[1] >= 1:
        asked["includeTopologyDescription"] = True
    answer, lack = await settled(cluster, api, asked, verdict, to=group_target(group_id))
    if lack is not None:
        raise refused(lack, answer.address)
    group = first(answer.value["groups"], api)
    places = input_places(group)
    committed, gaps = await committed_of(cluster, group_id)
    unread = [place for place in places if place not in committed]
    # side by side: a leader that does not answer is waited for once
    (firsts, early), (ends, late) = await each(
        ((unread, EARLIEST), (places, LATEST)), lambda asked: offsets_of(cluster, *asked)
    )
    topics, unseen = await _topics(cluster, group)
    settings, unset = await group_settings(cluster, group_id, "streams.")
    return streams_group_of(
        group,
        committed,
        firsts,
        ends,
        topics,
        coordinator=node_of(answer),
        settings=settings,
        gaps=[*gaps, *early, *late, *unseen, *unset],
    )


async def _topics(cluster: "Cluster", group: Mapping[str, Any]) -> tuple[dict[str, int] | None, list[Gap]]:
    """A topic that is not there is no gap: it is what the view is about."""
    parts = subtopologies_of(group)
    names = {name for part in parts for name in part.source_topics}
    names |= {one.name for part in parts for one in (*part.repartition_source_topics, *part.changelog_topics)}
    found, gaps = await topics_of(cluster, names)
    denied = [one for one in gaps if one.needs]
    return (None if denied else {name: len(one.leaders) for name, one in found.items()}), denied
