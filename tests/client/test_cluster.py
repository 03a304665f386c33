"""The client against real brokers: it finds who to ask, in which version, and the answers are exact."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope import Record, encode_records, new_batch
from kafkascope.client import Address, Answer, Cluster, Controller, Coordinator, Leader, Node, Settings, connect
from kafkascope.client.settings import parse_addresses
from kafkascope.errors import NotFoundError, ReachError, RefusedError, UsageError
from lab.settings import CONTROLLER
from tests.client.leftovers import run

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

Use = Callable[[Cluster], Awaitable[None]]


def with_cluster(bootstrap: str, use: Use, **overrides: Any) -> None:
    async def work() -> None:
        async with connect(bootstrap, timeout=60.0, **overrides) as cluster:
            await use(cluster)

    run(work())


def controllers_of(lab: "Lab") -> str:
    return ",".join(
        node.place.address(CONTROLLER[0]) for node in lab.nodes.values() if "controller" in node.place.roles
    )


def new_name(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:8]}"


async def create_topic(cluster: Cluster, partitions: int = 1, replicas: int = 1) -> str:
    name = new_name("topic")
    request = {"name": name, "numPartitions": partitions, "replicationFactor": replicas}
    answer = await cluster.call("CreateTopics", {"topics": [request], "timeoutMs": 30_000})
    assert answer.value["topics"][0]["errorCode"] == 0, answer.value
    return name


def records(*values: bytes) -> bytes:
    return encode_records(
        [new_batch([Record(offset, 1_700_000_000_000, None, value) for offset, value in enumerate(values)])]
    )


async def produce(cluster: Cluster, topic: str, partition: int, *values: bytes, acks: int = -1) -> Answer:
    data = {"index": partition, "records": records(*values)}
    topic_data = [{"topicId": await cluster.topic_id(topic), "partitionData": [data]}]
    return await cluster.call("Produce", {"acks": acks, "timeoutMs": 30_000, "topicData": topic_data})


async def end_offset(cluster: Cluster, topic: str, partition: int) -> int:
    request = {"name": topic, "partitions": [{"partitionIndex": partition, "timestamp": -1}]}
    answer = await cluster.call("ListOffsets", {"replicaId": -1, "topics": [request]})
    partition_offsets: dict[str, int] = answer.value["topics"][0]["partitions"][0]
    assert partition_offsets["errorCode"] == 0
    return partition_offsets["offset"]


def test_a_call_gives_the_answer_with_where_when_and_its_bytes(cluster: "Lab") -> None:
    (address,) = parse_addresses(cluster.bootstrap)

    async def use(client: Cluster) -> None:
        answer = await client.call("DescribeCluster")
        assert (answer.api, answer.api_version, answer.address) == ("DescribeCluster", 2, address)
        assert [broker["brokerId"] for broker in answer.value["brokers"]] == [1]
        assert (answer.exact, answer.reasons) == (True, ())
        assert answer.sent_at <= answer.received_at
        assert answer.request_bytes[:4] == bytes.fromhex("003c 0002")
        assert answer.response_bytes[:4] == answer.correlation_id.to_bytes(4, "big")
        assert (await client.call("DescribeCluster", to=Node(1))).node == 1

    with_cluster(cluster.bootstrap, use)


def test_the_cluster_tells_its_brokers_versions_and_controller(quorum_cluster: "Lab") -> None:
    async def use(client: Cluster) -> None:
        brokers = await client.brokers()
        assert [str(broker.address) for broker in brokers] == quorum_cluster.bootstrap.split(",")
        assert [broker.node_id for broker in brokers] == [1, 2, 3, 4]
        assert await client.controller() in (1, 2, 3, 4)
        assert await client.cluster_id()
        for node in (None, 1, 4):
            versions = await client.versions(node)
            assert versions[55] == (0, 2)
            assert versions[0] == (3, 13)
            assert 52 not in versions  # Vote is spoken among controllers

    with_cluster(quorum_cluster.bootstrap, use)


def test_what_is_produced_can_be_fetched_from_every_leader(quorum_cluster: "Lab") -> None:
    async def use(client: Cluster) -> None:
        topic = await create_topic(client, partitions=6)
        topic_id = await client.topic_id(topic)
        assert await client.topic_name(topic_id) == topic
        leaders = set()
        for partition in range(6):
            answer = await produce(client, topic, partition, b"a", b"b")
            assert answer.value["responses"][0]["partitionResponses"][0]["errorCode"] == 0
            leaders.add(answer.node)
            assert await end_offset(client, topic, partition) == 2
            row = {"partition": partition, "fetchOffset": 0, "partitionMaxBytes": 1_000_000}
            request = {"maxWaitMs": 1_000, "minBytes": 1, "topics": [{"topicId": topic_id, "partitions": [row]}]}
            fetched = await client.call("Fetch", request)
            assert fetched.node == answer.node
            assert fetched.value["responses"][0]["partitions"][0]["highWatermark"] == 2
            assert fetched.exact
        assert len(leaders) > 1

    with_cluster(quorum_cluster.bootstrap, use)


def test_produce_with_acks_0_arrives_though_nobody_answers(cluster: "Lab") -> None:
    async def use(client: Cluster) -> None:
        topic = await create_topic(client)
        # a leader that has not heard of the topic drops what wants no answer: this one waits for it
        await produce(client, topic, 0, b"first")
        answer = await produce(client, topic, 0, b"a", b"b", b"c", acks=0)
        assert answer.value == {}
        # on the same connection, so behind it
        assert await end_offset(client, topic, 0) == 4

    with_cluster(cluster.bootstrap, use)


def test_each_kind_of_coordinator_is_found(quorum_cluster: "Lab") -> None:
    """On a cluster that has had no groups yet, their topics are made meanwhile, and COORDINATOR_NOT_AVAILABLE is waited
    out."""

    async def use(client: Cluster) -> None:
        topic_id = await client.topic_id(await create_topic(client))
        group, transaction = new_name("group"), new_name("transaction")
        answer = await client.call("OffsetFetch", {"groups": [{"groupId": group, "topics": None}]})
        assert answer.value["groups"][0]["errorCode"] == 0
        answer = await client.call("DescribeTransactions", {"transactionalIds": [transaction]})
        assert answer.value["transactionStates"][0]["errorCode"] == 105  # TRANSACTIONAL_ID_NOT_FOUND
        request = {"groupId": group, "topics": [{"topicId": topic_id, "partitions": [{"partition": 0}]}]}
        answer = await client.call("ReadShareGroupStateSummary", request)
        assert answer.value["results"][0]["topicId"] == topic_id
        assert answer.value["results"][0]["partitions"][0]["errorCode"] == 0
        for number in range(12):
            answer = await client.call("ListGroups", to=Coordinator("group", f"{group}-{number}"))
            assert answer.node is not None

    with_cluster(quorum_cluster.bootstrap, use)


def test_an_older_broker_is_spoken_to_in_its_versions(cluster_39: "Lab") -> None:
    async def use(client: Cluster) -> None:
        versions = await client.versions()
        assert versions[0] == (0, 11)
        assert 77 not in versions
        topic = await create_topic(client)
        request = {"name": topic, "partitionData": [{"index": 0, "records": records(b"a")}]}
        answer = await client.call("Produce", {"acks": -1, "timeoutMs": 30_000, "topicData": [request]})
        assert (answer.api_version, answer.value["responses"][0]["partitionResponses"][0]["errorCode"]) == (11, 0)
        assert await end_offset(client, topic, 0) == 1
        answer = await client.call("OffsetFetch", {"groups": [{"groupId": new_name("group"), "topics": None}]})
        assert (answer.api_version, answer.value["groups"][0]["errorCode"]) == (9, 0)
        assert await client.topic_name(await client.topic_id(topic)) == topic
        with pytest.raises(NotFoundError, match=r"ShareGroupDescribe \(77\): .* doesn't serve it"):
            await client.call("ShareGroupDescribe", {"groupIds": []})

    with_cluster(cluster_39.bootstrap, use)


QUORUM = {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}


def test_a_broker_passes_on_what_only_the_active_controller_knows(quorum_cluster: "Lab") -> None:
    async def use(client: Cluster) -> None:
        for node in (1, 2, 3, 4):
            answer = await client.call("DescribeQuorum", QUORUM, to=Node(node))
            assert answer.value["topics"][0]["partitions"][0]["leaderId"] == quorum_cluster.leader()

    with_cluster(quorum_cluster.bootstrap, use)


@pytest.mark.parametrize("tells", [True, False])
def test_by_the_controllers_the_active_one_is_found(quorum_cluster: "Lab", tells: bool) -> None:
    async def use(client: Cluster) -> None:
        assert client.controllers
        leader = quorum_cluster.leader()
        answer = await client.call("DescribeQuorum", QUORUM)
        assert (answer.node, answer.value["topics"][0]["partitions"][0]["leaderId"]) == (leader, leader)
        assert await client.controller() == leader
        assert [str(broker.address) for broker in await client.brokers()] == controllers_of(quorum_cluster).split(",")
        answer = await client.call("DescribeQuorum", QUORUM, to=Controller())
        assert answer.node == leader
        other = next(node for node in (1, 2, 3) if node != leader)
        answer = await client.call("DescribeQuorum", QUORUM, to=Node(other))
        assert answer.value["topics"][0]["partitions"][0]["errorCode"] == 6  # the answer of the node that was asked for
        with pytest.raises(UsageError, match="only brokers know"):
            await client.call("OffsetFetch", {"groups": [{"groupId": "g"}]})

    with_cluster(controllers_of(quorum_cluster), use, controllers=tells)


def test_a_brokers_address_is_not_taken_for_a_controllers(cluster: "Lab") -> None:
    async def use(_: Cluster) -> None:
        raise AssertionError("not reached")

    with pytest.raises(UsageError, match="is a broker"):
        with_cluster(cluster.bootstrap, use, controllers=True)


def test_hundreds_of_calls_side_by_side_get_their_own_answers(quorum_cluster: "Lab") -> None:
    async def use(client: Cluster) -> None:
        names = [await create_topic(client) for _ in range(5)]
        expected = [names[number % 5] for number in range(300)]
        answers = await asyncio.gather(*(client.call("Metadata", {"topics": [{"name": name}]}) for name in expected))
        assert [answer.value["topics"][0]["name"] for answer in answers] == expected
        assert all(answer.exact for answer in answers)

    with_cluster(quorum_cluster.bootstrap, use)


def test_calls_given_up_in_the_middle_leave_the_cluster_usable(cluster: "Lab") -> None:
    async def use(client: Cluster) -> None:
        topic = await create_topic(client)
        row = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1}
        request = {"maxWaitMs": 20_000, "minBytes": 1,
                 "topics": [{"topicId": await client.topic_id(topic), "partitions": [row]}]}  # fmt: skip
        for _ in range(5):
            waiting = [asyncio.create_task(client.call("Fetch", request)) for _ in range(3)]
            await asyncio.sleep(0)
            for task in waiting:
                task.cancel()
            ends = await asyncio.gather(*waiting, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ends)
            # a long poll would hold this one up on the same connection
            assert (await client.call("ListGroups", timeout=15.0)).exact

    with_cluster(cluster.bootstrap, use)


def test_a_long_poll_beyond_its_deadline_says_what_it_waited_for(cluster: "Lab") -> None:
    async def use(client: Cluster) -> None:
        topic = await create_topic(client)
        row = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1}
        request = {"maxWaitMs": 60_000, "minBytes": 1,
                 "topics": [{"topicId": await client.topic_id(topic), "partitions": [row]}]}  # fmt: skip
        # A new partition has no leader for a moment.
        await client.call("Fetch", request | {"maxWaitMs": 0})
        with pytest.raises(ReachError, match=rf"Fetch v18 at {cluster.bootstrap}: no response within 0\.3 s"):
            await client.call("Fetch", request, timeout=0.3)

    with_cluster(cluster.bootstrap, use)


def test_what_is_not_there_is_told_at_once(cluster: "Lab") -> None:
    async def use(client: Cluster) -> None:
        with pytest.raises(NotFoundError, match="this cluster has no node 7; its nodes are 1"):
            await client.call("ListGroups", to=Node(7))
        with pytest.raises(RefusedError, match=r"topic nowhere: UNKNOWN_TOPIC_OR_PARTITION"):
            await client.call("ListOffsets", {}, to=Leader("nowhere", 0))
        with pytest.raises(RefusedError, match=r"UNKNOWN_TOPIC_ID"):
            await client.topic_name(uuid.uuid4())
        with pytest.raises(UsageError, match=r"Produce v2: .* serves 3-13; give one of 3-13"):
            await client.call("Produce", {}, version=2, to=Node(1))
        with pytest.raises(NotFoundError, match=r"Vote \(52\): .* doesn't serve it"):
            await client.call("Vote")

    with_cluster(cluster.bootstrap, use)


def test_what_a_broker_hangs_up_on_is_told(cluster: "Lab") -> None:
    """It closes the connection on a request that it cannot read."""

    async def use(client: Cluster) -> None:
        with pytest.raises(ReachError, match="closed the connection"):
            await client.send_bytes(bytes.fromhex("7fff 0000 00000001 ffff"))
        assert (await client.call("ListGroups")).exact

    with_cluster(cluster.bootstrap, use)


def test_the_next_address_is_taken_when_one_is_dead(cluster: "Lab") -> None:
    async def use(client: Cluster) -> None:
        assert (await client.call("ListGroups")).exact

    with_cluster(f"127.0.0.1:1,{cluster.bootstrap}", use)


def test_a_tunnel_is_followed_by_resolve(cluster: "Lab") -> None:
    """The broker is known by the name that only its own network has."""
    (address,) = parse_addresses(cluster.bootstrap)
    named = Address("broker.invalid", 9092)

    async def use(client: Cluster) -> None:
        answer = await client.call("ListGroups")
        assert answer.address == named

    settings = Settings((named,), resolve=((named, address),))

    async def work() -> None:
        async with connect(settings) as client:
            await use(client)

    run(work())


def test_without_tls_or_login_the_listener_is_named(secured_cluster: "Lab") -> None:
    async def use(client: Cluster) -> None:
        await client.call("ListGroups")

    with pytest.raises(ReachError, match=r"TLS.*--tls"):
        with_cluster(secured_cluster.tls_bootstrap, use)
    with pytest.raises(ReachError, match=r"SASL.*--sasl-mechanism"):
        with_cluster(secured_cluster.sasl_bootstrap, use)
