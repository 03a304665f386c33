"""Marts of an older kafkascope: a column that they lack is empty, in what is read and in what is asked."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafkascope.cli.main import main
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.read.mart_rows import rows
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.write.files import Files
from kafkascope.lake.write.replace import replace
from tests.report.build import incident, lake_of, plain


@pytest.fixture
def old(tmp_path: Path) -> Lake:
    """Its marts know no cluster ids."""
    marts = incident("quorum")
    kept = {name: rows for name, rows in marts.items() if not name.startswith("quorum_")}
    lake = lake_of(tmp_path / "lake", kept)
    for name in ("quorum_replicas", "quorum_events"):
        known = MARTS[name].schema
        schema = known.remove(known.get_field_index("cluster_id"))
        values = [{field: value for field, value in plain(row).items() if field in schema.names} for row in marts[name]]
        files = Files(lake, "5d1f", "mart")
        table = LakeTable(name, schema, None)
        files.add(table, pa.Table.from_pylist(values, schema=schema))
        replace(lake, table, files.close())
    return lake


def test_a_filter_on_a_column_that_is_not_there_takes_it_for_null(old: Lake) -> None:
    every = list(rows(old, "quorum_events", ["occurred_at", "cluster_id"]))
    assert every and {row["cluster_id"] for row in every} == {None}
    assert list(rows(old, "quorum_events", ["occurred_at", "cluster_id"], pc.field("cluster_id").is_null())) == every
    assert list(rows(old, "quorum_events", ["occurred_at"], pc.field("cluster_id") == "x")) == []


def test_the_report_of_older_marts_is_made(old: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "report.html"
    assert main(["report", old.uri, "--html", str(page)]) in (0, 1)
    assert capsys.readouterr().err == ""
    assert "Cluster whose id wasn't recorded" in page.read_text()


def test_the_pages_of_a_lake_with_older_marts_are_made(old: Lake) -> None:
    from kafkascope.explorer.server.app import create
    from tests.explorer.asgi import ask

    app = create(old.uri)
    for name in ("index", "findings", "report", "exchanges"):
        assert ask(app, f"/lake/{name}.html").status == 200
