"""The source `kafkascope-share` against a real broker, in a session of this process."""

import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.errors import UsageError
from kafkascope.pipeline import batch_outcomes
from kafkascope.pipeline.session import error_line
from tests.client.consumer_stage import Stage
from tests.pipeline.share.queries import (
    PATIENCE,
    Landed,
    finished,
    frame,
    fresh,
    metrics,
    prepared,
    produced,
    running,
    staged,
    start,
    view,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from lab.cluster import Cluster as Lab

LOCK_SECONDS = 3.0
TIME = 1_700_000_000_123


def test_rows_are_the_records_and_the_group_is_done_with_them(
    spark: "SparkSession", cluster: "Lab", tmp_path: Path
) -> None:
    topic, group = fresh()
    records = [
        Record(0, TIME, b"key", b"value", (("one", b"1"), ("none", None))),
        Record(1, TIME + 1, None, None),
        Record(2, TIME + 2, b"", b"", ()),
    ]

    async def produce(on: Stage) -> None:
        await on.topic(topic)
        await on.group(group)
        await on.produce_data(topic, encode_records([new_batch(records)]))

    staged(cluster.bootstrap, produce)
    landed = Landed()
    before = datetime.now(UTC)
    query = finished(frame(spark, cluster.bootstrap, topic, group), tmp_path, landed)
    rows = landed.rows()
    assert [(row.offset, row.key, row.value) for row in rows] == [(0, b"key", b"value"), (1, None, None), (2, b"", b"")]
    assert [[(header.key, header.value) for header in row.headers] for row in rows] == [
        [("one", b"1"), ("none", None)], [], [],
    ]  # fmt: skip
    assert {(row.topic, row.partition, row["_delivery_count"]) for row in rows} == {(topic, 0, 1)}
    assert [row.timestamp.replace(tzinfo=UTC) for row in rows] == [
        datetime.fromtimestamp((TIME + number) / 1000, UTC) for number in range(3)
    ]
    assert all(row["_lock_until"].replace(tzinfo=UTC) > before for row in rows)
    assert metrics(query)["acquired"] == 3
    assert view(cluster.bootstrap, group).lag == 0
    # Nothing is left for another run, and it ends.
    again = Landed()
    finished(frame(spark, cluster.bootstrap, topic, group), tmp_path, again)
    assert not again.rows()


def test_a_batch_that_failed_runs_again_with_the_same_rows(
    spark: "SparkSession", cluster: "Lab", tmp_path: Path
) -> None:
    topic, group = prepared(cluster.bootstrap, [b"value %d" % number for number in range(2_500)], 2)
    landed = Landed()
    seen: list[list[Row]] = []

    def fail(rows: "DataFrame", batch_id: int) -> None:
        landed(rows, batch_id)
        seen.append(landed.batches[batch_id])
        if batch_id == 1:
            raise RuntimeError("the sink is full")

    options: dict[str, object] = {"maxRecordsPerTrigger": 1_000}
    with pytest.raises(StreamingQueryException, match="the sink is full"):
        finished(frame(spark, cluster.bootstrap, topic, group, options), tmp_path, fail)
    finished(frame(spark, cluster.bootstrap, topic, group, options), tmp_path, landed)
    assert landed.replays == [1] and seen[1] == landed.batches[1]
    places = [(row.partition, row.offset) for row in landed.rows()]
    assert sorted(places) == [(partition, offset) for partition in (0, 1) for offset in range(2_500)]
    assert view(cluster.bootstrap, group).lag == 0


def test_locks_outlast_batches_three_times_as_long_and_tasks_share_a_partition(
    spark: "SparkSession", cluster: "Lab", tmp_path: Path
) -> None:
    topic, group = prepared(cluster.bootstrap, [b"value"] * 100)
    landed, tasks, never = Landed(), [], threading.Event()

    def slow(rows: "DataFrame", batch_id: int) -> None:
        from pyspark.sql.functions import spark_partition_id

        tasks.append(rows.select(spark_partition_id()).distinct().count())
        never.wait(3 * LOCK_SECONDS)
        landed(rows, batch_id)

    rows = frame(spark, cluster.bootstrap, topic, group, {"minPartitions": 3})
    query = finished(rows, tmp_path, slow)
    assert {row["_delivery_count"] for row in landed.rows()} == {1} and len(landed.rows()) == 100
    assert tasks == [3]
    assert metrics(query)["expired"] == 0 < metrics(query)["acquired"]
    assert view(cluster.bootstrap, group).lag == 0


def test_a_running_query_gets_what_is_produced_and_accepts_it_without_waiting_for_more(
    spark: "SparkSession", cluster: "Lab", tmp_path: Path
) -> None:
    topic, group = prepared(cluster.bootstrap, [b"first"])
    landed = Landed()
    deadline = time.monotonic() + PATIENCE
    with running(start(frame(spark, cluster.bootstrap, topic, group), tmp_path, landed, processingTime="0 seconds")):
        for count, value in ((1, b"second"), (2, b"third"), (3, None)):
            while len(landed.rows()) < count or view(cluster.bootstrap, group).lag:
                assert time.monotonic() < deadline, landed.batches
            if value is not None:
                produced(cluster.bootstrap, topic, [value])
        assert [row.value for row in landed.rows()] == [b"first", b"second", b"third"]
    while view(cluster.bootstrap, group).members:
        assert time.monotonic() < deadline, "the member is still in the group"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topic": "x"}, "unknown option topic of the source kafkascope-share; did you mean topics?"),
        ({"group": ""}, "name the share group"),
        ({"topics": ","}, "name topics"),
        ({"minPartitions": "0"}, "minPartitions: '0' isn't a whole number from 1"),
        ({"maxWait": "never"}, "maxWait: 'never' isn't a number of seconds"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss: 'no' is neither true nor false"),
        ({"maxDeliveryCount": "3"}, "set both maxDeliveryCount and deadLetterTable"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(
    spark: "SparkSession", options: dict[str, object], message: str
) -> None:
    with pytest.raises(Exception, match=r"kafkascope\.errors\.UsageError") as raised:
        frame(spark, "127.0.0.1:1", "topic", "group", options)
    assert message in error_line(raised.value)


@pytest.mark.parametrize(
    ("bootstrap", "line"),
    [
        (None, "no-such-topic: UNKNOWN_TOPIC_OR_PARTITION (3)"),
        ("127.0.0.1:1", "127.0.0.1:1: connection refused; is a broker running, and is this its port?"),
    ],
)
def test_what_the_cluster_refuses_is_one_line(
    spark: "SparkSession", cluster: "Lab", tmp_path: Path, bootstrap: str | None, line: str
) -> None:
    landed = Landed()
    with pytest.raises(StreamingQueryException) as raised:
        finished(frame(spark, bootstrap or cluster.bootstrap, "no-such-topic", "group"), tmp_path, landed)
    assert error_line(raised.value).endswith(line) and "Error: " not in error_line(raised.value)
    assert not landed.rows()


def test_records_are_released_rejected_and_put_aside(spark: "SparkSession", cluster: "Lab", tmp_path: Path) -> None:
    topic, group = prepared(cluster.bootstrap, [b"value %d" % number for number in range(10)])
    folder, table = str(tmp_path / "outcomes"), str(tmp_path / "dead")
    landed = Landed()

    def land(rows: "DataFrame", batch_id: int) -> None:
        with batch_outcomes(folder, batch_id) as outcomes:
            # 2 fails once, 4 always, 6 can't be processed.
            released = rows.where("(offset = 2 AND _delivery_count = 1) OR offset = 4")
            outcomes.release(released)
            outcomes.reject(rows.where("offset = 6"))
            landed(rows.where("NOT (offset = 2 AND _delivery_count = 1) AND offset NOT IN (4, 6)"), batch_id)

    options: dict[str, object] = {"outcomes": folder, "maxDeliveryCount": 2, "deadLetterTable": table}
    query = finished(frame(spark, cluster.bootstrap, topic, group, options), tmp_path / "checkpoint", land)
    counts = {row.offset: row["_delivery_count"] for row in landed.rows()}
    assert counts == {offset: 2 if offset == 2 else 1 for offset in range(10) if offset not in (4, 6)}
    assert len(landed.rows()) == len(counts)
    dead = DeltaTable(table).to_pyarrow_table().to_pylist()
    assert [(row["offset"], row["value"], row["_delivery_count"], row["group"]) for row in dead] == [
        (4, b"value 4", 3, group)
    ]
    assert (metrics(query)["released"], view(cluster.bootstrap, group).lag) == (3, 0)


def test_outcomes_that_no_query_reads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no query has this folder"), batch_outcomes(str(tmp_path), 1):
        pass
