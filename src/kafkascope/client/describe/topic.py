"""Answers about a topic in, `TopicView` out: every partition with leader, replicas, offsets; what is not in order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.cluster import operations_of
from kafkascope.client.describe.gaps import FAILURES, Gap, first, gap, merged, no_answer, refused
from kafkascope.client.describe.groups import NOT_ASKED
from kafkascope.client.describe.offsets import EARLIEST, LATEST, Offset, offsets_of
from kafkascope.client.describe.values import Place, Setting, kafka_uuid, known

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

UNKNOWN_TOPIC = 3


@dataclass(frozen=True, slots=True)
class TopicPartition:
    """Node ids. `eligible` are replicas that may lead without loss though not in sync (KIP-966); None where the
    brokers do not tell."""

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
    """`settings` are those that somebody set. Lists of partitions name what is not in order."""

    name: str
    topic_id: str | None
    internal: bool
    min_in_sync_replicas: int | None
    partitions: tuple[TopicPartition, ...]
    without_leader: tuple[int, ...]
    under_replicated: tuple[int, ...]
    below_min_in_sync: tuple[int, ...]
    settings: tuple[Setting, ...]
    operations: tuple[str, ...]
    gaps: tuple[Gap, ...]


def topic_of(
    topic: Mapping[str, Any],
    firsts: Mapping[Place, Offset],
    ends: Mapping[Place, Offset],
    moves: Mapping[int, tuple[tuple[int, ...], tuple[int, ...]]],
    settings: tuple[Setting, ...],
    gaps: Iterable[Gap] = (),
) -> TopicView:
    """`topic` is of a DescribeTopicPartitions or a Metadata answer; `moves` are replicas being added and removed."""
    name = topic["name"]
    partitions = tuple(
        _partition(name, one, firsts, ends, moves.get(one["partitionIndex"], ((), ())))
        for one in sorted(topic["partitions"], key=lambda one: int(one["partitionIndex"]))
    )
    least = next((one.value for one in settings if one.name == "min.insync.replicas"), None)
    minimum = int(least) if least and least.isdigit() else None
    return TopicView(
        name,
        kafka_uuid(topic.get("topicId")),
        topic["isInternal"],
        minimum,
        partitions,
        tuple(one.partition for one in partitions if one.leader is None),
        tuple(one.partition for one in partitions if len(one.in_sync) < len(one.replicas)),
        tuple(one.partition for one in partitions if minimum is not None and len(one.in_sync) < minimum),
        tuple(one for one in settings if one.source == "topic"),
        operations_of(topic.get("topicAuthorizedOperations", NOT_ASKED)),
        merged(gaps),
    )


def _partition(
    name: str,
    one: Mapping[str, Any],
    firsts: Mapping[Place, Offset],
    ends: Mapping[Place, Offset],
    moves: tuple[tuple[int, ...], tuple[int, ...]],
) -> TopicPartition:
    place = (name, one["partitionIndex"])
    eligible = one.get("eligibleLeaderReplicas")
    return TopicPartition(
        one["partitionIndex"],
        known(one["leaderId"]),
        known(one.get("leaderEpoch", -1)),
        tuple(one["replicaNodes"]),
        tuple(sorted(one["isrNodes"])),
        tuple(sorted(one.get("offlineReplicas", ()))),
        None if eligible is None else tuple(eligible),
        *moves,
        firsts[place].offset if place in firsts else None,
        ends[place].offset if place in ends else None,
    )


async def describe_topic(cluster: "Cluster", name: str) -> TopicView:
    """RefusedError where there is no such topic, or it may not be described."""
    from kafkascope.client.describe.asking import brokers_only, each
    from kafkascope.client.describe.configs import Resource, describe_configs

    brokers_only(cluster, "topics")
    topic = await _found(cluster, name)
    places = [(name, one["partitionIndex"]) for one in topic["partitions"] if one["leaderId"] >= 0]
    # side by side: a leader that does not answer is waited for once
    (firsts, early), (ends, late) = await each(
        (EARLIEST, LATEST), lambda timestamp: offsets_of(cluster, places, timestamp)
    )
    settings: tuple[Setting, ...] = ()
    unset: Sequence[Gap] = ()
    try:
        with cluster.part():
            (configs,) = await describe_configs(cluster, [Resource("topic", name)])
        settings, unset = configs.settings, configs.gaps
    except FAILURES as error:
        unset = [no_answer(f"configs of topic {name}", "DescribeConfigs", error)]
    # last, since a broker whose controller hangs is not asked again
    moves, unmoved = await _moves(cluster, name, [one["partitionIndex"] for one in topic["partitions"]])
    return topic_of(topic, firsts, ends, moves, settings, [*early, *late, *unmoved, *unset])


async def _found(cluster: "Cluster", name: str) -> Mapping[str, Any]:
    """By DescribeTopicPartitions, page after page; by Metadata where brokers lack it (before 3.8)."""
    from kafkascope.client.describe.asking import serves
    from kafkascope.client.targets import AnyBroker

    versions = await serves(cluster, "Metadata")
    asked: dict[str, Any] = {"topics": [{"name": name}], "allowAutoTopicCreation": False}
    if versions is not None and versions[1] >= 8:
        asked["includeTopicAuthorizedOperations"] = True
    answer = await cluster.call("Metadata", asked, to=AnyBroker())
    topic: dict[str, Any] = dict(first(answer.value["topics"], "Metadata"))
    if topic["errorCode"] and not topic["partitions"]:
        said = f"there is no topic {name}" if topic["errorCode"] == UNKNOWN_TOPIC else f"topic {name}"
        raise refused(gap(f"topic {name}", "Metadata", topic["errorCode"], name, said), answer.address)
    if await serves(cluster, "DescribeTopicPartitions") is None:
        return topic
    rows: list[Any] = []
    cursor: dict[str, Any] | None = None
    # A cursor can move on for ever: all pages take no more memory than one response may.
    with cluster.together():
        while True:
            page = {"topics": [{"name": name}], "responsePartitionLimit": 2000, "cursor": cursor}
            value = (await cluster.call("DescribeTopicPartitions", page, to=AnyBroker())).value
            if not value["topics"] or value["topics"][0]["errorCode"]:
                return topic
            rows += value["topics"][0]["partitions"]
            before, cursor = cursor, value["nextCursor"]
            # one that does not move would never end
            if cursor is None or cursor["topicName"] != name or cursor == before:
                return {**topic, "partitions": rows}


async def _moves(
    cluster: "Cluster", name: str, partitions: list[int]
) -> tuple[dict[int, tuple[tuple[int, ...], tuple[int, ...]]], list[Gap]]:
    from kafkascope.client.describe.asking import lacking

    api, what = "ListPartitionReassignments", "replicas being moved"
    lack = await lacking(cluster, api, what)
    if lack is not None:
        return {}, [lack]
    asked = {"topics": [{"name": name, "partitionIndexes": partitions}]}
    try:
        with cluster.part():
            value = (await cluster.call(api, asked)).value
    except FAILURES as error:
        return {}, [no_answer(what, api, error)]
    if value["errorCode"]:
        return {}, [gap(what, api, value["errorCode"], None, value["errorMessage"])]
    return {
        one["partitionIndex"]: (tuple(one["addingReplicas"]), tuple(one["removingReplicas"]))
        for topic in value["topics"]
        for one in topic["partitions"]
    }, []
