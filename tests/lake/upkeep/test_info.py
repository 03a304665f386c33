"""The account of a lake: what is visible, what runs, what was left."""

from kafkascope.lake.home import Lake
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.upkeep.info import info
from kafkascope.lake.write.heartbeat import begin
from tests.lake.build import EXCHANGES, NOON, days, exchanges, half_land, land, on_disk, rows, written
from tests.lake.write.test_heartbeat import fall_silent


def test_new_lake_has_nothing(lake: Lake) -> None:
    lake_info = info(lake)
    assert (lake_info.tables, lake_info.ingests, lake_info.recordings, lake_info.running, lake_info.half_done) == (
        (),
        0,
        0,
        (),
        (),
    )


def test_counts_are_of_visible_rows_and_the_others_are_told(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a", "b"]), exchanges(["c"], NOON + days(1)))
    land(lake, "i2", exchanges(["d"]), exchanges(["none"], None))
    half_land(lake, "i3", exchanges(["e"]))
    run = begin(lake, "i4")
    half_land(lake, "i4", exchanges(["f"]))
    fall_silent(lake, begin(lake, "i5"))
    written(lake, "i6", EXCHANGES, exchanges(["g"]))
    lake_info = info(lake)
    captures, exchanges_info = lake_info.tables
    assert (captures.name, captures.rows) == ("captures", 2)
    assert (exchanges_info.name, exchanges_info.rows, exchanges_info.files, exchanges_info.hidden_files) == (
        "exchanges",
        5,
        4,
        2,
    )
    assert (exchanges_info.first_at, exchanges_info.last_at) == (NOON, NOON + days(1))
    assert exchanges_info.bytes > 0
    assert (lake_info.ingests, lake_info.recordings) == (2, 2)
    assert [half_done.ingest_id for half_done in lake_info.half_done] == ["i3"]
    assert lake_info.running == (run,)


def test_the_first_time_is_known_where_a_row_of_its_file_has_none(lake: Lake) -> None:
    """A response without its request, in the file of the earliest exchange."""
    early = {"exchange_id": "a", "request_at": NOON - days(1)}
    alone = {"exchange_id": "b", "response_at": NOON - days(1)}
    land(lake, "i1", rows(EXCHANGES, [early, alone]), exchanges(["c"]))
    (table_info,) = (table for table in info(lake).tables if table.name == EXCHANGES.name)
    assert (table_info.first_at, table_info.last_at) == (NOON - days(1), NOON)


def test_merging_changes_files_and_no_rows(lake: Lake) -> None:
    for number in range(3):
        land(lake, f"i{number}", exchanges([str(number)]))
    compact(lake, most_small=1)
    assert [(table.rows, table.files) for table in info(lake).tables] == [(3, 1), (3, 1)]
    assert len(on_disk(lake)) == 4
