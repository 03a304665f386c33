"""Describes one topic: leader, replicas and offsets of every partition, and which partitions are unhealthy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.cluster import operations_of
from kafkascope.client.describe.gaps import FAILURES, Gap, error_gap, failure_gap, merge_gaps, only_row, refused_error
from kafkascope.client.describe.groups import NOT_ASKED
from kafkascope.client.describe.offsets import EARLIEST, LATEST, Offset, fetch_offsets
from kafkascope.client.describe.values import Setting, TopicPartition, kafka_uuid, known_or_none

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

_UNKNOWN_TOPIC = 3


@dataclass(frozen=True, slots=True)
class PartitionView:
    """Node ids. `eligible` are replicas that may lead without loss although not in sync (KIP-966); None if the brokers
    don't report them."""

    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    eligible: tuple[int, ...] | None
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    start_offset: int | None
    end_offset: int | None


@dataclass(frozen=True, slots=True)
class TopicView:
    """`settings` are those that aren't defaults. Lists of partitions name unhealthy ones."""

    name: str
    topic_id: str | None
    internal: bool
    min_in_sync_replicas: int | None
    partitions: tuple[PartitionView, ...]
    without_leader: tuple[int, ...]
    under_replicated: tuple[int, ...]
    below_min_in_sync: tuple[int, ...]
    settings: tuple[Setting, ...]
    operations: tuple[str, ...]
    gaps: tuple[Gap, ...]


def topic_of(
    topic: Mapping[str, Any],
    firsts: Mapping[TopicPartition, Offset],
    ends: Mapping[TopicPartition, Offset],
    moves: Mapping[int, tuple[tuple[int, ...], tuple[int, ...]]],
    settings: tuple[Setting, ...],
    gaps: Iterable[Gap] = (),
) -> TopicView:
    """`topic` is from a DescribeTopicPartitions or Metadata response; `moves` are replicas being added and removed."""
    name = topic["name"]
    partitions = tuple(
        _partition(name, row, firsts, ends, moves.get(row["partitionIndex"], ((), ())))
        for row in sorted(topic["partitions"], key=lambda row: int(row["partitionIndex"]))
    )
    least = next((setting.value for setting in settings if setting.name == "min.insync.replicas"), None)
    minimum = int(least) if least and least.isdigit() else None
    return TopicView(
        name,
        kafka_uuid(topic.get("topicId")),
        topic["isInternal"],
        minimum,
        partitions,
        tuple(partition.partition for partition in partitions if partition.leader is None),
        tuple(partition.partition for partition in partitions if len(partition.in_sync) < len(partition.replicas)),
        tuple(
            partition.partition for partition in partitions if minimum is not None and len(partition.in_sync) < minimum
        ),
        tuple(setting for setting in settings if setting.source == "topic"),
        operations_of(topic.get("topicAuthorizedOperations", NOT_ASKED)),
        merge_gaps(gaps),
    )


def _partition(
    name: str,
    row: Mapping[str, Any],
    firsts: Mapping[TopicPartition, Offset],
    ends: Mapping[TopicPartition, Offset],
    moves: tuple[tuple[int, ...], tuple[int, ...]],
) -> PartitionView:
    place = (name, row["partitionIndex"])
    eligible = row.get("eligibleLeaderReplicas")
    return PartitionView(
        row["partitionIndex"],
        known_or_none(row["leaderId"]),
        known_or_none(row.get("leaderEpoch", -1)),
        tuple(row["replicaNodes"]),
        tuple(sorted(row["isrNodes"])),
        tuple(sorted(row.get("offlineReplicas", ()))),
        None if eligible is None else tuple(eligible),
        *moves,
        firsts[place].offset if place in firsts else None,
        ends[place].offset if place in ends else None,
    )


async def describe_topic(cluster: "Cluster", name: str) -> TopicView:
    """RefusedError if the topic doesn't exist or may not be described."""
    from kafkascope.client.describe.calls import map_limited, require_brokers
    from kafkascope.client.describe.configs import Resource, describe_configs

    require_brokers(cluster, "topics")
    topic = await _fetch_topic(cluster, name)
    places = [(name, partition["partitionIndex"]) for partition in topic["partitions"] if partition["leaderId"] >= 0]
    # concurrently, so that a leader that doesn't respond is waited for only once
    (firsts, early), (ends, late) = await map_limited(
        (EARLIEST, LATEST), lambda timestamp: fetch_offsets(cluster, places, timestamp)
    )
    settings: tuple[Setting, ...] = ()
    unset: Sequence[Gap] = ()
    try:
        with cluster.part():
            (configs,) = await describe_configs(cluster, [Resource("topic", name)])
        settings, unset = configs.settings, configs.gaps
    except FAILURES as error:
        unset = [failure_gap(f"configs of topic {name}", "DescribeConfigs", error)]
    # last, since a broker whose controller hangs isn't asked again
    moves, unmoved = await _fetch_reassignments(
        cluster, name, [partition["partitionIndex"] for partition in topic["partitions"]]
    )
    return topic_of(topic, firsts, ends, moves, settings, [*early, *late, *unmoved, *unset])


async def _fetch_topic(cluster: "Cluster", name: str) -> Mapping[str, Any]:
    """By DescribeTopicPartitions, page by page, or by Metadata if the brokers lack it (before 3.8)."""
    from kafkascope.client.describe.calls import served_versions
    from kafkascope.client.targets import AnyBroker

    versions = await served_versions(cluster, "Metadata")
    request: dict[str, Any] = {"topics": [{"name": name}], "allowAutoTopicCreation": False}
    if versions is not None and versions[1] >= 8:
        request["includeTopicAuthorizedOperations"] = True
    response = await cluster.call("Metadata", request, to=AnyBroker())
    topic: dict[str, Any] = dict(only_row(response.value["topics"], "Metadata"))
    if topic["errorCode"] and not topic["partitions"]:
        detail = f"there is no topic {name}" if topic["errorCode"] == _UNKNOWN_TOPIC else f"topic {name}"
        raise refused_error(error_gap(f"topic {name}", "Metadata", topic["errorCode"], name, detail), response.address)
    if await served_versions(cluster, "DescribeTopicPartitions") is None:
        return topic
    rows: list[Any] = []
    cursor: dict[str, Any] | None = None
    # A cursor can move on forever, so all pages together take no more memory than one response may.
    with cluster.together():
        while True:
            page = {"topics": [{"name": name}], "responsePartitionLimit": 2000, "cursor": cursor}
            value = (await cluster.call("DescribeTopicPartitions", page, to=AnyBroker())).value
            if not value["topics"] or value["topics"][0]["errorCode"]:
                return topic
            rows += value["topics"][0]["partitions"]
            before, cursor = cursor, value["nextCursor"]
            # a cursor that doesn't move would never end
            if cursor is None or cursor["topicName"] != name or cursor == before:
                return {**topic, "partitions": rows}


async def _fetch_reassignments(
    cluster: "Cluster", name: str, partitions: list[int]
) -> tuple[dict[int, tuple[tuple[int, ...], tuple[int, ...]]], list[Gap]]:
    from kafkascope.client.describe.calls import missing_api_gap

    api, label = "ListPartitionReassignments", "replicas being moved"
    gap = await missing_api_gap(cluster, api, label)
    if gap is not None:
        return {}, [gap]
    request = {"topics": [{"name": name, "partitionIndexes": partitions}]}
    try:
        with cluster.part():
            value = (await cluster.call(api, request)).value
    except FAILURES as error:
        return {}, [failure_gap(label, api, error)]
    if value["errorCode"]:
        return {}, [error_gap(label, api, value["errorCode"], None, value["errorMessage"])]
    return {
        partition["partitionIndex"]: (tuple(partition["addingReplicas"]), tuple(partition["removingReplicas"]))
        for topic in value["topics"]
        for partition in topic["partitions"]
    }, []
