"""Cluster, features, topic, transactions, configs, gaps: answers in, what they say out."""

from typing import Any
from uuid import UUID

import pytest

from kafkascope.client.describe.cluster import cluster_of, operations_of
from kafkascope.client.describe.configs import Resource, configs_of, parse_resource, settings_of
from kafkascope.client.describe.features import features_of
from kafkascope.client.describe.gaps import error_gap, needed_acl, not_served_gap, refused_error
from kafkascope.client.describe.offsets import Offset, offsets_of
from kafkascope.client.describe.topic import topic_of
from kafkascope.client.describe.transactions import CLEANUP_MS, parse_states, transaction_of
from kafkascope.client.describe.values import NodeAddress, Setting, kafka_uuid
from kafkascope.errors import UsageError
from tests.client.describe.recorded import answers

NODE, OTHER = NodeAddress(1, "127.0.0.1:9092"), NodeAddress(2, "127.0.0.1:9093")


def partition(number: int, leader: int, replicas: list[int], in_sync: list[int]) -> dict[str, Any]:
    return {
        "partitionIndex": number,
        "leaderId": leader,
        "leaderEpoch": 4,
        "replicaNodes": replicas,
        "isrNodes": in_sync,
        "offlineReplicas": [],
    }


TOPIC = {
    "errorCode": 0,
    "name": "orders",
    "topicId": UUID("00112233-4455-6677-8899-aabbccddeeff"),
    "isInternal": False,
    "partitions": [partition(1, -1, [1, 2, 3], [2]), partition(0, 1, [1, 2, 3], [3, 1, 2])],
    "topicAuthorizedOperations": 1 << 3 | 1 << 8,
}


def test_topic_names_partitions_that_are_not_in_order() -> None:
    settings = (Setting("min.insync.replicas", "2", "topic"), Setting("retention.ms", "604800000", "default"))
    moves = {0: ((4,), (1,))}
    view = topic_of(TOPIC, {("orders", 0): Offset(5, 4)}, {("orders", 0): Offset(9, 4)}, moves, settings)
    assert [listed.partition for listed in view.partitions] == [0, 1]
    assert (view.without_leader, view.under_replicated, view.below_min_in_sync) == ((1,), (1,), (1,))
    first, second = view.partitions
    assert (first.start_offset, first.end_offset, first.adding, first.removing) == (5, 9, (4,), (1,))
    assert (second.leader, second.end_offset, second.eligible) == (None, None, None)
    assert [setting.name for setting in view.settings] == ["min.insync.replicas"]
    assert view.operations == ("Read", "Describe")
    assert view.topic_id == kafka_uuid(UUID("00112233-4455-6677-8899-aabbccddeeff"))


def test_nothing_is_below_a_minimum_that_is_not_known() -> None:
    assert topic_of(TOPIC, {}, {}, {}, ()).below_min_in_sync == ()


def test_cluster_counts_partitions_and_names_the_sick_ones() -> None:
    metadata = {"clusterId": "abc", "topics": [TOPIC], "brokers": []}
    described = {
        "clusterId": "abc",
        "brokers": [{"brokerId": 1, "host": "h", "port": 9092, "rack": None, "isFenced": True}],
        "clusterAuthorizedOperations": -(2**31),
    }
    view = cluster_of(described, metadata, None, None)
    assert (view.topics, view.partitions) == (1, 2)
    assert (view.without_leader, view.under_replicated) == (("orders-1",), ("orders-1",))
    assert [(node.node_id, node.address, node.fenced) for node in view.nodes] == [(1, "h:9092", True)]
    # the controller that Metadata names is none: who leads the quorum is not known here
    assert (view.controller_id, view.operations) == (None, ())


def test_controllers_tell_themselves_and_no_topics() -> None:
    row = {"brokerId": 7, "host": "h", "port": 9093, "rack": None}
    described = {"clusterId": "abc", "brokers": [row], "clusterAuthorizedOperations": 0}
    view = cluster_of(described, None, None, None)
    assert [(node.node_id, node.roles) for node in view.nodes] == [(7, ("controller",))]
    assert (view.topics, view.partitions) == (None, None)


def test_state_that_no_transaction_has_is_refused() -> None:
    assert parse_states(["ongoing", "CompleteCommit"]) == ["Ongoing", "CompleteCommit"]
    with pytest.raises(UsageError, match="the states are Empty, Ongoing"):
        parse_states(["Open"])


def test_operations_are_named_by_kafkas_words() -> None:
    assert operations_of(1 << 4 | 1 << 11) == ("Write", "AlterConfigs")


def features(epoch: int, level: int, most: int) -> dict[str, Any]:
    return {
        "finalizedFeaturesEpoch": epoch,
        "finalizedFeatures": [{"name": "metadata.version", "maxVersionLevel": level, "minVersionLevel": level}],
        "supportedFeatures": [
            {"name": "metadata.version", "minVersion": 7, "maxVersion": most},
            {"name": "share.version", "minVersion": 0, "maxVersion": 1},
        ],
    }


def test_features_are_those_of_the_latest_epoch_and_possible_on_every_node() -> None:
    view = features_of({NODE: features(5, 29, 30), OTHER: features(4, 27, 29)})
    level, share = view.features
    assert (view.epoch, level.level, level.release, level.highest) == (5, 29, "4.2-IV1", 29)
    assert (share.name, share.level, share.highest) == ("share.version", None, 1)
    assert [supported.max_level for supported in level.supported] == [30, 29]


def test_brokers_that_tell_no_features_have_none() -> None:
    view = features_of({NODE: {"apiKeys": []}})
    assert (view.epoch, view.features) == (None, ())


def test_recorded_broker_tells_its_metadata_version() -> None:
    value = max(answers("clients", 1, "ApiVersions"), key=lambda response: len(response))
    assert features_of({NODE: value}).features[0].release == "4.3-IV0"


LISTED = {"transactionalId": "t", "producerId": 7, "transactionState": "Ongoing"}


def transaction(state: str, started: int) -> dict[str, Any]:
    return {
        "transactionState": state,
        "transactionTimeoutMs": 60_000,
        "transactionStartTimeMs": started,
        "producerEpoch": 3,
        "topics": [{"topic": "orders", "partitions": [1, 0]}],
    }


def test_transaction_is_overdue_beyond_its_timeout_and_the_coordinators_next_look() -> None:
    now = 1_000_000
    assert not transaction_of(LISTED, transaction("Ongoing", now - 60_001), NODE, now).overdue
    late = transaction_of(LISTED, transaction("Ongoing", now - 60_001 - CLEANUP_MS), NODE, now)
    assert late.overdue and late.age_ms == 60_001 + CLEANUP_MS
    assert late.partitions[0].partitions == (0, 1)


def test_transaction_that_is_over_has_no_age() -> None:
    done = transaction_of(LISTED, transaction("CompleteCommit", 5), NODE, 1_000_000)
    assert (done.age_ms, done.overdue) == (None, False)


def test_transaction_that_may_not_be_described_is_as_it_was_listed() -> None:
    seen = transaction_of(LISTED, None, NODE, 5)
    assert (seen.state, seen.timeout_ms, seen.producer_epoch) == ("Ongoing", None, None)


def test_recorded_configs_have_values_and_sources() -> None:
    value = answers("clients", 1, "DescribeConfigs")[0]
    view = configs_of(value, Resource("topic", value["results"][0]["resourceName"]))
    assert len(view.settings) > 20 and {setting.source for setting in view.settings} <= {
        "topic",
        "all brokers, dynamic",
        "server.properties",
        "default",
    }


def test_sensitive_values_stay_hidden() -> None:
    row = {"name": "ssl.key.password", "value": "hunter2", "readOnly": False, "configSource": 4, "isSensitive": True}
    (setting,) = settings_of([row])
    assert setting.value is None and setting.sensitive and "hunter2" not in repr(setting)


def test_configs_that_may_not_be_seen_name_their_acl() -> None:
    for code, kind, name, acl in (
        (29, "topic", "orders", "DescribeConfigs on Topic orders"),
        (31, "broker", "1", "DescribeConfigs on Cluster"),
        (30, "group", "g", "DescribeConfigs on Group g"),
    ):
        value: dict[str, Any] = {"results": [{"errorCode": code, "errorMessage": None, "configs": []}]}
        assert configs_of(value, Resource(kind, name)).gaps[0].needs == acl


@pytest.mark.parametrize("text", ["orders", "topic:", "table:x", "broker:one", "broker:²"])
def test_what_is_no_resource_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_resource(text)


def test_resources_are_named_by_kind() -> None:
    assert parse_resource("topic:a:b") == Resource("topic", "a:b")
    assert parse_resource("broker:") == Resource("broker", "")


def test_acl_comes_from_the_catalog() -> None:
    assert needed_acl("DescribeQuorum", 31, None) == "Describe on Cluster"
    assert needed_acl("ListOffsets", 29, "orders") == "Describe on Topic orders"
    assert needed_acl("DescribeProducers", 29, "orders") == "Read on Topic orders"
    assert needed_acl("DescribeTransactions", 53, "t") == "Describe on TransactionalId t"
    # one API, an operation for each kind of resource
    assert needed_acl("FindCoordinator", 30, "g") == "Describe on Group g"
    assert needed_acl("FindCoordinator", 31, None) == "ClusterAction on Cluster"
    assert needed_acl("DescribeQuorum", 6, None) is None


def test_refusal_says_api_address_error_and_acl_in_one_line() -> None:
    message = refused_error(error_gap("the quorum", "DescribeQuorum", 31), "127.0.0.1:9092")
    assert str(message) == (
        "DescribeQuorum at 127.0.0.1:9092: CLUSTER_AUTHORIZATION_FAILED (31); it needs Describe on Cluster"
    )
    assert (message.code, message.exit_code) == (31, 1)
    assert str(refused_error(not_served_gap("x", "ShareFetch", "too old"))) == "ShareFetch: NOT_SERVED; too old"


def test_offsets_with_an_error_are_gaps() -> None:
    rows = [
        {"partitionIndex": 0, "errorCode": 0, "offset": 5, "leaderEpoch": -1},
        {"partitionIndex": 1, "errorCode": 29, "offset": -1},
    ]
    offsets, gaps = offsets_of({"topics": [{"name": "orders", "partitions": rows}]})
    assert offsets == {("orders", 0): Offset(5, None)}
    assert [gap.needs for gap in gaps] == ["Describe on Topic orders"]
