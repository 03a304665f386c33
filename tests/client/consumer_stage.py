"""Topics, records and groups for tests of the share consumer, by our own client: fast, and no Java to start."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from kafkascope.client import Cluster, connect
from kafkascope.codec.records.record_data import Record, encode_records, new_batch

_GROUP_RESOURCE = 32
_SET = 0
# Records of one Produce.
_BATCH = 1_000
_TIME = 1_700_000_000_000
# Records of these tests are years old: a broker deletes such segments half a minute after it has started.
_KEPT = [{"name": "retention.ms", "value": "-1"}]


@asynccontextmanager
async def stage(bootstrap: str) -> AsyncIterator["Stage"]:
    async with connect(bootstrap, timeout=60.0) as cluster:
        yield Stage(cluster)


class Stage:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def topic(self, name: str, partitions: int = 1, replicas: int = 1) -> None:
        topic = {"name": name, "numPartitions": partitions, "replicationFactor": replicas}
        topic |= {"assignments": [], "configs": _KEPT}
        answer = await self.cluster.call("CreateTopics", {"topics": [topic], "timeoutMs": 30_000})
        assert answer.value["topics"][0]["errorCode"] == 0, answer.value

    async def group(self, name: str, **configs: str) -> None:
        """Reads from the start; `configs` with underscores for dots."""
        values = {"share_auto_offset_reset": "earliest"} | configs
        rows = [{"name": key.replace("_", "."), "configOperation": _SET, "value": text} for key, text in values.items()]
        resource = {"resourceType": _GROUP_RESOURCE, "resourceName": name, "configs": rows}
        answer = await self.cluster.call("IncrementalAlterConfigs", {"resources": [resource], "validateOnly": False})
        assert answer.value["responses"][0]["errorCode"] == 0, answer.value

    async def produce(self, topic: str, values: Iterable[bytes], partition: int = 0, compression: str = "none") -> None:
        held = list(values)
        for start in range(0, len(held), _BATCH):
            part = held[start : start + _BATCH]
            records = [Record(index, _TIME + index, b"k", value) for index, value in enumerate(part)]
            await self.produce_data(topic, encode_records([new_batch(records, compression=compression)]), partition)

    async def produce_data(self, topic: str, data: bytes, partition: int = 0) -> None:
        row: dict[str, Any] = {"index": partition, "records": data}
        value = {"acks": -1, "timeoutMs": 30_000, "topicData": [{"partitionData": [row]}]}
        topic_id = await self.cluster.topic_id(topic)
        value["topicData"][0] |= {"topicId": topic_id}  # type: ignore[index]
        answer = await self.cluster.call("Produce", value)
        code = answer.value["responses"][0]["partitionResponses"][0]["errorCode"]
        assert code == 0, code
