"""Directories that a broker of 3.9.2 wrote are read as Kafka's own tool reads them, and have marts."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.lake.home import open_lake
from kafkascope.lake.read.metadata_at import metadata_at
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.logs.directories import list_files
from kafkascope.logs.files import INDEXES, OF_BATCHES, PRODUCER_SNAPSHOT, SEGMENT
from kafkascope.logs.reader import BatchEvent, LogReader
from kafkascope.pipeline.ingestion.ingest import ingest
from kafkascope.pipeline.mart.build import build_marts
from lab.disks import fill
from tests.logs.dump import lines_of
from tests.logs.test_dump_log_segments import Judge, compared, decoded_topic, judge
from tests.pipeline.mart_rows import mart
from tests.support.cli import Cli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["judge"]
pytestmark = [
    pytest.mark.soak,
    pytest.mark.heavy,
    pytest.mark.skipif("KAFKASCOPE_SOAK" not in os.environ, reason="fills the disks of a broker: `make soak`"),
]


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("older")
    fill(folder, "3.9.2", nodes=1)
    return folder


def test_reads_what_an_older_broker_wrote(cli: Cli, judge: Judge, older: Path) -> None:
    files = [file for file in list_files(str(older)) if file.kind in OF_BATCHES and file.left_alone is None]
    lines = 0
    for topic in {decoded_topic(file) for file in files}:
        group = [file for file in files if decoded_topic(file) == topic]
        theirs = judge.lines([file.path for file in group], topic)
        for file in group:
            lines += compared(theirs[file.path], file.path, file.topic)[0]
    assert lines > 1_000
    result = cli("log", "--check", str(older))
    assert (result.code, result.out) == (0, "")


def test_reads_indexes_and_producers_of_an_older_broker(judge: Judge, older: Path) -> None:
    kept = [file for file in list_files(str(older)) if file.left_alone is None]
    files = [file for file in kept if file.kind in (*INDEXES, PRODUCER_SNAPSHOT) and file.size]
    # The tool fails at the index of an empty segment. A broker that stops leaves a snapshot without one.
    empty = {file.path.removesuffix(".log") for file in kept if file.kind == SEGMENT and not file.size}
    files = [file for file in files if file.path.rpartition(".")[0] not in empty]
    theirs = judge.lines([file.path for file in files])
    lines = 0
    for file in files:
        ours = [line for line, _, _ in lines_of(file.path)]
        assert ours == theirs[file.path], file.path
        lines += len(ours)
    assert lines > 50


def test_marts_of_what_an_older_broker_wrote(spark: "SparkSession", older: Path, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    assert not ingest(spark, [older], lake).bad
    build_marts(spark, lake)
    home = open_lake(lake)
    metadata = metadata_at(home)
    assert {"words", "ledger", "packed", "compacted"} <= metadata.topics.keys()
    # The broker was stopped: nobody led after it.
    leaders = {row["to_leader"] for row in mart(lake, "partition_events", kind="leader")}
    assert leaders <= {1, None}

    health = mart(lake, "log_health")
    ends = _ends(older)
    assert {(row["topic"], row["partition"]): row["end_offset"] for row in health if row["batches"]} == ends
    assert {(row["replicas"], row["damaged_bytes"], row["bad_crc"], row["quarantined"]) for row in health} == {
        (1, 0, 0, 0)
    }
    offsets = {row["group_id"]: row for row in mart(lake, "group_offsets", latest=True) if row["topic"] == "words"}
    assert offsets.keys() == {"readers-classic"}
    assert (offsets["readers-classic"]["committed_offset"], offsets["readers-classic"]["lag_now"]) == (20, 0)
    (group,) = [row for row in mart(lake, "dead_groups") if row["group_id"] == "readers-classic"]
    assert group["group_type"] == "classic" and group["topics"] == ["words"]

    (snapshot,) = [row for row in dataset(home, "producer_snapshots").to_table().to_pylist() if _is_open(row, ends)]
    (opened,) = mart(lake, "open_transactions", topic="ledger")
    assert (opened["producer_id"], opened["first_offset"]) == (
        snapshot["producer_id"],
        snapshot["current_txn_first_offset"],
    )
    assert (opened["transactional_id"], opened["coordinator_state"], opened["hanging"]) == ("hanging", "Ongoing", False)
    assert opened["holds_stable_offset"]
    assert any(row["superseded"] for row in mart(lake, "compaction_waste"))


def _ends(older: Path) -> dict[tuple[str | None, int | None], int]:
    ends: dict[tuple[str | None, int | None], int] = {}
    for event in LogReader((str(older),)).events():
        if isinstance(event, BatchEvent) and event.file.kind == OF_BATCHES[0]:
            key = (event.file.topic, event.file.partition)
            ends[key] = max(ends.get(key, 0), event.batch.header.last_offset + 1)
    return ends


def _is_open(row: dict[str, Any], ends: dict[tuple[str | None, int | None], int]) -> bool:
    """In the snapshot that the broker wrote when it stopped."""
    is_last = row["offset"] == ends.get((row["topic"], row["partition"]))
    return row["topic"] == "ledger" and is_last and row["current_txn_first_offset"] is not None
