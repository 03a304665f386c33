"""Vacuum takes out what died and deletes what nobody names; expire takes out whole days. What lives is not touched."""

import os
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import dataset, visible_ingests
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.upkeep import retention as module
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.upkeep.retention import UNSIGNED_AGE, RemovedRows, expire, half_done, vacuum
from kafkascope.lake.write.commit import commit, open_table
from kafkascope.lake.write.files import Files
from kafkascope.lake.write.heartbeat import begin, end, running_ingests
from tests.lake.build import (
    CAPTURES,
    CONNECTIONS,
    EXCHANGES,
    NOON,
    capture,
    days,
    exchanges,
    half_land,
    land,
    on_disk,
    rows,
    seen,
    together,
    written,
)
from tests.lake.write.test_heartbeat import fall_silent, land_last

NOW = timedelta(0)


def age(lake: Lake, path: str, by: timedelta, table: str = "exchanges") -> None:
    file = Path(lake.table(table).path, path)
    then = file.stat().st_mtime - by.total_seconds()
    os.utime(file, (then, then))


def test_rows_of_an_ingest_that_died_are_taken_out_of_every_table(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    half_land(lake, "i2", exchanges(["b", "c"]))
    commit(lake, CONNECTIONS, written(lake, "i2", CONNECTIONS, rows(CONNECTIONS, [{"first_at": NOON}])), "i2")
    (left,) = half_done(lake)
    assert (left.ingest_id, left.tables, left.rows, left.files) == ("i2", ("connections", "exchanges"), 3, 2)
    done = vacuum(lake)
    assert done.ingests == ("i2",)
    assert {(out.table, out.rows, out.files) for out in done.taken_out} == {("connections", 1, 1), ("exchanges", 2, 1)}
    assert open_table(lake, "exchanges").to_pyarrow_table().column("exchange_id").to_pylist() == ["a"]
    assert len(open_table(lake, "connections").to_pyarrow_table()) == 0
    assert half_done(lake) == []
    assert vacuum(lake).ingests == ()


def test_ingest_that_runs_is_spared_with_all_its_files(lake: Lake) -> None:
    run = begin(lake, "i1")
    half_land(lake, "i1", exchanges(["a"]))
    (waiting,) = written(lake, "i1", EXCHANGES, exchanges(["b"]))
    age(lake, waiting.path, days(3))
    before = on_disk(lake)
    done = vacuum(lake, age=NOW)
    assert (done.ingests, done.deleted_files, done.waiting_files) == ((), 0, 0)
    assert on_disk(lake) == before
    assert land_last(lake, run)
    assert seen(lake) == ["a"]


def test_files_that_no_log_names_are_deleted_once_they_are_old(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    (young,) = written(lake, "i2", EXCHANGES, exchanges(["b"]))
    (old,) = written(lake, "i3", EXCHANGES, exchanges(["c"]))
    age(lake, old.path, days(2))
    done = vacuum(lake)
    assert (done.deleted_files, done.deleted_bytes) == (1, old.size)
    assert (done.waiting_files, done.waiting_bytes) == (1, young.size)
    assert young.path in on_disk(lake) and old.path not in on_disk(lake)
    assert vacuum(lake, age=NOW).deleted_files == 1
    assert seen(lake) == ["a"]


def test_files_of_a_table_whose_first_commit_never_came_are_deleted(lake: Lake) -> None:
    written(lake, "i1", EXCHANGES, exchanges(["a"]))
    assert vacuum(lake, age=NOW).deleted_files == 1
    assert on_disk(lake) == set()


def test_merged_files_stay_for_readers_that_began_before(lake: Lake) -> None:
    for name in ("i1", "i2"):
        land(lake, name, exchanges([name]))
    reader = dataset(lake, "exchanges")
    compact(lake, most_small=1)
    for path in on_disk(lake):
        age(lake, path, days(3))
    done = vacuum(lake)
    assert (done.deleted_files, done.waiting_files) == (0, 4)
    assert len(reader.to_table()) == 2
    assert vacuum(lake, age=NOW).deleted_files == 4
    assert seen(lake) == ["i1", "i2"]


def test_what_compaction_or_a_mart_writes_just_now_is_spared(lake: Lake) -> None:
    files = Files(lake, "", "compacted")
    files.add(EXCHANGES, exchanges(["a"]))
    (file,) = files.close()
    assert vacuum(lake, age=NOW).deleted_files == 0
    age(lake, file.path, UNSIGNED_AGE)
    assert vacuum(lake, age=NOW).deleted_files == 1


def test_dry_run_tells_the_same_and_changes_nothing(lake: Lake) -> None:
    half_land(lake, "i1", exchanges(["a"]))
    (old,) = written(lake, "i2", EXCHANGES, exchanges(["b"]))
    age(lake, old.path, days(2))
    run = fall_silent(lake, begin(lake, "i3"))
    versions = {name: open_table(lake, name).version() for name in lake.tables()}
    out = vacuum(lake, dry_run=True)
    assert {name: open_table(lake, name).version() for name in lake.tables()} == versions
    assert old.path in on_disk(lake) and running_ingests(lake) == [run]
    done = vacuum(lake)
    assert (out.ingests, out.taken_out, out.deleted_files) == (done.ingests, done.taken_out, done.deleted_files)
    assert running_ingests(lake) == []


def test_ingest_is_done_again_after_a_vacuum(lake: Lake) -> None:
    half_land(lake, "i1", exchanges(["a"]))
    vacuum(lake, age=NOW)
    land(lake, "i1", exchanges(["a"]))
    assert seen(lake) == ["a"]
    assert commit(lake, EXCHANGES, written(lake, "i1", EXCHANGES, exchanges(["a"])), "i1") is False


def test_rows_that_an_ingest_begun_anew_counts_on_are_put_back(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    half_land(lake, "i1", exchanges(["a"]))
    real = module._remove_rows

    def and_then_it_lands(lake: Lake, name: str, *others: object) -> RemovedRows:
        """The same ingest has looked at the table just before, found itself there, and ends at once."""
        out = real(lake, name, *others)  # type: ignore[arg-type]
        commit(lake, CAPTURES, written(lake, "i1", CAPTURES, capture("i1")), "i1")
        return out

    monkeypatch.setattr(module, "_remove_rows", and_then_it_lands)
    assert vacuum(lake).ingests == ()
    assert seen(lake) == ["a"]


def test_ingest_that_is_begun_anew_meanwhile_keeps_what_is_there(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    half_land(lake, "i1", exchanges(["a"]))
    real = module._tell
    runs = []

    def and_then_it_begins(lake: Lake, ingest: str) -> bool:
        outcome = real(lake, ingest)
        runs.append(begin(lake, ingest))
        return outcome

    monkeypatch.setattr(module, "_tell", and_then_it_begins)
    vacuum(lake)
    assert open_table(lake, "exchanges").to_pyarrow_table().num_rows == 1
    for run in runs:
        end(lake, run)


WRITES = """
from kafkascope.lake.home import open_lake
from kafkascope.lake.write.heartbeat import begin, end, seal
from tests.lake.build import CAPTURES, capture, exchanges, half_land, written
lake = open_lake(sys.argv[1])
ready()
for turn in range(8):
    run = begin(lake, f"i{turn}")
    half_land(lake, f"i{turn}", exchanges([f"{turn}"]))
    seal(lake, run, written(lake, f"i{turn}", CAPTURES, capture(f"i{turn}")))
    end(lake, run)
"""
CLEANS = """
from datetime import timedelta
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import visible_ingests
from kafkascope.lake.upkeep.retention import vacuum
lake = open_lake(sys.argv[1])
ready()
while len(visible_ingests(lake)) < 8:
    assert vacuum(lake, age=timedelta(0)).ingests in ((), ("dead",))
"""


def test_ingest_beside_a_vacuum_loses_nothing(lake: Lake) -> None:
    half_land(lake, "dead", exchanges(["x"]))
    script = f"exec({[WRITES, CLEANS]!r}[int(sys.argv[2])])"
    together(script, [[lake.uri, "0"], [lake.uri, "1"]])
    assert seen(lake) == [str(turn) for turn in range(8)]


def test_whole_days_before_leave_and_the_day_itself_stays(lake: Lake) -> None:
    for number in range(4):
        land(lake, f"i{number}", exchanges([str(number)], NOON + days(number)), last_at=NOON + days(number))
    (out,) = expire(lake, (NOON + days(2)).date(), dry_run=True)
    assert seen(lake) == ["0", "1", "2", "3"]
    assert expire(lake, (NOON + days(2)).date()) == [out]
    assert (out.table, out.rows, out.files) == ("exchanges", 2, 2)
    assert seen(lake) == ["2", "3"]
    assert expire(lake, (NOON + days(2)).date()) == []


def test_captures_keeps_its_rows_so_that_nothing_is_ingested_again(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    expire(lake, date(2027, 1, 1))
    assert visible_ingests(lake) == {"i1"}
    assert seen(lake) == []
    assert commit(lake, EXCHANGES, written(lake, "i1", EXCHANGES, exchanges(["a"])), "i1") is False


def test_merged_days_and_marts_expire_too(lake: Lake) -> None:
    for name in ("i1", "i2"):
        land(lake, name, exchanges([name]), exchanges([f"{name}+"], NOON + days(1)))
    compact(lake, most_small=1)
    time = EXCHANGES.schema.field("request_at").type
    mart = LakeTable(
        "minutes", pa.schema([("minute", time), ("ingest_id", pa.string()), ("date", pa.date32())]), "minute"
    )
    files = Files(lake, "", "mart-1")
    files.add(mart, pa.table({"minute": pa.array([NOON, NOON + days(1)], time)}))
    commit(lake, mart, files.close(), "mart-1")
    assert [(out.table, out.rows) for out in expire(lake, (NOON + days(1)).date())] == [
        ("exchanges", 2),
        ("minutes", 1),
    ]
    assert seen(lake) == ["i1+", "i2+"]
    assert dataset(lake, "minutes").to_table().column("minute").to_pylist() == [NOON + days(1)]


def test_rows_without_a_date_go_with_the_last_day_of_their_ingest(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"], None), last_at=NOON)
    land(lake, "i2", exchanges(["b"], None), last_at=NOON + days(5))
    expire(lake, NOON.date())
    assert seen(lake) == ["a", "b"]
    expire(lake, (NOON + days(1)).date())
    assert seen(lake) == ["b"]


def test_ingest_under_way_keeps_its_old_days_until_it_has_landed(lake: Lake) -> None:
    run = begin(lake, "i1")
    half_land(lake, "i1", exchanges(["a"]))
    assert expire(lake, date(2027, 1, 1)) == []
    land_last(lake, run)
    assert seen(lake) == ["a"]
    expire(lake, date(2027, 1, 1))
    assert seen(lake) == []


def test_merging_that_began_before_days_expired_does_not_bring_them_back(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafkascope.lake.upkeep import compact as merging

    for name in ("i1", "i2"):
        land(lake, name, exchanges([name]))
    real = merging._rows

    def slow(*arguments: object) -> object:
        expire(lake, date(2027, 1, 1))
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(merging, "_rows", slow)
    assert compact(lake, ["exchanges"], most_small=1) == []
    assert seen(lake) == []


def test_reader_that_began_before_days_expired_reads_on(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    reader = dataset(lake, "exchanges")
    expire(lake, date(2027, 1, 1))
    vacuum(lake)
    assert reader.to_table().column("exchange_id").to_pylist() == ["a"]


def test_files_that_are_none_of_ours_are_left(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    note = Path(lake.table("exchanges").path, "note.txt")
    note.touch()
    os.utime(note, (0, 0))
    assert vacuum(lake, age=NOW).deleted_files == 0
    assert note.exists()
