"""Readers see the ingests that `captures` names, with whatever tool; a question about an hour opens few files."""

from datetime import timedelta
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafkascope.errors import NotFoundError
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import dataset, table_in, visible_files, visible_ingests
from kafkascope.lake.tables import LakeTable, table_named
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.write.commit import commit
from kafkascope.lake.write.files import Files
from tests.lake.build import CAPTURES, EXCHANGES, NOON, capture, days, exchanges, half_land, land, rows, seen, written

HOUR = timedelta(hours=1)


def test_ingest_shows_nothing_until_captures_names_it(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    half_land(lake, "i2", exchanges(["b"]))
    assert seen(lake) == ["a"]
    commit(lake, CAPTURES, written(lake, "i2", CAPTURES, capture("i2")), "i2")
    assert seen(lake) == ["a", "b"]
    assert visible_ingests(lake) == {"i1", "i2"}


def test_written_but_not_committed_shows_nothing(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    written(lake, "i1", EXCHANGES, exchanges(["b"]))
    assert seen(lake) == ["a"]


def test_table_that_is_not_there_is_empty_with_its_columns(lake: Lake) -> None:
    table = dataset(lake, "share_fetch_request").to_table()
    assert (len(table), table.schema.names) == (0, table_named("share_fetch_request").schema.names)
    assert (visible_files(lake, "exchanges"), visible_ingests(lake)) == ([], frozenset())
    with pytest.raises(NotFoundError, match="unknown table nothing"):
        dataset(lake, "nothing")


def test_reader_of_chosen_ingests_sees_no_later_one_though_files_were_merged(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    chosen = visible_ingests(lake)
    land(lake, "i2", exchanges(["b"]))
    assert seen(lake, chosen) == ["a"]
    compact(lake, most_small=1)
    assert seen(lake, chosen) == ["a"]
    assert seen(lake) == ["a", "b"]


def test_mart_is_visible_with_its_commit_and_has_its_own_columns(lake: Lake) -> None:
    time = EXCHANGES.schema.field("request_at").type
    table = LakeTable(
        "quiet_minutes", pa.schema([("minute", time), ("ingest_id", pa.string()), ("date", pa.date32())]), "minute"
    )
    files = Files(lake, "", "mart-1")
    files.add(table, pa.table({"minute": pa.array([NOON], time)}))
    commit(lake, table, files.close(), "mart-1")
    assert dataset(lake, "quiet_minutes", frozenset()).to_table().column("minute").to_pylist() == [NOON]
    assert table_in(lake, "quiet_minutes").time == "minute"


def test_question_about_an_hour_opens_only_the_files_that_can_answer(lake: Lake) -> None:
    for number in range(6):
        land(lake, f"i{number}", exchanges([str(number)], NOON + number * HOUR))
    land(lake, "i6", exchanges(["yesterday"], NOON - days(1)))
    land(lake, "i7", exchanges(["none"], None))
    visible = dataset(lake, "exchanges")
    hour = (pc.field("request_at") >= pa.scalar(NOON + 2 * HOUR)) & (
        pc.field("request_at") < pa.scalar(NOON + 3 * HOUR)
    )
    assert len(list(visible.get_fragments(hour))) == 2  # the one without times may have any
    assert visible.to_table(columns=["exchange_id"], filter=hour).column(0).to_pylist() == ["2"]
    day = pc.field("date") == pa.scalar((NOON - days(1)).date())
    assert len(list(visible.get_fragments(day))) == 1
    assert visible.to_table(columns=["exchange_id"], filter=pc.field("request_at").is_null()).column(0).to_pylist() == [
        "none"
    ]


def test_row_without_a_time_is_found_in_a_file_of_rows_that_have_one(lake: Lake) -> None:
    values = [{"exchange_id": "both", "request_at": NOON}, {"exchange_id": "answer", "response_at": NOON}]
    land(lake, "i1", rows(EXCHANGES, values))
    assert len(visible_files(lake, "exchanges")) == 1
    alone = dataset(lake, "exchanges").to_table(columns=["exchange_id"], filter=pc.field("request_at").is_null())
    assert alone.column(0).to_pylist() == ["answer"]


def test_last_microsecond_of_a_file_is_found(lake: Lake) -> None:
    at = NOON + timedelta(microseconds=1_234_567)
    land(lake, "i1", exchanges(["a"], at))
    table = dataset(lake, "exchanges").to_table(filter=pc.field("request_at") == pa.scalar(at))
    assert table.column("exchange_id").to_pylist() == ["a"]


@pytest.fixture
def filled(lake: Lake) -> Lake:
    """Two ingests merged, one alone, one half done, over two days, nested rows among them."""
    table = table_named("share_fetch_request")
    for number, name in enumerate(("i1", "i2", "i3", "i4")):
        values = exchanges([name], NOON + days(number % 2))
        keys = {"request_at": NOON, "exchange_id": name}
        body = pa.Table.from_pylist(
            [keys | {"topics": [{"topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": [{"partition_index": number}]}]}],
            schema=pa.schema([field for field in table.file_schema if field.name != "ingest_id"]),
        )
        commit(lake, table, written(lake, name, table, body), name)
        (half_land if name == "i4" else land)(lake, name, values)
        if name == "i2":
            compact(lake, most_small=1)
    return lake


def test_duckdb_sees_the_visible_rows(filled: Lake) -> None:
    shown = duckdb.connect()
    shown.register("exchanges", dataset(filled, "exchanges"))
    shown.register("bodies", dataset(filled, "share_fetch_request"))
    counted = shown.sql(
        "SELECT exchange_id, strftime(e.date, '%d'), b.topics[1].partitions[1].partition_index"
        " FROM exchanges e JOIN bodies b USING (exchange_id) WHERE e.date >= DATE '2026-11-15' ORDER BY 1"
    ).fetchall()
    assert counted == [("i1", "15", 0), ("i2", "16", 1), ("i3", "15", 2)]


def test_polars_sees_the_visible_rows(filled: Lake) -> None:
    frame = pl.scan_pyarrow_dataset(dataset(filled, "exchanges")).filter(pl.col("request_at") >= NOON)
    assert sorted(frame.select("exchange_id").collect().to_series()) == ["i1", "i2", "i3"]
    body = pl.scan_pyarrow_dataset(dataset(filled, "share_fetch_request")).select(
        pl.col("topics").list.first().struct.field("partitions").list.first().struct.field("partition_index")
    )
    assert sorted(body.collect().to_series()) == [0, 1, 2]


def test_delta_readers_see_the_same_rows_once_they_ask_captures(filled: Lake) -> None:
    captures = pl.scan_delta(filled.table("captures").uri).select("ingest_id").unique()
    for name in ("exchanges", "share_fetch_request"):
        frame = pl.scan_delta(filled.table(name).uri)
        assert len(frame.collect()) == 4
        shown = frame.join(captures, on="ingest_id", how="semi").select("exchange_id").collect()
        assert sorted(shown.to_series()) == ["i1", "i2", "i3"]


def test_lake_may_be_moved(filled: Lake, tmp_path: Path) -> None:
    from kafkascope.lake.home import open_lake

    Path(filled.uri).rename(tmp_path / "moved")
    assert seen(open_lake(tmp_path / "moved")) == ["i1", "i2", "i3"]
