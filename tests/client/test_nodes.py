"""Nodes that break off, hang, move, are old or are controllers, on servers that follow a script."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from kafkascope.client import Address, Cluster, Controller, Coordinator, Leader, Node, Sasl, Secret, Settings, connect
from kafkascope.client.targets import AnyBroker
from kafkascope.codec.frame import DecodedFrame
from kafkascope.errors import NotFoundError, ReachError, RefusedError, UsageError
from tests.client.leftovers import run
from tests.client.servers import BROKER, serving, silence
from tests.client.stage import NO_ANSWER, OFFSET_FETCH, TOPIC_ID, Stage, handler_of, nothing_special, play


def test_a_read_whose_connection_broke_is_asked_again() -> None:
    lost = [True]

    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api == "ListGroups" and lost:
            lost.clear()
            raise ConnectionError
        return None

    async def use(cluster: Cluster, stage: Stage) -> None:
        await cluster.call("ListGroups")
        assert (stage.times("ListGroups"), stage.connections[1]) == ([1, 1], 2)

    play(script, use, nodes=1)


def test_a_change_whose_answer_was_lost_is_not_sent_again() -> None:
    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api == "CreateTopics":
            raise ConnectionError
        return None

    async def use(cluster: Cluster, stage: Stage) -> None:
        with pytest.raises(ReachError, match="the request may have been carried out"):
            await cluster.call("CreateTopics", {"topics": [{"name": "t"}]})
        assert stage.times("CreateTopics") == [1]

    play(script, use, nodes=1)


def test_a_change_whose_way_was_lost_is_sent_when_it_is_found() -> None:
    """It had not gone out yet."""
    lost = [True]

    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api == "Metadata" and lost:
            lost.clear()
            raise ConnectionError
        return None

    async def use(cluster: Cluster, stage: Stage) -> None:
        await cluster.call("CreateTopics", {"topics": [{"name": "t"}]})
        assert stage.times("CreateTopics") == [1]

    play(script, use, nodes=1)


def test_another_node_answers_for_one_that_hangs() -> None:
    def script(node: int, _: DecodedFrame) -> Mapping[str, Any] | None:
        return NO_ANSWER if node == 1 else None

    async def use(cluster: Cluster, stage: Stage) -> None:
        answer = await cluster.call("ListGroups", timeout=1.0)
        assert answer.address == stage.addresses[2]

    play(script, use, nodes=2, bootstrap=[1, 2])


def test_a_first_address_that_hangs_leaves_time_for_the_second() -> None:
    """However short the time for a call is beside that for a connection."""

    async def work() -> None:
        stage = Stage(nothing_special)
        async with serving(silence) as frozen, serving(handler_of(stage, 1)) as address:
            stage.addresses[1] = address
            async with connect(Settings((frozen, address), timeout=1.0, connect_timeout=5.0)) as cluster:
                assert (await cluster.call("ListGroups")).address == address
            first = rf"^{frozen}: no response to ApiVersions within 0\.1 s; .* \(and 1 more addresses likewise\)$"
            with pytest.raises(ReachError, match=first):
                async with connect((frozen, Address("localhost", frozen.port)), timeout=0.2):
                    pass

    run(work())


def test_another_node_names_the_coordinator_for_one_that_hangs() -> None:
    def script(node: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        return NO_ANSWER if node == 1 and request.api == "FindCoordinator" else None

    async def use(cluster: Cluster, stage: Stage) -> None:
        answer = await cluster.call("DescribeGroups", {"groups": ["g"]}, timeout=1.0)
        assert answer.address == stage.addresses[2]

    play(script, use, nodes=2, bootstrap=[1, 2], coordinator=2)


def test_a_call_after_one_that_timed_out_gets_a_connection_of_its_own() -> None:
    hang = [True]

    def script(_: int, __: DecodedFrame) -> Mapping[str, Any] | None:
        if hang:
            hang.clear()
            return NO_ANSWER
        return None

    async def use(cluster: Cluster, stage: Stage) -> None:
        with pytest.raises(ReachError, match=rf"ListGroups v5 at {stage.addresses[1]}: no response within 0\.2 s"):
            await cluster.call("ListGroups", timeout=0.2)
        await cluster.call("ListGroups")
        assert stage.connections[1] == 2
        assert cluster._pool._retired == []  # the first one is closed, not kept

    play(script, use, nodes=1)


def test_open_connections_are_those_that_later_calls_may_go_over() -> None:
    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        return NO_ANSWER if request.api == "ListTransactions" else None

    async def use(cluster: Cluster, _: Stage) -> None:
        first = await cluster.call("ListGroups")
        own = (first.client_address, first.address, first.connected_at)
        assert cluster.open_connections() == [own]
        with pytest.raises(ReachError, match="no response within"):
            await cluster.call("ListTransactions", timeout=0.2)
        # Nothing comes over the first one any more.
        assert own not in cluster.open_connections()
        second = await cluster.call("ListGroups", apart=True)
        assert (second.client_address, second.address, second.connected_at) in cluster.open_connections()

    play(script, use, nodes=1)


def test_calls_side_by_side_share_one_connection_to_a_node() -> None:
    async def use(cluster: Cluster, stage: Stage) -> None:
        calls = [cluster.call("ListGroups", to=Node(node)) for node in (1, 2, 3) for _ in range(10)]
        answers = await asyncio.gather(*calls)
        assert [answer.node for answer in answers] == [node for node in (1, 2, 3) for _ in range(10)]
        assert stage.connections == {1: 1, 2: 1, 3: 1}

    play(nothing_special, use)


def test_resolve_says_what_to_dial_for_what_the_cluster_names() -> None:
    async def work() -> None:
        inside = Address("broker-1.kafka.internal", 9092)
        stage = Stage(nothing_special)
        async with serving(handler_of(stage, 1)) as address:
            stage.addresses[1] = address
            stage.advertised[1] = inside
            async with connect(Settings((address,), resolve=((inside, address),))) as cluster:
                answer = await cluster.call("ListGroups", to=Node(1))
                assert (answer.node, answer.address) == (1, inside)
            async with connect(Settings((address,), timeout=1.0, connect_timeout=0.5)) as cluster:
                with pytest.raises(
                    ReachError, match=r"ListGroups: node 1 at broker-1\.kafka\.internal:9092: .*--resolve"
                ):
                    await cluster.call("ListGroups", to=Node(1))

    run(work())


def test_a_node_that_comes_back_at_another_address_is_found_there() -> None:
    async def use(cluster: Cluster, stage: Stage) -> None:
        stage.advertised[2] = Address("127.0.0.1", 1)
        moving = asyncio.get_running_loop().call_later(0.15, stage.advertised.clear)
        answer = await cluster.call("ListGroups", to=Node(2))
        moving.cancel()
        assert answer.address == stage.addresses[2]

    play(nothing_special, use)


def test_a_node_that_nobody_knows_is_told_with_those_that_are() -> None:
    async def use(cluster: Cluster, _: Stage) -> None:
        with pytest.raises(NotFoundError, match="this cluster has no node 9; its nodes are 1, 2, 3"):
            await cluster.call("ListGroups", to=Node(9))

    play(nothing_special, use)


def test_a_topic_that_is_not_there_is_refused_after_the_news_had_time_to_travel() -> None:
    async def use(cluster: Cluster, stage: Stage) -> None:
        with pytest.raises(RefusedError, match=r"topic nowhere: UNKNOWN_TOPIC_OR_PARTITION \(3\)"):
            await cluster.call("ListOffsets", {}, to=Leader("nowhere", 0))
        with pytest.raises(RefusedError, match="topic orders has 1 partitions, but no partition 5"):
            await cluster.call("ListOffsets", {}, to=Leader("orders", 5))
        assert len(stage.times("Metadata")) > 3

    play(nothing_special, use, nodes=1)


def test_topic_names_and_ids_are_looked_up_once() -> None:
    async def use(cluster: Cluster, stage: Stage) -> None:
        assert await cluster.topic_id("orders") == TOPIC_ID
        assert await cluster.topic_name(TOPIC_ID) == "orders"
        assert len(stage.times("Metadata")) == 1

    play(nothing_special, use, nodes=1)


def test_a_version_that_the_broker_lacks_says_what_it_has() -> None:
    async def use(cluster: Cluster, stage: Stage) -> None:
        with pytest.raises(UsageError, match=rf"ListGroups v5: {stage.addresses[1]} serves 1-3; give one of 1-3"):
            await cluster.call("ListGroups", version=5)
        with pytest.raises(NotFoundError, match=r"DescribeQuorum \(55\): .* doesn't serve it"):
            await cluster.call("DescribeQuorum")
        with pytest.raises(UsageError, match=r"Heartbeat: .* serves 90-91, this catalog knows 0-4"):
            await cluster.call("Heartbeat", to=AnyBroker())
        with pytest.raises(NotFoundError, match="unknown API ListGroup; did you mean ListGroups"):
            await cluster.call("ListGroup")
        assert (await cluster.call("listgroups")).api_version == 3
        assert stage.times("ListGroups") == [1]

    served = {3: (0, 12), 12: (90, 91), 16: (1, 3), 18: (0, 3)}
    play(nothing_special, use, nodes=1, versions=served)


def test_the_oldest_brokers_are_spoken_to_in_their_versions() -> None:
    async def use(cluster: Cluster, _: Stage) -> None:
        assert [broker.node_id for broker in await cluster.brokers()] == [1, 2]
        assert await cluster.controller() is None
        answer = await cluster.call("Heartbeat", {"groupId": "g"})
        assert (answer.node, answer.api_version) == (2, 0)
        assert (await cluster.call("ListOffsets", {}, to=Leader("orders", 0))).node == 2
        with pytest.raises(NotFoundError, match="has no transaction coordinators"):
            await cluster.call("Heartbeat", {"groupId": "g"}, to=Coordinator("transaction", "t"))
        with pytest.raises(NotFoundError, match="topic orders has no id"):
            await cluster.topic_id("orders")

    served = dict.fromkeys((0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18), (0, 0))
    play(nothing_special, use, nodes=2, versions=served, coordinator=2, leader=2)


def test_every_answer_is_seen_those_that_routing_asks_for_too() -> None:
    seen: list[str] = []

    async def use(cluster: Cluster, _: Stage) -> None:
        cluster.every_answer = lambda answer: seen.append(answer.api)
        await cluster.call("OffsetFetch", OFFSET_FETCH)
        await cluster.call("SaslHandshake", {"mechanism": "PLAIN"})  # what a login says is for nobody else

    play(nothing_special, use, coordinator=2)
    assert sorted(seen) == ["ApiVersions", "FindCoordinator", "Metadata", "OffsetFetch"]


def test_raw_bytes_go_out_and_come_back_as_they_are() -> None:
    async def use(cluster: Cluster, _: Stage) -> None:
        request = bytes.fromhex("0010 0000 00001234 ffff")  # ListGroups v0, correlation id 4660, no client id
        assert await cluster.send_bytes(request) == bytes.fromhex("00001234 0000 00000000")

    play(nothing_special, use, nodes=1)


CONTROLLER_VERSIONS = {key: BROKER[key] for key in (18, 55, 60)}


def _as_controllers(node: int, request: DecodedFrame, stage: Stage) -> Mapping[str, Any] | None:
    if request.api == "DescribeCluster":
        assert request.body is not None
        assert request.body.value["endpointType"] == 2
        rows = [{"brokerId": number} | stage.place(number) for number in stage.addresses]
        return {"endpointType": 2, "controllerId": stage.controller, "brokers": rows, "clusterId": "c"}
    assert request.api == "DescribeQuorum"
    code = 0 if node == stage.controller else 6
    partition = {"partitionIndex": 0, "errorCode": code, "leaderId": stage.controller, "currentVoters": []}
    return {"topics": [{"topicName": "__cluster_metadata", "partitions": [partition]}]}


@pytest.mark.parametrize("is_known", [True, False])
def test_among_controllers_the_active_one_is_found(is_known: bool) -> None:
    stages: list[Stage] = []

    async def use(cluster: Cluster, stage: Stage) -> None:
        stages.append(stage)
        assert cluster.controllers
        answer = await cluster.call("DescribeQuorum")
        assert answer.node == 3
        assert [broker.node_id for broker in await cluster.brokers()] == [1, 2, 3]
        with pytest.raises(UsageError, match="only brokers know"):
            await cluster.call("DescribeQuorum", to=Leader("orders", 0))

    def script(node: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        return _as_controllers(node, request, stages[0])

    play(script, use, controller=3, versions=CONTROLLER_VERSIONS, controllers=is_known)


def test_a_controller_that_lost_its_place_is_followed() -> None:
    stages: list[Stage] = []

    async def use(cluster: Cluster, stage: Stage) -> None:
        stages.append(stage)
        await cluster.call("DescribeQuorum")
        stage.controller = 2
        assert (await cluster.call("DescribeQuorum", to=Controller())).node == 2

    def script(node: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        return _as_controllers(node, request, stages[0])

    stage = play(script, use, controller=3, versions=CONTROLLER_VERSIONS)
    assert stage.times("DescribeQuorum") == [3, 3, 2]


def test_a_broker_given_as_a_controller_is_told() -> None:
    async def use(_: Cluster, __: Stage) -> None:
        raise AssertionError("not reached")

    with pytest.raises(UsageError, match="is a broker; leave out --bootstrap-controller"):
        play(nothing_special, use, nodes=1, controllers=True)


def test_a_session_that_nears_its_end_is_renewed_on_the_same_connection() -> None:
    """KIP-368. Calls that come meanwhile wait for the login."""

    def script(_: int, request: DecodedFrame) -> Mapping[str, Any] | None:
        if request.api == "SaslHandshake":
            return {"mechanisms": ["PLAIN"]}
        return {"sessionLifetimeMs": 3_600_000} if request.api == "SaslAuthenticate" else None

    async def use(cluster: Cluster, stage: Stage) -> None:
        await cluster.call("ListGroups")
        connection = cluster._pool._connections[stage.addresses[1], False]
        assert connection.log_in_at is not None and connection.log_in_by is not None
        connection.log_in_at = 0
        await asyncio.gather(*(cluster.call("ListGroups") for _ in range(5)))
        assert [api for _, api in stage.asked[-7:-5]] == ["SaslHandshake", "SaslAuthenticate"]
        assert (len(stage.times("SaslAuthenticate")), stage.connections[1]) == (2, 1)
        connection.log_in_by = 0
        await cluster.call("ListGroups")
        assert (len(stage.times("SaslAuthenticate")), stage.connections[1]) == (3, 2)

    sasl = Sasl("PLAIN", "alice", Secret("alice-secret"))
    play(script, use, nodes=1, sasl=sasl)
