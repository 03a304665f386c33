"""What the tasks of an ingest say of themselves, summed up by its driver."""

from pathlib import Path
from threading import Event

import pytest

from kafkascope.lake.home import make_lake
from kafkascope.lake.write.heartbeat import begin
from kafkascope.pipeline.ingestion import progress
from kafkascope.pipeline.ingestion.progress import IngestProgress, place_for, watch_progress, write_progress


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
