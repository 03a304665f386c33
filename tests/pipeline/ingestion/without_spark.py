"""Runs the tasks of ingests in this process, one after another: what a worker of Spark does, without Spark."""

import lzma
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline.ingestion import ingest as module
from kafkascope.pipeline.ingestion import plan
from kafkascope.pipeline.ingestion import task as task_module
from kafkascope.pipeline.ingestion.ingest import Options, ingest
from kafkascope.pipeline.ingestion.shuffle import ORDER, by_task, note_row, segment_rows
from kafkascope.pipeline.ingestion.task import Task, TaskResult, routes_of, run


def without_spark(put: Callable[[Any, str, Any], None] = setattr) -> None:
    """`ingest` takes any session from now on, and never uses it. `put` may undo it later."""
    replaced: dict[str, Callable[..., Any]] = {
        "check_version": lambda _: None,
        "cores_of": lambda *_: 2,
        "on_workers": lambda _spark, _cores, items, work: [work(item) for item in items],
        "run_on_spark": _run,
    }
    for name, function in replaced.items():
        put(module, name, function)
    put(task_module, "tune_process", lambda: None)
    put(plan, "SMALL_INPUT_BYTES", 0)


def ingest_all(folder: Path, recordings: list[Path]) -> list[int]:
    """How many exchanges each lake has: of each recording with buckets, of the first cut in three with a shuffle."""
    without_spark()
    lakes = []
    nobody: Any = None
    for number, recording in enumerate(recordings):
        file = folder / f"{number}-{recording.stem}"
        file.write_bytes(lzma.decompress(recording.read_bytes()))
        lakes.append(folder / f"lake-{number}")
        ingest(nobody, [file], lakes[-1], Options(plan="buckets"))
    lakes.append(folder / "lake-cut")
    for part in cut(folder / f"0-{recordings[0].stem}", [500, 900]):
        ingest(nobody, [part], lakes[-1], Options(plan="shuffle"))
    return [dataset(open_lake(str(lake)), "exchanges").count_rows() for lake in lakes]


def _run(_: Any, tasks: list[Task], *, shuffle: bool = False) -> list[TaskResult]:
    if not shuffle:
        return [run(task) for task in tasks]
    first = tasks[0]
    rows = [note_row(number, -1, "") for number in range(len(tasks))]
    for number, uri in enumerate(first.uris):
        rows += segment_rows(uri, number, first.skip.get(uri, 0), routes_of(tasks))
    ordered = pa.Table.from_batches(rows).sort_by([(name, "ascending") for name in ORDER])
    return [run(tasks[number], batches) for number, batches in by_task(iter(ordered.to_batches()))]


def cut(path: Path, places: list[int]) -> list[Path]:
    """A pcap in parts, cut before these packets."""
    data, starts, at = path.read_bytes(), [], 24
    while at < len(data):
        starts.append(at)
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    parts = []
    for number, (first, last) in enumerate(pairwise([24, *(starts[place] for place in places), len(data)])):
        parts.append(path.with_name(f"part-{number:02}.pcap"))
        parts[-1].write_bytes(data[:24] + data[first:last])
    return parts
