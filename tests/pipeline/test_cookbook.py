"""Every question of docs/cookbook.md has the same rows on Spark, DuckDB and Polars, and some."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from kafkascope.lake.home import open_lake
from kafkascope.lake.read.duck import register_tables
from kafkascope.pipeline.tables import register_views
from tests.pipeline.mart_lakes import PACKETS, incidents
from tests.support.cookbook import PAGE, Question, plain, questions, setup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = PAGE.read_text(encoding="utf-8")
QUESTIONS = questions(TEXT)


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    made = incidents(spark, tmp_path_factory, PACKETS)
    register_views(spark, open_lake(made))
    return made


@pytest.fixture(scope="module")
def connection(lake: str) -> duckdb.DuckDBPyConnection:
    connected = duckdb.connect()
    register_tables(connected, open_lake(lake))
    return connected


def test_there_are_twenty_questions() -> None:
    assert len({question.title for question in QUESTIONS}) == len(QUESTIONS) == 20
    assert all(question.title.endswith("?") for question in QUESTIONS)
    assert sum(question.empty for question in QUESTIONS) == 2


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.title.rstrip("?").replace(" ", "-"))
def test_three_engines_return_the_same_rows(
    question: Question,
    spark: "SparkSession",
    connection: duckdb.DuckDBPyConnection,
    lake: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "lake").symlink_to(lake)
    monkeypatch.chdir(tmp_path)
    by_duckdb = plain(connection.sql(question.sql["DuckDB"]).to_arrow_table())
    names: dict[str, Any] = {}
    exec(setup(TEXT), names)
    exec(f"answer = {question.polars}", names)
    assert plain(names["answer"].to_arrow()) == by_duckdb
    assert plain(spark.sql(question.sql["Spark"]).toArrow()) == by_duckdb
    assert bool(by_duckdb[1]) != question.empty
