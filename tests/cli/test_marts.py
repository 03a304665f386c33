"""`marts`: made anew with other thresholds, told by name and severity; what is no lake is one line."""

import json
from pathlib import Path

import pytest

from kafkascope.cli.spark.marts_state import are_old
from kafkascope.lake.home import make_lake, open_lake
from kafkascope.lake.read.visible_rows import dataset
from tests.cli.test_ingest import HANGS_SECONDS, SHARE, ingest
from tests.support.cli import Cli, is_one_line_error, process


def findings(lake: str) -> list[str]:
    rows: list[str] = dataset(open_lake(lake), "findings").to_table(columns=["rule"]).column("rule").to_pylist()
    return rows


def test_marts_follow_the_tables_and_the_thresholds(tmp_path: Path) -> None:
    lake = str(tmp_path / "traffic")
    document = json.loads(ingest(SHARE, "--lake", lake, "--cores", "1", "--no-marts", "--json").stdout)
    assert document["exchanges"] == document["rows"]["exchanges"] == 404
    assert (document["packets"], document["statuses"]["answered"] > 300) == (1518, True)
    assert (document["marts"], document["findings"]) == (None, None)
    assert document["first_at"].startswith("2026-11-15T12:07:19")
    assert are_old(open_lake(lake))

    # Nothing is new, and yet there is something to do.
    high = "share_lock_expired.records=5000"
    document = json.loads(ingest(SHARE, "--lake", lake, "--cores", "1", "--threshold", high, "--json").stdout)
    assert document["new"] == [] and document["marts"]["share_deliveries"] == 53
    assert document["marts"]["findings"] == sum(document["findings"].values()) == len(findings(lake))
    assert "share_lock_expired" not in findings(lake)
    assert not are_old(open_lake(lake))

    done = process("marts", lake, "--cores", "1", "--json", timeout=HANGS_SECONDS)
    assert (done.returncode, done.stderr.decode().splitlines()) == (0, ["starting Spark", "building the marts"])
    document = json.loads(done.stdout)
    assert list(document) == ["lake", "marts", "findings", "seconds"]
    assert document["marts"]["findings"] == sum(document["findings"].values()) == len(findings(lake))
    assert "share_lock_expired" in findings(lake)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["none"], 1, "there is no lake here"),
        (["."], 3, "isn't a kafkascope lake"),
        (["lake", "--threshold", "client_throttled.ms=-1"], 2, "it must be 0 or more"),
        ([], 2, "Missing argument 'LAKE'"),
    ],
)
def test_wrong_use_and_bad_input_are_one_line_before_spark_starts(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make_lake("lake")
    answer = cli("marts", *arguments)
    assert answer.code == code, answer
    assert is_one_line_error(answer.err) and words in answer.err
    assert not open_lake("lake").has("exchanges")
