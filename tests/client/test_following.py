"""Errors that say to ask elsewhere or later are followed, on servers that follow a script, for what a broker does only
now and then."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from kafkascope.client import Address, Answer, Cluster
from kafkascope.codec.frame import DecodedFrame
from kafkascope.errors import ReachError, RefusedError
from tests.client.stage import FETCH, OFFSET_FETCH, TOPIC_ID, Stage, offset_fetch, play


def test_not_coordinator_is_looked_up_again() -> None:
    def script(node: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api == "OffsetFetch":
            return offset_fetch(0 if node == 3 else 16)
        return None

    async def use(cluster: Cluster, stage: Stage) -> None:
        moving = asyncio.get_running_loop().call_later(0.15, setattr, stage, "coordinator", 3)
        answer = await cluster.call("OffsetFetch", OFFSET_FETCH)
        moving.cancel()
        assert (answer.node, answer.value["groups"][0]["errorCode"]) == (3, 0)
        before = len(stage.times("FindCoordinator"))
        await cluster.call("OffsetFetch", OFFSET_FETCH)
        assert len(stage.times("FindCoordinator")) == before

    stage = play(script, use, coordinator=2)
    assert stage.times("OffsetFetch")[0] == 2
    assert set(stage.times("OffsetFetch")) == {2, 3}


def test_a_coordinator_that_is_loading_is_asked_again_itself() -> None:
    codes = [14, 14, 0]

    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        return offset_fetch(codes.pop(0)) if request.api == "OffsetFetch" else None

    async def use(cluster: Cluster, _: Stage) -> None:
        await cluster.call("OffsetFetch", OFFSET_FETCH)

    stage = play(script, use, coordinator=2)
    assert stage.times("OffsetFetch") == [2, 2, 2]
    assert len(stage.times("FindCoordinator")) == 1


def test_a_leader_that_was_just_elected_is_asked_again_itself() -> None:
    """It does not know its high watermark yet: OFFSET_NOT_AVAILABLE (KIP-207)."""
    codes = [78, 0]

    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api == "ListOffsets":
            row = {"partitionIndex": 0, "errorCode": codes.pop(0)}
            return {"topics": [{"name": "orders", "partitions": [row]}]}
        return None

    async def use(cluster: Cluster, _: Stage) -> None:
        request = {"topics": [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]}
        await cluster.call("ListOffsets", request)

    stage = play(script, use, leader=2)
    assert stage.times("ListOffsets") == [2, 2]
    assert len(stage.times("Metadata")) == 1


def test_a_coordinator_that_is_not_available_yet_is_waited_for() -> None:
    codes = [15, 15]

    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api == "FindCoordinator" and codes:
            row = {"key": "g", "nodeId": -1, "host": "", "port": -1, "errorCode": codes.pop()}
            return {"coordinators": [row]}
        return offset_fetch(0) if request.api == "OffsetFetch" else None

    async def use(cluster: Cluster, _: Stage) -> None:
        assert (await cluster.call("OffsetFetch", OFFSET_FETCH)).node == 2

    assert len(play(script, use, coordinator=2).times("FindCoordinator")) == 3


def test_a_coordinator_that_may_not_be_found_is_refused_at_once() -> None:
    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api == "FindCoordinator":
            return {"coordinators": [{"key": "g", "nodeId": -1, "host": "", "port": -1, "errorCode": 30}]}
        return None

    async def use(cluster: Cluster, _: Stage) -> None:
        with pytest.raises(RefusedError, match=r"group g: GROUP_AUTHORIZATION_FAILED \(30\)") as raised:
            await cluster.call("OffsetFetch", OFFSET_FETCH)
        assert raised.value.code == 30

    play(script, use)


def test_a_moved_leader_is_followed_to_where_the_answer_says() -> None:
    stages: list[Stage] = []

    def script(node: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api != "Fetch":
            return None
        if node == 3:
            return {"responses": [{"topicId": TOPIC_ID, "partitions": [{"partitionIndex": 0}]}]}
        moved = {"partitionIndex": 0, "errorCode": 6, "currentLeader": {"leaderId": 3, "leaderEpoch": 9}}
        # Metadata still has another address for it
        address = stages[0].addresses[3]
        return {
            "responses": [{"topicId": TOPIC_ID, "partitions": [moved]}],
            "nodeEndpoints": [{"nodeId": 3, "host": address.host, "port": address.port}],
        }

    async def use(cluster: Cluster, stage: Stage) -> None:
        stages.append(stage)
        stage.advertised[3] = Address("127.0.0.1", 1)
        assert (await cluster.call("Fetch", FETCH)).node == 3

    stage = play(script, use, leader=2)
    assert stage.times("Fetch") == [2, 3]
    assert len(stage.times("Metadata")) == 1


def test_a_leader_that_has_not_heard_of_its_topic_yet_is_asked_again() -> None:
    codes = [100, 100, 0]

    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api != "Fetch":
            return None
        row = {"partitionIndex": 0, "errorCode": codes.pop(0)}
        return {"responses": [{"topicId": TOPIC_ID, "partitions": [row]}]}

    async def use(cluster: Cluster, _: Stage) -> None:
        answer = await cluster.call("Fetch", FETCH)
        assert answer.value["responses"][0]["partitions"][0]["errorCode"] == 0

    assert play(script, use, leader=2).times("Fetch") == [2, 2, 2]


def test_a_leader_that_never_hears_of_its_topic_gives_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkascope.client.cluster._UNKNOWN_TO_LEADER_SECONDS", 0.3)

    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api != "Fetch":
            return None
        return {"responses": [{"topicId": TOPIC_ID, "partitions": [{"partitionIndex": 0, "errorCode": 3}]}]}

    async def use(cluster: Cluster, _: Stage) -> None:
        answer = await cluster.call("Fetch", FETCH)
        assert answer.value["responses"][0]["partitions"][0]["errorCode"] == 3

    assert len(play(script, use, leader=2).times("Fetch")) > 1


def test_two_nodes_that_each_name_the_other_are_not_asked_without_pause() -> None:
    def script(node: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api != "Fetch":
            return None
        other = {2: 3, 3: 2}[node]
        moved = {"partitionIndex": 0, "errorCode": 6, "currentLeader": {"leaderId": other, "leaderEpoch": 9}}
        return {"responses": [{"topicId": TOPIC_ID, "partitions": [moved]}]}

    async def use(cluster: Cluster, _: Stage) -> None:
        with pytest.raises(ReachError, match=r"NOT_LEADER_OR_FOLLOWER \(6\) \(tried for 0\.5 s\)"):
            await cluster.call("Fetch", FETCH, timeout=0.5)

    # pauses of 0.08 s and more leave room for these
    assert 2 <= len(play(script, use, leader=2).times("Fetch")) <= 7


def test_a_leader_that_is_not_one_is_looked_up_again() -> None:
    def script(node: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api == "ListOffsets":
            row = {"partitionIndex": 0, "errorCode": 0 if node == 3 else 6}
            return {"topics": [{"name": "orders", "partitions": [row]}]}
        return None

    async def use(cluster: Cluster, stage: Stage) -> None:
        moving = asyncio.get_running_loop().call_later(0.15, setattr, stage, "leader", 3)
        request = {"topics": [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]}
        assert (await cluster.call("ListOffsets", request)).node == 3
        moving.cancel()

    play(script, use, leader=2)


def test_a_controller_that_is_not_one_is_looked_up_again() -> None:
    def script(node: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api == "CreateTopics":
            return {"topics": [{"name": "t", "errorCode": 0 if node == 3 else 41}]}
        return None

    async def use(cluster: Cluster, stage: Stage) -> None:
        moving = asyncio.get_running_loop().call_later(0.15, setattr, stage, "controller", 3)
        assert (await cluster.call("CreateTopics", {"topics": [{"name": "t"}]})).node == 3
        moving.cancel()

    play(script, use, controller=2)


def test_without_following_the_error_is_the_answer() -> None:
    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        return offset_fetch(16) if request.api == "OffsetFetch" else None

    async def use(cluster: Cluster, stage: Stage) -> None:
        answer = await cluster.call("OffsetFetch", OFFSET_FETCH, follow=False)
        assert answer.value["groups"][0]["errorCode"] == 16
        assert len(stage.times("OffsetFetch")) == 1

    play(script, use)


def test_an_answer_that_is_whole_for_some_is_given_as_it_is() -> None:
    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api == "OffsetFetch":
            return {"groups": [*offset_fetch(0)["groups"], *offset_fetch(16, "h")["groups"]]}
        return None

    async def use(cluster: Cluster, stage: Stage) -> None:
        request = {"groups": [{"groupId": "g", "topics": None}, {"groupId": "h", "topics": None}]}
        answer = await cluster.call("OffsetFetch", request)
        assert [row["errorCode"] for row in answer.value["groups"]] == [0, 16]
        assert len(stage.times("OffsetFetch")) == 1

    play(script, use)


def test_following_ends_at_the_deadline_with_the_last_error() -> None:
    seen: list[Answer] = []

    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        return offset_fetch(16) if request.api == "OffsetFetch" else None

    async def use(cluster: Cluster, stage: Stage) -> None:
        expected = rf"OffsetFetch v10 at {stage.addresses[2]}: NOT_COORDINATOR \(16\) \(tried for 0\.5 s\)"
        with pytest.raises(ReachError, match=expected):
            await cluster.call("OffsetFetch", OFFSET_FETCH, timeout=0.5, on_answer=seen.append)
        assert len(seen) == len(stage.times("OffsetFetch")) > 1

    play(script, use, coordinator=2)
