"""Queries on share groups, to be killed. Each puts the records of a topic into a Delta table, each batch once by its
number.

    python -m tests.pipeline.share.kill_query MASTER FOLDER BOOTSTRAP NAME LIMIT SOURCE…

`SOURCE` is `kafkascope-share`, or `control`, which acknowledges when a task's reader closes. Each has a topic and a
group `NAME-SOURCE`, and a folder with its checkpoint and its table `lake`. `LIMIT` is the records of a batch. They run
until they are killed, or one of them fails.

Where the file `hold` names a step of a batch, the next batch stops there until the file is gone or has another text.
`held` in the folder of the source shows that it has.
"""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from tests.pipeline.kill_driver import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARE, CONTROL = "kafkascope-share", "control"
# In Spark's offset log; a task has read some of it; all tasks are done; the table has it.
HELD_STEPS = ("planned", "reading", "read", "landed")
COLUMNS = ("partition", "offset", "value", "_delivery_count")
_SCHEMA = "partition int, offset long, value binary, _delivery_count int"
TASKS = 4
# Of a control's batch, and the seconds that one waits for records.
_CONTROL_TASKS, _WAIT = 2, 2.0
_LOOK = 0.01


def main(master: str, folder: str, bootstrap: str, name: str, limit: str, *sources: str) -> None:
    spark = session(master, folder, {})
    spark.dataSource.register(Control)
    for source in sources:
        _start(spark, Path(folder), source, {"bootstrap": bootstrap, "name": f"{name}-{source}", "limit": limit})
    spark.streams.awaitAnyTermination()


def _start(spark: "SparkSession", folder: Path, source: str, names: dict[str, str]) -> None:
    reader = spark.readStream.format(source).option("bootstrap", names["bootstrap"])
    reader = reader.option("group", names["name"]).option("topics", names["name"])
    reader = reader.option("maxRecordsPerTrigger", names["limit"])
    if source == SHARE:
        reader = reader.option("timeout", "60").option("minPartitions", str(TASKS))
    place = folder / source
    writer = reader.load().select(*COLUMNS).writeStream.foreachBatch(_land(folder / "hold", place, names["name"]))
    writer.option("checkpointLocation", str(place / "checkpoint")).trigger(processingTime="0 seconds").start()


def _land(hold: Path, place: Path, application: str) -> Callable[["DataFrame", int], None]:
    lake, held = str(place / "lake"), place / "held"

    def land(rows: "DataFrame", batch: int) -> None:
        pause(hold, held, "planned")
        if _wanted(hold).startswith("reading "):
            rows = rows.mapInArrow(_pausing(hold, held), rows.schema)
        table = rows.toArrow()
        if not table.num_rows:
            return
        pause(hold, held, "read")
        if batch > landed(lake, application):
            properties = CommitProperties(app_transactions=[Transaction(application, batch)])
            write_deltalake(lake, table, mode="append", commit_properties=properties)
        pause(hold, held, "landed")

    return land


def _pausing(hold: Path, held: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            pause(hold, held, "reading")

    return run


def pause(hold: Path, held: Path, step: str) -> None:
    """Whoever makes `held` waits; other tasks go on."""
    wanted = _wanted(hold)
    if not wanted.startswith(f"{step} "):
        return
    try:
        held.touch(exist_ok=False)
    except FileExistsError:
        return
    while _wanted(hold) == wanted:
        time.sleep(_LOOK)


def _wanted(hold: Path) -> str:
    try:
        return hold.read_text()
    except FileNotFoundError:
        return ""


def landed(lake: str, application: str) -> int:
    """The last batch that the table has."""
    try:
        number = DeltaTable(lake).transaction_version(application)
    except TableNotFoundError:
        return -1
    return -1 if number is None else number


class Control(DataSource):
    """What not to do: each task is a member of the group and accepts what it has read."""

    @classmethod
    def name(cls) -> str:
        return CONTROL

    def schema(self) -> str:
        return _SCHEMA

    def streamReader(self, schema: Any) -> "ControlReader":  # noqa: ARG002, N802
        return ControlReader(dict(self.options))


class ControlReader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._number = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"batch": 0}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        self._number += 1
        return {"batch": self._number}

    def partitions(self, start: Any, end: Any) -> list[InputPartition]:  # noqa: ARG002
        self._number = max(self._number, end["batch"])
        return [InputPartition(number) for number in range(_CONTROL_TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        from kafkascope.client import plain_share_consumer

        options = self._options
        with plain_share_consumer(
            options["bootstrap"],
            group=options["group"],
            topics=options["topics"],
            timeout=60.0,
            acquire_mode="record_limit",
            max_records=int(options["maxrecordspertrigger"]) // _CONTROL_TASKS,
        ) as consumer:
            batch = consumer.take(_WAIT)
            if batch is not None:
                numbers = pa.array([batch.partition] * len(batch), pa.int32())
                offsets = pa.array([record.offset for record in batch.records], pa.int64())
                values = pa.array([record.value for record in batch.records], pa.binary())
                counts = pa.array(batch.delivery_counts, pa.int32())
                yield pa.RecordBatch.from_arrays([numbers, offsets, values, counts], names=list(COLUMNS))
                batch.accept()


if __name__ == "__main__":
    main(*sys.argv[1:])
