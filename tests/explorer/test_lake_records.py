"""The lake browser lists the tables of log directories: in order, page by page, with filters, and no credentials."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.applications import Starlette

from kafkascope.explorer.server.app import create
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.log_rows import LogFilters, log_rows
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.limits import MAX_LISTED_EXCHANGES
from tests.explorer.asgi import ask
from tests.logs.recorded import unpack_disks
from tests.support.lakes import ingest_here, made_once


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `lake`: everything on three nodes' disks."""
    return made_once(
        tmp_path_factory,
        "explorer-disks",
        lambda folder: ingest_here([unpack_disks(folder / "unpacked")], folder / "lake"),
    )


@pytest.fixture(scope="module")
def app(disks: Path) -> Starlette:
    return create(str(disks / "lake"))


def test_the_overview_links_to_the_tables_of_records(app: Starlette) -> None:
    page = ask(app, "/lake/index.html").body.decode()
    assert 'records/offset_commit.html"' in page and 'records/log_batches.html"' in page
    assert 'records/captures.html"' not in page


def test_records_are_listed_with_their_content(app: Starlette) -> None:
    page = ask(app, "/lake/records/offset_commit.html?broker=1")
    assert page.status == 200
    text = page.body.decode()
    assert "__consumer_offsets-1" in text and "ledger-readers" in text and "node 2" not in text
    (first, *_) = json.loads(ask(app, "/lake/records/share_update.json").body)["rows"]
    assert (first["topic"], first["offset"], first["broker"]) == ("__share_group_state", 1, 1)
    assert json.loads(first["content"]["key"])["group_id"] == "processors"


def test_pages_together_have_every_row_once(disks: Path) -> None:
    lake = open_lake(disks / "lake")
    rows, skip, more = [], 0, True
    while more:
        part, more = log_rows(lake, "config_record", LogFilters(), skip, MAX_LISTED_EXCHANGES)
        rows += part
        skip += len(part)
    keys = [(row["topic"], row["partition"], row["offset"], row["broker"], row["capture_uri"]) for row in rows]
    assert keys == sorted(keys) and len(set(keys)) == len(keys) == dataset(lake, "config_record").count_rows() > 900
    some, _ = log_rows(lake, "config_record", LogFilters("__cluster_metadata", 0, 3, 60), 0, 9)
    assert {(row["broker"], row["offset"] >= 60) for row in some} == {(3, True)}
    assert log_rows(lake, "config_record", LogFilters("nowhere"), 0, 9) == ([], False)


@pytest.mark.parametrize("path", ["records/exchanges.html", "records/findings.html", "records/nothing.html"])
def test_other_tables_are_not_listed_here(app: Starlette, path: str) -> None:
    assert ask(app, f"/lake/{path}").status == 404


@pytest.mark.parametrize("query", ["offset=x", "partition=-1", "broker=1e3", "skip=999999999", f"offset={quote('²')}"])
def test_wrong_filters_are_named(app: Starlette, query: str) -> None:
    response = ask(app, f"/lake/records/topic_record.html?{query}")
    assert response.status == 404 and query.partition("=")[0] in response.body.decode()


def test_credentials_are_not_shown(app: Starlette) -> None:
    rows = json.loads(ask(app, "/lake/records/user_scram_credential_record.json").body)["rows"]
    assert rows
    for row in rows:
        assert "salt" not in json.loads(row["content"]["value"]) and "stored_key" not in row["content"]["value"]
