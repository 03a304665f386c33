"""What live brokers answered becomes facts of the catalog, added to those there, if they have a place in it."""

import json
from pathlib import Path
from typing import Any

import pytest

from kafkascope.schema.catalog import message
from kafkascope.schema.errors.error_codes import by_name
from kafkascope.schema.errors.message_errors import error_fields, seen_errors
from kafkascope.schema.releases import release_order
from tools.catalog.broker_errors import HEAD, add_probes, fact_lines, read_facts
from tools.catalog.build import DATA

UNKNOWN_TOPIC = {"place": "Topics.Partitions.ErrorCode", "error": "UNKNOWN_TOPIC_OR_PARTITION", "code": 3}


def probed(path: Path, releases: list[str], *proofs: tuple[str, int, dict[str, Any]]) -> Path:
    rows = [{"api": api, "version": version, "errors": [error]} for api, version, error in proofs]
    path.write_text(json.dumps({"address": "127.0.0.1:9092", "releases": releases, "proofs": rows}))
    return path


def test_facts_are_added_to_those_that_are_there(tmp_path: Path) -> None:
    file = tmp_path / "broker_errors.txt"
    old = probed(tmp_path / "old.json", ["3.9"], *(("ListOffsets", v, UNKNOWN_TOPIC) for v in (1, 2, 3, 5)))
    new = probed(tmp_path / "new.json", ["4.3"], *(("ListOffsets", v, UNKNOWN_TOPIC) for v in (5, 6)))
    assert "1 of them new" in add_probes(file, [new], None)
    assert "0 of them new" in add_probes(file, [old], None)
    line = "ListOffsets UNKNOWN_TOPIC_OR_PARTITION Topics.Partitions.ErrorCode 1-3,5-6 3.9,4.3"
    assert file.read_text() == f"{HEAD}\n{line}\n"


def test_the_release_is_said_where_it_is_not_clear(tmp_path: Path) -> None:
    file, probe = tmp_path / "broker_errors.txt", tmp_path / "probe.json"
    probed(probe, ["4.3", "4.4"], ("ListOffsets", 1, UNKNOWN_TOPIC))
    with pytest.raises(SystemExit, match=r"fits 4\.3 and 4\.4; use --release"):
        add_probes(file, [probe], None)
    add_probes(file, [probe], "4.3.1")
    assert file.read_text().endswith(" 1 4.3\n")


@pytest.mark.parametrize("change", [{"error": "UNKNOWN(999)"}, {"place": "Topics.ErrorCode"}])
def test_what_the_catalog_has_no_place_for_is_refused(tmp_path: Path, change: dict[str, str]) -> None:
    probe = probed(tmp_path / "probe.json", ["4.3"], ("ListOffsets", 1, UNKNOWN_TOPIC | change))
    with pytest.raises(SystemExit, match="isn't in the catalog"):
        add_probes(tmp_path / "broker_errors.txt", [probe], None)


def test_the_file_of_the_catalog_is_as_the_tool_writes_it() -> None:
    text = (DATA / "broker_errors.txt").read_text(encoding="utf-8")
    assert "\n".join(fact_lines(read_facts(text))) + "\n" == text


def test_every_fact_of_the_catalog_has_its_place() -> None:
    for api, rows in seen_errors().items():
        for seen in rows:
            assert seen.error in by_name(), seen
            assert set(seen.releases) <= release_order().keys(), seen
            for version in message(f"{api}Response").all_versions():
                if version in seen.versions:
                    assert seen.place in error_fields(message(f"{api}Response"), version), (api, version, seen)
