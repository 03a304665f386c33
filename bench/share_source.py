"""The Spark source for share groups beside Spark's own Kafka source: records a second into a sink that drops them, in
batches of the same size. And two tasks of one partition beside one, with 5 ms of work for each record.

Time is what triggers took, from the second batch on: with the first one, Spark starts processes, compiles code and
plans the query, and the source joins the group. Its time is in a column of its own. Each case runs in a session of its
own process: `python -m bench.share_source CONFIG`, a JSON object."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from lab.cluster import Cluster
from tests.client.consumer_stage import stage

_POM = Path(__file__).with_name("spark_kafka.xml")
_JARS = Path(__file__).parents[1] / ".cache" / "bench" / "spark-kafka"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_LOCKS = {
    "group.share.record.lock.duration.ms": "30000",
    # As many as a broker allows, so that batches are large.
    "group.share.partition.max.record.locks": "10000",
    "group.share.max.partition.max.record.locks": "10000",
}
_PARTITIONS, _PER_BATCH = 16, 1_000
# (bytes of a record, records); a batch has what brokers lock at once. The environment may name fewer, for a first look,
# and more options of spark-submit (KAFKASCOPE_BENCH_SPARK), to compare them.
_MOST = int(os.environ.get("KAFKASCOPE_BENCH_SHARE_RECORDS", "800000"))
_CASES = ((100, min(800_000, _MOST)), (1_000, min(480_000, _MOST)))
_BATCH = 160_000
_ROUNDS = 2
_SLOW, _SLOW_SECONDS, _SLOW_BATCH = 1_600, 0.005, 800
_FLOOR, _AIM, _TASKS_FLOOR = 0.5, 0.8, 1.7


@dataclass(frozen=True, slots=True)
class Run:
    """`first` are the seconds of the first batch; `rate` is of the others together."""

    rate: float
    first: float
    batches: int


def lines() -> Iterator[str]:
    jars = ",".join(map(str, _spark_jars()))
    with Cluster(settings=_LOCKS) as lab:
        head = f"{'kafkascope-share':>18}{'kafka':>12}{'times kafka':>14}{'batches':>12}{'first batch, s':>18}"
        yield f"{'records a second':<24}{head}"
        for size, count in _CASES:
            topic = asyncio.run(_topic(lab.bootstrap, size, count, _PARTITIONS))
            runs: dict[str, list[Run]] = {"kafkascope-share": [], "kafka": []}
            for _ in range(_ROUNDS):
                for source, of_source in runs.items():
                    of_source.append(_run(lab.bootstrap, topic, count, source, jars))
            ours, theirs = (max(of_source, key=lambda run: run.rate) for of_source in runs.values())
            times = f"{ours.rate:>18,.0f}{theirs.rate:>12,.0f}{ours.rate / theirs.rate:>14.2f}"
            rest = f"{f'{ours.batches}, {theirs.batches}':>12}{f'{ours.first:.1f}, {theirs.first:.1f}':>18}"
            yield f"{f'{count:,} of {size:,} B':<24}{times}{rest}"
        yield f"Floor {_FLOOR:g}, aim {_AIM:g} times kafka. Batches have up to {_BATCH:,} records."
        topic = asyncio.run(_topic(lab.bootstrap, 100, _SLOW, 1))
        rates = [_run(lab.bootstrap, topic, _SLOW, "kafkascope-share", jars, tasks=tasks).rate for tasks in (1, 2)]
        yield (
            f"one partition, {1000 * _SLOW_SECONDS:g} ms of work per record: {rates[0]:,.0f} a second with one task,"
            f" {rates[1]:,.0f} with two, {rates[1] / rates[0]:.2f} times (floor {_TASKS_FLOOR:g})"
        )


def _spark_jars() -> list[Path]:
    if not list(_JARS.glob("spark-sql-kafka*.jar")):
        subprocess.run(["mvn", "-q", "-B", "-C", "-f", str(_POM), _COPY, f"-DoutputDirectory={_JARS}"], check=True)
    return sorted(_JARS.glob("*.jar"))


async def _topic(bootstrap: str, size: int, count: int, partitions: int) -> str:
    """With as many records in each partition."""
    name = f"bench-{uuid4().hex[:8]}"
    records = [Record(n, 1_700_000_000_000, None, os.urandom(size)) for n in range(_PER_BATCH)]
    data = encode_records([new_batch(records)])
    async with stage(bootstrap) as on:
        await on.topic(name, partitions)
        for number in range(partitions):
            whole, rest = divmod(count // partitions, _PER_BATCH)
            for part in [data] * whole + ([encode_records([new_batch(records[:rest])])] if rest else []):
                await on.produce_data(name, part, number)
    return name


def _run(bootstrap: str, topic: str, count: int, source: str, jars: str, tasks: int = 0) -> Run:
    group = f"bench-{uuid4().hex[:8]}"

    async def prepare() -> None:
        async with stage(bootstrap) as on:
            await on.group(group)

    asyncio.run(prepare())
    config = {
        "bootstrap": bootstrap, "topic": topic, "group": group, "source": source, "jars": jars, "tasks": tasks,
    }  # fmt: skip
    # Spark takes both cores, as both sources do.
    command = [sys.executable, "-m", "bench.share_source", json.dumps(config)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[1])
    done = json.loads(run.stdout.splitlines()[-1])
    rows, seconds = done["rows"], done["seconds"]
    assert sum(rows) == count, done
    return Run(sum(rows[1:]) / sum(seconds[1:]), seconds[0], len(rows))


def _measure(config: dict[str, Any]) -> dict[str, list[float]]:
    """Of each batch."""
    with tempfile.TemporaryDirectory() as folder:
        spark = _session(config["jars"], folder)
        reader = spark.readStream.format(config["source"])
        for name, value in _options(config).items():
            reader = reader.option(name, value)
        rows = reader.load()
        if config["tasks"]:
            rows = rows.mapInArrow(_work, rows.schema)
        writer = rows.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").start()
        query.awaitTermination()
        progress = [step for step in query.recentProgress if step["numInputRows"]]
        spark.stop()
    return {
        "rows": [step["numInputRows"] for step in progress],
        "seconds": [step["durationMs"]["triggerExecution"] / 1000 for step in progress],
    }


def _session(jars: str, folder: str) -> Any:
    from kafkascope.pipeline.session import local_session

    more = os.environ.get("KAFKASCOPE_BENCH_SPARK", "")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{more} --jars {jars} pyspark-shell"
    return local_session(2, memory="2g", log=f"{folder}/spark.log")


def _options(config: dict[str, Any]) -> dict[str, str]:
    if config["source"] == "kafka":
        return {
            "kafka.bootstrap.servers": config["bootstrap"], "subscribe": config["topic"],
            "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(_BATCH), "includeHeaders": "true",
        }  # fmt: skip
    options = {"bootstrap": config["bootstrap"], "topics": config["topic"], "group": config["group"]}
    options |= {"maxRecordsPerTrigger": str(_SLOW_BATCH if config["tasks"] else _BATCH)}
    return options | ({"minPartitions": str(config["tasks"])} if config["tasks"] else {})


def _work(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        time.sleep(_SLOW_SECONDS * len(batch))
        yield batch


if __name__ == "__main__":
    print(json.dumps(_measure(json.loads(sys.argv[1]))))
