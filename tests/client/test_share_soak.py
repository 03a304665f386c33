"""A share group of Java and Python members on three brokers, while members are killed and join, a broker is killed and
leaders move: every record is accepted once, or accounted for."""

import asyncio
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from kafkascope.client import share_consumer
from kafkascope.client.consumer.results import Refused
from kafkascope.client.describe.share_group import describe_share_group
from lab.cluster import Cluster
from lab.program import Program, java
from tests.client.consumer_stage import Stage, stage

COUNT = int(os.environ.get("KAFKASCOPE_SHARE_RECORDS", "100000"))
PARTITIONS, STEP = 4, 250
SECONDS = 900.0
Place = tuple[int, int]


class Log:
    """What one member of ours did, record by record."""

    def __init__(self) -> None:
        self.accepted: Counter[Place] = Counter()
        self.unknown: set[Place] = set()

    def refused(self, part: Refused) -> None:
        for offset in range(part.first_offset, part.last_offset + 1):
            place = part.partition, offset
            if part.type == "accept":
                self.accepted[place] -= 1
                if part.unknown:
                    self.unknown.add(place)


async def consume(bootstrap: str, topic: str, group: str, log: Log, done: asyncio.Event) -> None:
    async with share_consumer(
        bootstrap, group=group, topics=topic, timeout=60.0, renew=True, on_refused=log.refused
    ) as consumer:
        while not done.is_set():
            batch = await consumer.take(0.5)
            for record in batch or ():
                if record.offset % 11 == 0 and record.delivery_count == 1:
                    record.release()
                else:
                    log.accepted[record.partition, record.offset] += 1
                    record.accept()


async def settled(on: Stage, group: str) -> bool:
    view = await describe_share_group(on.cluster, group)
    parts = view.partitions
    return len(parts) == PARTITIONS and all(part.lag == 0 for part in parts)


async def produce_all(on: Stage, topic: str, until: float, produced: list[int]) -> None:
    while produced[0] < until * COUNT:
        partition = produced[0] // STEP % PARTITIONS
        await on.produce(topic, [b"%d" % (produced[0] + number) for number in range(STEP)], partition)
        produced[0] += STEP


@pytest.mark.soak
@pytest.mark.heavy
def test_every_record_is_accepted_once_or_accounted_for(tmp_path: Path) -> None:
    async def run(lab: Cluster) -> tuple[Counter[Place], set[Place]]:
        async with stage(lab.bootstrap) as on:
            topic = group = "soak"
            await on.topic(topic, PARTITIONS, 3)
            await on.group(group)
            options = {"topic": topic, "kafka.bootstrap.servers": lab.bootstrap, "kafka.group.id": group}
            members: list[Program] = [java("ShareMember", f"java-{number}", tmp_path, options) for number in (1, 2)]
            try:
                for member in members:
                    await asyncio.to_thread(member.wait_for_event, "started")
                logs = [Log(), Log(), Log()]
                done, leaves = asyncio.Event(), asyncio.Event()
                tasks = [
                    asyncio.create_task(consume(lab.bootstrap, topic, group, log, end))
                    for log, end in zip(logs[:2], (done, leaves), strict=True)
                ]
                produced = [0]
                await produce_all(on, topic, 0.2, produced)
                members[1].process.tell("halt")
                await produce_all(on, topic, 0.4, produced)
                await asyncio.to_thread(lab.kill, 3)
                await produce_all(on, topic, 0.5, produced)
                await asyncio.to_thread(lab.start, 3)
                await asyncio.to_thread(lab.wait_until_ready)
                tasks.append(asyncio.create_task(consume(lab.bootstrap, topic, group, logs[2], done)))
                await produce_all(on, topic, 0.7, produced)
                # Leaders move back to the broker that was gone.
                value = {"electionType": 0, "topicPartitions": None, "timeoutMs": 30_000}
                await on.cluster.call("ElectLeaders", value)
                leaves.set()
                await produce_all(on, topic, 1.0, produced)
                deadline = time.monotonic() + SECONDS
                while not await settled(on, group):
                    assert time.monotonic() < deadline, (await describe_share_group(on.cluster, group)).partitions
                    await asyncio.sleep(1)
                done.set()
                await asyncio.gather(*tasks)
                await asyncio.to_thread(members[0].close)
            finally:
                for member in members:
                    member.process.stop()
            accepted = sum((log.accepted for log in logs), Counter[Place]())
            unknown = set().union(*(log.unknown for log in logs))
            for member in members:
                for event in member.events():
                    if event["event"] == "committed":
                        places = {(event["partition"], offset) for offset in event["offsets"]}
                        if event["error"] is None:
                            accepted.update(places)
                        else:
                            unknown |= places
                    elif event["event"] == "acknowledged" and member is members[1]:
                        unknown.add((event["partition"], event["offset"]))
            return +accepted, unknown

    with Cluster(3) as lab:
        accepted, unknown = asyncio.run(run(lab))
    wanted = {(partition, offset) for partition in range(PARTITIONS) for offset in range(COUNT // PARTITIONS)}
    doubled = {place: times for place, times in accepted.items() if times > 1}
    assert doubled == {}
    assert wanted - accepted.keys() - unknown == set()
    assert accepted.keys() <= wanted
