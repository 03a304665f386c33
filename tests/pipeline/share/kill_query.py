"""A query of its own on a share group, to be killed: records into a Delta table, each batch once by its number.

    python -m tests.pipeline.share.kill_query MASTER FOLDER SOURCE BOOTSTRAP NAME

`SOURCE` is `kafkascope-share`, or `control`, which acknowledges when a task's reader closes. `NAME` is topic and
group. In `FOLDER` are the checkpoint, the table `lake`, and in `steps` a file for each batch that tasks have read. It
runs until it is killed, or ends with a query that fails.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from tests.pipeline.kill_driver import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("partition", "offset", "value", "_delivery_count")
# Tasks of a control's batch, and seconds that one waits for records.
_TASKS, _WAIT = 2, 2.0
_SCHEMA = "partition int, offset long, value binary, _delivery_count int"


def main(master: str, folder: str, source: str, bootstrap: str, name: str) -> None:
    spark = session(master, folder, {})
    if source == "control":
        spark.dataSource.register(Control)
    reader = spark.readStream.format(source).option("bootstrap", bootstrap)
    rows = reader.option("group", name).option("topics", name).option("timeout", "60").load().select(*COLUMNS)
    lake, steps = f"{folder}/lake", Path(folder, "steps")
    steps.mkdir(exist_ok=True)

    def land(rows: "DataFrame", batch: int) -> None:
        table = rows.toArrow()
        if not table.num_rows or batch <= landed(lake, name):
            return
        Path(steps, str(batch)).touch()
        properties = CommitProperties(app_transactions=[Transaction(name, batch)])
        write_deltalake(lake, table, mode="append", commit_properties=properties)

    query = rows.writeStream.foreachBatch(land).option("checkpointLocation", f"{folder}/checkpoint")
    query.trigger(processingTime="0 seconds").start().awaitTermination()


def landed(lake: str, name: str) -> int:
    """The last batch that the table has."""
    try:
        number = DeltaTable(lake).transaction_version(name)
    except TableNotFoundError:
        return -1
    return -1 if number is None else number


class Control(DataSource):
    """What not to do: each task is a member of the group and accepts what it has read."""

    @classmethod
    def name(cls) -> str:
        return "control"

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
        return [InputPartition(number) for number in range(_TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        from kafkascope.client import plain_share_consumer

        options = self._options
        with plain_share_consumer(
            options["bootstrap"], group=options["group"], topics=options["topics"], timeout=60.0, max_records=10_000
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
