"""Every view on a broker of 3.9: what it has is shown, what came later is named with its release."""

import pytest

from kafkascope.client.describe.apis import describe_apis, parse_client
from kafkascope.client.describe.cluster import describe_cluster
from kafkascope.client.describe.configs import describe_configs
from kafkascope.client.describe.features import describe_features
from kafkascope.client.describe.group import describe_group
from kafkascope.client.describe.groups import describe_groups
from kafkascope.client.describe.quorum import describe_quorum
from kafkascope.client.describe.share_group import describe_share_group
from kafkascope.client.describe.streams_group import describe_streams_group
from kafkascope.client.describe.topic import describe_topic
from kafkascope.client.describe.transactions import describe_transactions
from kafkascope.errors import RefusedError
from lab.cluster import Cluster
from tests.client.describe.live import call, create_topics, produce, see

GROUP, TOPIC = "old-readers", "old-orders"


@pytest.fixture(scope="module")
def where(cluster_39: Cluster) -> str:
    plain = cluster_39.bootstrap
    create_topics(plain, (TOPIC, 2, 1))
    produce(plain, TOPIC, 0, 5)
    partition = {"partitionIndex": 0, "committedOffset": 2}
    request = {"groupId": GROUP, "topics": [{"name": TOPIC, "partitions": [partition]}]}
    answer = call(plain, "OffsetCommit", request)
    assert answer.value["topics"][0]["partitions"][0]["errorCode"] == 0, answer.value
    call(plain, "InitProducerId", {"transactionalId": "old-writer", "transactionTimeoutMs": 60_000})
    return plain


def test_quorum_cluster_and_features_are_shown(where: str) -> None:
    quorum = see(where, describe_quorum)
    assert (quorum.controller_id, [voter.role for voter in quorum.voters], quorum.gaps) == (1, ["leader"], ())
    cluster = see(where, describe_cluster)
    assert (cluster.controller_id, cluster.metadata_version, cluster.gaps) == (1, "3.9-IV0", ())
    assert cluster.nodes[0].roles == ("broker", "controller") and cluster.nodes[0].fenced is None
    features = {feature.name: feature for feature in see(where, describe_features).features}
    assert features["metadata.version"].level == 21


def test_broker_looks_like_its_release(where: str) -> None:
    view = see(where, lambda cluster: describe_apis(cluster, [parse_client("java 4.3"), parse_client("java 0.10.2")]))
    assert view.nodes[0].releases == ("3.9",)
    newer, older = view.clients
    assert "ShareFetch" in {unserved.api for unserved in newer.unserved} and older.unserved == ()


def test_groups_and_their_lag_are_shown(where: str) -> None:
    groups = {listing.group_id: listing for listing in see(where, describe_groups).groups}
    assert (groups[GROUP].type, groups[GROUP].state, groups[GROUP].members) == ("classic", "Empty", 0)
    group = see(where, lambda cluster: describe_group(cluster, GROUP))
    assert [
        (partition.partition, partition.current_offset, partition.end_offset, partition.lag)
        for partition in group.partitions
    ] == [(0, 2, 5, 3)]
    with pytest.raises(RefusedError, match="GROUP_ID_NOT_FOUND"):
        see(where, lambda cluster: describe_group(cluster, "nobody"))


def test_topic_transactions_and_configs_are_shown(where: str) -> None:
    topic = see(where, lambda cluster: describe_topic(cluster, TOPIC))
    assert [(partition.leader, partition.start_offset, partition.end_offset) for partition in topic.partitions] == [
        (1, 0, 5),
        (1, 0, 0),
    ]
    assert topic.gaps == () and topic.min_in_sync_replicas == 1
    listed = see(where, describe_transactions).transactions
    assert [(transaction.transactional_id, transaction.state, transaction.overdue) for transaction in listed] == [
        ("old-writer", "Empty", False)
    ]
    (configs,) = see(where, lambda cluster: describe_configs(cluster, ()))
    assert {setting.name: setting.value for setting in configs.settings}["node.id"] == "1"


def test_share_and_streams_groups_are_named_with_the_release_that_has_them(where: str) -> None:
    with pytest.raises(RefusedError, match="don't know ShareGroupDescribe"):
        see(where, lambda cluster: describe_share_group(cluster, "g"))
    with pytest.raises(RefusedError, match=r"it came with Kafka 4\.1"):
        see(where, lambda cluster: describe_streams_group(cluster, "g"))
