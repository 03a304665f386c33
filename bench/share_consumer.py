"""The share consumer beside Java's and confluent-kafka's: records a second of one member, from one broker.

Each run has a topic and a group of its own, and accepts all records. They take turns; the best run of each counts. Time
is from the first record to the result of the last acknowledgement, so joining and the start of the JVM aren't in it.
Processor time is of the client's process, in the same run.
Then renewals and acknowledgements a second, and memory over a million records (`share_acks`).
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple
from uuid import uuid4

from bench.child import run
from bench.share_acks import MILLION, ack_lines, times
from kafkascope.client import share_consumer
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from lab.cluster import Cluster
from lab.jars import JVM, PYTHON_CLIENTS, joined, program_path, python_path
from tests.client.consumer_stage import stage

_HERE = Path(__file__).parent
_CONFLUENT = PYTHON_CLIENTS[0]
# (bytes of a record, records, records of a batch): fewer in a batch than a broker locks in a partition (2,000).
_CASES = ((100, 200_000, 1_000), (10_000, 9_000, 90))
_ROUNDS = 4
_LOCK = {"group.share.record.lock.duration.ms": "30000"}
_SECONDS = 60.0
# Where others work on the same cores, a broker of 4.3.1 may send nothing for this long, to Java's consumer as to ours.
# Such a run doesn't count.
_STALLED = 15.0
_FLOOR, _AIM = 0.3, 1.0


class Run(NamedTuple):
    """Records a second, and microseconds of processor time for each."""

    rate: float
    cost: float


STALLED = Run(0.0, 0.0)


def lines() -> Iterator[str]:
    yield f"{'records a second':<20}{'kafkascope':>12}{'by batch':>12}{'Java':>12}{'confluent':>12}{'times Java':>12}"
    with Cluster(settings=_LOCK) as lab:

        def prepare(size: int, count: int, per_batch: int) -> tuple[str, str]:
            return asyncio.run(_prepare(lab.bootstrap, size, count, per_batch))

        for size, count, per_batch in _CASES:
            best = dict.fromkeys(("records", "batches", "java", "confluent"), STALLED)
            for _ in range(_ROUNDS):
                for how in best:
                    topic, group = prepare(size, count, per_batch)
                    best[how] = max(best[how], _run(how, lab.bootstrap, group, topic, count))
            rates, costs = [run.rate for run in best.values()], [run.cost for run in best.values()]
            yield f"{f'{count:,} of {size:,} B':<20}" + "".join(f"{rate:>12,.0f}" for rate in rates) + _ratio(rates)
            yield f"{'  us of processor':<20}" + "".join(f"{cost:>12.2f}" for cost in costs) + _ratio(costs)
        yield f"Floor {_FLOOR:g}, aim {_AIM:g} times Java. The share consumer of {_CONFLUENT} is a preview."
        yield from ack_lines(lab.bootstrap, prepare, _java_rate)
        topic, group = prepare(100, MILLION, 1_000)
        child = [sys.executable, "-m", "bench.share_acks", lab.bootstrap, group, topic, str(MILLION)]
        sizes = json.loads(run(child, keep=True).output)
        yield f"memory after each 100,000 of {MILLION:,} records, MB: {' '.join(f'{size / 1e6:.0f}' for size in sizes)}"


def _ratio(values: list[float]) -> str:
    return f"{times(values[0], values[2]):>12.2f}"


def _run(how: str, bootstrap: str, group: str, topic: str, count: int) -> Run:
    if how == "java":
        return _java("ShareRead", bootstrap, group, topic, str(count))
    if how == "confluent":
        return _confluent(bootstrap, group, topic, str(count))
    return asyncio.run(_ours(bootstrap, group, topic, count, by_batch=how == "batches"))


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


async def _ours(bootstrap: str, group: str, topic: str, count: int, *, by_batch: bool) -> Run:
    begun, processor, taken = 0.0, 0.0, 0
    async with share_consumer(bootstrap, group=group, topics=topic, timeout=_SECONDS) as consumer:
        while taken < count:
            batch = await consumer.take(_STALLED)
            if batch is None:
                return STALLED
            begun, processor = begun or perf_counter(), processor or process_time()
            if by_batch:
                batch.accept()
            else:
                for record in batch:
                    taken += record.value is None
                    record.accept()
            taken += len(batch)
        await consumer.commit()
        seconds = process_time() - processor
        return Run(count / (perf_counter() - begun), seconds / count * 1e6)


def _java_rate(program: str, *arguments: str) -> float:
    return _java(program, *arguments).rate


def _java(program: str, *arguments: str) -> Run:
    source = _HERE / "java" / f"{program}.java"
    command = ["java", *JVM, "-Xmx256m", "-Dlog4j2.level=ERROR", "-cp", joined(program_path()), str(source), *arguments]
    return _peer(command, {})


def _confluent(*arguments: str) -> Run:
    command = [sys.executable, str(_HERE / "python_share.py"), *arguments]
    return _peer(command, {"PYTHONPATH": str(python_path(_CONFLUENT))})


def _peer(command: list[str], environment: dict[str, str]) -> Run:
    """Of a program that prints nanoseconds, a count and maybe nanoseconds of processor time last."""
    variables = {**os.environ, **environment}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True, env=variables)
    except subprocess.TimeoutExpired:
        return STALLED
    nanoseconds, count, *processor = map(int, done.stdout.splitlines()[-1].split())
    return Run(count / nanoseconds * 1e9, processor[0] / count / 1e3 if processor else 0.0)
