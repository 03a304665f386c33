"""The share consumer beside Kafka's own Java share consumer: records a second of one member, from one broker.

Each run has a topic and a group of its own, and accepts all records. They take turns; the best run of each counts. Time
is from the first record to the result of the last acknowledgement, so joining and the start of the JVM aren't in it.
"""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from uuid import uuid4

from kafkascope.client import share_consumer
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from lab.cluster import Cluster
from lab.jars import JVM, joined, program_path
from tests.client.consumer_stage import stage

_SOURCE = Path(__file__).parent / "java" / "ShareRead.java"
# (bytes of a record, records, records of a batch): fewer in a batch than a broker locks in a partition (2,000).
_CASES = ((100, 200_000, 1_000), (10_000, 9_000, 90))
_ROUNDS = 4
_LOCK = {"group.share.record.lock.duration.ms": "30000"}
_SECONDS = 60.0
# A broker of 4.3.1 now and then sends no more records of a partition to any member, Java's or ours, until its leader
# moves. Such a run doesn't count.
_STALLED = 15.0
_FLOOR, _AIM = 0.3, 1.0


def lines() -> Iterator[str]:
    yield f"{'records':<20}{'kafkascope /s':>15}{'by batch /s':>15}{'Java /s':>12}{'times Java':>12}"
    with Cluster(settings=_LOCK) as lab:
        for size, count, per_batch in _CASES:
            best = {"records": 0.0, "batches": 0.0, "java": 0.0}
            for _ in range(_ROUNDS):
                for how in best:
                    topic, group = asyncio.run(_prepare(lab.bootstrap, size, count, per_batch))
                    if how == "java":
                        rate = _java(lab.bootstrap, group, topic, count)
                    else:
                        rate = asyncio.run(_ours(lab.bootstrap, group, topic, count, by_batch=how == "batches"))
                    best[how] = max(best[how], rate)
            ratio = best["records"] / best["java"] if best["java"] else float("nan")
            yield (
                f"{f'{count:,} of {size:,} B':<20}{best['records']:>15,.0f}{best['batches']:>15,.0f}"
                f"{best['java']:>12,.0f}{ratio:>12.2f}"
            )
    yield f"Floor {_FLOOR:g}, aim {_AIM:g} times Java."


async def _prepare(bootstrap: str, size: int, count: int, per_batch: int) -> tuple[str, str]:
    name = f"bench-{uuid4().hex[:8]}"
    records = [Record(number, 1_700_000_000_000, None, bytes(size)) for number in range(per_batch)]
    data = encode_records([new_batch(records)])
    async with stage(bootstrap) as on:
        await on.topic(name, 2)
        await on.group(name)
        for number in range(count // per_batch):
            await on.produce_data(name, data, number % 2)
    return name, name


async def _ours(bootstrap: str, group: str, topic: str, count: int, *, by_batch: bool) -> float:
    begun, taken = 0.0, 0
    async with share_consumer(bootstrap, group=group, topics=topic, timeout=_SECONDS) as consumer:
        while taken < count:
            batch = await consumer.take(_STALLED)
            if batch is None:
                return 0.0
            begun = begun or perf_counter()
            if by_batch:
                batch.accept()
            else:
                for record in batch:
                    taken += record.value is None
                    record.accept()
            taken += len(batch)
        await consumer.commit()
        return count / (perf_counter() - begun)


def _java(bootstrap: str, group: str, topic: str, count: int) -> float:
    command = ["java", *JVM, "-Xmx256m", "-Dlog4j2.level=ERROR", "-cp", joined(program_path()), str(_SOURCE)]
    try:
        done = subprocess.run(
            [*command, bootstrap, group, topic, str(count)],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return 0.0
    nanoseconds, records = map(int, done.stdout.split()[-2:])
    assert records >= count
    return records / nanoseconds * 1e9
