"""Describes the cluster as a whole: its nodes, the controller, and the health of its partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.features import FeaturesView
from kafkascope.client.describe.gaps import FAILURES, Gap, error_gap, failure_gap, merge_gaps
from kafkascope.client.describe.groups import NOT_ASKED
from kafkascope.client.describe.quorum import QuorumView
from kafkascope.errors import DecodeError, RefusedError

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

# AclOperation by code, which is its bit in AuthorizedOperations.
_OPERATIONS = (
    *("Unknown", "Any", "All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction"),
    *("DescribeConfigs", "AlterConfigs", "IdempotentWrite", "CreateTokens", "DescribeTokens", "TwoPhaseCommit"),
)


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """`roles` are `broker` and `controller`. `address` is a broker's, or else a controller's endpoint. `fenced` is None
    if the brokers don't report it (before 4.0)."""

    node_id: int
    address: str | None
    rack: str | None
    roles: tuple[str, ...]
    fenced: bool | None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """`controller_id` is the leader of the quorum, None if it may not be seen. Counts are of topics that we may
    describe; None for controllers, which don't report them. `roles_known` is False if the quorum didn't report which
    brokers are controllers too. `operations` are our permissions on the cluster."""

    cluster_id: str | None
    controller_id: int | None
    metadata_version: str | None
    nodes: tuple[ClusterNode, ...]
    roles_known: bool
    topics: int | None
    partitions: int | None
    without_leader: tuple[str, ...]
    under_replicated: tuple[str, ...]
    operations: tuple[str, ...]
    gaps: tuple[Gap, ...]


def operations_of(bits: int) -> tuple[str, ...]:
    """Empty if they weren't reported."""
    if bits == NOT_ASKED:
        return ()
    return tuple(name for bit, name in enumerate(_OPERATIONS) if bits >> bit & 1)


def cluster_of(
    described: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    quorum: QuorumView | None,
    features: FeaturesView | None,
    gaps: Iterable[Gap] = (),
) -> ClusterView:
    """`described` is a DescribeCluster response, None for brokers before 2.8; `metadata` is None for controllers."""
    nodes: dict[int, ClusterNode] = {}
    role = "broker" if metadata else "controller"
    rows = described["brokers"] if described else (metadata or {"brokers": ()})["brokers"]
    for row in rows:
        number = row["brokerId"] if described else row["nodeId"]
        address = f"{row['host']}:{row['port']}" if row["host"] else None
        nodes[number] = ClusterNode(number, address, row["rack"], (role,), row.get("isFenced"))
    for voter in quorum.voters if quorum else ():
        node = nodes.get(voter.node_id)
        if node is not None and metadata is None:
            continue
        if node is not None:
            nodes[voter.node_id] = ClusterNode(
                node.node_id, node.address, node.rack, (*node.roles, "controller"), node.fenced
            )
        else:
            endpoint = voter.endpoints[0].partition("://")[2] if voter.endpoints else None
            nodes[voter.node_id] = ClusterNode(voter.node_id, endpoint, None, ("controller",), None)
    partitions = [
        (f"{topic['name']}-{partition['partitionIndex']}", partition)
        for topic in (metadata or {"topics": ()})["topics"]
        for partition in topic["partitions"]
    ]
    level = (
        next((feature for feature in features.features if feature.name == "metadata.version"), None)
        if features
        else None
    )
    controller = quorum.controller_id if quorum else None
    return ClusterView(
        (described or metadata or {}).get("clusterId"),
        controller,
        (level.release or str(level.level)) if level and level.level else None,
        tuple(nodes[number] for number in sorted(nodes)),
        quorum is not None or metadata is None,
        len(metadata["topics"]) if metadata else None,
        len(partitions) if metadata else None,
        tuple(name for name, partition in partitions if partition["leaderId"] < 0),
        tuple(name for name, partition in partitions if len(partition["isrNodes"]) < len(partition["replicaNodes"])),
        operations_of(described["clusterAuthorizedOperations"]) if described else (),
        merge_gaps(gaps),
    )


async def describe_cluster(cluster: "Cluster") -> ClusterView:
    from kafkascope.client.describe.calls import served_versions
    from kafkascope.client.describe.features import describe_features
    from kafkascope.client.describe.quorum import describe_quorum
    from kafkascope.client.targets import AnyBroker

    gaps: list[Gap] = []
    described: Mapping[str, Any] | None = None
    versions = await served_versions(cluster, "DescribeCluster")
    if versions is not None:
        request: dict[str, Any] = {"includeClusterAuthorizedOperations": True}
        if versions[1] >= 2:
            request["includeFencedBrokers"] = True
        if cluster.controllers:
            request["endpointType"] = 2
        try:
            described = (await cluster.call("DescribeCluster", request, to=AnyBroker())).value
        except DecodeError as error:
            if cluster.controllers:  # they have nothing else
                raise
            gaps.append(failure_gap("the nodes", "DescribeCluster", error))
        if described is not None and described["errorCode"]:
            gaps.append(
                error_gap("the nodes", "DescribeCluster", described["errorCode"], None, described["errorMessage"])
            )
    metadata: Mapping[str, Any] | None = None
    if not cluster.controllers:
        metadata = (await cluster.call("Metadata", {"topics": None}, to=AnyBroker())).value
    features = await describe_features(cluster)
    quorum: QuorumView | None = None
    try:
        # last, since a broker whose controller hangs isn't asked again; its gaps are about timeouts, not shown here
        quorum = await describe_quorum(cluster)
    except RefusedError as error:
        gaps.append(error_gap("the controller", "DescribeQuorum", error.code, None, str(error)))
    except FAILURES as error:
        gaps.append(failure_gap("the controller", "DescribeQuorum", error))
    return cluster_of(described, metadata, quorum, features, [*gaps, *features.gaps])
