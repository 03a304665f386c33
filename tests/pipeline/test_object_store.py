"""Recordings in a bucket, the lake in a bucket, marts and report from there: the whole path on an S3 server, with no
jar of an object store."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafkascope.errors import UsageError
from kafkascope.lake.home import open_lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.place import place_of
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline.ingestion.ingest import ingest
from kafkascope.pipeline.mart.build import build_marts
from kafkascope.pipeline.tables import read_table
from tests.pipeline.object_store import object_store
from tests.pipeline.rows import lake_rows, read_rows
from tests.pipeline.test_ingest import capture, pieces
from tests.support.cli import Cli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What a report says of its lake.
OF_THE_LAKE = {"lake", "made_at"}


@pytest.fixture
def bucket(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with object_store() as (uri, settings):
        for name, value in settings.items():
            # The session may be older than the settings; workers hear of them so.
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
        yield uri


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(capsys, monkeypatch)


def put(bucket: str, files: list[Path]) -> None:
    for file in files:
        place_of(f"{bucket}/night/{file.name}").write(file.read_bytes())


def mart_rows(lake: str, folder: str) -> dict[str, list[str]]:
    """Recordings by their names, without their folder."""
    home = open_lake(lake)
    by_mart = {name: dataset(home, name).to_table().to_pylist() for name in MARTS}
    return {name: sorted(repr(row).replace(folder, "") for row in rows) for name, rows in by_mart.items()}


def report(cli: Cli, lake: str, folder: str) -> dict[str, object]:
    answer = cli("report", lake, "--json", "-")
    assert answer.code in (0, 1), answer.err
    document: dict[str, object] = json.loads(answer.out.replace(folder, ""))
    return {name: value for name, value in document.items() if name not in OF_THE_LAKE}


def test_a_password_in_a_uri_is_refused_and_not_said_again() -> None:
    """A URI stands in `captures`."""
    with pytest.raises(UsageError, match="a password isn't allowed") as caught:
        place_of("s3://somebody:something@traffic/night")
    assert "something" not in str(caught.value)


def test_bucket_to_bucket_is_as_disk_to_disk(
    spark: "SparkSession", bucket: str, lake: str, tmp_path: Path, cli: Cli
) -> None:
    path = capture("share", tmp_path)
    cut = pieces(path, 3, seed=5)
    put(bucket, cut)
    target, names = f"{bucket}/lake", [f"{bucket}/night/{piece.name}" for piece in cut]
    done = ingest(spark, [f"{bucket}/night/*-00[012].pcap"], target)
    assert (done.new, done.known, done.bad) == (names, [], {})
    assert lake_rows(target) == read_rows(path)
    again = ingest(spark, [f"{bucket}/night/"], target)
    assert (again.new, again.known) == ([], names)

    home = open_lake(target)
    for name in ("exchanges", "captures", "share_fetch_response", "metadata_response"):
        rows, expected = read_table(spark, home, name).toArrow(), dataset(home, name).to_table()
        assert sorted(map(repr, rows.to_pylist())) == sorted(map(repr, expected.to_pylist()))
        assert len(expected)

    build_marts(spark, home)
    ingest(spark, cut, lake)
    build_marts(spark, open_lake(lake))
    wanted_marts = mart_rows(lake, str(tmp_path))
    assert mart_rows(target, f"{bucket}/night") == wanted_marts
    assert wanted_marts["share_deliveries"] and wanted_marts["findings"] and wanted_marts["client_versions"]
    assert report(cli, target, f"{bucket}/night") == report(cli, lake, str(tmp_path))
    page = f"{bucket}/reports/night.html"
    assert cli("report", target, "--html", page).code in (0, 1)
    written = place_of(page)
    with written.filesystem.open_input_stream(written.path) as file:
        assert file.read(15) == b"<!DOCTYPE html>"
