"""What the live tests share: one cluster asked from plain functions, records on it, and Kafka's own tools beside it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from kafkascope.client import Answer, Cluster, connect
from kafkascope.client.settings import Settings
from kafkascope.codec.records.record_data import encode_records
from kafkascope.codec.records.record_types import Record, new_batch
from lab.program import Program

T = TypeVar("T")
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
SHARE = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
STREAMS = "org.apache.kafka.tools.streams.StreamsGroupCommand"


def see(where: str | Settings, ask: Callable[[Cluster], Awaitable[T]]) -> T:
    """One connection, one question."""

    async def run() -> T:
        async with connect(where) as cluster:
            return await ask(cluster)

    return asyncio.run(run())


def call(where: str | Settings, api: str, value: dict[str, Any], **more: Any) -> Answer:
    return see(where, lambda cluster: cluster.call(api, value, **more))


def create_topics(where: str, *topics: tuple[str, int, int]) -> None:
    """Name, partitions, replicas; one that is there already stays."""
    rows = [{"name": name, "numPartitions": count, "replicationFactor": copies} for name, count, copies in topics]
    answer = call(where, "CreateTopics", {"topics": rows, "timeoutMs": 20_000})
    assert {topic["errorCode"] for topic in answer.value["topics"]} <= {0, 36}, answer.value


def set_group(where: str, group: str, **configs: str) -> None:
    rows = [{"name": name.replace("_", "."), "configOperation": 0, "value": value} for name, value in configs.items()]
    request = {"resources": [{"resourceType": 32, "resourceName": group, "configs": rows}], "validateOnly": False}
    answer = call(where, "IncrementalAlterConfigs", request)
    assert answer.value["responses"][0]["errorCode"] == 0, answer.value


def produce(where: str, topic: str, partition: int, count: int) -> None:
    now = time.time_ns() // 1_000_000
    records = encode_records([new_batch([Record(number, now, None, b"v%d" % number) for number in range(count)])])
    part = {"index": partition, "records": records}

    async def send(cluster: Cluster) -> None:
        topics = {"name": topic, "partitionData": [part]}
        request = {"acks": -1, "timeoutMs": 10_000, "topicData": [topics]}
        answer = await cluster.call("Produce", request, version=11)
        assert answer.value["responses"][0]["partitionResponses"][0]["errorCode"] == 0, answer.value

    see(where, send)


class Tools:
    """Kafka's command line tools in one JVM."""

    def __init__(self, program: Program, bootstrap: str, settings: Path) -> None:
        # a frozen node does not answer: give up soon and ask another
        settings.write_text("request.timeout.ms=1000\ndefault.api.timeout.ms=30000\n")
        self._settings = settings
        self._program = program
        self._bootstrap = bootstrap
        self._count = 0

    def run(self, tool: str, *arguments: str, bootstrap: str | None = None) -> list[str]:
        """What it printed; it must have succeeded."""
        number, self._count = self._count, self._count + 1
        words = [tool, "--bootstrap-server", bootstrap or self._bootstrap]
        words += ["--command-config", str(self._settings), *arguments]
        self._program.process.tell("\t".join(words))
        event = self._program.wait_for(
            f"{tool} {' '.join(arguments)}", lambda line: line["event"] == "printed" and line["number"] == number
        )
        lines: list[str] = event["lines"]
        assert event["status"] == 0, lines
        return lines

    def table(self, tool: str, *arguments: str) -> list[dict[str, str]]:
        """Rows by column; a value that is not there leaves no hole, since tools print `-`."""
        head, *rows = self.run(tool, *arguments)
        names = head.replace("COORDINATOR (ID)", "COORDINATOR ID").split()
        return [dict(zip(names, row.split(), strict=False)) for row in rows]

    def close(self) -> None:
        self._program.close()
