"""Small files become one, the rows stay: those of ingests that are not visible are not touched, and whoever writes or
merges at the same time loses nothing."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkascope.lake.file_names import ingest_of
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import dataset, visible_files, visible_ingests
from kafkascope.lake.upkeep import compact as module
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.write.commit import commit, open_table
from tests.lake.build import (
    EXCHANGES,
    NOON,
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


def test_small_files_of_a_day_become_one_with_the_same_rows(lake: Lake) -> None:
    for number in range(4):
        land(lake, f"i{number}", exchanges([f"{number}"]), exchanges([f"{number}+"], NOON + days(1)))
    before = dataset(lake, "exchanges").to_table().sort_by("exchange_id")
    merged = {
        (merged_table.table, str(merged_table.date)): (merged_table.files, merged_table.rows)
        for merged_table in compact(lake, most_small=3)
    }
    assert merged == {
        ("captures", "None"): (4, 4),
        ("exchanges", "2026-11-15"): (4, 4),
        ("exchanges", "2026-11-16"): (4, 4),
    }
    assert dataset(lake, "exchanges").to_table().sort_by("exchange_id").equals(before)
    assert visible_ingests(lake) >= {f"i{number}" for number in range(4)}
    assert [Path(path).name.split("-")[0] for path in visible_files(lake, "exchanges")] == ["compacted"] * 2
    assert set(before.column("ingest_id").to_pylist()) == visible_ingests(lake)


def test_few_small_files_are_left_alone(lake: Lake) -> None:
    for number in range(3):
        land(lake, f"i{number}", exchanges([str(number)]))
    version = open_table(lake, "exchanges").version()
    assert compact(lake, most_small=3) == []
    assert open_table(lake, "exchanges").version() == version


def test_merged_files_are_about_as_large_as_asked_and_large_ones_stay(lake: Lake) -> None:
    for number in range(6):
        land(lake, f"i{number}", exchanges([str(number)]))
    sizes = [Path(lake.table("exchanges").path, path).stat().st_size for path in visible_files(lake, "exchanges")]
    merged = compact(lake, ["exchanges"], most_small=1, target_bytes=3 * min(sizes) - 10)
    assert [merged_table.files for merged_table in merged] == [3, 3]
    assert compact(lake, ["exchanges"], most_small=1, target_bytes=min(sizes)) == []
    assert seen(lake) == [str(number) for number in range(6)]


def test_files_of_an_ingest_that_is_not_visible_are_not_touched(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    land(lake, "i2", exchanges(["b"]))
    half_land(lake, "i3", exchanges(["c"]))
    compact(lake, most_small=1)
    left = [file for file in open_table(lake, "exchanges").file_uris() if ingest_of(file)]
    assert [ingest_of(file) for file in left] == ["i3"]
    assert seen(lake) == ["a", "b"]
    assert seen(lake, frozenset({"i1", "i2", "i3"})) == ["a", "b", "c"]


def test_rows_without_a_date_are_not_merged(lake: Lake) -> None:
    for number in range(3):
        land(lake, f"i{number}", exchanges([str(number)], None))
    assert compact(lake, ["exchanges"], most_small=1) == []


def test_merged_once_more_with_what_came_since(lake: Lake) -> None:
    for number in range(6):
        land(lake, f"i{number}", exchanges([str(number)]))
        compact(lake, most_small=1)
    assert len(visible_files(lake, "exchanges")) == 1
    assert seen(lake) == [str(number) for number in range(6)]


def test_ingest_is_known_after_its_files_were_merged(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    land(lake, "i2", exchanges(["b"]))
    compact(lake, most_small=1)
    assert commit(lake, EXCHANGES, written(lake, "i1", EXCHANGES, exchanges(["a"])), "i1") is False


def test_readers_do_not_take_it_for_new_data(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    land(lake, "i2", exchanges(["b"]))
    compact(lake, most_small=1)
    log = Path(lake.table("exchanges").path, "_delta_log", f"{2:020}.json").read_text().splitlines()
    actions = [action for line in log for name, action in json.loads(line).items() if name in ("add", "remove")]
    assert [action["dataChange"] for action in actions] == [False] * 3


def test_older_files_are_merged_into_the_wider_table(lake: Lake) -> None:
    from tests.lake.write.test_commit import bodies

    narrow, wide = bodies("partition"), bodies("epoch", "partition", more=("extra",))
    for ingest, table, epoch in (("i1", narrow, {}), ("i2", wide, {"epoch": 7})):
        values = [{"request_at": NOON, "topics": [{"name": ingest, "partition": 1, **epoch}]}]
        commit(lake, table, written(lake, ingest, table, rows(table, values)), ingest)
        land(lake, ingest)
    assert [merged_table.files for merged_table in compact(lake, ["kept_request"], most_small=1)] == [2]
    merged_rows = dataset(lake, "kept_request").to_table().sort_by("ingest_id")
    assert [row[0]["epoch"] for row in merged_rows.column("topics").to_pylist()] == [None, 7]


def test_row_groups_of_a_merged_file_follow_the_time(lake: Lake) -> None:
    for number in (3, 1, 2):
        land(lake, f"i{number}", exchanges([f"{number}{at}" for at in range(3)], NOON.replace(hour=number)))
    compact(lake, ["exchanges"], most_small=1)
    (path,) = visible_files(lake, "exchanges")
    with open(Path(lake.table("exchanges").path, path), "rb") as file:
        table: pa.Table = pq.read_table(file, columns=["exchange_id"])
    assert [name[0] for name in table.column(0).to_pylist()] == list("111222333")


def test_another_that_merged_first_wins_and_no_row_is_there_twice(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        land(lake, f"i{number}", exchanges([str(number)]))
    real = module._rows
    turns: list[int] = []

    def slow(*arguments: object) -> object:
        """Between this one's look at the table and its commit, another does the same."""
        if not turns:
            turns.append(1)
            assert len(compact(lake, ["exchanges"], most_small=1)) == 1
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_rows", slow)
    assert compact(lake, ["exchanges"], most_small=1) == []
    assert seen(lake) == ["0", "1", "2", "3"]
    assert len([path for path in on_disk(lake) if "compacted" in path]) == 1


INGESTS = """
from kafkascope.lake.home import open_lake
from tests.lake.build import exchanges, land
lake = open_lake(sys.argv[1])
ready()
for turn in range(8):
    land(lake, f"{sys.argv[2]}{turn:02}", exchanges([f"{sys.argv[2]}{turn:02}"]))
"""
MERGES = """
from pathlib import Path
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import visible_ingests
lake = open_lake(sys.argv[1])
ready()
count = 0
while len(visible_ingests(lake)) < 8:
    count += len(compact(lake, most_small=1))
print(count)
"""


def test_no_row_is_lost_or_twice_while_one_ingests_and_two_merge(lake: Lake) -> None:
    calls = [INGESTS, MERGES, MERGES]
    script = f"exec({calls!r}[int(sys.argv[3])])"
    messages = together(script, [[lake.uri, "a", str(number)] for number in range(3)])
    assert sum(map(int, messages[1:])) > 0
    assert seen(lake) == [f"a{turn:02}" for turn in range(8)]
    assert visible_ingests(lake) == {f"a{turn:02}" for turn in range(8)}
