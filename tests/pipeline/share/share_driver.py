"""A driver's program for the tests of kills: reads a share group into a Delta table until nothing is left, and dies
at a chosen moment. `python -m tests.pipeline.share.share_driver CONFIG`, a JSON object."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APP = "test"
COLUMNS = ("partition", "offset", "value")


def session(master: str, folder: str) -> "SparkSession":
    from kafkascope.pipeline.session import local_session

    if master.startswith("local["):
        return local_session(2, log=f"{folder}/spark.log")
    from pyspark.sql import SparkSession

    from tests.pipeline.cluster import as_options, environment, job_settings

    os.environ.update(environment())
    builder = SparkSession.builder.master(master)
    words = as_options(job_settings(2))
    for pair in words[1::2]:
        name, _, value = pair.partition("=")
        builder = builder.config(name, value)
    builder = builder.config("spark.executor.memory", "512m")
    return builder.config("spark.executor.extraJavaOptions", "-XX:+UseSerialGC").getOrCreate()


def land(config: dict[str, Any], jvm: int) -> Any:
    """The sink: a batch is one commit, once. It dies before or after it."""
    kill: dict[str, Any] = config.get("kill") or {}

    def run(rows: "DataFrame", batch_id: int) -> None:
        chosen = rows.select(*COLUMNS)
        if kill.get("when") == "task" and batch_id == kill["batch"]:
            chosen = chosen.mapInArrow(killing(config["mark"]), chosen.schema)
        table = chosen.toArrow()
        die(kill, "before", batch_id, jvm)
        path = config["table"]
        known = DeltaTable(path).transaction_version(APP) if DeltaTable.is_deltatable(path) else None
        if known is None or known < batch_id:
            properties = CommitProperties(app_transactions=[Transaction(APP, batch_id)])
            write_deltalake(path, table, mode="append", commit_properties=properties)
        die(kill, "after", batch_id, jvm)

    return run


def die(kill: dict[str, Any], when: str, batch_id: int, jvm: int) -> None:
    if kill.get("when") == when and kill["batch"] == batch_id:
        os.kill(jvm, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def killing(mark: str) -> Any:
    """In a task: the first one to take the mark kills the process of its executor."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)
        try:
            os.unlink(mark)
        except FileNotFoundError:
            pass
        else:
            daemon = os.getppid()
            executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(executor, signal.SIGKILL)
        yield from batches

    return run


class EagerSource(DataSource):
    """What not to do: tasks acquire, and acknowledge when they have read. A batch is only a number in Spark's log."""

    @classmethod
    def name(cls) -> str:
        return "eager"

    def schema(self) -> str:
        return "partition int, offset bigint, value binary"

    def streamReader(self, schema: Any) -> "EagerReader":  # noqa: ARG002, N802
        return EagerReader(dict(self.options))


class EagerReader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"batch": 0}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: ARG002, N802
        return {"batch": min(start["batch"] + 1, int(self._options["batches"]))}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(end["batch"])] if end != start else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:  # noqa: ARG002
        from kafkascope.client import plain_share_consumer

        options = self._options
        left = int(options["records"])
        with plain_share_consumer(
            options["bootstrap"], group=options["group"], topics=options["topics"], acquire_mode="record_limit",
            max_records=left, timeout=60.0,
        ) as consumer:  # fmt: skip
            while left > 0 and (batch := consumer.take(10.0)):
                left -= len(batch)
                for record in batch:
                    yield record.partition, record.offset, record.value
                batch.accept()
                consumer.commit()


def main(config: dict[str, Any]) -> None:
    spark = session(config["master"], config["folder"])
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    spark.dataSource.register(EagerSource)
    reader = spark.readStream.format(config["format"])
    for name, value in config["options"].items():
        reader = reader.option(name, value)
    writer = reader.load().writeStream.foreachBatch(land(config, jvm))
    trigger: dict[str, Any] = {"availableNow": True} if config["format"] != "eager" else {"processingTime": "0 seconds"}
    query = writer.option("checkpointLocation", config["checkpoint"]).trigger(**trigger).start()
    if config["format"] == "eager":
        query.processAllAvailable()
        query.stop()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
