"""Caches brokers, leaders, coordinators and the controller of a cluster. Any entry may be dropped at any time and is
then fetched again."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kafkascope.client.answer import Broker
from kafkascope.client.routing import NO_TOPIC_ID
from kafkascope.client.settings import Address
from kafkascope.client.targets import Controller, Coordinator, Leader, Target
from kafkascope.limits import MAX_BROKERS, MAX_KNOWN_PARTITIONS

Topic = str | UUID
# Nodes come and go; if a cluster keeps naming others, the earliest are dropped.
_MOST_SEEN = 4 * MAX_BROKERS


class MetadataCache:
    """`brokers` are controllers if the cluster was reached by its controllers."""

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        # Nodes seen earlier: one that is missing now may come back.
        self.seen: set[int] = set()
        self.controller: int | None = None
        self.cluster_id: str | None = None
        self.coordinators: dict[Coordinator, int] = {}
        self.leaders: dict[tuple[Topic, int], int] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.topic_names: dict[UUID, str] = {}

    def learn_metadata(self, value: Mapping[str, Any]) -> None:
        """Takes a Metadata response: the current brokers, and the topics that it names."""
        self._replace(
            Broker(row["nodeId"], Address(row["host"], row["port"]), row.get("rack")) for row in value["brokers"]
        )
        self.controller = _node_or_none(value.get("controllerId", -1))
        self.cluster_id = value.get("clusterId") or self.cluster_id
        for topic in value["topics"]:
            self._learn_topic(topic)

    def learn_cluster(self, value: Mapping[str, Any]) -> None:
        """Takes a DescribeCluster response."""
        self._replace(
            Broker(row["brokerId"], Address(row["host"], row["port"]), row.get("rack")) for row in value["brokers"]
        )
        self.controller = _node_or_none(value["controllerId"])
        self.cluster_id = value.get("clusterId") or self.cluster_id

    def learn_coordinator(self, target: Coordinator, row: Mapping[str, Any]) -> None:
        """Takes a row of a FindCoordinator response; its address may be newer than the last Metadata response."""
        self.learn_endpoints([row])
        self.coordinators[target] = row["nodeId"]

    def learn_moved(self, target: Target, value: Mapping[str, Any]) -> bool:
        """Takes the new leader from a response (`currentLeader`, KIP-951). Returns whether there was one."""
        self.learn_endpoints(value.get("nodeEndpoints") or [])
        if not isinstance(target, Leader):
            return False
        before = self.leaders.get((target.topic, target.partition))
        for topic in value.get("responses") or []:
            named = topic.get("topic") or topic.get("name"), topic.get("topicId")
            if target.topic not in named:
                continue
            for row in topic.get("partitions") or topic.get("partitionResponses") or []:
                leader = (row.get("currentLeader") or {}).get("leaderId", -1)
                number = row.get("partitionIndex", row.get("index"))
                if number == target.partition and leader in self.brokers and leader != before:
                    self.leaders[target.topic, target.partition] = leader
                    return True
        return False

    def forget(self, target: Target) -> None:
        if isinstance(target, Leader):
            self.leaders.pop((target.topic, target.partition), None)
        elif isinstance(target, Coordinator):
            self.coordinators.pop(target, None)
        elif isinstance(target, Controller):
            self.controller = None

    def forget_node(self, node: int) -> None:
        """Forgets a node that didn't respond: partitions and groups may have moved elsewhere, and its address too."""
        self.brokers.pop(node, None)
        self.leaders = {partition: leader for partition, leader in self.leaders.items() if leader != node}
        self.coordinators = {target: leader for target, leader in self.coordinators.items() if leader != node}
        if self.controller == node:
            self.controller = None

    def node_at(self, address: Address) -> int | None:
        return next((broker.node_id for broker in self.brokers.values() if broker.address == address), None)

    def _replace(self, brokers: Any) -> None:
        self.brokers = {broker.node_id: broker for broker in brokers}
        if len(self.seen) > _MOST_SEEN:
            self.seen.clear()
        self.seen.update(self.brokers)

    def learn_endpoints(self, rows: list[Mapping[str, Any]]) -> None:
        for row in rows[:MAX_BROKERS]:
            if row["nodeId"] >= 0 and row["host"]:
                if len(self.brokers) > _MOST_SEEN:
                    self.brokers.clear()
                rack = row.get("rack") or getattr(self.brokers.get(row["nodeId"]), "rack", None)
                self.brokers[row["nodeId"]] = Broker(row["nodeId"], Address(row["host"], row["port"]), rack)
                self.seen.add(row["nodeId"])

    def _learn_topic(self, topic: Mapping[str, Any]) -> None:
        name, topic_id = topic.get("name"), topic.get("topicId", NO_TOPIC_ID)
        if topic["errorCode"] == 0 and name and topic_id != NO_TOPIC_ID:
            if len(self.topic_ids) > MAX_KNOWN_PARTITIONS:
                self.topic_ids.clear()
                self.topic_names.clear()
            self.topic_ids[name] = topic_id
            self.topic_names[topic_id] = name
        if len(self.leaders) > MAX_KNOWN_PARTITIONS:
            self.leaders.clear()
        for partition in topic["partitions"]:
            for key in (name, topic_id):
                if not key or key == NO_TOPIC_ID:
                    continue
                if partition["leaderId"] >= 0:
                    self.leaders[key, partition["partitionIndex"]] = partition["leaderId"]
                else:
                    self.leaders.pop((key, partition["partitionIndex"]), None)


def _node_or_none(node: int) -> int | None:
    return node if node >= 0 else None
