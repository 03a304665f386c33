"""A client of Spark Connect, which has no JVM and no `sparkContext`, gets what a session on this machine gets."""

from typing import TYPE_CHECKING

import pytest

from tests.pipeline.cluster import Ran, connect_server, connected
from tests.pipeline.rows import lake_rows, read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.heavy


# Not what Spark takes for granted.
CORES = 3


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("connect")
    with connect_server(folder, CORES) as remote:
        return connected(remote, folder, CORES)


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
