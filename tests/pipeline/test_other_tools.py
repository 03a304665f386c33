"""Other tools at work in a lake between two ingests, after them and before `marts`: every reader of Delta sees the rows
that ours see, and they are those of the recording."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafkascope.lake.home import Lake, make_lake, open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.tables import message_of
from kafkascope.lake.upkeep.info import info
from kafkascope.lake.upkeep.retention import vacuum
from kafkascope.pipeline.ingestion.ingest import Options, ingest
from kafkascope.pipeline.mart.build import build_marts
from tests.pipeline.rows import lake_rows, read_rows
from tests.pipeline.test_ingest import capture, pieces
from tests.support.other_tools import READERS, all_of_them, everywhere, optimize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 3


def nothing(_: str) -> None:
    pass


def ids(rows: pa.Table) -> list[tuple[str, str]]:
    of = rows.column("status" if "status" in rows.column_names else "exchange_id").to_pylist()
    return sorted(zip(map(str, rows.column("exchange_id").to_pylist()), map(str, of), strict=True))


def wanted_ids(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((row["exchange_id"], row.get("status", row["exchange_id"])) for row in rows)


def recorded(lake: Lake) -> list[str]:
    return [name for name in lake.tables() if name == "exchanges" or message_of(name)]


@pytest.mark.parametrize("tool", [nothing, optimize, all_of_them])
def test_every_reader_sees_the_rows_of_the_recording(
    spark: "SparkSession", lake: str, tmp_path: Path, tool: Callable[[str], None]
) -> None:
    path = capture("share", tmp_path)
    home = make_lake(lake)
    versions = []
    for piece in pieces(path, FILES, seed=9):
        ingest(spark, [piece], lake)
        table = DeltaTable(home.table("exchanges").uri)
        versions.append((table.version(), wanted_ids(lake_rows(lake)["exchanges"])))
        assert ids(pa.table(table.to_pyarrow_table())) == versions[-1][1]
        everywhere(home, tool)
        assert wanted_ids(lake_rows(lake)["exchanges"]) == versions[-1][1]
    whole = read_rows(path)
    assert lake_rows(lake) == whole
    assert all(any(status == "unanswered" for _, status in then) for _, then in versions[:-1])
    for name in recorded(home):
        for reader, rows in READERS.items():
            assert ids(rows(home.table(name).uri)) == wanted_ids(whole.get(name, [])), (name, reader)
    uri = home.table("exchanges").uri
    if tool is not all_of_them:
        # What VACUUM deletes is gone for those who travel in time.
        for reader, rows in READERS.items():
            assert [ids(rows(uri, version)) for version, _ in versions] == [then for _, then in versions], reader
    counts = {table.name: table.rows for table in info(home).tables}
    assert counts["exchanges"] == len(whole["exchanges"])
    assert not vacuum(home).ingests
    assert lake_rows(lake) == whole


def test_the_condition_of_the_docs_hides_what_is_half_done(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    """As a reader finds it while the second ingest has committed all tables but `captures`."""
    path = capture("share", tmp_path)
    first, second = pieces(path, 2, seed=9)
    home = make_lake(lake)
    ingest(spark, [first], lake)
    uri, captures = home.table("exchanges").uri, home.table("captures").uri
    before, named = wanted_ids(lake_rows(lake)["exchanges"]), DeltaTable(captures).version()
    start = DeltaTable(uri).version()
    ingest(spark, [second], lake)
    condition = next(line for line in Path("docs/lake.md").read_text().splitlines() if line.startswith("SELECT … FROM"))
    with duckdb.connect() as database:
        database.register("exchanges", DeltaTable(uri, version=start + 1).to_pyarrow_dataset())
        database.register("captures", DeltaTable(captures, version=named).to_pyarrow_dataset())
        assert len(database.sql("FROM exchanges").fetchall()) > len(before)
        table = database.sql(condition.replace("…", "*")).to_arrow_table()
    assert ids(table) == before


def mart_rows(lake: str, name: str) -> Counter[str]:
    rows = dataset(open_lake(lake), name).to_table().to_pylist()
    return Counter(repr(sorted(row.items())) for row in rows)


def test_marts_of_tables_that_another_tool_merged_are_the_same(
    spark: "SparkSession", lake: str, tmp_path: Path
) -> None:
    path = capture("share", tmp_path)
    whole = f"{lake}-whole"
    ingest(spark, [path], whole, Options(tasks=1))
    for piece in pieces(path, 2, seed=9):
        ingest(spark, [piece], lake, Options(tasks=1))
        everywhere(open_lake(lake), optimize)
    counts = [build_marts(spark, where) for where in (whole, lake)]
    for name in ("api_latency", "api_errors", "share_deliveries", "share_group_health"):
        assert mart_rows(lake, name) == mart_rows(whole, name), name
    # The marts too are tables that may be merged before they are built again.
    everywhere(open_lake(lake), all_of_them)
    assert build_marts(spark, lake) == counts[1]
    assert mart_rows(lake, "api_latency") == mart_rows(whole, "api_latency")
