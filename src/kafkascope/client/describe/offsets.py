"""Partitions in, their first or next offset out, asked of every leader at once; what could not be told is a gap."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.asking import AGAIN_SECONDS, each
from kafkascope.client.describe.gaps import FAILURES, Gap, gap, merged, no_answer, retriable
from kafkascope.client.describe.values import Place, known
from kafkascope.client.targets import AnyBroker, Node
from kafkascope.errors import NotFoundError

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

LATEST, EARLIEST = -1, -2
# Partitions in one ListOffsets request.
BATCH = 1000


@dataclass(frozen=True, slots=True)
class Offset:
    """`leader_epoch` is None where the leader did not say."""

    offset: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as Metadata has it: partition to leader, −1 where it has none."""

    name: str
    leaders: Mapping[int, int]


async def topics_of(cluster: "Cluster", names: Iterable[str]) -> tuple[dict[str, TopicFacts], list[Gap]]:
    """Those that exist and may be seen; the others are gaps."""
    wanted = sorted(set(names))
    if not wanted:
        return {}, []
    asked = {"topics": [{"name": name} for name in wanted], "allowAutoTopicCreation": False}
    answer = await cluster.call("Metadata", asked, to=AnyBroker())
    found, gaps = {}, []
    for topic in answer.value["topics"]:
        if topic["errorCode"] and not topic["partitions"]:
            gaps.append(gap(f"topic {topic['name']}", "Metadata", topic["errorCode"], topic["name"]))
            continue
        leaders = {one["partitionIndex"]: one["leaderId"] for one in topic["partitions"]}
        found[topic["name"]] = TopicFacts(topic["name"], leaders)
    return found, gaps


async def offsets_of(
    cluster: "Cluster", places: Iterable[Place], timestamp: int, *, committed: bool = False
) -> tuple[dict[Place, Offset], tuple[Gap, ...]]:
    """`timestamp` is LATEST or EARLIEST; `committed` stops at the last stable offset. A partition whose leader moves
    meanwhile is asked for again, for half of the time that a look has left. One without a leader, or whose leader does
    not answer, is a gap."""
    left = set(places)
    found: dict[Place, Offset] = {}
    until = time.monotonic() + cluster.share()
    refreshed = False
    while left:
        facts, gaps = await topics_of(cluster, (topic for topic, _ in left))
        by_leader: dict[int, list[Place]] = defaultdict(list)
        for topic, partition in sorted(left):
            leader = facts[topic].leaders.get(partition, -1) if topic in facts else -1
            if leader >= 0:
                by_leader[leader].append((topic, partition))
            elif topic in facts:
                gaps.append(gap(f"offsets of {topic}-{partition}", "ListOffsets", 5, topic, "it has no leader"))
        jobs = [
            (leader, some[at : at + BATCH]) for leader, some in by_leader.items() for at in range(0, len(some), BATCH)
        ]
        answers = await each(jobs, lambda job: _ask(cluster, job[0], job[1], timestamp, committed))
        # an election takes a moment; what Metadata says again a moment later stays so for longer than anybody waits
        again = not refreshed and _passing(gaps)
        refreshed = True
        for told, errors in answers:
            found.update(told)
            gaps.extend(errors)
            again = again or _passing(errors)
        left -= set(found)
        if not again or time.monotonic() + AGAIN_SECONDS > until:
            return found, merged(gaps)
        await asyncio.sleep(AGAIN_SECONDS)
    return found, ()


def _passing(gaps: Iterable[Gap]) -> bool:
    return any(one.code is not None and retriable(one.code) for one in gaps)


async def _ask(
    cluster: "Cluster", leader: int, places: list[Place], timestamp: int, committed: bool
) -> tuple[dict[Place, Offset], list[Gap]]:
    partitions: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for topic, partition in places:
        partitions[topic].append({"partitionIndex": partition, "timestamp": timestamp})
    asked = {
        "replicaId": -1,
        "isolationLevel": int(committed),
        "topics": [{"name": name, "partitions": some} for name, some in partitions.items()],
    }
    try:
        with cluster.part():
            answer = await cluster.call("ListOffsets", asked, to=Node(leader))
    except (*FAILURES, NotFoundError) as error:
        return {}, [no_answer(f"offsets of {topic}-{partition}", "ListOffsets", error) for topic, partition in places]
    return offsets_in(answer.value)


def offsets_in(value: Mapping[str, Any]) -> tuple[dict[Place, Offset], list[Gap]]:
    """A ListOffsets answer of version 1 or later."""
    found, gaps = {}, []
    for topic in value["topics"]:
        name = topic["name"]
        for one in topic["partitions"]:
            if one["errorCode"]:
                what = f"offsets of {name}-{one['partitionIndex']}"
                gaps.append(gap(what, "ListOffsets", one["errorCode"], name))
            else:
                found[name, one["partitionIndex"]] = Offset(one["offset"], known(one.get("leaderEpoch")))
    return found, gaps
