"""Files of plain frames, in every form that is read, become rows of their messages' tables; odd rows go to quarantine
with what is wrong, and never with their bytes."""

import base64
import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkascope import encode, to_json
from kafkascope.columnar.decode import decode_columns
from kafkascope.lake.home import make_lake, open_lake
from kafkascope.lake.read.visible_rows import captures_rows, dataset
from kafkascope.lake.shape import to_lake
from kafkascope.lake.tables import body_table_name
from kafkascope.pipeline.ingestion import task
from kafkascope.pipeline.ingestion.ingest import Ingested, ingest
from kafkascope.pipeline.ingestion.plain_frames import FRAMES
from kafkascope.schema.layouts.examples import example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = (
    ("ShareGroupDescribeResponse", 1),
    ("StreamsGroupHeartbeatResponse", 0),
    ("ShareFetchRequest", 2),
    ("DescribeQuorumResponse", 1),
)
TABLES = (
    "share_group_describe_response",
    "streams_group_heartbeat_response",
    "share_fetch_request",
    "describe_quorum_response",
)


def body(name: str, version: int) -> bytes:
    return encode(name, version, example(name, version))


BODIES = {name: body(name, version) for name, version in SEEDS}
# Each form writes a row of all four.
HEX_LINES = "seeds.txt"
JSON_LINES = "seeds.jsonl"
CSV = "seeds.csv"
PARQUET = ("binary.parquet", "hex.parquet", "base64.parquet")


def write_all(folder: Path) -> list[Path]:
    """The four messages in every form: by message, and by API and direction; binary, hex and base64."""
    lines = ["# the four messages it began with", ""]
    lines += [f"{name}:{version} {BODIES[name].hex(' ')}" for name, version in SEEDS]
    lines += ["ShareFetchRequest:2 0g", "a line of something else", "ShareFetchRequest:2 00ff"]
    (folder / HEX_LINES).write_text("\n".join(lines) + "\n", encoding="utf-8")

    rows: list[Any] = [
        {"api": api(name), "direction": direction(name), "version": version, "base64": in_base64(BODIES[name])}
        for name, version in SEEDS
    ]
    rows += [
        {"message": "ShareFetchRequst", "version": 2, "hex": "00"},
        {"message": "ShareFetchRequest", "version": 99, "hex": "00"},
        {"message": "ShareFetchRequest", "version": "two", "hex": "00"},
        {"api": "ShareFetch", "version": 2, "hex": "00"},
        {"message": "ShareFetchRequest", "version": 2},
        {"version": 2, "hex": "00"},
    ]
    text = "\n".join(map(json.dumps, rows)) + '\n{"message": "cut\n[1, 2]\n'
    (folder / JSON_LINES).write_text(text, encoding="utf-8")

    with (folder / CSV).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["Version", "note", "Message", "bytes"])
        table.writerows((version, "a, b", name, BODIES[name].hex()) for name, version in SEEDS)
        table.writerow((2, "", "ShareFetchRequest", "not bytes"))

    names = pa.array([name for name, _ in SEEDS])
    versions = pa.array([version for _, version in SEEDS], pa.int16())
    binary = pa.array([BODIES[name] for name, _ in SEEDS], pa.binary())
    pq.write_table(pa.table({"message": names, "version": versions, "bytes": binary}), folder / PARQUET[0])
    as_hex = pa.array([BODIES[name].hex() for name, _ in SEEDS])
    pq.write_table(pa.table({"message": names, "version": versions, "hex": as_hex}), folder / PARQUET[1])
    apis, directions = pa.array([api(name) for name, _ in SEEDS]), pa.array([direction(name) for name, _ in SEEDS])
    as_base64 = pa.array([in_base64(BODIES[name]) for name, _ in SEEDS])
    pq.write_table(
        pa.table({"api": apis, "direction": directions, "version": versions, "data": as_base64}), folder / PARQUET[2]
    )
    return [folder / name for name in (HEX_LINES, JSON_LINES, CSV, *PARQUET)]


def api(name: str) -> str:
    return name.removesuffix("Request").removesuffix("Response")


def direction(name: str) -> str:
    return "request" if name.endswith("Request") else "response"


def in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


FORMS = 6
ODD = {HEX_LINES: 3, JSON_LINES: 8, CSV: 1}


@pytest.fixture(scope="module")
def made(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Ingested, Path]:
    """(lake, what the one ingest of all forms did, their folder)"""
    folder = tmp_path_factory.mktemp("frames")
    lake = str(tmp_path_factory.mktemp("lakes") / "lake")
    return lake, ingest(spark, write_all(folder), lake), folder


def rows_of(lake: str, name: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = dataset(open_lake(lake), name).to_table().to_pylist()
    return table


@pytest.mark.parametrize(("seed", "table"), list(zip(SEEDS, TABLES, strict=True)), ids=TABLES)
def test_the_four_messages_are_rows_of_their_tables(
    made: tuple[str, Ingested, Path], seed: tuple[str, int], table: str
) -> None:
    name, version = seed
    assert body_table_name(name) == table
    rows = rows_of(made[0], table)
    assert len(rows) == FORMS
    (expected,) = to_lake(decode_columns(name, version, pa.array([BODIES[name]], pa.large_binary()))).to_pylist()
    for row in rows:
        assert row["api_version"] == version
        assert {key: row[key] for key in expected if key != "_error"} == {
            key: value for key, value in expected.items() if key != "_error"
        }


def test_a_row_says_what_the_example_says(made: tuple[str, Ingested, Path]) -> None:
    value = to_json("ShareFetchRequest", 2, example("ShareFetchRequest", 2))
    row = rows_of(made[0], "share_fetch_request")[0]
    assert (row["group_id"], row["member_id"]) == (value["groupId"], value["memberId"])
    assert [topic["topic_id"] for topic in row["topics"]] == [topic["topicId"] for topic in value["topics"]]


def test_every_row_is_known_by_its_place(made: tuple[str, Ingested, Path]) -> None:
    ids = [row["exchange_id"] for table in TABLES for row in rows_of(made[0], table)]
    assert len(set(ids)) == len(ids) == FORMS * len(SEEDS)


def test_odd_rows_are_in_quarantine_with_their_row_and_why(made: tuple[str, Ingested, Path]) -> None:
    lake, done, folder = made
    rows = rows_of(lake, "quarantine")
    by_file = {name: [row for row in rows if row["capture_uri"] == str(folder / name)] for name in ODD}
    assert {name: len(places) for name, places in by_file.items()} == ODD
    assert len(rows) == done.quarantined == sum(ODD.values())
    why = {row["packet"]: row["detail"] for row in by_file[JSON_LINES]}
    assert "did you mean ShareFetchRequest" in why[4]
    assert "no version 99" in why[5]
    assert "version isn't a number" in why[6]
    assert "direction" in why[7]
    assert "the bytes are missing" in why[8]
    assert "message or api is missing" in why[9]
    (undecoded,) = [row for row in by_file[HEX_LINES] if row["message"]]
    assert (undecoded["message"], undecoded["api_version"], undecoded["packet"]) == ("ShareFetchRequest", 2, 6)
    assert not any("not bytes" in row["detail"] or "00ff" in row["detail"] for row in rows)


def test_the_files_are_told_in_captures(made: tuple[str, Ingested, Path]) -> None:
    lake, done, folder = made
    rows = {row["capture_uri"]: row for row in captures_rows(open_lake(lake), ["capture_uri", "kind", "frames"])}
    assert (
        sorted(rows)
        == sorted(done.new)
        == sorted(map(str, (folder / name for name in (HEX_LINES, JSON_LINES, CSV, *PARQUET))))
    )
    assert {row["kind"] for row in rows.values()} == {"frames"}
    assert {Path(uri).name: row["frames"] for uri, row in rows.items()} == {
        name: len(SEEDS) + ODD.get(name, 0) for name in (HEX_LINES, JSON_LINES, CSV, *PARQUET)
    }
    assert not done.bad


def test_the_same_files_again_add_nothing(spark: "SparkSession", made: tuple[str, Ingested, Path]) -> None:
    lake, _, folder = made
    again = ingest(spark, [folder], lake)
    assert not again.new and len(again.known) == FORMS
    assert len(rows_of(lake, "share_fetch_request")) == FORMS


def test_a_parquet_file_that_is_cut_is_named_and_the_others_land(
    spark: "SparkSession", lake: str, tmp_path: Path
) -> None:
    paths = write_all(tmp_path)
    cut = tmp_path / PARQUET[0]
    cut.write_bytes(cut.read_bytes()[:200])
    done = ingest(spark, paths, lake)
    assert list(done.bad) == [str(cut)]
    assert len(rows_of(lake, "share_fetch_request")) == FORMS - 1


@pytest.mark.parametrize("form", ["lines", "parquet"])
def test_a_task_says_how_far_it_is(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, version, count = "ShareFetchRequest", 2, 25_000
    path = tmp_path / f"frames.{form}"
    if form == "lines":
        path.write_text(f"{name}:{version} {BODIES[name].hex()}\n" * count)
    else:
        columns = {"message": [name] * count, "version": [version] * count, "bytes": [BODIES[name]] * count}
        pq.write_table(pa.table(columns), path, row_group_size=7_000)
    steps: list[tuple[int, int, int]] = []
    monkeypatch.setattr(task, "PROGRESS_SECONDS", -1.0)
    monkeypatch.setattr(task, "write_progress", lambda _lake, _ingest, _task, *step: steps.append(step))
    task.run(task.Task(make_lake(tmp_path / "lake").uri, "0123456789", 0, FRAMES, (str(path),)))
    sizes, frames, exchanges = zip(*steps, strict=True)
    assert frames == (10_000, 20_000, 25_000)
    assert exchanges == (0, 0, 0)
    assert 0 < sizes[0] < sizes[1] <= sizes[2] <= path.stat().st_size


def test_of_two_files_with_the_same_bytes_one_is_read(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("ApiVersionsRequest:0\n", encoding="utf-8")
    done = ingest(spark, [tmp_path / "a.txt", tmp_path / "b.txt"], lake)
    assert done.new == [str(tmp_path / "a.txt")]
    assert len(rows_of(lake, "api_versions_request")) == 1
    assert [row["capture_uri"] for row in captures_rows(open_lake(lake), ["capture_uri"])] == done.new


def test_a_file_that_has_grown_adds_the_rows_that_are_new(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    """Also where it ended within a row."""
    line = f"ShareFetchRequest:2 {BODIES['ShareFetchRequest'].hex()}\n"
    path = tmp_path / "frames.txt"
    batches = []
    for text in (2 * line, 3 * line + line[:30], 5 * line):
        path.write_text(text, encoding="utf-8")
        batches.append(ingest(spark, [path], lake))
    rows = dataset(open_lake(lake), "share_fetch_request").to_table(columns=["exchange_id"]).column(0).to_pylist()
    assert len(rows) == len(set(rows)) == 5
    assert sorted(row["frames"] for row in captures_rows(open_lake(lake), ["frames"])) == [2, 4, 5]
    assert [len(batch.grown_from) for batch in batches] == [0, 1, 1]
