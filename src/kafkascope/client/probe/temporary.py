"""Creates temporary resources for a probe and removes them afterwards: a topic with a record, groups of every type that
the node serves, an open transaction. Resources that can't be created are left out."""

import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from kafkascope.client.cluster import Cluster
from kafkascope.client.probe.arguments import PROBE_PREFIX, prune
from kafkascope.codec.json_form import uuid_text
from kafkascope.codec.records.record_data import encode_records
from kafkascope.codec.records.record_types import Record, new_batch
from kafkascope.errors import KafkascopeError
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.layout import layout


class _TemporaryResources:
    """Names unique to this run, so that two probes don't collide."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.name = f"{PROBE_PREFIX}{uuid4().hex[:8]}"
        self.members = {kind: f"{self.name}-{kind}" for kind in ("consumer", "share", "streams")}
        self.member_id = uuid_text(uuid4())
        self.producer: dict[str, Any] = {}

    async def ask(self, api: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Calls the newest version that both sides know, with the fields that it has."""
        offered = (await self.cluster.versions()).get(message(f"{api}Request").key or 0)
        if offered is None:
            return {}
        both = [v for v in message(f"{api}Request").all_versions() if offered[0] <= v <= offered[1]]
        if not both:
            return {}
        pruned = prune(layout(f"{api}Request", both[-1]).fields, dict(value))
        return (await self.cluster.call(api, pruned, version=both[-1])).value

    async def set_up(self) -> None:
        topic = {"name": self.name, "numPartitions": 1, "replicationFactor": -1}
        created = await self.ask("CreateTopics", {"topics": [topic], "timeoutMs": 10_000})
        if not created or not created["topics"] or created["topics"][0]["errorCode"]:
            return
        for step in (self._produce, self._commit, self._join, self._begin_transaction):
            # permissions, features or versions may be missing: the rest is still useful
            with contextlib.suppress(KafkascopeError, KeyError):
                await step()

    async def _produce(self) -> None:
        record = Record(offset=0, timestamp=time.time_ns() // 1_000_000, key=b"key", value=b"value")
        data = encode_records([new_batch([record])])
        topic_id = await self.cluster.topic_id(self.name)
        rows = [{"index": 0, "records": data}]
        topics = [{"name": self.name, "topicId": topic_id, "partitionData": rows}]
        await self.ask("Produce", {"acks": -1, "timeoutMs": 10_000, "topicData": topics})

    async def _commit(self) -> None:
        topic_id = await self.cluster.topic_id(self.name)
        rows = [{"partitionIndex": 0, "committedOffset": 1, "committedMetadata": "probe"}]
        topics = [{"name": self.name, "topicId": topic_id, "partitions": rows}]
        await self.ask("OffsetCommit", {"groupId": self.name, "topics": topics})

    async def _join(self) -> None:
        for kind in self.members:
            with contextlib.suppress(KafkascopeError):
                await self._heartbeat(kind, 0)

    async def _heartbeat(self, kind: str, epoch: int) -> None:
        joining = epoch == 0
        source = {"subtopologyId": "0", "sourceTopics": [self.name]}
        value: dict[str, Any] = {
            "groupId": self.members[kind],
            "memberId": self.member_id,
            "memberEpoch": epoch,
            "rebalanceTimeoutMs": 10_000 if joining else -1,
            "subscribedTopicNames": [self.name] if joining else None,
            "topicPartitions": [] if joining else None,
            "topology": {"epoch": 0, "subtopologies": [source]} if joining else None,
            "activeTasks": [] if joining else None,
            "standbyTasks": [] if joining else None,
            "warmupTasks": [] if joining else None,
            "processId": self.member_id if joining else None,
            "clientTags": [] if joining else None,
        }
        await self.ask(f"{kind.capitalize()}GroupHeartbeat", value)

    async def _begin_transaction(self) -> None:
        begun = await self.ask("InitProducerId", {"transactionalId": self.name, "transactionTimeoutMs": 30_000})
        if begun.get("errorCode") != 0:
            return
        self.producer = {
            "transactionalId": self.name,
            "producerId": begun["producerId"],
            "producerEpoch": begun["producerEpoch"],
        }
        topics = [{"name": self.name, "partitions": [0]}]
        old = {f"v3AndBelow{name[0].upper()}{name[1:]}": item for name, item in self.producer.items()}
        # versions from 4 on are for brokers
        value = prune(layout("AddPartitionsToTxnRequest", 3).fields, {**old, "v3AndBelowTopics": topics})
        await self.cluster.call("AddPartitionsToTxn", value, version=3)

    async def take_down(self) -> None:
        for kind in self.members:
            with contextlib.suppress(KafkascopeError):
                await self._heartbeat(kind, -1)
        with contextlib.suppress(KafkascopeError):
            if self.producer:
                await self.cluster.call("EndTxn", {**self.producer, "committed": False}, version=3)
        for group in (self.name, *self.members.values()):
            with contextlib.suppress(KafkascopeError):
                await self.ask("DeleteGroups", {"groupsNames": [group]})
        topics = [{"name": self.name}]
        with contextlib.suppress(KafkascopeError):
            await self.ask("DeleteTopics", {"topics": topics, "topicNames": [self.name], "timeoutMs": 10_000})


@asynccontextmanager
async def temporary_resources(cluster: Cluster) -> AsyncIterator[str]:
    """Yields the common prefix of all names."""
    resources = _TemporaryResources(cluster)
    try:
        await resources.set_up()
        yield resources.name
    finally:
        await resources.take_down()
