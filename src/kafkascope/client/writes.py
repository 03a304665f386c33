"""Classifies requests by their effect: whether one reads or changes something, and the change in a few words.

Every API of the catalog is classified here, by what the broker does with it rather than by its name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafkascope.codec.json_form import uuid_text
from kafkascope.formatting import first_names

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

# Names listed in one line; the others are counted.
_MOST_NAMES = 5

READS = frozenset(
    (
        "Fetch ListOffsets Metadata ApiVersions OffsetForLeaderEpoch OffsetFetch FindCoordinator DescribeGroups"
        " ListGroups ConsumerGroupDescribe ShareGroupDescribe ReadShareGroupStateSummary DescribeShareGroupOffsets"
        " StreamsGroupDescribe DescribeProducers DescribeTransactions ListTransactions DescribeQuorum FetchSnapshot"
        " DescribeConfigs DescribeLogDirs ListPartitionReassignments DescribeClientQuotas DescribeCluster"
        " ListConfigResources DescribeTopicPartitions DescribeAcls DescribeDelegationToken"
        " DescribeUserScramCredentials"
        # in memory, and only for this connection or client instance, like a fetch session
        " SaslHandshake SaslAuthenticate GetTelemetrySubscriptions"
    ).split()
)

# (the effect, the fields with the names of what it affects)
WRITES: dict[str, tuple[str, str]] = {
    "Produce": ("append records to topics", "topicData.name topicData.topicId"),
    "OffsetCommit": ("commit offsets of group", "groupId"),
    "DeleteGroups": ("delete groups", "groupsNames"),
    "OffsetDelete": ("delete committed offsets of group", "groupId"),
    "AlterShareGroupOffsets": ("set the start offsets of share group", "groupId"),
    "DeleteShareGroupOffsets": ("delete the offsets of share group", "groupId"),
    "InitProducerId": ("allocate a producer id, or fence the producers of transactional id", "transactionalId"),
    "AddPartitionsToTxn": ("add partitions to transactions", "transactions.transactionalId v3AndBelowTransactionalId"),
    "AddOffsetsToTxn": ("add offsets to transaction", "transactionalId"),
    "EndTxn": ("end transaction", "transactionalId"),
    "TxnOffsetCommit": ("commit offsets in transaction", "transactionalId"),
    "AddRaftVoter": ("add a voter to the quorum", "voterId"),
    "RemoveRaftVoter": ("remove a voter from the quorum", "voterId"),
    "CreateTopics": ("create topics", "topics.name"),
    "DeleteTopics": ("delete topics", "topics.name topics.topicId topicNames"),
    "DeleteRecords": ("delete records of topics", "topics.name"),
    "AlterConfigs": ("replace the configs of", "resources.resourceName"),
    "AlterReplicaLogDirs": ("move replicas to directories", "dirs.path"),
    "CreatePartitions": ("add partitions to topics", "topics.name"),
    "ElectLeaders": ("elect leaders for partitions of", "topicPartitions.topic"),
    "IncrementalAlterConfigs": ("alter configs of", "resources.resourceName"),
    "AlterPartitionReassignments": ("move the replicas of topics", "topics.name"),
    "AlterClientQuotas": ("alter the quotas of", "entries.entity.entityName"),
    "UpdateFeatures": ("change feature levels of the cluster", "featureUpdates.feature"),
    "UnregisterBroker": ("unregister broker", "brokerId"),
    "UnregisterController": ("unregister controller", "controllerId"),
    "PushTelemetry": ("push a client's metrics to the broker", ""),
    "CreateAcls": ("create ACLs for", "creations.principal"),
    "DeleteAcls": ("delete ACLs", "filters.resourceNameFilter filters.principalFilter"),
    "CreateDelegationToken": ("create a delegation token", "ownerPrincipalName"),
    "RenewDelegationToken": ("renew a delegation token", ""),
    "ExpireDelegationToken": ("expire a delegation token", ""),
    "AlterUserScramCredentials": ("alter the credentials of users", "upsertions.name deletions.name"),
}

JOINS: dict[str, tuple[str, str]] = {
    "JoinGroup": ("join group, which rebalances", "groupId"),
    "SyncGroup": ("sync with group, and hand out its assignment as its leader", "groupId"),
    "Heartbeat": ("keep a member alive in group", "groupId"),
    "LeaveGroup": ("take members out of group", "groupId"),
    "ConsumerGroupHeartbeat": ("join, keep up or leave consumer group", "groupId"),
    "ShareGroupHeartbeat": ("join, keep up or leave share group", "groupId"),
    "StreamsGroupHeartbeat": ("join, keep up or leave streams group", "groupId"),
    "StreamsGroupTopologyDescriptionUpdate": ("replace the topology description of streams group", "groupId"),
    "ShareFetch": ("acquire records for share group, which counts as a delivery", "groupId"),
    "ShareAcknowledge": ("acknowledge records of share group", "groupId"),
}

# Requests between brokers and controllers; from anyone else they can harm a cluster.
INTERNAL: dict[str, tuple[str, str]] = {
    "LeaderAndIsr": ("make a broker leader or follower, as a controller does", ""),
    "StopReplica": ("stop replicas, as a controller does", ""),
    "UpdateMetadata": ("overwrite a broker's metadata, as a controller does", ""),
    "ControlledShutdown": ("move all leaders off broker", "brokerId"),
    "WriteTxnMarkers": ("write the end of transactions into topics", "markers.topics.name"),
    "Vote": ("take part in an election of the quorum", ""),
    "BeginQuorumEpoch": ("announce a new leader of the quorum", ""),
    "EndQuorumEpoch": ("end the epoch of the quorum's leader", ""),
    "UpdateRaftVoter": ("update a voter of the quorum", "voterId"),
    "AlterPartition": ("change the in-sync replicas of partitions", ""),
    "Envelope": ("make the controller run another request for another user", ""),
    "BrokerRegistration": ("register broker", "brokerId"),
    "BrokerHeartbeat": ("act as broker", "brokerId"),
    "AllocateProducerIds": ("take a block of producer ids for broker", "brokerId"),
    "ControllerRegistration": ("register controller", "controllerId"),
    "AssignReplicasToDirs": ("report the directories of replicas on broker", "brokerId"),
    "InitializeShareGroupState": ("reinitialize the share state of group", "groupId"),
    # reading under a newer leader epoch writes that epoch
    "ReadShareGroupState": ("read the share state of group as a partition's leader, which fences others", "groupId"),
    "WriteShareGroupState": ("overwrite the share state of group", "groupId"),
    "DeleteShareGroupState": ("delete the share state of group", "groupId"),
}

# KafkaApis creates the coordinator's topic on the first lookup.
COORDINATOR_TOPICS = {0: "__consumer_offsets", 1: "__transaction_state", 2: "__share_group_state"}

# The first version of Metadata with a flag not to create topics (KIP-4).
_METADATA, _CREATES_NOTHING = 3, 4

_CLASSES: dict[str, tuple[str, str, str]] = {
    **dict.fromkeys(READS, ("reads", "", "")),
    **{api: ("writes", *words) for api, words in WRITES.items()},
    **{api: ("joins", *words) for api, words in JOINS.items()},
    **{api: ("internal", *words) for api, words in INTERNAL.items()},
}


@dataclass(frozen=True, slots=True)
class Effect:
    """`kind` is `reads`, `writes`, `joins` (a group) or `internal` (between brokers).

    `does` is its effect, empty if it only reads. `remark` is the reason why a request of a writing API doesn't write.
    `unless_topic` is set if something changes only if this topic doesn't exist.
    """

    api: str
    kind: str
    does: str = ""
    remark: str = ""
    unless_topic: str | None = None

    @property
    def changes(self) -> bool:
        """Whether it needs `--write`, judging by the request alone."""
        return self.kind != "reads"

    @property
    def line(self) -> str:
        """`DeleteTopics would delete topics: orders; add --write to send it`."""
        return f"{self.api} would {self.does}; add --write to send it"


def kind_of(api: str) -> str:
    """The class of an API, whatever its request contains; KeyError for an unclassified one."""
    return _CLASSES[api][0]


def effect(api: str, version: int, value: Mapping[str, Any], topics: Mapping[UUID, str] | None = None) -> Effect:
    """Classifies one request, as `encode` takes it; missing fields have their defaults. `topics` are names by topic
    id."""
    kind, does, places = _CLASSES[api]
    if kind == "reads":
        return _reading(api, version, value)
    if kind == "writes" and (value.get("validateOnly") or _verifies_only(api, value)):
        return Effect(api, "reads", remark="the broker only validates it")
    names = list(
        dict.fromkeys(name for place in places.split() for name in _names(value, place.split("."), topics or {}))
    )
    return Effect(api, kind, _phrase(does, names))


def _reading(api: str, version: int, value: Mapping[str, Any]) -> Effect:
    match api:
        case "Metadata":
            named = [topic["name"] for topic in value.get("topics") or () if topic.get("name")]
            # before version 4 no flag prevents it
            if named and (version < _CREATES_NOTHING or value.get("allowAutoTopicCreation", True)):
                does = _phrase("create missing topics, if the brokers create topics automatically", named)
                return Effect(api, "writes", does)
        case "Fetch" if _replica_id(value) >= 0:
            return Effect(api, "internal", f"fetch as replica {_replica_id(value)}, which moves high watermarks")
        case "FindCoordinator":
            topic = COORDINATOR_TOPICS.get(value.get("keyType", 0))
            return Effect(api, "reads", does=f"create the topic {topic}", unless_topic=topic)
    return Effect(api, "reads")


def _replica_id(value: Mapping[str, Any]) -> int:
    state = value.get("replicaState") or {}
    return max(int(value.get("replicaId", -1)), int(state.get("replicaId", -1)))


def _verifies_only(api: str, value: Mapping[str, Any]) -> bool:
    """A broker uses it to ask the coordinator whether a transaction is still open (KIP-890)."""
    transactions = value.get("transactions") or ()
    return api == "AddPartitionsToTxn" and bool(transactions) and all(item.get("verifyOnly") for item in transactions)


def _names(value: Any, path: list[str], topics: Mapping[UUID, str]) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _names(item, path, topics)
    elif path:
        if isinstance(value, Mapping):
            yield from _names(value.get(path[0]), path[1:], topics)
    elif isinstance(value, UUID):
        if value.int:
            yield topics.get(value) or uuid_text(value)
    elif value not in (None, ""):
        yield str(value)


def _phrase(does: str, names: list[str]) -> str:
    if not names:
        return does
    return f"{does}: {first_names(names, _MOST_NAMES)}"


async def has_topic(cluster: "Cluster", name: str) -> bool:
    """Checks without creating the topic. Brokers that would create it (before 0.11) count as having it."""
    if (await cluster.versions()).get(_METADATA, (0, 0))[1] < _CREATES_NOTHING:
        return True
    response = await cluster.call("Metadata", {"topics": [{"name": name}], "allowAutoTopicCreation": False})
    return any(topic["errorCode"] == 0 for topic in response.value["topics"])
