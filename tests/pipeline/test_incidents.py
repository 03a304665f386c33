"""The incidents of the recorded lakes: each has its true cause, as the programs logged it, and docs/findings.md prints
them as they come out; `python -m tests.pipeline.test_incidents` writes it."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.health.findings.diagnosis import SEVERITIES
from kafkascope.health.incidents.incident import WEIGHTS
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from tests.captures import NAMES, recording, truth
from tests.pipeline.mart_lakes import LATER_PACKETS, PACKETS, files_of, incidents

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
SECOND_US = 1_000_000
ALL = (PACKETS, LATER_PACKETS)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return worst_first(incidents(spark, tmp_path_factory, files) for files in ALL)


def worst_first(lakes: Iterable[str]) -> list[Row]:
    return sorted((row for lake in lakes for row in rows_of(lake)), key=_order)


def _order(row: Row) -> tuple[int, float, int]:
    weight = sum(WEIGHTS[name] * figure for name, figure in row["impact"].items())
    return SEVERITIES.index(row["severity"]), -weight, row["from_at"]


def rows_of(lake: str) -> list[Row]:
    """With JSON read and times as whole microseconds."""
    made = []
    for row in dataset(open_lake(lake), "incidents").to_table().to_pylist():
        times = {name: round(row[name].timestamp() * SECOND_US) for name in ("from_at", "to_at")}
        parsed = {name: json.loads(row[name]) for name in ("impact", "consequences")}
        made.append(row | times | parsed)
    return made


def serious(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["severity"] != "info"]


def by_cause(rows: list[Row]) -> dict[tuple[str, str], Row]:
    """Cause, and what the subject begins or ends with that programs know."""
    return {(row["cause"], _short(row)): row for row in serious(rows)}


def _short(row: Row) -> str:
    if row["subject_kind"] == "replica":
        return str(row["subject"]).partition(" of cluster ")[0]
    return str(row["title"]).split("`")[1]


def logged(name: str, event: str, **fields: Any) -> list[dict[str, Any]]:
    wanted = {"event": event, **fields}.items()
    return [entry for entry in truth(name) if wanted <= entry.items()]


def at(name: str, event: str, **fields: Any) -> int:
    return int(logged(name, event, **fields)[0]["at"])


def test_the_causes_are_those_of_the_recipes(rows: list[Row]) -> None:
    frozen, killed = (logged("quorum", event)[0]["node"] for event in ("frozen", "killed"))
    assert set(by_cause(rows)) == {
        ("node_down", f"node {killed}"),
        ("node_frozen", f"node {frozen}"),
        ("poison_record", "3"),
        ("member_hung", "hung"),
        ("member_crashed", "doomed"),
        ("member_crashed", "second-StreamThread-1-consumer"),
        ("node_frozen", "node 4"),
        *(("node_down", f"node {node}") for node in _stopped_before_the_end("frozen")),
        ("poison_record", "21"),
        ("member_slow", "slow"),
    }


def _stopped_before_the_end(name: str) -> set[int]:
    """Voters that were stopped while the leader went on for longer than controller.quorum.fetch.timeout.ms."""
    ends = {entry["node"]: entry["at"] for entry in truth(name) if entry["event"] in ("stopped", "cut")}
    return {node for node, at in ends.items() if node <= 3 and max(ends.values()) - at > 2 * SECOND_US}


def test_the_worst_incident_of_each_recording_is_its_true_cause(rows: list[Row]) -> None:
    (killed,) = (entry["node"] for entry in logged("quorum", "killed"))
    worst: dict[str, tuple[str, str] | None] = {}
    for name in NAMES:
        described = recording(name)
        own = [row for row in serious(rows) if described["from"] <= row["from_at"] <= described["to"]]
        worst[name] = next(iter(by_cause(own[:1])), None)
    assert worst == {
        "clients": None,
        "frozen": ("node_frozen", "node 4"),
        "poison": ("poison_record", "21"),
        "quorum": ("node_down", f"node {killed}"),
        "share": ("poison_record", "3"),
        "streams": ("member_crashed", "second-StreamThread-1-consumer"),
    }


def test_a_frozen_broker_explains_the_calls_that_waited_for_it(rows: list[Row]) -> None:
    incident = by_cause(rows)["node_frozen", "node 4"]
    before = [entry for entry in logged("frozen", "leaders") if entry["at"] < at("frozen", "frozen")][-1]
    leaders = {before["leaders"][place] for place, nodes in before["inSync"].items() if 4 in nodes}
    ports = {names["PLAINTEXT"]: int(node) for node, names in recording("frozen")["ports"].items()}
    parts = {(part["role"], part["rule"]): part["subject"] for part in incident["consequences"]}
    slow = {part["subject"] for part in incident["consequences"] if part["rule"] == "api_slow"}
    assert {ports[int(subject.rpartition(":")[2])] for subject in slow} == leaders
    assert parts["slow calls", "api_slow"].startswith("Produce at ")
    assert parts["calls without a response", "api_unanswered"] == "Produce"
    assert incident["impact"]["calls_failed"] > 0
    assert "NOT_LEADER_OR_FOLLOWER" in "".join(incident["notes"])


def test_a_slow_member_is_no_consequence_of_the_poison_record(rows: list[Row]) -> None:
    causes = by_cause(rows)
    poison, slow = causes["poison_record", "21"], causes["member_slow", "slow"]
    assert poison["impact"] == {"records_archived": 1}
    assert [part["rule"] for part in slow["consequences"]] == ["share_slow_acknowledgement"]
    held = len(logged("poison", "delivered", who="slow"))
    assert f"to acknowledge {held} records." in slow["title"]


def test_incidents_begin_when_the_deed_was_done(rows: list[Row]) -> None:
    causes = by_cause(rows)
    killed, frozen = ("node_down", "node 2"), ("node_frozen", "node 1")
    deeds = {
        killed: at("quorum", "killed"),
        frozen: at("quorum", "frozen"),
        ("member_hung", "hung"): at("share", "hanging"),
        ("node_frozen", "node 4"): at("frozen", "frozen"),
        ("member_crashed", "second-StreamThread-1-consumer"): at("streams", "halted", who="second"),
    }
    for key, deed in deeds.items():
        assert abs(causes[key]["from_at"] - deed) < SECOND_US, key
    assert causes[killed]["confidence"] == "certain" and "had been restarted" in causes[killed]["explanation"]
    assert causes[frozen]["confidence"] == "likely"


def test_impact_is_what_the_programs_logged(rows: list[Row]) -> None:
    causes = by_cause(rows)
    leads = [entry["at"] for entry in logged("quorum", "raft", role="Leader")]
    without = (leads[1] - at("quorum", "killed")) / SECOND_US
    assert causes["node_down", "node 2"]["impact"]["seconds_without_leader"] == pytest.approx(without, abs=0.5)
    assert causes["poison_record", "3"]["impact"] == {"records_archived": 1}
    refused = sum(bool(entry["error"]) for entry in logged("share", "committed", who="hung"))
    assert causes["member_hung", "hung"]["impact"] == {"records_late": 4, "calls_failed": refused}


def test_every_finding_is_in_exactly_one_incident(
    rows: list[Row], spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> None:
    lakes = [open_lake(incidents(spark, tmp_path_factory, files)) for files in ALL]
    finding_rows = [row for lake in lakes for row in dataset(lake, "findings").to_table().to_pylist()]
    findings = [(row["rule"], row["subject"]) for row in finding_rows]
    parts = [(part["rule"], part["subject"]) for row in rows for part in row["consequences"]]
    assert sorted(parts) == sorted(findings)


def test_page_prints_them_as_they_come_out(rows: list[Row]) -> None:
    printed = PAGE.read_text(encoding="utf-8").partition("<!-- recorded -->\n")[2]
    assert printed.partition("<!-- end of recorded -->")[0] == rendered(rows)


def rendered(rows: list[Row]) -> str:
    return "\n".join(paragraph for row in serious(rows) for paragraph in _paragraphs(row))


def _paragraphs(row: Row) -> Iterator[str]:
    yield f"**{row['title']}**\n"
    yield f"{row['explanation']}\n"
    yield f"*{row['cause']}, {row['confidence']}.* {row['advice']}\n"
    yield f"*What would disprove it:* {row['disproof']}\n"


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    from kafkascope.cli.spark.session import ProgressLine, spark_session
    from kafkascope.pipeline.ingestion.ingest import ingest
    from kafkascope.pipeline.mart.build import build_marts

    with TemporaryDirectory() as folder, spark_session(None, ProgressLine()) as session:
        lakes = {files: f"{folder}/{files}" for files in ALL}
        for files, lake in lakes.items():
            ingest(session, files_of(files), lake)
            build_marts(session, open_lake(lake))
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition("<!-- recorded -->\n")
        after = rest.partition("<!-- end of recorded -->")[2]
        made = f"<!-- recorded -->\n{rendered(worst_first(lakes.values()))}<!-- end of recorded -->"
        PAGE.write_text(f"{before}{made}{after}", encoding="utf-8")
