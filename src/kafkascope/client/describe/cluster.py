"""DescribeCluster, Metadata, quorum and features in, `ClusterView` out: nodes, who controls, how the partitions are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.features import Features
from kafkascope.client.describe.gaps import FAILURES, Gap, gap, merged, no_answer
from kafkascope.client.describe.groups import NOT_ASKED
from kafkascope.client.describe.quorum import Quorum
from kafkascope.errors import DecodeError, RefusedError

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

# AclOperation by its code, as the bits of AuthorizedOperations have it.
OPERATIONS = (
    *("Unknown", "Any", "All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction"),
    *("DescribeConfigs", "AlterConfigs", "IdempotentWrite", "CreateTokens", "DescribeTokens", "TwoPhaseCommit"),
)


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """`roles` are `broker` and `controller`. `address` is a broker's, else a controller's endpoint; `fenced` is None
    where the brokers do not tell it (before 4.0)."""

    node_id: int
    address: str | None
    rack: str | None
    roles: tuple[str, ...]
    fenced: bool | None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """`controller_id` is the leader of the quorum; None where it may not be seen. Counts are of topics that we may
    describe; None where controllers were asked, which do not tell. `roles_known` is False where the quorum did not say
    which brokers are controllers too. `operations` are ours on the cluster."""

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
    """Empty where they were not told."""
    if bits == NOT_ASKED:
        return ()
    return tuple(name for bit, name in enumerate(OPERATIONS) if bits >> bit & 1)


def cluster_of(
    described: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    quorum: Quorum | None,
    features: Features | None,
    gaps: Iterable[Gap] = (),
) -> ClusterView:
    """`described` is a DescribeCluster answer, None of brokers older than 2.8; `metadata` None where controllers were
    asked."""
    nodes: dict[int, ClusterNode] = {}
    role = "broker" if metadata else "controller"
    rows = described["brokers"] if described else (metadata or {"brokers": ()})["brokers"]
    for one in rows:
        number = one["brokerId"] if described else one["nodeId"]
        address = f"{one['host']}:{one['port']}" if one["host"] else None
        nodes[number] = ClusterNode(number, address, one["rack"], (role,), one.get("isFenced"))
    for voter in quorum.voters if quorum else ():
        known = nodes.get(voter.node_id)
        if known is not None and metadata is None:
            continue
        if known is not None:
            nodes[voter.node_id] = ClusterNode(
                known.node_id, known.address, known.rack, (*known.roles, "controller"), known.fenced
            )
        else:
            endpoint = voter.endpoints[0].partition("://")[2] if voter.endpoints else None
            nodes[voter.node_id] = ClusterNode(voter.node_id, endpoint, None, ("controller",), None)
    partitions = [
        (f"{topic['name']}-{one['partitionIndex']}", one)
        for topic in (metadata or {"topics": ()})["topics"]
        for one in topic["partitions"]
    ]
    level = next((one for one in features.features if one.name == "metadata.version"), None) if features else None
    controller = quorum.controller_id if quorum else None
    return ClusterView(
        (described or metadata or {}).get("clusterId"),
        controller,
        (level.release or str(level.level)) if level and level.level else None,
        tuple(nodes[number] for number in sorted(nodes)),
        quorum is not None or metadata is None,
        len(metadata["topics"]) if metadata else None,
        len(partitions) if metadata else None,
        tuple(name for name, one in partitions if one["leaderId"] < 0),
        tuple(name for name, one in partitions if len(one["isrNodes"]) < len(one["replicaNodes"])),
        operations_of(described["clusterAuthorizedOperations"]) if described else (),
        merged(gaps),
    )


async def describe_cluster(cluster: "Cluster") -> ClusterView:
    from kafkascope.client.describe.asking import serves
    from kafkascope.client.describe.features import describe_features
    from kafkascope.client.describe.quorum import describe_quorum
    from kafkascope.client.targets import AnyBroker

    gaps: list[Gap] = []
    described: Mapping[str, Any] | None = None
    versions = await serves(cluster, "DescribeCluster")
    if versions is not None:
        asked: dict[str, Any] = {"includeClusterAuthorizedOperations": True}
        if versions[1] >= 2:
            asked["includeFencedBrokers"] = True
        if cluster.controllers:
            asked["endpointType"] = 2
        try:
            described = (await cluster.call("DescribeCluster", asked, to=AnyBroker())).value
        except DecodeError as error:
            if cluster.controllers:  # they have nothing else
                raise
            gaps.append(no_answer("the nodes", "DescribeCluster", error))
        if described is not None and described["errorCode"]:
            gaps.append(gap("the nodes", "DescribeCluster", described["errorCode"], None, described["errorMessage"]))
    metadata: Mapping[str, Any] | None = None
    if not cluster.controllers:
        metadata = (await cluster.call("Metadata", {"topics": None}, to=AnyBroker())).value
    features = await describe_features(cluster)
    quorum: Quorum | None = None
    try:
        # last, since a broker whose controller hangs is not asked again; its gaps are about timeouts, not shown here
        quorum = await describe_quorum(cluster)
    except RefusedError as error:
        gaps.append(gap("the controller", "DescribeQuorum", error.code, None, str(error)))
    except FAILURES as error:
        gaps.append(no_answer("the controller", "DescribeQuorum", error))
    return cluster_of(described, metadata, quorum, features, [*gaps, *features.gaps])
