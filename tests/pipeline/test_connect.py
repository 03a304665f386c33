"""A client of Spark Connect, which has no JVM and no `sparkContext`, gets what a session on this machine gets."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.cluster import Ran, connect_server, connected
from tests.pipeline.rows import lake_rows, read_rows
from tests.pipeline.share.elsewhere import read_share_group

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lab.cluster import Cluster as Lab

pytestmark = pytest.mark.heavy


# Not what Spark takes for granted.
CORES = 3


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("server"), CORES) as remote:
        yield remote


@pytest.fixture(scope="module")
def ran(remote: str, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return connected(remote, tmp_path_factory.mktemp("connect"), CORES)


def test_the_session_is_one_of_connect_and_finds_the_cores_of_the_server(ran: Ran) -> None:
    assert ran.report["kind"] == "pyspark.sql.connect.session"
    assert ran.report["cores"] == CORES


def test_rows_are_those_of_the_reader(ran: Ran) -> None:
    assert ran.report["buckets"]["new"] == [str(ran.recording)] and not ran.report["buckets"]["bad"]
    assert lake_rows(str(ran.buckets)) == read_rows(ran.recording)


def test_the_shuffle_has_the_same_rows(ran: Ran) -> None:
    assert lake_rows(str(ran.shuffled)) == read_rows(ran.recording)


def test_marts_are_those_of_one_machine(ran: Ran, spark: "SparkSession") -> None:
    ran.marts_are_those_of(spark)


def test_the_data_source_is_found_by_its_name_on_the_server(ran: Ran) -> None:
    ran.source_is_that_of_the_reader()


def test_decode_takes_a_dataframe_of_the_client(ran: Ran) -> None:
    ran.decoded_is_that_of_the_codec()


def test_views_and_tables_need_no_jvm_of_the_client(ran: Ran) -> None:
    ran.views_and_tables_are_those_of_the_lake()


def test_a_share_group_is_read_to_its_end(remote: str, cluster: "Lab", tmp_path: Path) -> None:
    kind = read_share_group(cluster, tmp_path, [sys.executable], {"SPARK_REMOTE": remote})
    assert kind == "pyspark.sql.connect.session"
