"""Asks what a query needs to know besides records: whether its topics exist, where they end, and how far the group has
come. What can't be learnt isn't guessed."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafkascope.client.share.values import SharePartition
from kafkascope.client.targets import AnyBroker, Coordinator
from kafkascope.errors import KafkascopeError, ReachError, RefusedError
from kafkascope.schema.errors.error_codes import error_name
from kafkascope.schema.names import clip

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster
    from kafkascope.pipeline.share.options import ShareOptions

_API = "DescribeShareGroupOffsets"
_SECONDS, _HURRIED_SECONDS = 5.0, 0.2
_TOPIC_AUTHORIZATION_FAILED = 29


class GroupLook:
    """`starts` are the offsets before which the group is done, `done` the partitions where it's done with everything:
    their start moves only with a later acknowledgement. `lag` is None where brokers don't report it."""

    def __init__(self) -> None:
        self.starts: dict[SharePartition, int] = {}
        self.done: set[SharePartition] = set()
        self.lag: int | None = None
        self.problem: str | None = None
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        self._hurried.set()

    async def look(self, cluster: "Cluster", options: "ShareOptions") -> None:
        request = {"groups": [{"groupId": options.group, "topics": None}]}
        try:
            answer = await cluster.call(_API, request, to=Coordinator("group", options.group))
        except KafkascopeError as error:
            self.problem, self.lag, self.done = str(error), None, set()
        else:
            self._learn(answer.value["groups"][0])

    async def pause(self) -> None:
        """Until the next look is due."""
        await asyncio.sleep(_HURRIED_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS):
                await self._hurried.wait()
        self._hurried.clear()

    def _learn(self, group: Mapping[str, Any]) -> None:
        if group["errorCode"]:
            self.problem, self.lag, self.done = f"{_API}: {error_name(group['errorCode'])}", None, set()
            return
        starts: dict[SharePartition, int] = {}
        done: set[SharePartition] = set()
        lags: list[int] = []
        for topic in group["topics"]:
            for row in topic["partitions"]:
                if row["errorCode"] == 0 and row["startOffset"] >= 0:
                    partition = SharePartition(topic["topicId"], row["partitionIndex"])
                    starts[partition] = row["startOffset"]
                    lags.append(row.get("lag", -1))
                    if lags[-1] == 0:
                        done.add(partition)
        self.starts, self.done, self.problem = starts, done, None
        self.lag = None if any(lag < 0 for lag in lags) else sum(lags)


async def check_topics(cluster: "Cluster", options: "ShareOptions") -> dict[UUID, str]:
    """`RefusedError` for a topic that doesn't exist or may not be seen: a share group would wait for it in silence."""
    names: dict[UUID, str] = {}
    for name in options.topics:
        try:
            names[await cluster.topic_id(name)] = name
        except RefusedError as error:
            if error.code == _TOPIC_AUTHORIZATION_FAILED:
                text = f"topic {clip(name)}: {error_name(error.code)} ({error.code}); it needs DESCRIBE and READ"
                raise RefusedError(f"{cluster.settings.bootstrap[0]}: {text} on the topic", error.code) from None
            raise
    return names


async def target_offsets(cluster: "Cluster", options: "ShareOptions") -> dict[SharePartition, int]:
    """The end of every partition of the topics that has records."""
    from kafkascope.client.describe.offsets import EARLIEST, LATEST, fetch_offsets

    request = {"topics": [{"name": name} for name in options.topics], "allowAutoTopicCreation": False}
    answer = await cluster.call("Metadata", request, to=AnyBroker())
    ids = {topic["name"]: topic["topicId"] for topic in answer.value["topics"]}
    places = [(topic["name"], row["partitionIndex"]) for topic in answer.value["topics"] for row in topic["partitions"]]
    ends, gaps = await fetch_offsets(cluster, places, LATEST)
    starts, more = await fetch_offsets(cluster, places, EARLIEST)
    for gap in (*gaps, *more):
        raise ReachError(f"{cluster.settings.bootstrap[0]}: {clip(gap.what)}: {gap.detail or gap.error}")
    return {
        SharePartition(ids[name], number): end.offset
        for (name, number), end in ends.items()
        if end.offset > starts[name, number].offset
    }
