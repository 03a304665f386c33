"""`marts` rebuilds with other thresholds and counts findings by severity; what isn't a lake is one line."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.cli.spark.marts_state import are_old
from kafkascope.lake.home import make_lake, open_lake
from kafkascope.lake.read.visible_rows import dataset
from tests.cli.test_ingest import SHARE
from tests.support.cli import Cli, is_one_line_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def findings(lake: str) -> list[str]:
    rows: list[str] = dataset(open_lake(lake), "findings").to_table(columns=["rule"]).column("rule").to_pylist()
    return rows


def test_marts_follow_the_tables_and_the_thresholds(cli: Cli, spark: "SparkSession", tmp_path: Path) -> None:
    lake = str(tmp_path / "traffic")

    def document(*arguments: str) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(cli(*arguments, "--cores", "2", "--json").out)
        return made

    ingested = document("ingest", SHARE, "--lake", lake, "--no-marts")
    assert ingested["exchanges"] == ingested["rows"]["exchanges"] == 404
    assert (ingested["packets"], ingested["statuses"]["answered"] > 300) == (1518, True)
    assert (ingested["marts"], ingested["findings"]) == (None, None)
    assert ingested["first_at"].startswith("2026-11-15T12:07:19")
    assert are_old(open_lake(lake))

    # Nothing is new, and yet there is something to do.
    high = "share_lock_expired.records=5000"
    ingested = document("ingest", SHARE, "--lake", lake, "--threshold", high)
    assert ingested["new"] == [] and ingested["marts"]["share_deliveries"] == 53
    assert ingested["marts"]["findings"] == sum(ingested["findings"].values()) == len(findings(lake))
    assert "share_lock_expired" not in findings(lake)
    assert not are_old(open_lake(lake))

    # Nothing is left to do.
    ingested = document("ingest", SHARE, "--lake", lake)
    assert (ingested["new"], ingested["known"], ingested["ingest_id"], ingested["marts"]) == ([], [SHARE], None, None)

    built = document("marts", lake)
    assert list(built) == ["lake", "built", "marts", "findings", "seconds"]
    assert built["marts"]["findings"] == sum(built["findings"].values()) == len(findings(lake))
    assert "share_lock_expired" in findings(lake)
    # The session that was there before goes on.
    assert spark.range(3).count() == 3


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["none"], 1, "there is no lake here"),
        (["."], 3, "isn't a kafkascope lake"),
        (["lake", "--threshold", "client_throttled.ms=-1"], 2, "it must be 0 or more"),
        ([], 2, "LAKE is missing"),
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
