"""With half the rights each view shows what it may, and names the ACL for the rest."""

import pytest

from kafkascope.client.describe.cluster import describe_cluster
from kafkascope.client.describe.configs import Resource, describe_configs
from kafkascope.client.describe.group import describe_group
from kafkascope.client.describe.groups import describe_groups
from kafkascope.client.describe.quorum import describe_quorum
from kafkascope.client.describe.share_group import describe_share_group
from kafkascope.client.describe.topic import describe_topic
from kafkascope.client.settings import Sasl, Secret, Settings, parse_addresses
from kafkascope.errors import RefusedError
from lab.cluster import Cluster
from lab.secured import BOBS_TOPIC, SECURED_USERS
from lab.wire import until
from tests.client.describe.live import call, create_topics, see

SHARE, READERS, OTHERS = "bob-share", "bob-readers", "carols-readers"


def as_user(cluster: Cluster, name: str) -> Settings:
    return Settings(
        parse_addresses(cluster.sasl_bootstrap), sasl=Sasl("PLAIN", name, Secret(SECURED_USERS[name])), timeout=20
    )


@pytest.fixture(scope="module")
def where(secured_cluster: Cluster) -> Cluster:
    """Groups of bob's and of others, on his topic and on another."""
    plain = secured_cluster.bootstrap
    create_topics(plain, (BOBS_TOPIC, 1, 1), ("secret", 1, 1))
    for group, topic in ((READERS, BOBS_TOPIC), (READERS, "secret"), (OTHERS, BOBS_TOPIC)):
        partition = {"partitionIndex": 0, "committedOffset": 0}
        request = {"groupId": group, "topics": [{"name": topic, "partitions": [partition]}]}
        answer = call(plain, "OffsetCommit", request, version=9)
        assert answer.value["topics"][0]["partitions"][0]["errorCode"] == 0, answer.value
    join(plain, SHARE, BOBS_TOPIC)
    return secured_cluster


def join(where: str, group: str, topic: str) -> None:
    """A member that says no more than this, and is gone when its session ends."""
    member = {"groupId": group, "memberId": f"member-{group}", "memberEpoch": 0, "subscribedTopicNames": [topic]}
    answer = call(where, "ShareGroupHeartbeat", member)
    assert answer.value["errorCode"] == 0, answer.value


def test_groups_lists_those_that_may_be_described_and_says_so(where: Cluster) -> None:
    bob = see(as_user(where, "bob"), describe_groups)
    assert {group.group_id for group in bob.groups} >= {READERS, SHARE} and bob.complete is False
    assert OTHERS not in {group.group_id for group in bob.groups}
    carol = see(as_user(where, "carol"), describe_groups)
    assert {group.group_id for group in carol.groups} >= {READERS, SHARE, OTHERS} and carol.complete is True
    # she may list them all, and describe none
    assert f"Describe on Group {OTHERS}" in {gap.needs for gap in carol.gaps}
    alice = see(as_user(where, "alice"), describe_groups)
    assert alice.gaps == () and {group.type for group in alice.groups} == {"classic", "share"}


def test_quorum_needs_describe_on_the_cluster(where: Cluster) -> None:
    with pytest.raises(RefusedError, match="it needs Describe on Cluster") as refused:
        see(as_user(where, "bob"), describe_quorum)
    assert refused.value.code == 31
    carol = see(as_user(where, "carol"), describe_quorum)
    assert carol.controller_id == 1 and not carol.fetch_timeout_known
    assert [gap.needs for gap in carol.gaps] == ["DescribeConfigs on Cluster"]


def test_cluster_shows_brokers_without_the_controller(where: Cluster) -> None:
    bob = see(as_user(where, "bob"), describe_cluster)
    assert [node.node_id for node in bob.nodes] == [1] and bob.controller_id is None
    assert "Describe on Cluster" in {gap.needs for gap in bob.gaps}
    # she sees the quorum without its timeouts, of which this view shows none
    carol = see(as_user(where, "carol"), describe_cluster)
    assert carol.controller_id == 1 and carol.gaps == ()
    alice = see(as_user(where, "alice"), describe_cluster)
    assert alice.controller_id == 1 and alice.gaps == ()
    assert bob.topics and alice.topics and 1 <= bob.topics < alice.topics


def test_topic_shows_partitions_without_configs_and_moves(where: Cluster) -> None:
    bob = see(as_user(where, "bob"), lambda cluster: describe_topic(cluster, BOBS_TOPIC))
    (part,) = bob.partitions
    assert (part.leader, part.start_offset, part.end_offset) == (1, 0, 0)
    assert bob.operations == ("Describe",)
    assert {gap.needs for gap in bob.gaps} == {f"DescribeConfigs on Topic {BOBS_TOPIC}", "Describe on Cluster"}
    with pytest.raises(RefusedError, match="it needs Describe on Topic secret"):
        see(as_user(where, "bob"), lambda cluster: describe_topic(cluster, "secret"))


def test_group_leaves_out_topics_that_may_not_be_seen(where: Cluster) -> None:
    bob = see(as_user(where, "bob"), lambda cluster: describe_group(cluster, READERS))
    assert [partition.topic for partition in bob.partitions] == [BOBS_TOPIC]
    with pytest.raises(RefusedError, match=f"it needs Describe on Group {OTHERS}"):
        see(as_user(where, "bob"), lambda cluster: describe_group(cluster, OTHERS))


def test_share_group_needs_its_topics_too(where: Cluster) -> None:
    bob = see(as_user(where, "bob"), lambda cluster: describe_share_group(cluster, SHARE))
    assert bob.group_id == SHARE
    assert {gap.needs for gap in bob.gaps} == {f"DescribeConfigs on Group {SHARE}"}


def test_share_group_that_has_a_secret_topic_says_so(where: Cluster) -> None:
    def refusal() -> RefusedError | None:
        join(where.bootstrap, "bob-other", "secret")
        try:
            see(as_user(where, "bob"), lambda cluster: describe_share_group(cluster, "bob-other"))
        except RefusedError as error:
            return error
        return None  # nothing is assigned to the member yet

    message = until("a topic that bob may not see in the group", refusal, 30)
    # the broker does not say which topic it is
    assert str(message).endswith("it needs Describe on Topic, each one it is about") and message.code == 29


def test_configs_name_the_acl_of_each_resource(where: Cluster) -> None:
    resources = [Resource("topic", BOBS_TOPIC), Resource("broker", "1"), Resource("group", SHARE)]
    settings = see(as_user(where, "bob"), lambda cluster: describe_configs(cluster, resources))
    assert [resource.gaps[0].needs for resource in settings] == [
        f"DescribeConfigs on Topic {BOBS_TOPIC}",
        "DescribeConfigs on Cluster",
        f"DescribeConfigs on Group {SHARE}",
    ]
