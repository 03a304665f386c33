"""Views of a lake have its visible rows, with comments, and read only the days of a query; the SQL of a catalog."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafkascope.lake.home import make_lake
from kafkascope.lake.read.column_texts import column_texts
from kafkascope.pipeline import catalog_sql, views
from tests.judge.delta_spark import run_statements
from tests.lake.build import EXCHANGES, NOON, exchanges, half_land, land, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkascope.lake.home import Lake

DAY = timedelta(days=1)


@pytest.fixture
def home(lake: str) -> "Lake":
    """Three days, a response without its request, a row without a time, and an ingest that died."""
    made = make_lake(lake)
    for day in range(3):
        land(made, f"i{day}", exchanges([f"e{day}"], at=NOON + day * DAY))
    alone = rows(EXCHANGES, [{"exchange_id": "alone", "response_at": NOON + DAY + timedelta(hours=1)}])
    land(made, "i3", alone, exchanges(["never"], at=None))
    half_land(made, "i9", exchanges(["dead"]))
    return made


def ids(spark: "SparkSession") -> list[str]:
    return sorted(row.exchange_id for row in spark.sql("SELECT exchange_id FROM exchanges").collect())


def test_every_table_is_a_view_with_a_comment_on_every_column(spark: "SparkSession", home: "Lake") -> None:
    names = views(spark, home.uri)
    assert ids(spark) == ["alone", "e0", "e1", "e2", "never"]
    assert {"exchanges", "share_fetch_request", "share_deliveries", "catalog_fields"} <= set(names)
    for name in ("exchanges", "share_fetch_request", "share_deliveries", "quarantine"):
        described = {row.col_name: row.comment for row in spark.sql(f"DESCRIBE {name}").collect()}
        texts = column_texts(name, described)
        # Former names of columns have the comment of the new one.
        assert len(described) > 5 and all(described.values())
        assert {column: described[column] for column in texts} == texts


def test_since_and_until_leave_out_the_folders_of_other_days(spark: "SparkSession", home: "Lake") -> None:
    views(spark, home, since=NOON + DAY, until=(NOON + 2 * DAY).replace(tzinfo=None))
    assert ids(spark) == ["alone", "e1"]
    plan = spark.table("exchanges")._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(date" in plan and ">= 2026-11-16" in plan and "<= 2026-11-17" in plan
    files = {row.file for row in spark.sql("SELECT input_file_name() AS file FROM exchanges").collect()}
    assert {Path(file).parent.name for file in files} == {"date=2026-11-16"}
    views(spark, home, since=datetime(2026, 11, 17, tzinfo=UTC))
    assert ids(spark) == ["e2"]
    # Tables without a time have all their rows.
    assert spark.table("captures").count() == 4


def test_a_date_reaches_the_files_of_a_view(spark: "SparkSession", home: "Lake") -> None:
    views(spark, home)
    frame = spark.sql("SELECT exchange_id FROM exchanges WHERE date = '2026-11-15'")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(date" in plan and "= 2026-11-15)" in plan
    assert [row.exchange_id for row in frame.collect()] == ["e0"]


def test_the_sql_of_a_catalog_is_spark_s(spark: "SparkSession", home: "Lake") -> None:
    statements = catalog_sql(home.uri, "traffic`s")
    parser = spark._jsparkSession.sessionState().sqlParser()
    for statement in statements:
        parser.parsePlan(statement)
    assert [statement.split("`")[0].strip() for statement in statements] == [
        *["CREATE SCHEMA IF NOT EXISTS"] * 2,
        *["CREATE TABLE IF NOT EXISTS", "CREATE OR REPLACE VIEW"] * 2,
    ]
    assert f"USING delta LOCATION '{home.uri}/captures'" in statements[2]
    assert statements[-1].endswith("WHERE left(ingest_id, 20) IN (SELECT ingest_id FROM `traffic``s_tables`.captures)")


@pytest.mark.soak
@pytest.mark.skipif("KAFKASCOPE_SOAK" not in os.environ, reason="runs in make soak")
def test_delta_spark_runs_it_and_shows_the_visible_rows(home: "Lake") -> None:
    select = "SELECT exchange_id FROM traffic.exchanges ORDER BY exchange_id"
    *_, visible, described = run_statements(*catalog_sql(home, "traffic"), select, "DESCRIBE traffic.exchanges")
    assert [row["exchange_id"] for row in visible] == ["alone", "e0", "e1", "e2", "never"]
    comments = {row["col_name"]: row["comment"] for row in described}
    assert comments == column_texts("exchanges", comments)
