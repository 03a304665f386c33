"""docs/marts.md names every column of every mart and of the catalog's tables, with its type, in order; its example
runs, and Polars, DuckDB and Spark read the same rows."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from kafkascope.lake.home import open_lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.read.duck import register_tables
from kafkascope.lake.read.former_names import FORMER_NAMES
from kafkascope.lake.read.visible_rows import dataset, known_names
from kafkascope.lake.write.catalog_tables import CATALOG
from kafkascope.pipeline.tables import register_views
from tests.pipeline.mart_lakes import PACKETS, incidents
from tests.support.incidents import logged_outcomes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "marts.md").read_text(encoding="utf-8")
TABLES = {**MARTS, **CATALOG}
EXAMPLE = re.compile(r"<!-- example -->\n```py\n(.*?)```\n<!-- end of example -->", re.DOTALL)


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    return incidents(spark, tmp_path_factory, PACKETS)


def word(type_: pa.DataType) -> str:
    if pa.types.is_timestamp(type_):
        return "timestamp"
    if pa.types.is_list(type_):
        return f"list of {word(type_.value_type)}"
    if pa.types.is_map(type_):
        return f"map of {word(type_.key_type)} to {word(type_.item_type)}"
    return str(type_)


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_told_with_its_type(name: str) -> None:
    part = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    columns = re.findall(r"^\| `(\w+)` \| ([\w ]+) \| \S.* \|$", part, re.MULTILINE)
    assert columns == [(field.name, word(field.type)) for field in TABLES[name].schema]


def test_page_tells_of_no_other_table() -> None:
    titles = re.findall(r"^## ([a-z]+(?:_[a-z]+)*)$", PAGE, re.MULTILINE)
    assert titles == list(TABLES)
    assert [name for name in TABLES if f"[{name}](#{name})" not in PAGE] == []


def test_example_of_the_page_runs(lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake").symlink_to(lake)
    monkeypatch.chdir(tmp_path)
    match = EXAMPLE.search(PAGE)
    assert match
    seen: dict[str, Any] = {}
    exec(match[1], seen)
    logged = list(logged_outcomes().values())
    assert {row["outcome"]: row["records"] for row in seen["outcomes"].to_dicts()} == {
        outcome: logged.count(outcome) for outcome in set(logged)
    }
    assert {name for name, _ in seen["askers"]} == {"renewer", "hung", "steady", "doomed", "leaver"}
    refused = next(row for row in seen["errors"] if row.error == "INVALID_RECORD_STATE")
    assert (refused.api, refused.calls) == ("ShareFetch", 1) and refused.cause


def test_three_engines_read_the_same_rows_of_every_table(spark: "SparkSession", lake: str) -> None:
    home = open_lake(lake)
    names = register_views(spark, home)
    assert set(names) >= {*TABLES, "exchanges", "share_fetch_response"}
    connection = duckdb.connect()
    assert names == register_tables(connection, home) == sorted({*home.tables(), *known_names()})
    empty = next(name for name in names if name not in home.tables())
    assert spark.table(empty).count() == 0 == connection.table(empty).count("*").fetchall()[0][0]
    assert [field.name for field in spark.table(empty).schema] == connection.table(empty).columns
    for name in ("share_deliveries", "findings", "incidents", "catalog_fields", "share_fetch_response", "exchanges"):
        rows = dataset(home, name)
        count = rows.count_rows()
        assert count > 0
        assert pl.scan_delta(f"{lake}/{name}").select(pl.len()).collect().item() == count
        assert _rows(duckdb.sql("SELECT count(*) FROM rows")) == [(count,)]
        assert spark.table(name).count() == count


def test_views_have_the_former_names_of_columns_beside_theirs(spark: "SparkSession", lake: str) -> None:
    home = open_lake(lake)
    register_views(spark, home)
    connection = duckdb.connect()
    register_tables(connection, home)
    # A second time in the place of the first.
    register_tables(connection, home)
    for table, columns in FORMER_NAMES.items():
        for column, former in columns.items():
            rows = dataset(home, table).count_rows()
            # `at` is a keyword of DuckDB.
            same = f"{column} IS NOT DISTINCT FROM "
            assert spark.table(table).where(same + former).count() == rows
            assert _rows(connection.table(table).filter(f'{same}"{former}"').count("*")) == [(rows,)]


def test_views_name_the_topics_that_newer_versions_send_as_ids(spark: "SparkSession", lake: str) -> None:
    home = open_lake(lake)
    register_views(spark, home)
    connection = duckdb.connect()
    register_tables(connection, home)
    known = {row["topic_id"]: row["topic"] for row in dataset(home, "topics").to_table().to_pylist() if row["topic_id"]}
    filled = 0
    for table, column, name in (("produce_request", "topic_data", "name"), ("fetch_response", "responses", "topic")):
        sent = [
            (row["exchange_id"], topic["topic_id"], topic[name], known.get(topic["topic_id"] or ""))
            for row in dataset(home, table).to_table(columns=["exchange_id", column]).to_pylist()
            for topic in row[column] or ()
        ]
        filled += sum(present is None and expected is not None for _, _, present, expected in sent)
        expected = sorted((key, present or known) for key, _, present, known in sent if present or known)
        by_spark = (
            spark.table(table).selectExpr("exchange_id", f"explode({column}) AS t").select("exchange_id", f"t.{name}")
        )
        assert sorted(tuple(row) for row in by_spark.collect() if row[1] is not None) == expected
        by_duckdb = (
            connection.table(table).project(f"exchange_id, unnest({column}) AS t").project(f"exchange_id, t.{name}")
        )
        assert sorted(row for row in _rows(by_duckdb) if row[1] is not None) == expected
    assert filled > 100


def _rows(result: Any) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = result.fetchall()
    return rows


def test_nested_columns_are_the_same_to_all(spark: "SparkSession", lake: str) -> None:
    home = open_lake(lake)
    register_views(spark, home)
    rows = dataset(home, "share_fetch_response")
    expected = sorted(
        (batch["first_offset"], batch["last_offset"], batch["delivery_count"])
        for row in rows.to_table().to_pylist()
        for topic in row["responses"]
        for partition in topic["partitions"]
        for batch in partition["acquired_records"]
    )
    assert expected
    by_spark = spark.sql("""
        SELECT inline(flatten(flatten(transform(responses, t -> transform(t.partitions, p -> p.acquired_records)))))
        FROM share_fetch_response
    """)
    assert sorted(map(tuple, by_spark.collect())) == expected
    by_duckdb = duckdb.sql("""
        SELECT a.first_offset, a.last_offset, a.delivery_count
        FROM rows, unnest(responses) AS t(topic), unnest(topic.partitions) AS p(place),
             unnest(place.acquired_records) AS r(a)
    """)
    assert sorted(_rows(by_duckdb)) == expected
    by_polars = (
        pl.scan_delta(f"{lake}/share_fetch_response")
        .select(pl.col("responses").explode().struct.field("partitions"))
        .select(pl.col("partitions").explode().struct.field("acquired_records"))
        .select(pl.col("acquired_records").explode())
        .drop_nulls()
        .unnest("acquired_records")
        .collect()
    )
    assert sorted(by_polars.rows()) == expected
