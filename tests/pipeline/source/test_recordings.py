"""`spark.read.format("kafkascope")` gives what the reader gives, however many files and partitions there are, and with
filters in Spark or in the source."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.capture.exchanges.exchange_columns import SCHEMA
from kafkascope.errors import UsageError
from kafkascope.pipeline.source.options import parse_options
from tests.pipeline.ingestion.without_spark import cut
from tests.pipeline.rows import _rows as plain_rows
from tests.pipeline.rows import read_rows
from tests.pipeline.test_ingest import capture

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
# Each is about columns of `exchanges`, some of which are null in many rows.
PREDICATES = (
    "api = 'ShareFetch'",
    "api in ('ShareFetch', 'Metadata') and error is null",
    "not api = 'ShareFetch'",
    "error is not null",
    "error = 'NOT_COORDINATOR' or api = 'Fetch'",
    "client_id like 'share%' and latency_us > 5000",
    "error like '%COORD%'",
    "api_key in (3, 70000) and status <> 'unanswered'",
    "response_at >= timestamp'2026-11-15 12:07:25' and response_at < timestamp'2026-11-15 12:07:30'",
    "group_id is null and api_version <= 3",
    "error_code <=> null and api = 'ShareFetch'",
)


@contextmanager
def pushdown(spark: "SparkSession", enabled: bool) -> Iterator[None]:
    spark.conf.set(PUSHDOWN, str(enabled).lower())
    try:
        yield
    finally:
        spark.conf.unset(PUSHDOWN)


def load(spark: "SparkSession", *paths: Path | str, **options: str) -> "DataFrame":
    reader = spark.read.format("kafkascope").options(**options)
    return reader.load(str(paths[0]) if len(paths) == 1 else list(map(str, paths)))


def rows(frame: "DataFrame") -> list[dict[str, Any]]:
    return plain_rows(frame.toArrow())


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return capture("share", tmp_path_factory.mktemp("recordings"))


def test_several_paths_a_folder_and_a_pattern_are_one_recording(spark: "SparkSession", share: Path) -> None:
    whole = read_rows(share)
    parts = cut(share, [500, 900])
    try:
        assert rows(load(spark, *reversed(parts))) == whole["exchanges"]
        assert rows(load(spark, f"{share.parent}/part-*.pcap")) == whole["exchanges"]
        assert rows(load(spark, parts[0], parts[1])) == read_rows(*parts[:2])["exchanges"]
    finally:
        for part in parts:
            part.unlink()
    assert rows(load(spark, share.parent)) == whole["exchanges"]


def test_partitions_share_the_connections_and_lose_nothing(spark: "SparkSession", share: Path) -> None:
    whole = read_rows(share)
    frame = load(spark, share, tasks="3", table="share_fetch_response")
    assert frame.rdd.getNumPartitions() == 3 and load(spark, share).rdd.getNumPartitions() == 1
    assert rows(frame) == whole["share_fetch_response"]
    assert rows(load(spark, share, tasks="3")) == whole["exchanges"]


def test_filters_mean_the_same_whether_spark_hands_them_over_or_not(spark: "SparkSession", share: Path) -> None:
    counts = []
    for enabled in (False, True):
        with pushdown(spark, enabled):
            counts.append([load(spark, share).where(predicate).count() for predicate in PREDICATES])
    assert counts[0] == counts[1] and sum(map(bool, counts[0])) > 8 and max(counts[0]) < 404


def test_filters_reach_the_source_and_bodies_of_other_exchanges_are_left_alone(
    spark: "SparkSession", share: Path
) -> None:
    condition = "request_at >= timestamp'2026-11-15 12:07:25' and error is null"
    table = {"table": "share_fetch_request"}
    results, plans = [], []
    for enabled in (False, True):
        with pushdown(spark, enabled):
            frame = load(spark, share, **table).where(condition)
            plans.append(frame._jdf.queryExecution().executedPlan().toString())
            results.append(rows(frame))
    # Nothing is left for Spark to do.
    assert ["Filter (" in plan for plan in plans] == [True, False]
    assert results[0] == results[1]
    expected = results[0]
    assert 0 < len(expected) < len(read_rows(share)["share_fetch_request"])


def test_columns_and_a_schema_choose_what_spark_gets(spark: "SparkSession", share: Path) -> None:
    whole = read_rows(share)["exchanges"]
    frame = load(spark, share, columns="latency_us, api,exchange_id")
    assert frame.columns == ["latency_us", "api", "exchange_id"]
    assert rows(frame) == [{name: row[name] for name in frame.columns} for row in whole]
    schema = "exchange_id string, error string"
    chosen = spark.read.format("kafkascope").schema(schema).load(str(share))
    assert rows(chosen) == [{name: row[name] for name in ("exchange_id", "error")} for row in whole]
    with pytest.raises(Exception, match="the column error is string, not int"):
        spark.read.format("kafkascope").schema("error int").load(str(share)).collect()
    with pytest.raises(Exception, match="columns: no column latency; there are exchange_id, connection_id"):
        load(spark, share, columns="api,latency")
    assert set(SCHEMA.names) > set(frame.columns)


def test_spark_does_not_tell_a_source_which_columns_it_needs(spark: "SparkSession", share: Path) -> None:
    """Once it does, `columns` is no longer needed."""
    plan = load(spark, share).select("api")._jdf.queryExecution().executedPlan().toString()
    assert "latency_us" in plan and "correlation_id" in plan


def test_a_misspelt_option_and_a_table_that_is_not_there_are_refused(spark: "SparkSession", share: Path) -> None:
    with pytest.raises(Exception, match="unknown option tabel of the source kafkascope; did you mean table"):
        load(spark, share, tabel="exchanges")
    with pytest.raises(Exception, match="a recording has no table share_fetch: exchanges, or a message"):
        load(spark, share, table="share_fetch")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"path": "a", "verbose": "1"}, "unknown option verbose .*; there are table, columns, "),
        ({"path": "a", "tasks": "0"}, "tasks: at least 1"),
        ({"path": "a", "tasks": "many"}, "tasks: 'many' isn't a number"),
        ({"path": "a", "ports": "9092;1"}, "ports: '9092;1' isn't a list of ports"),
        ({"path": "a", "ports": "70000"}, "ports: '70000' isn't a list of ports"),
        ({"path": "a", "keepPayloads": "yes"}, "keepPayloads: 'yes' is neither true nor false"),
        ({"path": "a", "quietSeconds": "nan"}, "quietSeconds: 'nan' isn't a number of seconds"),
        ({"path": "a", "quietSeconds": "soon"}, "quietSeconds: 'soon' isn't a number of seconds"),
        ({}, r"name a recording or a lake: spark.read.format\('kafkascope'\)"),
        ({"paths": "[]"}, "name a recording or a lake"),
    ],
)
def test_options_are_checked(options: dict[str, str], line: str) -> None:
    with pytest.raises(UsageError, match=line):
        parse_options(options)


def test_a_file_that_cannot_be_read_is_named_and_left_out_if_asked(
    spark: "SparkSession", share: Path, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("no recording", encoding="utf-8")
    (tmp_path / "share.pcap").symlink_to(share)
    with pytest.raises(Exception, match=r"notes\.txt.*the option ignoreCorruptFiles leaves such files out"):
        load(spark, tmp_path).collect()
    assert rows(load(spark, tmp_path, ignoreCorruptFiles="true")) == read_rows(share)["exchanges"]
