"""The catalog stands in the lake once, as the reference has it, and anew when it has changed."""

from pathlib import Path

import pytest

from kafkascope.columnar.decode import full_schema
from kafkascope.lake.active import active_files
from kafkascope.lake.home import Lake, make_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.tables import message_of
from kafkascope.lake.write import catalog_tables
from kafkascope.lake.write.catalog_tables import CATALOG, write_catalog
from kafkascope.lake.write.commit import open_table
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import error_codes
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.releases import newest_release
from tests.pipeline.mart_rows import Plain


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = make_lake(tmp_path_factory.mktemp("catalog") / "lake")
    assert write_catalog(made)
    return made


def rows(lake: Lake, name: str) -> list[Plain]:
    table: list[Plain] = dataset(lake, name).to_table().to_pylist()
    return table


def test_every_version_of_every_message_is_there_once(lake: Lake) -> None:
    rows_found = rows(lake, "catalog_messages")
    known_versions = [(row["message"], row["version"]) for row in rows_found]
    assert sorted(known_versions) == sorted(
        (name, version) for name in index() for version in message(name).all_versions()
    )
    newest = {(row["message"], row["version"]) for row in rows_found if row["last_release"] is None}
    for name in index():
        versions = message(name).versions_in(newest_release())
        assert {version for message_name, version in newest if message_name == name} == {
            version for version in message(name).all_versions() if versions is not None and version in versions
        }
    assert {row["table_name"]: row["message"] for row in rows_found if row["table_name"]} == {
        name: message_of(name) for name in {row["table_name"] for row in rows_found if row["table_name"]}
    }
    assert {row["api_key"]: row["api"] for row in rows_found if row["kind"] == "request"} == apis()


def test_column_names_of_fields_are_those_of_their_tables(lake: Lake) -> None:
    """Fields that went by another name in an older release stand under their newest."""
    rows_found = rows(lake, "catalog_fields")
    known = {
        name: set(full_schema(name).names) for name in {row["message"] for row in rows_found if row["column_name"]}
    }
    assert known
    missing = {
        (row["message"], row["column_name"])
        for row in rows_found
        if row["column_name"] and row["column_name"].partition(".")[0] not in known[row["message"]]
    }
    assert not missing


def test_fields_are_those_of_the_layouts(lake: Lake) -> None:
    rows_found = rows(lake, "catalog_fields")
    for name, version in (("ShareFetchRequest", 2), ("DescribeQuorumResponse", 1), ("RequestHeader", 2)):
        top = [
            row for row in rows_found if (row["message"], row["version"]) == (name, version) and "." not in row["path"]
        ]
        fields = layout(name, version).fields
        assert [(row["path"], row["type"], row["is_array"], row["nullable"], row["tag"]) for row in top] == [
            (field.name, field.type, field.array, field.nullable, field.tag) for field in fields
        ]
    deep = [row["path"] for row in rows_found if row["message"] == "ShareFetchRequest" and row["version"] == 2]
    assert "topics.partitions.acknowledgementBatches.acknowledgeTypes" in deep


def test_every_error_is_there_with_who_answers_it(lake: Lake) -> None:
    by_code = {row["error_code"]: row for row in rows(lake, "catalog_errors")}
    assert {code: row["error"] for code, row in by_code.items()} == {
        code: error.name for code, error in error_codes().items()
    }
    assert "ShareAcknowledge" in by_code[121]["apis"] and by_code[121]["remedy"]
    assert set().union(*(row["apis"] for row in by_code.values())) <= set(apis().values())


def test_it_is_written_again_only_when_the_catalog_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = make_lake(tmp_path / "lake")
    assert write_catalog(lake)
    before = {name: active_files(open_table(lake, name)) for name in CATALOG}
    assert not write_catalog(lake)
    assert {name: active_files(open_table(lake, name)) for name in CATALOG} == before
    expected = rows(lake, "catalog_fields")
    monkeypatch.setattr(catalog_tables, "catalog_digest", lambda: "another")
    assert write_catalog(lake)
    assert rows(lake, "catalog_fields") == expected
    assert all(len(active_files(open_table(lake, name))) == 1 for name in CATALOG)


def test_a_lake_without_it_says_what_it_would_have(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake")
    assert dataset(lake, "catalog_errors").schema == CATALOG["catalog_errors"].schema
    assert dataset(lake, "catalog_errors").count_rows() == 0
