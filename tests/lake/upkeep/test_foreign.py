"""Files that other tools made of ours: which rows show, and what maintenance does with them."""

from datetime import timedelta

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from kafkascope.lake.active import active_files
from kafkascope.lake.file_names import pending
from kafkascope.lake.home import Lake
from kafkascope.lake.read.browse import ExchangeFilters
from kafkascope.lake.read.browse import exchanges as page
from kafkascope.lake.read.visible_rows import dataset, pending_rows
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.upkeep.info import info
from kafkascope.lake.upkeep.retention import expire, half_done, vacuum
from kafkascope.lake.upkeep.superseded import remove_superseded
from kafkascope.lake.write import commit as commits
from kafkascope.lake.write.commit import commit, maintain, open_table
from kafkascope.lake.write.files import Files
from tests.lake.build import CAPTURES, EXCHANGES, NOON, capture, days, exchanges, half_land, land, rows, seen, written
from tests.support.other_tools import READERS, optimize


def uri_of(lake: Lake) -> str:
    return lake.table("exchanges").uri


def everything(lake: Lake) -> list[str]:
    """As a reader that isn't ours has it."""
    return sorted(READERS["deltalake"](uri_of(lake)).column("exchange_id").to_pylist())


def land_pending(lake: Lake, ingest: str, *names: str) -> None:
    """With the next commit of the same ingest."""
    files = Files(lake, pending(ingest))
    files.add(EXCHANGES, exchanges(names))
    commit(lake, EXCHANGES, files.close(), pending(ingest))


def land_after(lake: Lake, ingest: str, before: str, *names: str) -> None:
    half_land(lake, ingest, exchanges(names))
    (row,) = capture(ingest).to_pylist()
    last = rows(CAPTURES, [row | {"follows": [before]}])
    commit(lake, CAPTURES, written(lake, ingest, CAPTURES, last), ingest)


@pytest.fixture
def merged(lake: Lake) -> Lake:
    """`a` and `b` have landed, `p` is pending, `x` is of an ingest that died; all are in one file."""
    land(lake, "i1", exchanges(["a", "b"]))
    land_pending(lake, "i1", "p")
    half_land(lake, "i2", exchanges(["x"]))
    optimize(uri_of(lake))
    (file,) = active_files(open_table(lake, "exchanges"))
    assert file.foreign and file.rows == 4
    return lake


def test_rows_of_one_file_show_by_their_own_ingest(merged: Lake) -> None:
    assert seen(merged) == ["a", "b", "p"]
    assert [row["exchange_id"] for row in page(merged, ExchangeFilters(), None, 10).rows] == ["a", "b", "p"]
    assert {table.name: table.rows for table in info(merged).tables}["exchanges"] == 3
    assert pending_rows(merged, "exchanges", {"i1"}).column("exchange_id").to_pylist() == ["p"]
    commit(merged, CAPTURES, written(merged, "i2", CAPTURES, capture("i2")), "i2")
    assert seen(merged) == everything(merged) == ["a", "b", "p", "x"]


def test_superseded_rows_leave_a_file_that_has_others_too(merged: Lake) -> None:
    land_after(merged, "i3", "i1", "p", "q")
    assert seen(merged) == ["a", "b", "p", "q"]
    assert everything(merged) == ["a", "b", "p", "p", "q", "x"]
    remove_superseded(merged)
    assert seen(merged) == ["a", "b", "p", "q"]
    assert everything(merged) == ["a", "b", "p", "q", "x"]
    remove_superseded(merged)
    assert everything(merged) == ["a", "b", "p", "q", "x"]


def test_compaction_takes_superseded_rows_out_first(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    land_pending(lake, "i1", "p")
    land_after(lake, "i2", "i1", "p")
    assert everything(lake) == ["a", "p", "p"]
    compact(lake)
    assert everything(lake) == seen(lake) == ["a", "p"]


def test_vacuum_takes_rows_of_a_half_done_ingest_out_of_a_file_of_several(merged: Lake) -> None:
    (dead,) = half_done(merged)
    assert (dead.ingest_id, dead.tables, dead.rows) == ("i2", ("exchanges",), 1)
    assert vacuum(merged, dry_run=True).ingests == ("i2",)
    assert vacuum(merged).ingests == ("i2",)
    assert everything(merged) == seen(merged) == ["a", "b", "p"]
    # It may begin anew.
    land(merged, "i2", exchanges(["x"]))
    assert seen(merged) == ["a", "b", "p", "x"]


def test_expire_leaves_rows_of_an_ingest_under_way_though_they_are_merged(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"], NOON - days(3)), exchanges(["n"], None), last_at=NOON - days(3))
    land(lake, "i2", exchanges(["b"]), exchanges(["m"], None))
    half_land(lake, "i3", exchanges(["x"], NOON - days(3)))
    optimize(uri_of(lake))
    expire(lake, (NOON - days(1)).date())
    assert everything(lake) == ["b", "m", "x"]
    commit(lake, CAPTURES, written(lake, "i3", CAPTURES, capture("i3")), "i3")
    assert seen(lake) == ["b", "m", "x"]


def test_rows_that_somebody_else_put_in_stay_hidden_and_where_they_are(merged: Lake) -> None:
    table = DeltaTable(uri_of(merged))
    (row,) = [row for row in table.to_pyarrow_table().to_pylist() if row["exchange_id"] == "a"]
    more = table.to_pyarrow_table().slice(0, 1).from_pylist([row | {"exchange_id": "z", "ingest_id": None}])
    write_deltalake(uri_of(merged), more.cast(table.to_pyarrow_table().schema), mode="append")
    optimize(uri_of(merged))
    vacuum(merged)
    assert (seen(merged), "z" in everything(merged)) == (["a", "b", "p"], True)


@pytest.mark.parametrize("where", ["compact", "take out"])
def test_a_file_that_another_tool_merges_meanwhile_is_not_there_twice(
    lake: Lake, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after the last look at the table and before the commit."""
    land(lake, "i1", exchanges(["a"]))
    land_pending(lake, "i1", "p")
    land_after(lake, "i2", "i1", "p")
    inner = commits.transaction_properties
    times: list[int] = []

    def first_the_other(*contents: tuple[str, int], retries: int = commits.RETRIES) -> object:
        if not times and retries == 0:
            times.append(1)
            optimize(uri_of(lake))
        return inner(*contents, retries=retries)

    monkeypatch.setattr(commits, "transaction_properties", first_the_other)
    if where == "compact":
        compact(lake, most_small=1)
    else:
        remove_superseded(lake)
    assert times
    assert everything(lake) == seen(lake) == ["a", "p"]


def test_appends_meanwhile_do_not_keep_maintenance_from_its_commit(lake: Lake) -> None:
    for name in ("a", "b"):
        land(lake, f"i{name}", exchanges([name]))
    table = open_table(lake, "exchanges")
    files = active_files(table)
    for name in ("c", "d"):
        land(lake, f"i{name}", exchanges([name]))
    assert maintain(table, files, data_change=True)
    assert everything(lake) == ["c", "d"]


def test_a_filter_on_time_finds_rows_of_the_last_microsecond_in_files_of_other_tools(lake: Lake) -> None:
    last = NOON + timedelta(microseconds=1_999)
    land(lake, "i1", exchanges(["a"]))
    land(lake, "i2", exchanges(["b"], last))
    optimize(uri_of(lake))
    table = dataset(lake, "exchanges").to_table(filter=pc.field("request_at") >= last)
    assert table.column("exchange_id").to_pylist() == ["b"]
