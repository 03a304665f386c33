"""Queries on the source `kafkascope-share` in a test's own session, and what they saw."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.errors import StreamingQueryException

from kafkascope.client.describe.share_group import ShareGroupView, describe_share_group
from tests.client.consumer_stage import Stage, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# An idle machine takes a fiftieth of it.
PATIENCE = 600
NO_PROCESS = "Python worker failed to connect back"
Land = Callable[["DataFrame", int], None]


def fresh() -> tuple[str, str]:
    """A topic and a group that no other test has."""
    number = uuid4().hex[:8]
    return f"source-{number}", f"source-group-{number}"


def prepared(bootstrap: str, values: Sequence[bytes], partitions: int = 1, **configs: str) -> tuple[str, str]:
    """A topic with these values in each partition, and a group that reads it from the start."""
    topic, group = fresh()

    async def run(on: Stage) -> None:
        await on.topic(topic, partitions)
        await on.group(group, **configs)
        for partition in range(partitions):
            await on.produce(topic, values, partition)

    staged(bootstrap, run)
    return topic, group


def produced(bootstrap: str, topic: str, values: Sequence[bytes]) -> None:
    staged(bootstrap, lambda on: on.produce(topic, values))


def staged(bootstrap: str, work: Callable[[Stage], Any]) -> Any:
    async def run() -> Any:
        async with stage(bootstrap) as on:
            return await work(on)

    return asyncio.run(run())


def view(bootstrap: str, group: str) -> ShareGroupView:
    view: ShareGroupView = staged(bootstrap, lambda on: describe_share_group(on.cluster, group))
    return view


def frame(
    spark: "SparkSession", bootstrap: str, topic: str, group: str, options: dict[str, object] | None = None
) -> "DataFrame":
    reader = spark.readStream.format("kafkascope-share").option("bootstrap", bootstrap)
    for name, value in {"group": group, "topics": topic, **(options or {})}.items():
        reader = reader.option(name, str(value))
    return reader.load()


def start(rows: "DataFrame", checkpoint: Path, land: Land, **trigger: Any) -> "StreamingQuery":
    writer = rows.writeStream.foreachBatch(land).option("checkpointLocation", str(checkpoint))
    return writer.trigger(**(trigger or {"availableNow": True})).start()


@contextmanager
def running(query: "StreamingQuery") -> Iterator["StreamingQuery"]:
    try:
        yield query
    finally:
        query.stop()


def finished(rows: "DataFrame", checkpoint: Path, land: Land) -> "StreamingQuery":
    """Ended by itself; its exception is raised. Spark waits 10 seconds for the process of a source to start. On a busy
    machine that may not be enough, and nothing has run."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with running(start(rows, checkpoint, land)) as query:
            try:
                assert query.awaitTermination(PATIENCE), query.status
            except StreamingQueryException as error:
                if NO_PROCESS not in str(error) or time.monotonic() > deadline:
                    raise
            else:
                return query


def metrics(query: "StreamingQuery") -> dict[str, Any]:
    """Of the last trigger."""
    progress = query.lastProgress
    assert progress is not None
    # A JSON string within JSON.
    text = json.loads(progress.sources[0].latestOffset)
    values: dict[str, Any] = json.loads(text) if isinstance(text, str) else text
    return values


class Landed:
    """A sink that keeps its batches."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Row]] = {}
        self.replays: list[int] = []

    def __call__(self, rows: "DataFrame", batch_id: int) -> None:
        if batch_id in self.batches:
            self.replays.append(batch_id)
        self.batches[batch_id] = sorted(rows.collect(), key=lambda row: (row["partition"], row["offset"]))

    def rows(self) -> list["Row"]:
        return [row for number in sorted(self.batches) for row in self.batches[number]]
