"""The secured cluster's users may do what the lab says, and no more; the older release is that release."""

import asyncio
from typing import Any

from kafkascope.client.cluster import connect
from kafkascope.client.settings import Sasl, Secret, Settings, parse_addresses
from lab.cluster import Cluster
from lab.secured import BOBS_TOPIC, SECURED_USERS
from lab.settings import SASL
from lab.wire import call

CLUSTER_AUTHORIZATION_FAILED = 31
QUORUM = {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}
# metadata.version 3.9-IV0
LEVEL_3_9 = 21


def ask(cluster: Cluster, user: str, api: str, value: dict[str, Any]) -> dict[str, Any]:
    async def go() -> dict[str, Any]:
        sasl = Sasl("PLAIN", user, Secret(SECURED_USERS[user]))
        async with connect(Settings(parse_addresses(cluster.addresses(SASL)), sasl=sasl)) as connected:
            return (await connected.call(api, value)).value

    return asyncio.run(go())


def test_users_see_what_they_may(secured_cluster: Cluster) -> None:
    names = [BOBS_TOPIC, "payments"]
    topics = [{"name": name, "numPartitions": 1, "replicationFactor": 1, "assignments": []} for name in names]
    # there already when another test was first
    call(secured_cluster.bootstrap, "CreateTopics", 7, {"topics": topics, "timeoutMs": 10_000})
    seen = {
        user: {topic["name"] for topic in ask(secured_cluster, user, "Metadata", {"topics": None})["topics"]}
        for user in SECURED_USERS
    }
    assert seen["alice"] >= set(names)
    assert BOBS_TOPIC in seen["bob"] and "payments" not in seen["bob"]
    assert seen["carol"] == set()
    codes = {user: ask(secured_cluster, user, "DescribeQuorum", QUORUM)["errorCode"] for user in SECURED_USERS}
    assert codes == {"alice": 0, "bob": CLUSTER_AUTHORIZATION_FAILED, "carol": 0}


def test_an_older_release_is_that_release(cluster_39: Cluster) -> None:
    client = {"clientSoftwareName": "lab", "clientSoftwareVersion": "1"}
    answer = call(cluster_39.bootstrap, "ApiVersions", 3, client)
    levels = {row["name"]: row["maxVersionLevel"] for row in answer["finalizedFeatures"]}
    assert levels["metadata.version"] == LEVEL_3_9
    assert cluster_39.leader() == 1
    assert '"requestApiKeyName":"API_VERSIONS"' in cluster_39.nodes[1].request_log.read_text()
