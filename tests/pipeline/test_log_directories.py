"""Log directories in a lake: the rows that `kafkascope log` reads, once, however files grow, are cut or replaced."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafkascope.lake.home import open_lake
from kafkascope.lake.log_tables import CONTROL_RECORDS, LOG_RECORDS, PRODUCER_SNAPSHOTS
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.logs.directories import list_files
from kafkascope.logs.files import PRODUCER_SNAPSHOT
from kafkascope.logs.producer_snapshot import read_producer_snapshot
from kafkascope.pipeline.ingestion.ingest import Options, ingest
from tests.logs.recorded import unpack_disks
from tests.pipeline.log_rows import (
    Rows,
    covered,
    lake_log_rows,
    read_log_rows,
    read_troubles,
    troubles,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_disks(tmp_path_factory.mktemp("disks"))


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", disks: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of all three nodes."""
    uri = str(tmp_path_factory.mktemp("lake") / "lake")
    done = ingest(spark, [disks], uri)
    assert not done.bad and not done.known and len(done.new) > 100
    return uri


def same(rows: Rows, wanted: Rows) -> None:
    """The message of a control record is compared by its type; settings that are no passwords keep their value."""
    assert rows.keys() == wanted.keys()
    for name, table in rows.items():
        for row in table:
            for column in ("value", "coordinator_epoch", "leader_id") if name == CONTROL_RECORDS else ():
                row.pop(column, None)
            if name == "config_record":
                row["value"].pop("value", None)
        assert table == wanted[name], name


def test_rows_are_those_of_the_reader(lake: str, disks: Path) -> None:
    wanted = read_log_rows(disks)
    same(lake_log_rows(lake), wanted)
    assert len(wanted) > 35
    assert troubles(lake) == read_troubles(disks)


def test_producers_are_those_of_the_snapshots(lake: str, disks: Path) -> None:
    files = [file for file in list_files(str(disks)) if file.kind == PRODUCER_SNAPSHOT and file.left_alone is None]
    wanted = [
        {"broker": file.broker, "topic": file.topic, "partition": file.partition, "offset": file.base_offset, **entry}
        for file in files
        for entry in read_producer_snapshot(file.path)
    ]
    rows = dataset(open_lake(lake), PRODUCER_SNAPSHOTS).to_table().to_pylist()
    for row in rows:
        row["timestamp"] = round(row.pop("written_at").timestamp() * 1000)
        row["current_txn_first_offset"] = (
            -1 if row["current_txn_first_offset"] is None else row["current_txn_first_offset"]
        )
        assert row.pop("cluster_id") and row.pop("topic_id") and row.pop("capture_uri").endswith(".snapshot")
        del row["ingest_id"], row["date"]
    assert sorted(map(str, (sorted(row.items()) for row in rows))) == sorted(
        map(str, (sorted(row.items()) for row in wanted))
    )
    assert len(wanted) > 20 and any(row["current_txn_first_offset"] >= 0 for row in wanted)


def test_records_of_users_are_there_only_if_asked_for(
    spark: "SparkSession", lake: str, disks: Path, tmp_path: Path
) -> None:
    assert LOG_RECORDS not in lake_log_rows(lake)
    folder = disks / "node-1" / "packed-0"
    ingest(spark, [folder], str(tmp_path / "lake"), Options(contents=True))
    wanted = read_log_rows(folder, contents=True)
    assert len(wanted[LOG_RECORDS]) > 100
    same(lake_log_rows(str(tmp_path / "lake")), wanted)


def test_a_second_ingest_adds_nothing(spark: "SparkSession", lake: str, disks: Path) -> None:
    before = covered(lake)
    done = ingest(spark, [disks], lake)
    assert (done.new, done.rows) == ([], {}) and len(done.known) > 100
    assert covered(lake) == before
