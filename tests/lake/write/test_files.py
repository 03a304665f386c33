"""Rows to files: by day, in order, nothing lost; the log's statistics hold; a failure leaves nothing."""

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkascope.errors import InputError
from kafkascope.lake.file_names import ingest_of
from kafkascope.lake.home import Lake
from kafkascope.lake.tables import LakeTable, body_table, table_named
from kafkascope.lake.write import files as module
from kafkascope.lake.write.files import Files, NewFile
from tests.lake.build import CAPTURES, EXCHANGES, NOON, capture, days, exchanges, on_disk, rows, written

HOUR = timedelta(hours=1)


def read(lake: Lake, file: NewFile) -> pa.Table:
    # Not by its path: a folder's name would become a column.
    with open(file.place(lake).path, "rb") as opened:
        return pq.read_table(opened)


def test_each_day_has_its_own_file_and_every_row_is_in_its_day(lake: Lake) -> None:
    midnight = datetime(2026, 11, 16, tzinfo=UTC)
    times = {"a": midnight - timedelta(microseconds=1), "b": midnight, "c": midnight + days(2), "d": NOON}
    made = written(lake, "i1", EXCHANGES, *[exchanges([name], at) for name, at in times.items()])
    dates = {file.date: sorted(read(lake, file).column("exchange_id").to_pylist()) for file in made}
    assert dates == {"2026-11-15": ["a", "d"], "2026-11-16": ["b"], "2026-11-18": ["c"]}
    assert {file.path for file in made} == on_disk(lake)
    for file in made:
        assert file.path.startswith(f"date={file.date}/ingest-i1-") and ingest_of(file.path) == "i1"
        assert (file.rows, file.size) == (read(lake, file).num_rows, Path(file.place(lake).path).stat().st_size)


def test_row_without_a_time_goes_by_the_other_time_or_to_the_day_of_none(lake: Lake) -> None:
    values: list[dict[str, Any]] = [{"exchange_id": "answer", "response_at": NOON}, {"exchange_id": "none"}]
    made = written(lake, "i1", EXCHANGES, rows(EXCHANGES, values))
    assert {file.date: read(lake, file).column("exchange_id").to_pylist() for file in made} == {
        "1970-01-01": ["none"],
        "2026-11-15": ["answer"],
    }
    assert json.loads(made[0].stats)["nullCount"]["request_at"] == 1
    assert "request_at" not in json.loads(made[0].stats)["minValues"]


@pytest.mark.parametrize("us", [2**62, -(2**62), 253402300800000000])
def test_time_that_no_calendar_has_costs_no_row(lake: Lake, us: int) -> None:
    table_given = rows(EXCHANGES, [{"exchange_id": "far"}, {"exchange_id": "near"}])
    at = pa.array([us, 1_763_208_000_000_000], pa.int64()).cast(EXCHANGES.schema.field("request_at").type)
    moved = table_given.set_column(table_given.schema.get_field_index("request_at"), "request_at", at)
    made = written(lake, "i1", EXCHANGES, moved)
    assert {file.date for file in made} == {"1970-01-01", "2025-11-15"}
    assert sum(file.rows for file in made) == 2


def test_rows_far_out_of_order_are_put_in_order(lake: Lake) -> None:
    hours = random.Random(1).sample(range(20), 20)
    start = NOON.replace(hour=0)
    parts = [exchanges([f"{hour:02}"], start + hour * HOUR) for hour in hours]
    none = exchanges(["none"], None)
    made = written(lake, "i1", EXCHANGES, *parts[:10], none, *parts[10:])
    by_day = {file.date: read(lake, file).column("exchange_id").to_pylist() for file in made}
    assert by_day == {"1970-01-01": ["none"], "2026-11-15": [f"{hour:02}" for hour in range(20)]}


def test_rows_in_the_order_of_a_recording_stay_in_it(lake: Lake) -> None:
    second = timedelta(seconds=1)
    parts = [exchanges([name], NOON + at * second) for name, at in (("a", 0), ("b", 30), ("c", 10), ("d", 60))]
    (file,) = written(lake, "i1", EXCHANGES, *parts)
    assert read(lake, file).column("exchange_id").to_pylist() == ["a", "b", "c", "d"]


def test_statistics_hold_every_time_of_the_file(lake: Lake) -> None:
    low, high = NOON + timedelta(microseconds=1_999), NOON + timedelta(microseconds=9_001)
    (file,) = written(lake, "i1", EXCHANGES, exchanges(["a"], high), exchanges(["b"], low))
    statistics = json.loads(file.stats)
    assert statistics["numRecords"] == 2
    bounds = [datetime.fromisoformat(statistics[side]["request_at"]) for side in ("minValues", "maxValues")]
    assert bounds[0] <= low < high <= bounds[1]
    assert bounds[1] - bounds[0] < timedelta(milliseconds=10)


def test_every_row_carries_its_ingest_and_keeps_one_it_has(lake: Lake) -> None:
    (file,) = written(lake, "i1", EXCHANGES, exchanges(["a", "b"]))
    assert read(lake, file).column("ingest_id").to_pylist() == ["i1", "i1"]
    (file,) = written(lake, "i2", CAPTURES, capture("kept"))
    assert read(lake, file).column("ingest_id").to_pylist() == ["kept"]
    assert (file.date, "/" in file.path) == (None, False)


def test_no_rows_make_no_file(lake: Lake) -> None:
    assert written(lake, "i1", EXCHANGES, exchanges([])) == []
    assert on_disk(lake) == set()


def test_columns_come_in_any_order(lake: Lake) -> None:
    values = exchanges(["a"])
    (file,) = written(lake, "i1", EXCHANGES, values.select(values.column_names[::-1]))
    assert read(lake, file).schema.equals(EXCHANGES.file_schema)


def test_many_days_and_tables_keep_few_files_open_and_lose_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 3)
    monkeypatch.setattr(module, "GROUP_ROWS", 4)
    files = Files(lake, "i1")
    for turn in range(3):
        for day in range(8):
            files.add(EXCHANGES, exchanges([f"{turn}-{day}-{at}" for at in range(4)], NOON + days(day)))
            assert len(files._open) <= 3
    made = files.close()
    names = sorted(name for file in made for name in read(lake, file).column("exchange_id").to_pylist())
    assert names == sorted(f"{turn}-{day}-{at}" for turn in range(3) for day in range(8) for at in range(4))
    assert len({file.path for file in made}) == len(made) == 24
    assert all(file.size == Path(file.place(lake).path).stat().st_size for file in made)


def test_what_waits_is_bounded(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING_BYTES", 50_000)
    tables = [EXCHANGES, body_table("FetchRequest"), table_named("quarantine")]
    files = Files(lake, "i1")
    for _ in range(40):
        for table in tables:
            files.add(table, rows(table, [{table.time or "": NOON}] * 20))
            assert sum(waiting.size for waiting in files._waiting.values()) == files._size <= 50_000
    assert sum(file.rows for file in files.close()) == 40 * 20 * 3


def test_row_groups_are_large_enough_to_be_worth_it(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUP_ROWS", 10)
    (file,) = written(lake, "i1", EXCHANGES, *[exchanges([str(at)]) for at in range(35)])
    with open(file.place(lake).path, "rb") as opened:
        meta = pq.ParquetFile(opened).metadata
    assert [meta.row_group(at).num_rows for at in range(meta.num_row_groups)] == [10, 10, 10, 5]


def test_a_file_ends_before_its_footer_is_large(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUP_ROWS", 10)
    monkeypatch.setattr(module, "_MOST_GROUPS", 2)
    made = written(lake, "i1", EXCHANGES, *[exchanges([str(at)]) for at in range(45)])
    assert [file.rows for file in made] == [20, 20, 5]
    assert [int(number) for file in made for number in read(lake, file).column("exchange_id").to_pylist()] == [
        *range(45)
    ]


def test_abort_leaves_no_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUP_ROWS", 1)
    monkeypatch.setattr(module, "MOST_OPEN", 1)
    files = Files(lake, "i1")
    files.add(EXCHANGES, exchanges(["a"]))
    files.add(EXCHANGES, exchanges(["b"], NOON + days(1)))
    assert len(on_disk(lake)) == 2
    files.abort()
    assert on_disk(lake) == set()
    assert files.close() == []


def test_folder_that_cannot_be_written_is_one_line(lake: Lake) -> None:
    Path(lake.table("exchanges").path).write_text("in the way")
    with pytest.raises(InputError, match=r"exchanges/date=2026-11-15/ingest-i1-\w+\.parquet: not a directory"):
        written(lake, "i1", EXCHANGES, exchanges(["a"]))


@pytest.mark.parametrize(
    ("path", "ingest"),
    [
        ("date=2026-11-15/ingest-i1-0af.parquet", "i1"),
        ("ingest-i1-0af.parquet", "i1"),
        ("date=2026-11-15/compacted-0af.parquet", None),
        ("mart-latency-0af.parquet", None),
    ],
)
def test_name_says_whose_a_file_is(path: str, ingest: str | None) -> None:
    assert ingest_of(path) == ingest


def test_files_of_a_mart_have_its_prefix(lake: Lake) -> None:
    table = LakeTable("latency", pa.schema([("minute", EXCHANGES.schema.field("request_at").type), ("api", pa.string()),
                                            ("ingest_id", pa.string()), ("date", pa.date32())]), "minute")  # fmt: skip
    files = Files(lake, "", "mart-1")
    values: dict[str, Any] = {"minute": [NOON], "api": ["Fetch"]}
    files.add(table, pa.table(values, schema=pa.schema([table.schema.field("minute"), table.schema.field("api")])))
    (file,) = files.close()
    assert file.path.startswith("date=2026-11-15/mart-1-")
