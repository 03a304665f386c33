"""Recordings in, a lake out, as an ingest makes it, in this process and without Spark."""

import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from kafkascope.lake.home import Lake, make_lake
from kafkascope.lake.tables import table_named
from kafkascope.lake.write.commit import commit
from kafkascope.lake.write.files import NewFile
from kafkascope.lake.write.heartbeat import begin, end, seal, turn_of
from kafkascope.pipeline.ingestion.ingest import Ingested, Options, _commit
from kafkascope.pipeline.ingestion.inputs import InputFile, find_inputs
from kafkascope.pipeline.ingestion.plan import make_plan
from kafkascope.pipeline.ingestion.state import state_of
from kafkascope.pipeline.ingestion.task import TaskResult, run


def ingest_here(paths: Iterable[Path], where: str | Path, options: Options = Options()) -> Lake:  # noqa: B008
    lake = make_lake(where)
    ingest_id, turn, before = uuid4().hex[:20], turn_of(lake), state_of(lake)
    sign = begin(lake, ingest_id)
    surveyed, done = _done(lake, ingest_id, paths, options)
    last = _commit(lake, sign, surveyed, done, Ingested(ingest_id), options, before.heads)
    seal(lake, sign, last, turn)
    end(lake, sign)
    return lake


def half_ingest_here(paths: Iterable[Path], lake: Lake) -> None:
    """All tables but `captures`, and the sign of life stays: an ingest that is under way."""
    ingest_id = uuid4().hex[:20]
    begin(lake, ingest_id)
    by_table: dict[str, list[NewFile]] = {}
    for result in _done(lake, ingest_id, paths, Options())[1]:
        for file in result.files:
            by_table.setdefault(file.table, []).append(file)
    for name, files in by_table.items():
        commit(lake, table_named(name), files, ingest_id)


def _done(
    lake: Lake, ingest_id: str, paths: Iterable[Path], options: Options
) -> tuple[list[InputFile], list[TaskResult]]:
    threads = pa.cpu_count()
    try:
        tasks, surveys = make_plan(lake, ingest_id, find_inputs(paths), state_of(lake), options, 1)
        return [survey.file for survey in surveys], [run(task) for task in tasks]
    finally:
        # A task takes one thread, for good.
        pa.set_cpu_count(threads)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder for all workers of a test run; the first that needs it makes it."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, ready = shared / name, shared / f"{name}.ready"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            make(folder)
            ready.touch()
    return folder
