"""Every API of the catalog has a place to go, and goes there by what it is about."""

from uuid import UUID

import pytest

from kafkascope.client.routing import EACH_CONTROLLER, ROUTES, target_of
from kafkascope.client.targets import AnyBroker, Controller, Coordinator, Leader, Node, Target, parse_target
from kafkascope.errors import UsageError
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.examples import example

TOPIC = UUID(int=7)


def test_every_api_of_the_catalog_is_classed() -> None:
    assert ROUTES.keys() == set(apis().values())
    assert ROUTES.keys() >= EACH_CONTROLLER


@pytest.mark.parametrize("api", ROUTES)
def test_every_request_example_of_every_version_has_a_target(api: str) -> None:
    """What the examples name, the request goes to: a field under another name would send it anywhere."""
    targets = set()
    for version in message(f"{api}Request").all_versions():
        value = example(f"{api}Request", version)
        targets.add(type(target_of(api, value)))
    if ROUTES[api].__name__ in ("_leader", "_group", "_transaction", "_share_state"):
        assert AnyBroker not in targets, api


@pytest.mark.parametrize(
    ("api", "value", "target"),
    [
        ("ListGroups", {}, AnyBroker()),
        ("Metadata", {"topics": [{"name": "orders"}]}, AnyBroker()),
        ("Produce", {"topicData": [{"name": "t", "partitionData": [{"index": 2}]}]}, Leader("t", 2)),
        ("Produce", {"topicData": [{"topicId": TOPIC, "partitionData": [{"index": 2}]}]}, Leader(TOPIC, 2)),
        ("Fetch", {"topics": [{"topic": "t", "partitions": [{"partition": 1}]}]}, Leader("t", 1)),
        ("Fetch", {"topics": [{"topicId": TOPIC, "partitions": [{"partition": 1}]}]}, Leader(TOPIC, 1)),
        ("Fetch", {"topics": [{"topic": "__cluster_metadata", "partitions": [{"partition": 0}]}]}, Controller()),
        ("Fetch", {"topics": [{"topicId": UUID(int=1), "partitions": [{"partition": 0}]}]}, Controller()),
        ("Fetch", {"topics": []}, AnyBroker()),
        ("ListOffsets", {"topics": [{"name": "t", "partitions": [{"partitionIndex": 3}]}]}, Leader("t", 3)),
        ("ListOffsets", {"topics": [{"name": "t", "partitions": [{}]}]}, Leader("t", 0)),
        ("OffsetForLeaderEpoch", {"topics": [{"topic": "t", "partitions": [{"partition": 3}]}]}, Leader("t", 3)),
        ("DescribeProducers", {"topics": [{"name": "t", "partitionIndexes": [5]}]}, Leader("t", 5)),
        ("WriteTxnMarkers", {"markers": [{"topics": [{"name": "t", "partitionIndexes": [5]}]}]}, Leader("t", 5)),
        ("ShareFetch", {"groupId": "g", "topics": [{"topicId": TOPIC, "partitions": [{"partitionIndex": 4}]}]},
         Leader(TOPIC, 4)),
        ("OffsetFetch", {"groupId": "g"}, Coordinator("group", "g")),
        ("OffsetFetch", {"groups": [{"groupId": "g"}, {"groupId": "h"}]}, Coordinator("group", "g")),
        ("OffsetFetch", {"groups": [{"groupId": ""}]}, Coordinator("group", "")),
        ("OffsetCommit", {"groupId": ""}, Coordinator("group", "")),
        ("OffsetFetch", {"groups": []}, AnyBroker()),
        ("DescribeGroups", {"groups": ["g"]}, Coordinator("group", "g")),
        ("DescribeGroups", {"groups": [""]}, Coordinator("group", "")),
        # no request at all: whoever encodes it says so, by its own name
        ("DescribeGroups", {"groups": [1]}, AnyBroker()),
        ("DescribeTransactions", {"transactionalIds": [1]}, AnyBroker()),
        ("DeleteGroups", {"groupsNames": ["g"]}, Coordinator("group", "g")),
        ("ShareGroupDescribe", {"groupIds": ["g"]}, Coordinator("group", "g")),
        ("DescribeShareGroupOffsets", {"groups": [{"groupId": "g"}]}, Coordinator("group", "g")),
        ("TxnOffsetCommit", {"transactionalId": "t", "groupId": "g"}, Coordinator("group", "g")),
        ("AddOffsetsToTxn", {"transactionalId": "t", "groupId": "g"}, Coordinator("transaction", "t")),
        ("InitProducerId", {"transactionalId": None}, AnyBroker()),
        ("InitProducerId", {"transactionalId": "t"}, Coordinator("transaction", "t")),
        ("AddPartitionsToTxn", {"v3AndBelowTransactionalId": "t"}, Coordinator("transaction", "t")),
        ("AddPartitionsToTxn", {"transactions": [{"transactionalId": "t"}]}, Coordinator("transaction", "t")),
        ("DescribeTransactions", {"transactionalIds": ["t"]}, Coordinator("transaction", "t")),
        ("ReadShareGroupState", {"groupId": "g", "topics": [{"topicId": TOPIC, "partitions": [{"partition": 1}]}]},
         Coordinator("share", "g:AAAAAAAAAAAAAAAAAAAABw:1")),
        ("DescribeConfigs", {"resources": [{"resourceType": 4, "resourceName": "3"}]}, Node(3)),
        ("DescribeConfigs", {"resources": [{"resourceType": 8, "resourceName": "3"}]}, Node(3)),
        ("DescribeConfigs", {"resources": [{"resourceType": 4, "resourceName": ""}]}, AnyBroker()),
        ("DescribeConfigs", {"resources": [{"resourceType": 2, "resourceName": "3"}]}, AnyBroker()),
        ("CreateTopics", {"topics": [{"name": "t"}]}, Controller()),
        ("Vote", {}, Controller()),
    ],
)  # fmt: skip
def test_what_a_request_is_about_decides(api: str, value: dict[str, object], target: Target) -> None:
    assert target_of(api, value) == target


def test_among_controllers_the_active_one_answers_what_a_broker_would_pass_on() -> None:
    assert target_of("DescribeQuorum", {}) == AnyBroker()
    assert target_of("DescribeQuorum", {}, controllers=True) == Controller()
    assert target_of("ApiVersions", {}, controllers=True) == AnyBroker()
    assert target_of("DescribeConfigs", {"resources": []}, controllers=True) == Controller()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("any", AnyBroker()),
        ("controller", Controller()),
        ("node:3", Node(3)),
        ("leader:orders-0", Leader("orders", 0)),
        ("leader:my-topic-12", Leader("my-topic", 12)),
        ("coordinator:my-group", Coordinator("group", "my-group")),
        ("coordinator:group:transaction:x", Coordinator("group", "transaction:x")),
        ("coordinator:transaction:t", Coordinator("transaction", "t")),
        ("coordinator:share:g:AAAAAAAAAAAAAAAAAAAABw:1", Coordinator("share", "g:AAAAAAAAAAAAAAAAAAAABw:1")),
        ("coordinator:urn:g", Coordinator("group", "urn:g")),
    ],
)
def test_a_target_is_read_as_it_is_written(text: str, target: Target) -> None:
    assert parse_target(text) == target
    assert parse_target(str(target)) == target


@pytest.mark.parametrize(
    "text", ["", "orders-0", "node:", "node:x", "node:-1", "leader:", "leader:orders", "leader:-1", "coordinator:",
             "coordinator:transaction:", "controller:1", "everyone"]
)  # fmt: skip
def test_what_is_no_target_says_what_is(text: str) -> None:
    with pytest.raises(UsageError, match="write "):
        parse_target(text)
