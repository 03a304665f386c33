"""Maps a request to its target by its contents, as Kafka's own clients do."""

import base64
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from kafkascope.client.targets import AnyBroker, Controller, Coordinator, Leader, Node, Target

_Rule = Callable[[Mapping[str, Any]], Target | None]

# Config resources that only the node itself knows completely (ConfigResource.Type).
_BROKER, _BROKER_LOGGER = 4, 8
# The metadata log's leader is the active controller, which no Metadata response names.
_METADATA_TOPICS = ("__cluster_metadata", UUID(int=1))
NO_TOPIC_ID = UUID(int=0)


def target_of(api: str, value: Mapping[str, Any], *, controllers: bool = False) -> Target:
    """`controllers` means that the cluster was reached by its controllers: requests that a broker would forward then go
    to the active controller (KIP-919). A request about several things goes to the node of the first one."""
    target = ROUTES[api](value)
    if target is None:
        return Controller() if controllers and api not in EACH_CONTROLLER else AnyBroker()
    return target


def _any(_: Mapping[str, Any]) -> Target | None:
    return None


def _controller(_: Mapping[str, Any]) -> Target | None:
    return Controller()


def _group(value: Mapping[str, Any]) -> Target | None:
    """`groupId`, or the first of `groups`, `groupIds` and `groupsNames`. An empty id is a valid group."""
    named = value.get("groupId")
    for several in ("groups", "groupIds", "groupsNames"):
        if named is not None:
            break
        first = _first(value.get(several))
        named = first.get("groupId") if isinstance(first, Mapping) else first
    return Coordinator("group", named) if isinstance(named, str) else None


def _transaction(value: Mapping[str, Any]) -> Target | None:
    first = _first(value.get("transactions"))
    named = (
        value.get("transactionalId")
        or value.get("v3AndBelowTransactionalId")
        or (first.get("transactionalId") if isinstance(first, Mapping) else None)
        or _first(value.get("transactionalIds"))
    )
    return Coordinator("transaction", named) if named and isinstance(named, str) else None


def _leader(value: Mapping[str, Any]) -> Target | None:
    """The first partition of the first topic, under any of their names in these requests."""
    marker = _first(value.get("markers"))
    topic = _first((marker or value).get("topics") or value.get("topicData"))
    if not isinstance(topic, Mapping):
        return None
    name = topic.get("name") or topic.get("topic") or topic.get("topicName") or topic.get("topicId")
    partition = _first(topic.get("partitions") or topic.get("partitionIndexes") or topic.get("partitionData"))
    number = _partition_number(partition)
    if not name or name == NO_TOPIC_ID or number is None:
        return None
    return Controller() if name in _METADATA_TOPICS else Leader(name, number)


def _share_state(value: Mapping[str, Any]) -> Target | None:
    topic = _first(value.get("topics"))
    if not isinstance(topic, Mapping) or not isinstance(topic.get("topicId"), UUID) or not value.get("groupId"):
        return None
    number = _partition_number(_first(topic.get("partitions")))
    if number is None:
        return None
    return Coordinator("share", f"{value['groupId']}:{uuid_key(topic['topicId'])}:{number}")


def _config_owner(value: Mapping[str, Any]) -> Target | None:
    """Brokers and their loggers are asked directly; any broker knows the cluster-wide default (an empty name)."""
    for resource in value.get("resources") or ():
        name = resource.get("resourceName") or ""
        if resource.get("resourceType") in (_BROKER, _BROKER_LOGGER) and name.isascii() and name.isdigit():
            return Node(int(name))
    return None


def uuid_key(topic_id: UUID) -> str:
    """Kafka's own form: unpadded url-safe base64."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _first(items: Any) -> Any:
    return items[0] if isinstance(items, list | tuple) and items else None


def _partition_number(partition: Any) -> int | None:
    if isinstance(partition, Mapping):
        for name in ("partitionIndex", "partition", "index"):
            if name in partition:
                partition = partition[name]
                break
        else:
            return 0
    return partition if isinstance(partition, int) else None


def _table(rows: tuple[tuple[_Rule, str], ...]) -> dict[str, _Rule]:
    return {api: rule for rule, names in rows for api in names.split()}


# Every request API of the catalog; a test checks that each is here.
ROUTES: dict[str, _Rule] = _table(
    (
        (
            _any,
            "Metadata ApiVersions SaslHandshake SaslAuthenticate FindCoordinator ListGroups ListTransactions"
            " DescribeCluster DescribeQuorum DescribeTopicPartitions DescribeLogDirs AlterReplicaLogDirs"
            " DescribeAcls CreateAcls DeleteAcls DescribeClientQuotas AlterClientQuotas DescribeUserScramCredentials"
            " CreateDelegationToken RenewDelegationToken ExpireDelegationToken DescribeDelegationToken"
            " ListConfigResources GetTelemetrySubscriptions PushTelemetry AddRaftVoter RemoveRaftVoter"
            " UnregisterBroker UnregisterController UpdateFeatures"
            # sent by a ZooKeeper-based controller to one broker: the caller knows which
            " LeaderAndIsr StopReplica UpdateMetadata",
        ),
        (
            _leader,
            "Produce Fetch ListOffsets OffsetForLeaderEpoch DeleteRecords DescribeProducers WriteTxnMarkers ShareFetch"
            " ShareAcknowledge",
        ),
        (
            _group,
            "OffsetCommit OffsetFetch JoinGroup Heartbeat LeaveGroup SyncGroup DescribeGroups DeleteGroups OffsetDelete"
            " TxnOffsetCommit ConsumerGroupHeartbeat ConsumerGroupDescribe ShareGroupHeartbeat ShareGroupDescribe"
            " DescribeShareGroupOffsets AlterShareGroupOffsets DeleteShareGroupOffsets StreamsGroupHeartbeat"
            " StreamsGroupDescribe StreamsGroupTopologyDescriptionUpdate",
        ),
        (_transaction, "InitProducerId AddPartitionsToTxn AddOffsetsToTxn EndTxn DescribeTransactions"),
        (
            _share_state,
            "InitializeShareGroupState ReadShareGroupState WriteShareGroupState DeleteShareGroupState"
            " ReadShareGroupStateSummary",
        ),
        (_config_owner, "DescribeConfigs AlterConfigs IncrementalAlterConfigs"),
        (
            _controller,
            "CreateTopics DeleteTopics CreatePartitions ElectLeaders AlterPartitionReassignments"
            " ListPartitionReassignments AlterUserScramCredentials"
            # between nodes: brokers to the active controller, and voters among themselves
            " ControlledShutdown AlterPartition Envelope BrokerRegistration BrokerHeartbeat ControllerRegistration"
            " AllocateProducerIds AssignReplicasToDirs Vote BeginQuorumEpoch EndQuorumEpoch FetchSnapshot"
            " UpdateRaftVoter",
        ),
    )
)

# APIs that every controller serves itself, active or not.
EACH_CONTROLLER = frozenset("ApiVersions SaslHandshake SaslAuthenticate DescribeCluster".split())
