"""The ten questions of docs/logs.md have the same rows on Spark and DuckDB, and the right ones."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from kafkascope.lake.home import open_lake
from kafkascope.lake.read.duck import register_tables
from kafkascope.pipeline.tables import register_views
from tests.pipeline.log_lakes import disks_lake
from tests.support.cookbook import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf-8")
PART = PAGE.split("\n## Ten questions\n")[1].split("\n## ")[0]
QUESTIONS = dict(re.findall(r"^### (.*?)\n\n```sql\n(.*?)```$", PART, re.MULTILINE | re.DOTALL))
WEEK, HALF_A_MINUTE = "7 * 86400000", "30 * 1000"


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-19T{clock}").replace(tzinfo=UTC)


_STOPPED, _KILLED = at("15:35:13.690"), at("15:35:22.238")
_STORE = "counters-KSTREAM-AGGREGATE-STATE-STORE-0000000007"
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "Who led words-0 at 15:35:20?": [(2, 0, _STOPPED)],
    "Which partitions had no leader at the end?": [
        (f"{_STORE}-changelog", 0, _STOPPED),
        (f"{_STORE}-repartition", 0, _KILLED),
    ],
    "Whose leader changed most often?": [
        (topic, 0, 2, _KILLED)
        for topic in ("__consumer_offsets", "__share_group_state", "__transaction_state", "appended", "compacted")
    ],
    "How large is the lag of each group?": [
        ("ledger-readers", "packed", 0, 2, 408),
        ("counters", "words", 0, 20, 0),
        ("readers-classic", "words", 0, 20, 0),
        ("readers-consumer", "words", 0, 20, 0),
    ],
    "Which groups have not committed for a week?": [],
    "Which producer holds back the last stable offset?": [("ledger", 0, 1003, "hanging", "Ongoing", False, 72, 75)],
    "How many transactions were aborted?": [
        ("__consumer_offsets", 1, "COMMIT", 6),
        *(("ledger", partition, kind, 6) for partition in (0, 1) for kind in ("ABORT", "COMMIT")),
    ],
    "Where is each share group?": [("processors", "words", 0, 18, 5)],
    "Which replicas are short, damaged, or differ from the others?": [
        ("__cluster_metadata", 0, 1, 263, 1, 0, 0),
        ("__cluster_metadata", 0, 2, 200, 64, 0, 0),
    ],
    "What would compaction drop?": [("__transaction_state", 1, 56, 8267, 4), ("__consumer_offsets", 1, 30, 3365, 22)],
}


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    made = disks_lake(spark, tmp_path_factory)[0]
    register_views(spark, open_lake(made))
    return made


@pytest.fixture(scope="module")
def connection(lake: str) -> duckdb.DuckDBPyConnection:
    connected = duckdb.connect()
    connected.sql("SET TimeZone = 'UTC'")
    register_tables(connected, open_lake(lake))
    return connected


def test_there_are_ten_questions() -> None:
    assert len(QUESTIONS) == 10 and QUESTIONS.keys() == ROWS.keys()


@pytest.mark.parametrize("title", ROWS, ids=lambda title: title.rstrip("?").replace(" ", "-"))
def test_both_engines_return_the_right_rows(
    title: str, spark: "SparkSession", connection: duckdb.DuckDBPyConnection
) -> None:
    by_duckdb = connection.sql(QUESTIONS[title])
    assert [tuple(row) for row in by_duckdb.fetchall()] == ROWS[title]
    assert plain(spark.sql(QUESTIONS[title]).toArrow()) == plain(by_duckdb.to_arrow_table())


def test_half_a_minute_of_silence_is_found(connection: duckdb.DuckDBPyConnection) -> None:
    """The recorded groups were silent for less than a week."""
    statement = QUESTIONS["Which groups have not committed for a week?"]
    assert WEEK in statement
    rows = connection.sql(statement.replace(WEEK, HALF_A_MINUTE)).fetchall()
    assert [row[0] for row in rows] == ["ledger-readers", "readers-classic"]
