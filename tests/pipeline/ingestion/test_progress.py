"""What the tasks of an ingest say of themselves, summed up by its driver."""

from pathlib import Path
from threading import Event

import pytest

from kafkascope.cli.spark.session import bar_line, progress_text
from kafkascope.columnar.compiling.compile_once import compiling_once
from kafkascope.lake.home import make_lake
from kafkascope.lake.write.heartbeat import begin
from kafkascope.pipeline.ingestion import progress
from kafkascope.pipeline.ingestion.progress import (
    IngestProgress,
    place_for,
    reporting_compiles,
    watch_progress,
    write_progress,
)


@pytest.mark.parametrize(
    ("counters", "shares", "heard"),
    [
        ([], [], (0, 0, 0)),
        ([(600, 7, 3)], [1], (600, 7, 3)),
        # Both read all of the files, for other connections.
        ([(600, 7, 3), (400, 5, 2)], [2, 2], (500, 12, 5)),
        ([(600, 7, 3), None], [2, 2], (300, 7, 3)),
        # A file of frames beside them has one task.
        ([(600, 7, 3), (400, 5, 2), (100, 9, 0)], [2, 2, 1], (600, 21, 5)),
        ([(9_000, 7, 3)], [1], (1_000, 7, 3)),
    ],
)
def test_tasks_are_summed_up(
    counters: list[tuple[int, int, int] | None],
    shares: list[int],
    heard: tuple[int, int, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "LOCAL_SECONDS", 0.01)
    lake = make_lake(tmp_path / "lake")
    begin(lake, "0123456789")
    for task, step in enumerate(counters):
        if step is not None:
            write_progress(lake, "0123456789", task, *step)
    steps: list[IngestProgress] = []
    ended = Event()

    def hear(step: IngestProgress) -> None:
        steps.append(step)
        ended.set()

    with watch_progress(lake, "0123456789", shares, IngestProgress(1, 1_000), hear):
        assert ended.wait(60)
    assert steps[-1] == IngestProgress(1, 1_000, *heard)
    assert not any(place_for(lake, "0123456789", task).exists() for task in range(len(counters)))


def test_a_task_that_waits_for_kernels_says_so_until_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LOCAL_SECONDS", 0.01)
    lake = make_lake(tmp_path / "lake")
    begin(lake, "0123456789")
    steps: list[IngestProgress] = []
    compiling, reading = Event(), Event()

    def hear(step: IngestProgress) -> None:
        steps.append(step)
        (compiling if step.compiling else reading).set()

    with watch_progress(lake, "0123456789", [1, 1], IngestProgress(1, 1_000), hear):
        assert reading.wait(60) and not compiling.is_set()
        with reporting_compiles(lake.uri, "0123456789", 1), compiling_once(tmp_path / "a.kernel-0123456.kernel"):
            assert compiling.wait(60)
        assert progress_text(steps[-1], 12.3) == "compiling kernels, once per machine, 12 s"
        assert bar_line(steps[-1], 12.3, 100) == progress_text(steps[-1], 12.3)
        reading.clear()
        write_progress(lake, "0123456789", 1, 600, 7, 3)
        assert reading.wait(60)
    assert steps[-1] == IngestProgress(1, 1_000, 600, 7, 3)
    # What is compiled afterwards is no matter of the task.
    with compiling_once(tmp_path / "b.kernel-0123456.kernel"):
        pass
    assert not place_for(lake, "0123456789", 1).exists()
