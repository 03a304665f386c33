"""A cluster of two nodes that follows a script, for what views show when one of them says nothing."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from kafkascope.client import Cluster
from kafkascope.codec.frame import DecodedFrame
from tests.client.servers import ranges
from tests.client.stage import NO_ANSWER as SILENCE
from tests.client.stage import TOPIC_ID, Stage, play

T = TypeVar("T")
LEADERS = {0: 1, 1: 2}
# Lengths without end.
GARBAGE = b"\xff" * 200
NOT_FOUND, INVALID_GROUP_ID = 69, 24


def body(request: DecodedFrame) -> dict[str, Any]:
    assert request.body is not None
    return dict(request.body.value)


class Two:
    """Two nodes. `orders` has a partition on each, `leaders` says where; groups lie on node 1, `far` ones on node 2.
    What is in `garbage`, a node responds to with bytes that are no response."""

    def __init__(self, leaders: dict[int, int] | None = None, silent: set[tuple[int, str]] | None = None) -> None:
        self.garbage: set[tuple[int, str]] = set()
        self.leaders = LEADERS if leaders is None else leaders
        self.silent = silent or set()
        self.operations = 1 << 8
        self.listed: list[dict[str, Any]] = []
        self.committed = {0: 5, 1: 5}
        self.places: dict[int, dict[str, Any]] = {}

    def __call__(self, node: int, request: DecodedFrame) -> dict[str, Any] | bytes | None:
        assert request.api is not None
        if (node, request.api) in self.silent or (node, "*") in self.silent:
            return SILENCE
        if (node, request.api) in self.garbage or (node, "*") in self.garbage:
            return GARBAGE
        answer = getattr(self, re.sub(r"(?<!^)([A-Z])", r"_\1", request.api).lower(), None)
        return None if answer is None else answer(node, body(request), request.version)

    def metadata(self, _: int, body: dict[str, Any], __: int) -> dict[str, Any] | None:
        rows = [
            {"partitionIndex": part, "leaderId": leader, "replicaNodes": [1, 2], "isrNodes": [1, 2]}
            for part, leader in self.leaders.items()
        ]
        named = [{"name": "orders", "topicId": TOPIC_ID, "partitions": rows}]
        is_wanted = body["topics"] is None or [topic["name"] for topic in body["topics"]] == ["orders"]
        brokers = [{"nodeId": node} | place for node, place in self.places.items()]
        return {"brokers": brokers, "controllerId": 1, "clusterId": "c", "topics": named if is_wanted else []}

    def describe_topic_partitions(self, *_: Any) -> dict[str, Any]:
        return {"topics": [{"name": "orders", "errorCode": 3}]}

    def list_offsets(self, _: int, body: dict[str, Any], __: int) -> dict[str, Any]:
        topics = [
            {
                "name": topic["name"],
                "partitions": [
                    {"partitionIndex": part["partitionIndex"], "offset": 10, "leaderEpoch": 1}
                    for part in topic["partitions"]
                ],
            }
            for topic in body["topics"]
        ]
        return {"topics": topics}

    def find_coordinator(self, _: int, body: dict[str, Any], __: int) -> dict[str, Any]:
        return {
            "coordinators": [
                {"key": key, "nodeId": 2 if "far" in key else 1, **self.places[2 if "far" in key else 1]}
                for key in body["coordinatorKeys"]
            ]
        }

    def consumer_group_describe(self, _: int, body: dict[str, Any], __: int) -> dict[str, Any]:
        code = NOT_FOUND if body["groupIds"] != [""] else INVALID_GROUP_ID
        return {"groups": [{"groupId": group_id, "errorCode": code} for group_id in body["groupIds"]]}

    def describe_groups(self, _: int, body: dict[str, Any], __: int) -> dict[str, Any]:
        return {"groups": [{"groupId": group_id, "groupState": "Empty"} for group_id in body["groups"]]}

    def offset_fetch(self, _: int, body: dict[str, Any], __: int) -> dict[str, Any]:
        rows = [{"partitionIndex": part, "committedOffset": at} for part, at in self.committed.items()]
        group = body["groups"][0]["groupId"]
        return {"groups": [{"groupId": group, "topics": [{"name": "orders", "partitions": rows}]}]}

    def list_groups(self, node: int, *_: Any) -> dict[str, Any]:
        return {"groups": self.listed if node == 1 else []}

    def describe_cluster(self, *_: Any) -> dict[str, Any]:
        rows = [{"brokerId": node} | place for node, place in self.places.items()]
        return {"clusterId": "c", "controllerId": 1, "brokers": rows, "clusterAuthorizedOperations": self.operations}

    def describe_configs(self, _: int, body: dict[str, Any], __: int) -> dict[str, Any]:
        names = [{key: resource[key] for key in ("resourceType", "resourceName")} for resource in body["resources"]]
        return {"results": names}

    def api_versions(self, *_: Any) -> dict[str, Any]:
        return {"apiKeys": ranges({})}


def with_two(script: Two, ask: Callable[[Cluster], Awaitable[T]], **more: Any) -> T:
    results: list[T] = []

    async def use(cluster: Cluster, stage: Stage) -> None:
        script.places.update({node: stage.place(node) for node in (1, 2)})
        results.append(await ask(cluster))

    play(script, use, nodes=2, **{"timeout": 1.0, **more})
    return results[0]
