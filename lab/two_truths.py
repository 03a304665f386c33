"""Plays the share group and keeps both of its truths, `python -m lab.two_truths OUT`: a capture of the traffic and the
broker's data directory. Beside them are groups with commits, transactions that nobody ends, and what the broker itself
responds about all of it at the end."""

import asyncio
import json
import lzma
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from kafkascope.client import Cluster as Client
from kafkascope.client import connect
from kafkascope.codec.json_form import uuid_text
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from lab.cluster import Cluster
from lab.recipes import RECIPES
from lab.settings import PLAIN
from lab.stage import Stage
from lab.tcpdump import Recording

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    # A batch of a transaction that the coordinator doesn't know, as clients before KIP-890 could leave one.
    "transaction.partition.verification.enable": "false",
    "log.index.size.max.bytes": "8192",
    # The topic of share states keeps everything.
    "share.coordinator.state.topic.prune.interval.ms": "86400000",
}
GROUPS = ("auditors", "billing")
SHARE_GROUP = "processors"
_TOPIC, _GROUP = 2, 32
_NO_MEMBER: dict[str, Any] = {"generationIdOrMemberEpoch": -1, "memberId": "", "groupInstanceId": None}


def keep(out: Path, say: Callable[[str], None]) -> None:
    with tempfile.TemporaryDirectory(prefix="kafkascope-truths-") as place:
        folder = Path(place)
        with Cluster(settings=SETTINGS) as cluster:
            recording = Recording([cluster.ports[1][PLAIN[0]]], folder / "capture.pcap")
            recording.start()
            with Stage(cluster, folder, say) as stage:
                RECIPES["share"].play(stage)
            recording.stop()
            recording.check()
            asyncio.run(_more(cluster.bootstrap))
            answers = asyncio.run(_answers(cluster.bootstrap))
            cluster.stop(1)
            shutil.copytree(cluster.nodes[1].place.folder / "data", out / "node-1")
        (out / "answers.json").write_text(json.dumps(answers, indent=1, default=_plain) + "\n")
        (out / "capture.pcap.xz").write_bytes(lzma.compress((folder / "capture.pcap").read_bytes()))


async def _more(bootstrap: str) -> None:
    async with connect(bootstrap, timeout=60.0) as client:
        await _ask(client, "CreateTopics", {"topics": [_topic("ledger"), _topic("doomed")], "timeoutMs": 30_000})
        acls = [
            {"resourceType": _TOPIC, "resourceName": name, "resourcePatternType": 3, "principal": "User:alice",
             "host": "*", "operation": 3, "permissionType": 3}
            for name in ("ledger", "orders")
        ]  # fmt: skip
        await _ask(client, "CreateAcls", {"creations": acls})
        await _configure(client, _TOPIC, "ledger", "retention.bytes", "123456789")
        await _configure(client, _TOPIC, "ledger", "retention.bytes", None)
        await _configure(client, _TOPIC, "ledger", "max.message.bytes", "2000000")
        for group in GROUPS:
            for offset in (3, 9, 5 if group == "billing" else 12):
                await _commit(client, group, {"orders": {0: offset}, "payments": {0: offset, 1: 1}})
        removed = {"groupId": "billing", "topics": [{"name": "payments", "partitions": [{"partitionIndex": 1}]}]}
        await _ask(client, "OffsetDelete", removed)
        await _commit(client, "leftovers", {"doomed": {0: 0}})
        await _ask(client, "DeleteTopics", {"topics": [{"name": "doomed"}], "timeoutMs": 30_000})
        await _transaction(client, "open-1", ended=False)
        await _transaction(client, "whole-1", ended=True)
        await _transaction(client, "lost-1", ended=False, announced=False)


def _topic(name: str) -> dict[str, Any]:
    return {"name": name, "numPartitions": 2, "replicationFactor": 1, "assignments": [], "configs": []}


async def _configure(client: Client, kind: int, name: str, key: str, value: str | None) -> None:
    row = {"name": key, "configOperation": 1 if value is None else 0, "value": value}
    resource = {"resourceType": kind, "resourceName": name, "configs": [row]}
    await _ask(client, "IncrementalAlterConfigs", {"resources": [resource], "validateOnly": False})


async def _commit(client: Client, group: str, offsets: dict[str, dict[int, int]]) -> None:
    topics = [
        {"name": topic, "partitions": [
            {"partitionIndex": partition, "committedOffset": offset, "committedLeaderEpoch": -1,
             "committedMetadata": ""} for partition, offset in rows.items()]}
        for topic, rows in offsets.items()
    ]  # fmt: skip
    await _ask(client, "OffsetCommit", {"groupId": group, **_NO_MEMBER, "topics": topics}, version=9)


async def _transaction(client: Client, name: str, *, ended: bool, announced: bool = True) -> None:
    """Three records in partition 0 of `ledger`; if not `told`, the coordinator doesn't learn that they are part of a
    transaction."""
    begun = await _ask(client, "InitProducerId", {"transactionalId": name, "transactionTimeoutMs": 900_000})
    producer = {"producer_id": begun["producerId"], "producer_epoch": begun["producerEpoch"]}
    who = {"transactionalId": name, "producerId": begun["producerId"], "producerEpoch": begun["producerEpoch"]}
    if announced:
        partitions = [{"name": "ledger", "partitions": [0, 1]}]
        v3 = {"v3AndBelowTransactionalId": name, "v3AndBelowProducerId": begun["producerId"],
              "v3AndBelowProducerEpoch": begun["producerEpoch"], "v3AndBelowTopics": partitions}  # fmt: skip
        await _ask(client, "AddPartitionsToTxn", v3, version=3)
    now = time.time_ns() // 1_000_000
    records = [Record(index, now + index, b"k", b"%d" % index) for index in range(3)]
    data = encode_records([new_batch(records, base_sequence=0, is_transactional=True, **producer)])
    row = {"index": 0, "records": data}
    value = {"transactionalId": name, "acks": -1, "timeoutMs": 30_000}
    await _ask(client, "Produce", {**value, "topicData": [{"name": "ledger", "partitionData": [row]}]}, version=11)
    if ended:
        await _ask(client, "EndTxn", {**who, "committed": True}, version=4)


async def _answers(bootstrap: str) -> dict[str, Any]:
    """What describes the cluster now, as the broker says it."""
    async with connect(bootstrap, timeout=60.0) as client:
        metadata = await _ask(client, "Metadata", {"topics": None})
        topics = [topic["name"] for topic in metadata["topics"]]
        resources = [{"resourceType": _TOPIC, "resourceName": name, "configurationKeys": None} for name in topics]
        resources += [{"resourceType": _GROUP, "resourceName": SHARE_GROUP, "configurationKeys": None}]
        configs = await _ask(client, "DescribeConfigs", {"resources": resources})
        groups = [{"groupId": group, "topics": None} for group in (*GROUPS, "leftovers")]
        share = {"groups": [{"groupId": SHARE_GROUP, "topics": None}]}
        partitions = [{"name": "ledger", "partitionIndexes": [0]}]
        any_acl = {"resourceTypeFilter": 1, "resourceNameFilter": None, "patternTypeFilter": 1, "principalFilter": None,
                   "hostFilter": None, "operation": 1, "permissionType": 1}  # fmt: skip
        software = {"clientSoftwareName": "lab", "clientSoftwareVersion": "1"}
        return {
            "Metadata": metadata,
            "DescribeConfigs": configs,
            "ApiVersions": await _ask(client, "ApiVersions", software),
            "DescribeAcls": await _ask(client, "DescribeAcls", any_acl),
            "OffsetFetch": [await _ask(client, "OffsetFetch", {"groups": [group]}, version=9) for group in groups],
            "DescribeShareGroupOffsets": await _ask(client, "DescribeShareGroupOffsets", share),
            "DescribeProducers": await _ask(client, "DescribeProducers", {"topics": partitions}),
            "ListTransactions": await _ask(client, "ListTransactions", {}),
        }


async def _ask(client: Client, api: str, value: dict[str, Any], version: int | None = None) -> dict[str, Any]:
    answer = await client.call(api, value, version=version)
    if '"errorCode": 0' not in json.dumps(answer.value, default=_plain) and "errorCode" in str(answer.value):
        raise RuntimeError(f"{api}: {answer.value}")
    return dict(answer.value)


def _plain(value: object) -> object:
    return uuid_text(value) if isinstance(value, UUID) else str(value)


if __name__ == "__main__":
    keep(Path(sys.argv[1]), lambda line: print(line, flush=True))
