"""Fetches the first or the next offset of partitions from all leaders at once. Partitions without a result are gaps."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.calls import RETRY_SECONDS, map_limited
from kafkascope.client.describe.gaps import FAILURES, Gap, error_gap, failure_gap, is_retriable, merge_gaps
from kafkascope.client.describe.values import TopicPartition, known_or_none
from kafkascope.client.targets import AnyBroker, Node
from kafkascope.errors import NotFoundError

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

LATEST, EARLIEST = -1, -2
# Partitions per ListOffsets request.
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Offset:
    """`leader_epoch` is None if the leader didn't report it."""

    offset: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True)
class TopicLeaders:
    """A topic from Metadata: leaders by partition, −1 for none."""

    name: str
    leaders: Mapping[int, int]


async def fetch_topics(cluster: "Cluster", names: Iterable[str]) -> tuple[dict[str, TopicLeaders], list[Gap]]:
    """Topics that exist and may be seen; the others are gaps."""
    unique = sorted(set(names))
    if not unique:
        return {}, []
    request = {"topics": [{"name": name} for name in unique], "allowAutoTopicCreation": False}
    response = await cluster.call("Metadata", request, to=AnyBroker())
    topics, gaps = {}, []
    for topic in response.value["topics"]:
        if topic["errorCode"] and not topic["partitions"]:
            gaps.append(error_gap(f"topic {topic['name']}", "Metadata", topic["errorCode"], topic["name"]))
            continue
        leaders = {partition["partitionIndex"]: partition["leaderId"] for partition in topic["partitions"]}
        topics[topic["name"]] = TopicLeaders(topic["name"], leaders)
    return topics, gaps


async def fetch_offsets(
    cluster: "Cluster", places: Iterable[TopicPartition], timestamp: int, *, committed: bool = False
) -> tuple[dict[TopicPartition, Offset], tuple[Gap, ...]]:
    """`timestamp` is LATEST or EARLIEST; `committed` stops at the last stable offset. Retries partitions whose leader
    moves meanwhile, for half of the remaining time of a look. A partition without a leader, or whose leader doesn't
    respond, is a gap."""
    pending = set(places)
    offsets: dict[TopicPartition, Offset] = {}
    until = time.monotonic() + cluster.share()
    refreshed = False
    while pending:
        facts, gaps = await fetch_topics(cluster, (topic for topic, _ in pending))
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        for topic, partition in sorted(pending):
            leader = facts[topic].leaders.get(partition, -1) if topic in facts else -1
            if leader >= 0:
                by_leader[leader].append((topic, partition))
            elif topic in facts:
                gaps.append(error_gap(f"offsets of {topic}-{partition}", "ListOffsets", 5, topic, "it has no leader"))
        jobs = [
            (leader, keys[start : start + _BATCH])
            for leader, keys in by_leader.items()
            for start in range(0, len(keys), _BATCH)
        ]
        results = await map_limited(jobs, lambda job: _list_offsets(cluster, job[0], job[1], timestamp, committed))
        # an election takes a moment; if Metadata is the same a moment later, waiting longer doesn't help
        again = not refreshed and _any_retriable(gaps)
        refreshed = True
        for leader_offsets, errors in results:
            offsets.update(leader_offsets)
            gaps.extend(errors)
            again = again or _any_retriable(errors)
        pending -= set(offsets)
        if not again or time.monotonic() + RETRY_SECONDS > until:
            return offsets, merge_gaps(gaps)
        await asyncio.sleep(RETRY_SECONDS)
    return offsets, ()


def _any_retriable(gaps: Iterable[Gap]) -> bool:
    return any(gap.code is not None and is_retriable(gap.code) for gap in gaps)


async def _list_offsets(
    cluster: "Cluster", leader: int, places: list[TopicPartition], timestamp: int, committed: bool
) -> tuple[dict[TopicPartition, Offset], list[Gap]]:
    partitions: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for topic, partition in places:
        partitions[topic].append({"partitionIndex": partition, "timestamp": timestamp})
    request = {
        "replicaId": -1,
        "isolationLevel": int(committed),
        "topics": [{"name": name, "partitions": rows} for name, rows in partitions.items()],
    }
    try:
        with cluster.part():
            response = await cluster.call("ListOffsets", request, to=Node(leader))
    except (*FAILURES, NotFoundError) as error:
        return {}, [failure_gap(f"offsets of {topic}-{partition}", "ListOffsets", error) for topic, partition in places]
    return offsets_of(response.value)


def offsets_of(value: Mapping[str, Any]) -> tuple[dict[TopicPartition, Offset], list[Gap]]:
    """From a ListOffsets response of version 1 or later."""
    offsets, gaps = {}, []
    for topic in value["topics"]:
        name = topic["name"]
        for partition in topic["partitions"]:
            if partition["errorCode"]:
                label = f"offsets of {name}-{partition['partitionIndex']}"
                gaps.append(error_gap(label, "ListOffsets", partition["errorCode"], name))
            else:
                offsets[name, partition["partitionIndex"]] = Offset(
                    partition["offset"], known_or_none(partition.get("leaderEpoch"))
                )
    return offsets, gaps
