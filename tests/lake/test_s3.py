"""The whole of the lake on an object store: an S3 server on loopback."""

import logging
from collections.abc import Iterator
from datetime import date, timedelta

import duckdb
import polars as pl
import pytest

from kafkascope.errors import InputError, NotFoundError
from kafkascope.lake.home import Lake, make_lake, open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.upkeep.info import info
from kafkascope.lake.upkeep.retention import expire, vacuum
from kafkascope.lake.write.heartbeat import begin, end, running_ingests
from tests.lake.build import NOON, days, exchanges, half_land, land, seen, together
from tests.lake.write.test_heartbeat import fall_silent, land_last

SETTINGS = {
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "something",
    "AWS_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, str]]:
    import boto3  # type: ignore[import-untyped]
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = SETTINGS | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in options.items():
            patch.setenv(name, value)
        place = {"LocationConstraint": SETTINGS["AWS_REGION"]}
        boto3.client("s3", region_name=SETTINGS["AWS_REGION"]).create_bucket(
            Bucket="traffic", CreateBucketConfiguration=place
        )
        yield options
    server.stop()


@pytest.fixture
def lake(settings: dict[str, str], request: pytest.FixtureRequest) -> Lake:
    assert settings
    return make_lake(f"s3://traffic/lakes/{request.node.name}")


def keys(lake: Lake) -> set[str]:
    return {info.base_name for info in lake.table("exchanges").inside(deep=True) if info.base_name.endswith("parquet")}


def test_lake_is_made_and_opened_and_what_is_none_is_told(lake: Lake) -> None:
    assert open_lake(lake.uri.replace("s3://", "s3a://")).id == make_lake(f"{lake.uri}/").id == lake.id
    with pytest.raises(NotFoundError, match="there is no lake here"):
        open_lake("s3://traffic/none")
    with pytest.raises(InputError, match="a kafkascope lake"):
        open_lake("s3://traffic/lakes")
    with pytest.raises((InputError, NotFoundError)) as caught:
        make_lake("s3://no-such-bucket/lake")
    assert "\n" not in str(caught.value)


INGESTS = """
from kafkascope.lake.home import open_lake
from tests.lake.build import exchanges, land
lake = open_lake(sys.argv[1])
ready()
for turn in range(4):
    land(lake, f"{sys.argv[2]}{turn}", exchanges([f"{sys.argv[2]}{turn}"]))
"""


def test_two_processes_that_ingest_at_once_both_land(lake: Lake, settings: dict[str, str]) -> None:
    together(INGESTS, [[lake.uri, "a"], [lake.uri, "b"]], **settings)
    assert seen(lake) == sorted(f"{name}{turn}" for name in "ab" for turn in range(4))


def test_what_ends_half_way_shows_nothing_and_is_taken_out(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    run = begin(lake, "i2")
    half_land(lake, "i2", exchanges(["b"]))
    assert seen(lake) == ["a"]
    assert vacuum(lake, age=timedelta(0)).ingests == ()
    fall_silent(lake, run)
    done = vacuum(lake, age=timedelta(0))
    assert (done.ingests, done.deleted_files, running_ingests(lake)) == (("i2",), 1, [])
    assert len(keys(lake)) == 1
    with pytest.raises(InputError, match="removed it"):
        land_last(lake, run)
    assert seen(lake) == ["a"]


def test_merging_expiry_and_the_account_do_the_same_there(lake: Lake) -> None:
    for number in range(3):
        run = begin(lake, f"i{number}")
        half_land(lake, f"i{number}", exchanges([str(number)]), exchanges([f"{number}+"], NOON + days(1)))
        land_last(lake, run)
        end(lake, run)
    assert len(compact(lake, most_small=1)) == 3
    assert seen(lake) == ["0", "0+", "1", "1+", "2", "2+"]
    assert [(out.table, out.rows) for out in expire(lake, date(2026, 11, 16))] == [("exchanges", 3)]
    assert [(table.name, table.rows) for table in info(lake).tables] == [("captures", 3), ("exchanges", 3)]


def test_duckdb_and_polars_see_the_visible_rows(lake: Lake, settings: dict[str, str]) -> None:
    land(lake, "i1", exchanges(["a"]))
    half_land(lake, "i2", exchanges(["b"]))
    shown = duckdb.connect()
    shown.register("exchanges", dataset(lake, "exchanges"))
    assert shown.sql("SELECT exchange_id FROM exchanges").fetchall() == [("a",)]
    assert pl.scan_pyarrow_dataset(dataset(lake, "exchanges")).collect().get_column("exchange_id").to_list() == ["a"]
    options = {"aws_endpoint_url": settings["AWS_ENDPOINT_URL"], **lake.storage_options}
    assert len(pl.scan_delta(lake.table("captures").uri, storage_options=options).collect()) == 1
