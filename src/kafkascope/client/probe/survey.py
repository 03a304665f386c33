"""Collects a few topics, groups and ids of a cluster as arguments for the probe. What the user may not see counts as
missing."""

import contextlib
from typing import Any

from kafkascope.client.arguments import with_defaults
from kafkascope.client.cluster import Cluster
from kafkascope.client.describe.gaps import only_row
from kafkascope.client.describe.quorum import QUORUM_REQUEST as QUORUM
from kafkascope.client.probe.arguments import PROBE_PREFIX, ClusterSurvey, Topic
from kafkascope.client.targets import AnyBroker, Node
from kafkascope.client.writes import COORDINATOR_TOPICS
from kafkascope.errors import NotFoundError, RefusedError, UsageError
from kafkascope.schema.catalog import message

_SECURITY_DISABLED = 54
# Number per kind: more would prove the same.
_FEW = 3
_NODES = 3
_WITH_FENCED = 2  # of DescribeCluster, KIP-1073


async def survey_cluster(cluster: Cluster, prefer: str = "", *, write: bool = False) -> ClusterSurvey:
    """Topics and groups whose name starts with `prefer` come first. `write` checks if the cluster is in use."""
    sasl = cluster.settings.sasl is not None
    if cluster.controllers:
        nodes = await cluster.brokers()
        return ClusterSurvey(
            node=nodes[0].node_id if nodes else 1,
            nodes=frozenset(node.node_id for node in nodes),
            cluster_id=await cluster.cluster_id(),
            controllers=True,
            sasl=sasl,
        )
    brokers = await cluster.brokers()
    response = await cluster.call("Metadata", {"topics": None}, to=AnyBroker())
    rows = [row for row in response.value["topics"] if row["errorCode"] == 0 and row["name"]]
    internal = frozenset(row["name"] for row in rows) & frozenset(COORDINATOR_TOPICS.values())
    groups = await _groups(cluster, [broker.node_id for broker in brokers[:_NODES]])
    return ClusterSurvey(
        node=response.node if response.node is not None else only_row(brokers, "Metadata").node_id,
        nodes=frozenset(broker.node_id for broker in brokers)
        | (await _unlisted_nodes(cluster) if write else frozenset()),
        cluster_id=await cluster.cluster_id(),
        topics=_topics(rows, prefer),
        groups={
            kind: tuple(sorted(names, key=_preferred_first(prefer))[:_FEW]) for kind, names in sorted(groups.items())
        },
        transactional_ids=await _transactional_ids(cluster, prefer) if COORDINATOR_TOPICS[1] in internal else (),
        internal=internal,
        in_use=not write or _has_user_data(rows, groups) or await _has_security_data(cluster),
        sasl=sasl,
    )


def _has_user_data(rows: list[dict[str, Any]], groups: dict[str, list[str]]) -> bool:
    """Whether topics or groups exist that are neither Kafka's nor a probe's."""
    names = [*(row["name"] for row in rows), *(name for names in groups.values() for name in names)]
    return any(not name.startswith(("__", PROBE_PREFIX)) for name in names)


async def _has_security_data(cluster: Cluster) -> bool:
    """Whether it has users, ACLs or quotas, or doesn't report them."""
    for api, rows in (
        ("DescribeUserScramCredentials", "results"),
        ("DescribeAcls", "resources"),
        ("DescribeClientQuotas", "entries"),
    ):
        try:
            version = await _newest_version(cluster, api)
            if version is not None:
                value = (await cluster.call(api, with_defaults(api, version, {}), version=version)).value
                if value[rows] or value["errorCode"] not in (0, _SECURITY_DISABLED):
                    return True
        except (RefusedError, NotFoundError, UsageError):
            return True
    return False


async def _unlisted_nodes(cluster: Cluster) -> frozenset[int]:
    """Nodes that Metadata doesn't name: fenced brokers, and the quorum."""
    nodes: set[int] = set()
    with contextlib.suppress(RefusedError, NotFoundError, UsageError):
        version = await _newest_version(cluster, "DescribeCluster")
        if version is not None and version >= _WITH_FENCED:
            response = await cluster.call("DescribeCluster", {"includeFencedBrokers": True}, to=AnyBroker())
            nodes |= {row["brokerId"] for row in response.value["brokers"]}
    with contextlib.suppress(RefusedError, NotFoundError, UsageError):
        if await _newest_version(cluster, "DescribeQuorum") is not None:
            response = await cluster.call("DescribeQuorum", QUORUM)
            parts = [part for topic in response.value["topics"] for part in topic["partitions"]]
            nodes |= {row["replicaId"] for part in parts for row in (*part["currentVoters"], *part["observers"])}
    return frozenset(nodes)


async def _newest_version(cluster: Cluster, api: str) -> int | None:
    """The newest version that both sides know."""
    request = message(f"{api}Request")
    first, last = (await cluster.versions()).get(request.key or 0, (0, -1))
    return max((version for version in request.all_versions() if first <= version <= last), default=None)


def _preferred_first(prefer: str) -> Any:
    return lambda name: (not name.startswith(prefer), name)


def _topics(rows: list[dict[str, Any]], prefer: str) -> tuple[Topic, ...]:
    """Users' topics before Kafka's own, small ones first."""
    ordered = sorted(
        (row for row in rows if "topicId" in row),
        key=lambda row: (not row["name"].startswith(prefer), row["name"].startswith("__"), len(row["partitions"])),
    )
    return tuple(Topic(row["name"], row["topicId"], len(row["partitions"])) for row in ordered[:_FEW])


async def _groups(cluster: Cluster, nodes: list[int]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for node in nodes:
        with contextlib.suppress(RefusedError, NotFoundError, UsageError):
            response = await cluster.call("ListGroups", to=Node(node))
            for row in response.value["groups"]:
                kind = (row.get("groupType") or "classic").lower()
                groups.setdefault(kind, []).append(row["groupId"])
    return groups


async def _transactional_ids(cluster: Cluster, prefer: str) -> tuple[str, ...]:
    with contextlib.suppress(RefusedError, NotFoundError, UsageError):
        response = await cluster.call("ListTransactions")
        names = [row["transactionalId"] for row in response.value["transactionStates"]]
        return tuple(sorted(names, key=_preferred_first(prefer))[:_FEW])
    return ()
