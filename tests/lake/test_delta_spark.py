"""What delta-spark reads of a lake's tables, and what its OPTIMIZE, Z-ORDER and VACUUM leave to our readers. Part of
`make soak`: its jars are 220 MB."""

import os

import pytest

from kafkascope.lake.home import Lake
from kafkascope.lake.upkeep.superseded import remove_superseded
from tests.judge.delta_spark import run_statements
from tests.lake.build import exchanges, half_land, land, seen
from tests.lake.test_other_readers import QUESTIONS, ROWS, START, four_files
from tests.lake.upkeep.test_foreign import everything, land_after, land_pending, uri_of

pytestmark = pytest.mark.skipif(not os.environ.get("KAFKASCOPE_SOAK"), reason="make soak")
# What Spark's SQL says in another way than DuckDB's.
SQL = {
    "timestamp": "at >= TIMESTAMP '2026-11-15 12:02:35.001085+00:00'",
    "binary": "raw = X'05'",
}


def test_filters_give_the_rows_of_a_full_scan(lake: Lake) -> None:
    uri = four_files(lake)
    conditions = {name: SQL.get(name, question[2]) for name, question in QUESTIONS.items()}
    select = f"SELECT unix_micros(at) AS us FROM delta.`{uri}` WHERE"  # noqa: S608
    counts = run_statements(*(f"{select} {condition}" for condition in conditions.values()))
    start = int(START.timestamp()) * 1_000_000
    for (name, question), rows in zip(QUESTIONS.items(), counts, strict=True):
        expected = sorted(number * 1_000_007 for number, row in enumerate(ROWS) if question[3](row))
        assert sorted(row["us"] - start for row in rows) == expected, name


def test_what_delta_spark_merges_shows_by_the_ingest_of_its_rows(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    land_pending(lake, "i1", "p")
    half_land(lake, "i2", exchanges(["x"]))
    table = f"delta.`{uri_of(lake)}`"
    run_statements(f"OPTIMIZE {table}", f"OPTIMIZE {table} ZORDER BY (exchange_id)", f"VACUUM {table} RETAIN 0 HOURS")
    assert (seen(lake), everything(lake)) == (["a", "p"], ["a", "p", "x"])
    land_after(lake, "i3", "i1", "p", "q")
    remove_superseded(lake)
    assert (seen(lake), everything(lake)) == (["a", "p", "q"], ["a", "p", "q", "x"])
    (rows,) = run_statements(f"SELECT exchange_id FROM {table}")  # noqa: S608
    assert sorted(row["exchange_id"] for row in rows) == ["a", "p", "q", "x"]
