"""What `captures` says of each file, whoever reads it: tasks of their buckets, or tasks that segments were shuffled to.
Tasks run here without Spark."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkascope.lake.home import Lake, make_lake
from kafkascope.pipeline.ingestion import ingest as ingesting
from kafkascope.pipeline.ingestion.file_accounts import FileAccount
from kafkascope.pipeline.ingestion.inputs import find_inputs
from kafkascope.pipeline.ingestion.plan import make_plan
from kafkascope.pipeline.ingestion.shuffle import ORDER, by_task, note_row, segment_rows
from kafkascope.pipeline.ingestion.state import state_of
from kafkascope.pipeline.ingestion.task import Task, TaskResult, routes_of, run, task_result_from_json
from tests.captures import NAMES
from tests.pipeline.test_ingest import capture, pieces

BUCKETS = 3


def planned(lake: Lake, files: list[Path], plan: str, buckets: int) -> list[Task]:
    options = ingesting.Options(plan=plan)
    tasks, _ = make_plan(lake, "given", find_inputs(files), state_of(lake), options, buckets)
    return tasks


def shuffled(tasks: list[Task]) -> list[TaskResult]:
    """As `_shuffled` has Spark do it."""
    first_task = tasks[0]
    rows = [batch for file, uri in enumerate(first_task.uris) for batch in segment_rows(uri, file, 0, routes_of(tasks))]
    rows += [note_row(number, -1, "") for number in range(len(tasks))]
    table = pa.Table.from_batches(rows).sort_by([(name, "ascending") for name in ORDER]).combine_chunks()
    return [run(tasks[number], some) for number, some in by_task(iter(table.to_batches(max_chunksize=500)))]


def accounts(done: list[TaskResult]) -> dict[str, FileAccount]:
    result = ingesting.Ingested("given")
    for account in done:
        ingesting._merge(result, task_result_from_json(account.to_json()))
    return result.accounts


def damaged(path: Path) -> None:
    """Every twentieth packet is missing."""
    data = path.read_bytes()
    kept, at, number = data[:24], 24, 0
    while at < len(data):
        end = at + 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        if number % 20 != 19:
            kept += data[at:end]
        at, number = end, number + 1
    path.write_bytes(kept)


@pytest.mark.parametrize("name", NAMES)
def test_buckets_and_shuffle_tell_the_same_of_every_file(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkascope.pipeline.ingestion.plan.SMALL_INPUT_BYTES", 0)
    files = pieces(capture(name, tmp_path), 4, seed=6)
    damaged(files[1])
    lake = make_lake(tmp_path / "lake")
    (whole,) = planned(lake, files, "buckets", 1)
    expected = accounts([run(whole)])
    assert accounts([run(task) for task in planned(lake, files, "buckets", BUCKETS)]) == expected
    assert accounts(shuffled(planned(lake, files, "shuffle", BUCKETS))) == expected
    assert list(expected) == [str(file) for file in files]
    clean = accounts([run(replace(whole, uris=(str(file),))) for file in files])
    for file in files:
        # What was read of a file alone is what was read of it among the others.
        for figure in ("packets", "first_ns", "last_ns"):
            assert asdict(clean[str(file)])[figure] == asdict(expected[str(file)])[figure]
    lost = {Path(uri).name: account.lost_bytes for uri, account in expected.items()}
    assert lost.pop(files[1].name) > 10 * sum(lost.values())


def contradicted(path: Path) -> None:
    """Every large packet comes again with another last byte."""
    data = path.read_bytes()
    kept, at = data[:24], 24
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        packet = data[at : at + 16 + size]
        again = packet[:-1] + bytes([packet[-1] ^ 0xFF]) if size > 300 else b""
        kept, at = kept + packet + again, at + 16 + size
    path.write_bytes(kept)


def test_what_is_wrong_with_a_connection_is_told_whatever_task_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkascope.pipeline.ingestion.plan.SMALL_INPUT_BYTES", 0)
    file = capture("clients", tmp_path)
    contradicted(file)
    # Cut within the last packet: what is wrong with the file itself is told once.
    file.write_bytes(file.read_bytes()[:-1])
    lake = make_lake(tmp_path / "lake")
    (whole,) = planned(lake, [file], "buckets", 1)
    problem = run(whole).problems
    assert problem["conflict"] > BUCKETS
    problems = [run(task).problems for task in planned(lake, [file], "buckets", BUCKETS)]
    assert sum(counts.get("conflict", 0) > 0 for counts in problems) > 1
    for kind in ("conflict", "cut"):
        assert sum(counts.get(kind, 0) for counts in problems) == problem[kind], kind
    shared = [each.problems for each in shuffled(planned(lake, [file], "shuffle", BUCKETS))]
    for kind in ("conflict", "cut"):
        assert sum(counts.get(kind, 0) for counts in shared) == problem[kind], kind


def malformed(path: Path, *numbers: int) -> None:
    """An IP header of these packets says that it is shorter than any can be."""
    data, at, number = bytearray(path.read_bytes()), 24, 0
    while at < len(data):
        if number in numbers:
            data[at + 16 + 14] = 0x41
        at, number = at + 16 + int.from_bytes(data[at + 8 : at + 12], "little"), number + 1
    path.write_bytes(data)


def quarantined(lake: Lake, done: list[TaskResult]) -> list[dict[str, Any]]:
    files = [file for task in done for file in task.files if file.table == "quarantine"]
    rows = [row for file in files for row in pq.read_table(lake.table(file.table).child(file.path).path).to_pylist()]
    return sorted(rows, key=lambda row: (row["kind"], row["capture_uri"] or "", row["packet"] or -1))


@pytest.mark.parametrize("buckets", [1, BUCKETS])
def test_what_is_wrong_stands_at_the_packet_of_its_own_file_under_both_plans(
    tmp_path: Path, buckets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkascope.pipeline.ingestion.plan.SMALL_INPUT_BYTES", 0)
    files = pieces(capture("clients", tmp_path), 3, seed=6)
    malformed(files[0], 7)
    malformed(files[1], 11)
    contradicted(files[2])
    lake = make_lake(tmp_path / "lake")
    quarantined_row = quarantined(lake, [run(task) for task in planned(lake, files, "buckets", buckets)])
    places = [(row["capture_uri"], row["packet"]) for row in quarantined_row if row["kind"] == "malformed"]
    assert places == [(str(files[0]), 7), (str(files[1]), 11)]
    assert all("offset" in row["detail"] for row in quarantined_row if row["kind"] == "malformed")
    assert {row["capture_uri"] for row in quarantined_row if row["kind"] == "conflict"} == {str(files[2])}
    assert quarantined(lake, shuffled(planned(lake, files, "shuffle", buckets))) == quarantined_row


def test_what_is_wrong_beyond_the_first_few_has_its_bytes_under_both_plans(tmp_path: Path) -> None:
    files = pieces(capture("clients", tmp_path), 8, seed=6)
    for file in files:
        malformed(file, 0)
    lake = make_lake(tmp_path / "lake")
    rows = quarantined(lake, [run(task) for task in planned(lake, files, "buckets", 1)])
    assert sum(row["bytes"] > 0 and "more of this kind" in row["detail"] for row in rows) == 1
    rows_found = quarantined(lake, shuffled(planned(lake, files, "shuffle", 1)))
    assert [row["bytes"] for row in rows_found] == [row["bytes"] for row in rows]


def test_a_file_that_is_gone_when_it_is_read_is_named_under_both_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkascope.pipeline.ingestion.plan.SMALL_INPUT_BYTES", 0)
    files = pieces(capture("share", tmp_path), 3, seed=6)
    lake = make_lake(tmp_path / "lake")
    plans = {name: planned(lake, files, name, BUCKETS) for name in ("buckets", "shuffle")}
    files[1].unlink()
    counts = accounts([run(task) for task in plans["buckets"]])
    assert {uri: account.error for uri, account in counts.items() if account.error} == {
        str(files[1]): f"{files[1]}: no such file or directory"
    }
    assert accounts(shuffled(plans["shuffle"])) == counts
