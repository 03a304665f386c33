"""Commits: once each, whoever commits beside them; a table is widened, another type refused; none is half there."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafkascope.errors import InputError
from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.write.commit import commit, find_table, open_table
from tests.lake.build import CAPTURES, EXCHANGES, NOON, exchanges, half_land, land, rows, seen, together, written


def test_same_transaction_again_adds_nothing(lake: Lake) -> None:
    files = written(lake, "i1", EXCHANGES, exchanges(["a"]))
    assert commit(lake, EXCHANGES, files, "i1") is True
    again = written(lake, "i1", EXCHANGES, exchanges(["a"]))
    assert commit(lake, EXCHANGES, again, "i1") is False
    assert commit(lake, EXCHANGES, written(lake, "i2", EXCHANGES, exchanges(["b"])), "i2") is True
    assert seen(lake, frozenset({"i1", "i2"})) == ["a", "b"]


def test_commit_without_files_counts_too(lake: Lake) -> None:
    assert commit(lake, EXCHANGES, [], "i1") is True
    assert commit(lake, EXCHANGES, written(lake, "i1", EXCHANGES, exchanges(["a"])), "i1") is False
    assert seen(lake, frozenset({"i1"})) == []


def test_transactions_outlive_a_checkpoint(lake: Lake) -> None:
    half_land(lake, "i1", exchanges(["a"]))
    open_table(lake, "exchanges").create_checkpoint()
    for log in Path(lake.table("exchanges").path, "_delta_log").glob("*.json"):
        log.unlink()
    assert commit(lake, EXCHANGES, written(lake, "i1", EXCHANGES, exchanges(["a"])), "i1") is False


def test_files_are_in_the_log_with_their_day_and_statistics(lake: Lake) -> None:
    half_land(lake, "i1", exchanges(["a", "b"]))
    log = Path(lake.table("exchanges").path, "_delta_log", f"{0:020}.json").read_text()
    added = [json.loads(line)["add"] for line in log.splitlines() if "add" in json.loads(line)]
    assert [file["partitionValues"] for file in added] == [{"date": "2026-11-15"}]
    assert json.loads(added[0]["stats"])["numRecords"] == 2


COMMITS = """
from kafkascope.lake.home import open_lake
from tests.lake.build import EXCHANGES, commit, exchanges, land, written
lake = open_lake(sys.argv[1])
ready()
for turn in range(8):
    land(lake, f"{sys.argv[2]}{turn}", exchanges([f"{sys.argv[2]}-{turn}"]))
"""
SAME = """
from kafkascope.lake.home import make_lake
from tests.lake.build import EXCHANGES, commit, exchanges, written
ready()
for turn in range(12):
    lake = make_lake(f"{sys.argv[1]}/{turn // 2}")
    files = written(lake, f"i{turn}", EXCHANGES, exchanges([str(turn)]))
    print(commit(lake, EXCHANGES, files, f"i{turn}"))
"""


def test_two_processes_that_ingest_at_once_both_land(lake: Lake) -> None:
    together(COMMITS, [[lake.uri, "a"], [lake.uri, "b"]])
    assert seen(lake) == sorted(f"{name}-{turn}" for name in "ab" for turn in range(8))


def test_two_processes_with_the_same_ingest_land_once(tmp_path: Path) -> None:
    """The first commit of a table and the next, six times."""
    outcomes = [line.split() for line in together(SAME, [[str(tmp_path)]] * 2)]
    assert [sorted(pair) for pair in zip(*outcomes, strict=True)] == [["False", "True"]] * 12
    for turn in range(0, 12, 2):
        lake = open_lake(tmp_path / str(turn // 2))
        assert seen(lake, frozenset({f"i{turn}", f"i{turn + 1}"})) == sorted((str(turn), str(turn + 1)))


def bodies(*fields: str, more: tuple[str, ...] = ()) -> LakeTable:
    topic = pa.struct([("name", pa.string()), *((field, pa.int32()) for field in fields)])
    columns = [("topics", pa.list_(topic)), *((name, pa.int64()) for name in more)]
    time = EXCHANGES.schema.field("request_at")
    return LakeTable(
        "kept_request", pa.schema([time, *columns, ("ingest_id", pa.string()), ("date", pa.date32())]), "request_at"
    )


def test_table_is_widened_within_structs_too_and_older_rows_are_null_there(lake: Lake) -> None:
    narrow, wide = bodies("partition"), bodies("epoch", "partition", more=("extra",))
    old = [{"request_at": NOON, "topics": [{"name": "a", "partition": 1}]}]
    new = [{"request_at": NOON, "topics": [{"name": "b", "epoch": 7, "partition": 2}], "extra": 5}]
    for ingest, table, values in (("i1", narrow, old), ("i2", wide, new), ("i3", narrow, old)):
        assert commit(lake, table, written(lake, ingest, table, rows(table, values)), ingest)
    rows_found = (
        dataset(lake, "kept_request", frozenset({"i1", "i2", "i3"})).to_table().sort_by("ingest_id").to_pylist()
    )
    older = {"name": "a", "partition": 1, "epoch": None}
    assert [row["topics"] for row in rows_found] == [[older], [{"name": "b", "partition": 2, "epoch": 7}], [older]]
    assert [row["extra"] for row in rows_found] == [None, 5, None]


WIDENS = """
import pyarrow as pa
from kafkascope.lake.home import open_lake
from tests.lake.build import NOON, commit, rows, written
from tests.lake.write.test_commit import bodies
lake = open_lake(sys.argv[1])
name = sys.argv[2]
ready()
for turn in range(4):
    table = bodies(*[f"{name}{at}" for at in range(turn)])
    given = [{"request_at": NOON, "topics": [{"name": f"{name}{turn}"}]}]
    commit(lake, table, written(lake, f"{name}{turn}", table, rows(table, given)), f"{name}{turn}")
"""


def test_two_that_widen_at_once_both_have_their_columns(lake: Lake) -> None:
    together(WIDENS, [[lake.uri, "a"], [lake.uri, "b"]])
    ingests = frozenset(f"{name}{turn}" for name in "ab" for turn in range(4))
    table = dataset(lake, "kept_request", ingests).to_table()
    assert sorted(row[0]["name"] for row in table.column("topics").to_pylist()) == sorted(ingests)
    fields = {field.name for field in table.schema.field("topics").type.value_type}
    assert fields == {"name", *(f"{name}{at}" for name in "ab" for at in range(3))}


def test_column_of_another_type_is_refused_and_named(lake: Lake) -> None:
    commit(lake, bodies("partition"), [], "i1")
    table = bodies("partition")
    schema = table.schema.set(
        1, pa.field("topics", pa.list_(pa.struct([("name", pa.string()), ("partition", pa.string())])))
    )
    with pytest.raises(
        InputError, match=r"kept_request: column topics\[\]\.partition is integer in the lake, string in this"
    ):
        commit(lake, LakeTable("kept_request", schema, "request_at"), [], "i2")
    assert open_table(lake, "kept_request").transaction_version("i2") is None


def test_half_done_create_of_another_is_no_table_yet(lake: Lake) -> None:
    Path(lake.table("exchanges").path, "_delta_log").mkdir(parents=True)
    assert find_table(lake, "exchanges") is None
    assert seen(lake) == []
    land(lake, "i1", exchanges(["a"]))
    assert seen(lake) == ["a"]


def test_log_that_cannot_be_read_is_one_line(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    Path(lake.table("exchanges").path, "_delta_log", f"{0:020}.json").write_text("no json\n")
    with pytest.raises(InputError, match="exchanges: ") as caught:
        seen(lake)
    assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)


def test_other_programs_read_the_table(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    assert DeltaTable(lake.table("captures").uri).to_pyarrow_table().column("ingest_id").to_pylist() == ["i1"]
    assert CAPTURES.schema.names == pa.schema(open_table(lake, "captures").schema().to_arrow()).names
