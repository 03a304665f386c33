"""A standalone Spark cluster with two workers gives what one machine gives: the rows of the reader, the same marts."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.cluster import CORES, HOME, Ran, as_options, job_settings, standalone, submit
from tests.pipeline.rows import lake_rows, read_rows
from tests.pipeline.share.elsewhere import read_share_group

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lab.cluster import Cluster as Lab

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("master")) as master:
        yield master


@pytest.fixture(scope="module")
def ran(master: str, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return submit(master, tmp_path_factory.mktemp("cluster"))


def test_all_cores_of_the_workers_are_found(ran: Ran) -> None:
    assert ran.report["cores"] == sum(CORES)


def test_workers_read_what_the_reader_reads(ran: Ran) -> None:
    assert ran.report["buckets"]["new"] == [str(ran.recording)] and not ran.report["buckets"]["bad"]
    assert lake_rows(str(ran.buckets)) == read_rows(ran.recording)


def test_a_shuffle_between_workers_loses_nothing(ran: Ran) -> None:
    assert lake_rows(str(ran.shuffled)) == read_rows(ran.recording)


def test_marts_are_those_of_one_machine(ran: Ran, spark: "SparkSession") -> None:
    ran.marts_are_those_of(spark)


def test_the_data_source_reads_in_a_worker(ran: Ran) -> None:
    ran.source_is_that_of_the_reader()


def test_decode_works_in_a_worker(ran: Ran) -> None:
    ran.decoded_is_that_of_the_codec()


def test_views_and_tables_are_read_by_the_workers(ran: Ran) -> None:
    ran.views_and_tables_are_those_of_the_lake()


def test_a_share_group_is_read_to_its_end(master: str, cluster: "Lab", tmp_path: Path) -> None:
    command = [str(HOME / "bin" / "spark-submit"), "--master", master, *as_options(job_settings(sum(CORES)))]
    assert read_share_group(cluster, tmp_path, command, {}) == "pyspark.sql.session"
