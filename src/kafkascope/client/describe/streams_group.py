"""Describes a streams group: topology, members by process, tasks, lag, and what a rebalance waits for.

Lag of the input topics is computed as Kafka's own tool does: for partitions of active tasks, the end less the committed
offset, or less the first offset if none is committed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import Gap, error_gap, merge_gaps, only_row, refused_error
from kafkascope.client.describe.offsets import EARLIEST, LATEST, Offset, fetch_offsets, fetch_topics
from kafkascope.client.describe.streams_values import (
    InputPartition,
    InternalTopic,
    StreamsGroupView,
    StreamsMember,
    StreamsProcess,
    Subtopology,
    TaskOffset,
    TopologyNode,
)
from kafkascope.client.describe.streams_waits import statuses_of, tasks_of, waits_of
from kafkascope.client.describe.values import NodeAddress, Setting, TopicPartition, total_lag

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

_NODE_KINDS = {1: "SOURCE", 2: "PROCESSOR", 3: "SINK"}
_DESCRIPTIONS = {0: "NOT_REQUESTED", 1: "NOT_STORED", 2: "ERROR", 3: "AVAILABLE"}


def subtopologies_of(group: Mapping[str, Any]) -> tuple[Subtopology, ...]:
    topology = group["topology"] or {}
    graph = {
        subtopology["subtopologyId"]: tuple(map(_node, subtopology["nodes"]))
        for subtopology in (group.get("topologyDescription") or {}).get("subtopologies", ())
    }
    return tuple(
        Subtopology(
            subtopology["subtopologyId"],
            tuple(sorted(subtopology["sourceTopics"])),
            _internal_topics(subtopology["repartitionSourceTopics"]),
            tuple(sorted(subtopology["repartitionSinkTopics"])),
            _internal_topics(subtopology["stateChangelogTopics"]),
            graph.get(subtopology["subtopologyId"], ()),
        )
        for subtopology in sorted(topology.get("subtopologies") or (), key=lambda row: row["subtopologyId"])
    )


def _internal_topics(topics: Iterable[Mapping[str, Any]]) -> tuple[InternalTopic, ...]:
    internal = (InternalTopic(topic["name"], topic["partitions"], topic["replicationFactor"]) for topic in topics)
    return tuple(sorted(internal, key=lambda topic: topic.name))


def _node(row: Mapping[str, Any]) -> TopologyNode:
    kind = _NODE_KINDS.get(row["nodeType"], str(row["nodeType"]))
    lists = (tuple(row[name]) for name in ("stores", "successors"))
    return TopologyNode(row["name"], kind, tuple(row["sourceTopics"]), row["sinkTopic"], *lists)


def _processes(group: Mapping[str, Any]) -> tuple[StreamsProcess, ...]:
    members: dict[str, list[StreamsMember]] = defaultdict(list)
    endpoints: dict[str, str] = {}
    for member in group["members"]:
        endpoint = member["userEndpoint"]
        if endpoint:
            endpoints[member["processId"]] = f"{endpoint['host']}:{endpoint['port']}"
        members[member["processId"]].append(
            StreamsMember(
                member["memberId"],
                member["instanceId"],
                member["clientId"],
                member["clientHost"],
                member["rackId"],
                member["memberEpoch"],
                member["topologyEpoch"],
                member["isClassic"],
                tasks_of(member["assignment"]),
                tasks_of(member["targetAssignment"]),
                _task_offsets(member),
                tuple(sorted((tag["key"], tag["value"]) for tag in member["clientTags"])),
            )
        )
    return tuple(
        StreamsProcess(
            name,
            endpoints.get(name),
            tuple(sorted(of_process, key=lambda member: (member.client_id, member.member_id))),
        )
        for name, of_process in sorted(members.items(), key=lambda item: (min(m.client_id for m in item[1]), item[0]))
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


def input_partitions(group: Mapping[str, Any]) -> dict[TopicPartition, str]:
    """Partitions of source and repartition topics that active tasks read, each with its task."""
    parts = {subtopology.subtopology_id: subtopology for subtopology in subtopologies_of(group)}
    tasks: dict[TopicPartition, str] = {}
    for member in group["members"]:
        for row in member["assignment"]["activeTasks"]:
            part = parts.get(row["subtopologyId"])
            if part is None:
                continue
            topics = [*part.source_topics, *(topic.name for topic in part.repartition_source_topics)]
            for partition in row["partitions"]:
                for topic in topics:
                    tasks[topic, partition] = f"{part.subtopology_id}_{partition}"
    return tasks


def streams_group_of(
    group: Mapping[str, Any],
    committed: Mapping[TopicPartition, Offset],
    firsts: Mapping[TopicPartition, Offset],
    ends: Mapping[TopicPartition, Offset],
    topics: Mapping[str, int] | None,
    *,
    coordinator: NodeAddress | None = None,
    settings: tuple[Setting, ...] = (),
    gaps: Iterable[Gap] = (),
) -> StreamsGroupView:
    """`group` is the group's part of a StreamsGroupDescribe response without an error, `topics` the number of
    partitions of existing topics, None if unknown."""
    parts = subtopologies_of(group)
    processes = _processes(group)
    members = [member for process in processes for member in process.members]
    epoch = group["topology"]["epoch"] if group["topology"] else None
    statuses = statuses_of(parts, epoch, members, topics)
    inputs = tuple(
        _input_partition(place, task, committed, firsts, ends)
        for place, task in sorted(input_partitions(group).items())
    )
    described = group.get("topologyDescriptionStatus")
    return StreamsGroupView(
        group["groupId"],
        group["groupState"],
        coordinator,
        group["groupEpoch"],
        group["assignmentEpoch"],
        group.get("assignorName"),
        epoch,
        None if described is None else _DESCRIPTIONS.get(described, str(described)),
        total_lag(partition.lag for partition in inputs) if inputs else None,
        parts,
        processes,
        inputs,
        statuses,
        waits_of(group["groupState"], group["groupEpoch"], group["assignmentEpoch"], members, statuses),
        settings,
        merge_gaps(gaps),
    )


def _input_partition(
    place: TopicPartition,
    task: str,
    committed: Mapping[TopicPartition, Offset],
    firsts: Mapping[TopicPartition, Offset],
    ends: Mapping[TopicPartition, Offset],
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


async def describe_streams_group(cluster: "Cluster", group_id: str) -> StreamsGroupView:
    """RefusedError if the group doesn't exist, is of another type, or may not be described at all."""
    from kafkascope.client.describe.calls import (
        call_with_retries,
        group_target,
        map_limited,
        missing_api_gap,
        require_brokers,
        responding_node,
        served_versions,
    )
    from kafkascope.client.describe.committed import fetch_committed
    from kafkascope.client.describe.configs import group_settings

    api, label = "StreamsGroupDescribe", f"streams group {group_id}"
    require_brokers(cluster, "groups")
    gap = await missing_api_gap(cluster, api, label)
    if gap is not None:
        raise refused_error(gap)

    def verdict(value: Mapping[str, Any]) -> Gap | None:
        group = only_row(value["groups"], api)
        name = None if group["errorCode"] == 29 else group_id
        return error_gap(label, api, group["errorCode"], name, group["errorMessage"]) if group["errorCode"] else None

    request: dict[str, Any] = {"groupIds": [group_id]}
    versions = await served_versions(cluster, api)
    if versions is not None and versions[1] >= 1:
        request["includeTopologyDescription"] = True
    response, gap = await call_with_retries(cluster, api, request, verdict, to=group_target(group_id))
    if gap is not None:
        raise refused_error(gap, response.address)
    group = only_row(response.value["groups"], api)
    places = input_partitions(group)
    committed, gaps = await fetch_committed(cluster, group_id)
    unread = [place for place in places if place not in committed]
    # concurrently, so that a leader that doesn't respond is waited for only once
    (firsts, early), (ends, late) = await map_limited(
        ((unread, EARLIEST), (places, LATEST)), lambda query: fetch_offsets(cluster, *query)
    )
    topics, unseen = await _fetch_partition_counts(cluster, group)
    settings, unset = await group_settings(cluster, group_id, "streams.")
    return streams_group_of(
        group,
        committed,
        firsts,
        ends,
        topics,
        coordinator=responding_node(response),
        settings=settings,
        gaps=[*gaps, *early, *late, *unseen, *unset],
    )


async def _fetch_partition_counts(
    cluster: "Cluster", group: Mapping[str, Any]
) -> tuple[dict[str, int] | None, list[Gap]]:
    """A missing topic isn't a gap: the view itself reports it."""
    parts = subtopologies_of(group)
    names = {name for part in parts for name in part.source_topics}
    names |= {topic.name for part in parts for topic in (*part.repartition_source_topics, *part.changelog_topics)}
    leaders, gaps = await fetch_topics(cluster, names)
    denied = [gap for gap in gaps if gap.needs]
    return (None if denied else {name: len(topic.leaders) for name, topic in leaders.items()}), denied
