"""Plays a share group of Java and Python members on three brokers, and keeps every log of it. Members join, leave and
are killed, a broker is killed, leaders move, and tcpdump records all of it."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from kafkascope.client import share_consumer
from kafkascope.client.describe.share_group import SharePartition, describe_share_group
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.errors import ReachError
from lab.cluster import Cluster
from lab.program import Event, Program, java
from lab.tcpdump import Recording
from tests.client.consumer_stage import Stage, stage
from tests.client.share_accounts import Account, StateWrite, java_account, state_writes

PARTITIONS, STEP = 4, 250
GROUP = TOPIC = "soak"
KILLED = 3
# An idle machine takes a minute for 100,000 records.
SECONDS = 900.0
_TIME = 1_700_000_000_000
# The topic of share states keeps everything: its prune would delete what a snapshot has replaced.
SETTINGS = {"share.coordinator.state.topic.prune.interval.ms": "86400000"}


@dataclass(frozen=True, slots=True)
class Played:
    """`accounts` are by client id. `writes` is the state topic as each node has it on its disk."""

    accounts: dict[str, Account]
    partitions: tuple[SharePartition, ...]
    writes: dict[int, list[StateWrite]]
    capture: Path
    leaders: list[dict[int, int]]


def play(count: int, folder: Path) -> Played:
    with Cluster(3, settings=SETTINGS) as lab:
        capture = folder / "capture.pcap"
        recording = Recording([ports["PLAINTEXT"] for ports in lab.ports.values()], capture)
        with recording:
            recording.start()
            accounts, partitions, leaders = asyncio.run(_run(lab, count, folder))
            disks = {number: node.place.folder / "data" for number, node in lab.nodes.items()}
            writes = _settled_writes(disks)
        recording.check()
    return Played(accounts, partitions, writes, capture, leaders)


async def _run(
    lab: Cluster, count: int, folder: Path
) -> tuple[dict[str, Account], tuple[SharePartition, ...], list[dict[int, int]]]:
    accounts = {f"python-{number}": Account(f"python-{number}") for number in (1, 2, 3)}
    leaders: list[dict[int, int]] = []
    async with stage(lab.bootstrap) as on, _java_members(lab, folder) as members:
        done, leaves = asyncio.Event(), asyncio.Event()
        tasks: list[asyncio.Task[None]] = []

        def join(number: int, end: asyncio.Event) -> None:
            account = accounts[f"python-{number}"]
            tasks.append(asyncio.create_task(_consume(lab.bootstrap, account, end)))

        await on.topic(TOPIC, PARTITIONS, 3)
        await on.group(GROUP)
        for member in members:
            await asyncio.to_thread(member.wait_for, "partitions", _has_partitions)
        join(1, done)
        join(2, leaves)
        producer = _Producer(on, count)
        await producer.produce(0.2)
        while not any(event["event"] == "delivered" for event in members[1].events()):
            await producer.produce_some()
            await asyncio.sleep(0.3)
        members[1].process.tell("halt")
        await producer.produce(0.4)
        leaders.append(await _leaders(on))
        await asyncio.to_thread(lab.kill, KILLED)
        await producer.produce(0.5)
        leaders.append(await _leaders(on))
        await asyncio.to_thread(lab.start, KILLED)
        await asyncio.to_thread(lab.wait_until_ready)
        join(3, done)
        await producer.produce(0.7)
        await _move_leaders_back(on)
        leaders.append(await _leaders(on))
        leaves.set()
        await producer.produce(1.0)
        partitions = await _settled(on)
        done.set()
        await asyncio.gather(*tasks)
        await asyncio.to_thread(members[0].close)
        for member in members:
            accounts[member.who] = java_account(member.who, member.events())
    return accounts, partitions, leaders


def _has_partitions(event: Event) -> bool:
    assignment = event["event"] == "received" and event["body"]["assignment"]
    return bool(assignment and assignment["topicPartitions"])


@asynccontextmanager
async def _java_members(lab: Cluster, folder: Path) -> AsyncIterator[list[Program]]:
    options = {"topic": TOPIC, "kafka.bootstrap.servers": lab.bootstrap, "kafka.group.id": GROUP}
    members = [java("ShareMember", f"java-{number}", folder, options) for number in (1, 2)]
    try:
        yield members
    finally:
        for member in members:
            member.process.stop()


async def _consume(bootstrap: str, account: Account, done: asyncio.Event) -> None:
    """Accepts everything but every eleventh record, which it releases the first time."""
    async with share_consumer(
        bootstrap,
        group=GROUP,
        topics=TOPIC,
        timeout=60.0,
        client_id=account.client,
        renew=True,
        on_refused=account.refused,
    ) as consumer:
        while not done.is_set():
            batch = await consumer.take(0.5)
            for record in batch or ():
                place = record.partition, record.offset
                account.delivered(place, record.delivery_count)
                if record.offset % 11 == 0 and record.delivery_count == 1:
                    record.release()
                    account.acknowledged(place, record.delivery_count, "released")
                else:
                    record.accept()
                    account.acknowledged(place, record.delivery_count, "accepted")
    assert consumer.metrics.gaps == 0, "this topic has none"
    account.acquired = consumer.metrics.acquired


class _Producer:
    """Idempotent, so that it may send again what a broker had in hand when it was killed."""

    def __init__(self, on: Stage, count: int) -> None:
        self.on, self.count = on, count
        self.produced = 0
        self.producer_id = -1
        self.sequences: Counter[int] = Counter()

    async def produce(self, until: float) -> None:
        while self.produced < until * self.count:
            await self.produce_some()

    async def produce_some(self) -> None:
        assert self.produced < self.count
        if self.producer_id < 0:
            answer = await self.on.cluster.call("InitProducerId", {"transactionalId": None})
            self.producer_id = answer.value["producerId"]
        partition = self.produced // STEP % PARTITIONS
        records = [Record(index, _TIME, b"k", b"%d" % (self.produced + index)) for index in range(STEP)]
        batch = new_batch(
            records, producer_id=self.producer_id, producer_epoch=0, base_sequence=self.sequences[partition]
        )
        data = encode_records([batch])
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                await self.on.produce_data(TOPIC, data, partition)
                break
            except ReachError:
                assert time.monotonic() < deadline
        self.sequences[partition] += STEP
        self.produced += STEP


async def _leaders(on: Stage) -> dict[int, int]:
    answer = await on.cluster.call("Metadata", {"topics": [{"name": TOPIC}], "allowAutoTopicCreation": False})
    return {row["partitionIndex"]: row["leaderId"] for row in answer.value["topics"][0]["partitions"]}


async def _move_leaders_back(on: Stage) -> None:
    """To the broker that was gone, as soon as it has caught up."""
    topic = {"topic": TOPIC, "partitions": list(range(PARTITIONS))}
    value = {"electionType": 0, "topicPartitions": [topic], "timeoutMs": 30_000}
    deadline = time.monotonic() + SECONDS
    while KILLED not in (await _leaders(on)).values():
        assert time.monotonic() < deadline
        await on.cluster.call("ElectLeaders", value)
        await asyncio.sleep(0.2)


async def _settled(on: Stage) -> tuple[SharePartition, ...]:
    deadline = time.monotonic() + SECONDS
    while True:
        partitions = (await describe_share_group(on.cluster, GROUP)).partitions
        if len(partitions) == PARTITIONS and all(partition.lag == 0 for partition in partitions):
            return partitions
        assert time.monotonic() < deadline, partitions
        await asyncio.sleep(0.5)


def _settled_writes(disks: dict[int, Path]) -> dict[int, list[StateWrite]]:
    """Once the replicas have the same."""
    deadline = time.monotonic() + SECONDS
    while True:
        writes = {number: state_writes(disk, GROUP) for number, disk in disks.items()}
        if len({tuple(each) for each in writes.values()}) == 1:
            return writes
        assert time.monotonic() < deadline, {number: len(each) for number, each in writes.items()}
        time.sleep(0.5)
