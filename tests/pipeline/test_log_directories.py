"""Log directories in a lake: the rows that `kafkascope log` reads, once, however files grow, are cut or replaced."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafkascope.lake.log_tables import CONTROL_RECORDS, LOG_RECORDS
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
