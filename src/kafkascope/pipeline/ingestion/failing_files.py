"""Finds the file that breaks a task, so that the others can be ingested without it. A reader that raises names its
file. A worker that dies can't: then tasks run one at a time, and each marks the file that it reads."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from kafkascope.capture.resume.stretch import ALL_PACKETS
from kafkascope.errors import InputError, KafkascopeError
from kafkascope.lake.home import Lake
from kafkascope.lake.inside import inside
from kafkascope.lake.place import Place
from kafkascope.lake.tables import QUARANTINE, table_named
from kafkascope.lake.write.files import Files, NewFile, discard
from kafkascope.lake.write.heartbeat import INGESTS
from kafkascope.pipeline.ingestion.earlier_ingests import FileTimes
from kafkascope.pipeline.ingestion.inputs import InputFile
from kafkascope.pipeline.ingestion.survey import BAD_FILE, FileSurvey
from kafkascope.pipeline.ingestion.task import CAPTURES, READING_MARK, Task, TaskResult

_KIND = "broken"
# Spark's messages about a Python process or an executor that is gone.
_DEATH = re.compile(r"Python worker (?:exited|died)|ExecutorLostFailure|[Ll]ost executor")
_DIED = "the process that read it crashed or was killed by the system"

T = TypeVar("T")
R = TypeVar("R")
_RunTasks = Callable[[list[Task]], list[TaskResult]]


class BrokenFiles(Exception):
    """Maps each file to the reason why it can't be read. The ingest starts over without them. An empty name means the
    state that earlier ingests left."""

    def __init__(self, files: dict[str, str]) -> None:
        super().__init__()
        self.files = files


def run_unless_broken(lake: Lake, tasks: list[Task], together: _RunTasks, alone: _RunTasks) -> list[TaskResult]:
    """`together` runs tasks in parallel, `alone` runs them one at a time. Raises `BrokenFiles` if files must be left
    out."""
    try:
        results = together(tasks)
    except Exception as error:
        if not _is_worker_death(error):
            raise
        results = _run_in_turn(lake, tasks, alone)
    suspects = {uri: why for done in results for uri, why in done.broken.items()}
    if not suspects:
        return results
    discard(lake, [file for done in results for file in done.files])
    raise BrokenFiles(_confirmed(lake, tasks, suspects, alone))


def _each_unless_broken(files: list[T], look: Callable[[list[T]], list[R]], died: Callable[[T], R]) -> list[R]:
    """Runs `look` on workers, since a file that kills the process that reads it must not kill the driver. If a worker
    dies, each half of the files is tried by itself, down to the single file, which `died` reports."""
    try:
        return look(files)
    except Exception as error:
        if not _is_worker_death(error):
            raise
    if len(files) == 1:
        return [died(files[0])]
    half = len(files) // 2
    return [result for part in (files[:half], files[half:]) for result in _each_unless_broken(part, look, died)]


def survey_unless_broken(
    files: list[InputFile], look: Callable[[list[InputFile]], list[FileSurvey]]
) -> list[FileSurvey]:
    return _each_unless_broken(
        files, look, lambda file: FileSurvey(replace(file, kind=BAD_FILE), BAD_FILE, broken=_DIED)
    )


def times_unless_broken(
    files: list[FileSurvey], look: Callable[[list[FileSurvey]], list[FileTimes]]
) -> list[FileTimes]:
    """Raises `BrokenFiles` if files must be left out."""
    all_times = _each_unless_broken(files, look, lambda _: FileTimes(died=True))
    dead = {survey.file.uri: _DIED for survey, times in zip(files, all_times, strict=True) if times.died}
    if dead:
        raise BrokenFiles(dead)
    return all_times


def _is_worker_death(error: BaseException) -> bool:
    """If a worker was lost, and not to Ctrl-C, which ends workers too."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KafkascopeError | KeyboardInterrupt):
            return False
        cause = cause.__context__
    return _DEATH.search(str(error)) is not None


def _run_in_turn(lake: Lake, tasks: list[Task], alone: _RunTasks) -> list[TaskResult]:
    """Runs tasks one at a time until one dies again. If none does, no file is to blame."""
    results: list[TaskResult] = []
    for task in tasks:
        mark = inside(lake.place, f"{INGESTS}/{task.ingest_id}-{task.number}{READING_MARK}")
        try:
            results += alone([replace(task, marks=True)])
        except Exception as error:
            if not _is_worker_death(error):
                raise
            return [*results, TaskResult(broken={_marked(mark): _DIED})]
        finally:
            with suppress(KafkascopeError):
                mark.delete()
    return results


def _marked(mark: Place) -> str:
    with suppress(InputError):
        return mark.read().decode(errors="replace")
    return ""


def _confirmed(lake: Lake, tasks: list[Task], suspects: dict[str, str], alone: _RunTasks) -> dict[str, str]:
    """The end of a file is paired after the next file has begun, so the previous file is a suspect too. Suspects that
    break when they are read alone are confirmed; if none does, the file that was being read is."""
    confirmed: dict[str, str] = {}
    for uri, why in suspects.items():
        whole = next((task for task in tasks if task.kind == CAPTURES and uri in task.uris), None)
        broken: dict[str, str] = {}
        if whole is not None:
            index = whole.uris.index(uri)
            for suspect in whole.uris[max(index - 1, 0) : index + 1]:
                broken |= _read_alone(lake, whole, suspect, alone)
        confirmed |= broken or {uri: why}
    return confirmed


def _read_alone(lake: Lake, whole: Task, uri: str, alone: _RunTasks) -> dict[str, str]:
    task = replace(
        whole, number=0, uris=(uri,), bucket=0, buckets=1, placed={}, stretch=ALL_PACKETS, carried=(),
        unread=(), follows=(), dropped=frozenset(), skip={uri: whole.skip[uri]} if uri in whole.skip else {},
    )  # fmt: skip
    try:
        (done,) = alone([task])
    except Exception as error:
        if not _is_worker_death(error):
            raise
        return {uri: _DIED}
    discard(lake, done.files)
    return done.broken


def quarantined(lake: Lake, ingest_id: str, broken: dict[str, str], sizes: dict[str, int]) -> list[NewFile]:
    """One row per file, with its size."""
    rows: list[dict[str, Any]] = [
        {"capture_uri": uri or None, "kind": _KIND, "detail": why, "bytes": sizes.get(uri, 0)}
        for uri, why in sorted(broken.items())
    ]
    files = Files(lake, ingest_id)
    files.add(table_named("quarantine"), pa.Table.from_pylist(rows, schema=QUARANTINE))
    return files.close()
