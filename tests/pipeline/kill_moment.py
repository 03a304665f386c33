"""A moment of an ingest in, a process killed there with SIGKILL out, once.

A file, named by the environment, says who is to die (`worker`, `executor` or `driver`), at which step, and how often
that step passes before. Workers and driver look at it; it is gone once it has been used."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import Any

NAMED = "KAFKASCOPE_KILL"
# Steps of a task: a file is begun, has rows, is finished; all are, and the driver has not heard of it.
TASK_STEPS = ("begin", "write", "finish", "close")
# Steps of the driver: each a call before which, or after which, it dies.
DRIVER_STEPS = ("sign", "plan", "run", "committed", "commit", "seal", "sealed", "compact", "end")


@dataclass(frozen=True, slots=True)
class Moment:
    victim: str
    step: str
    passes: int = 0


def set_moment(path: Path, moment: Moment) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(asdict(moment)))
    beside.replace(path)


def arm(pids: dict[str, Callable[[], int]]) -> None:
    """`pids` tells whom a victim's name means, asked now where it is of this process's surroundings."""
    fixed = {"executor": pids["executor"]()} if "executor" in pids else {}
    path = os.environ[NAMED]
    counts: dict[tuple[int, str], int] = {}

    def here(step: str) -> None:
        try:
            with open(path) as file:
                moment = Moment(**json.load(file))
                inode = os.fstat(file.fileno()).st_ino
        except OSError:
            return
        if moment.step != step or moment.victim not in pids:
            return
        passed = counts[inode, step] = counts.get((inode, step), -1) + 1
        if passed < moment.passes:
            return
        try:
            os.unlink(path)
        except FileNotFoundError:
            # Another worker was first.
            return
        os.kill(fixed.get(moment.victim) or pids[moment.victim](), signal.SIGKILL)

    if "driver" in pids:
        _arm_driver(here)
    else:
        _arm_worker(here)


def _arm_worker(here: Callable[[str], None]) -> None:
    from kafkascope.lake.write.files import Files

    def after(name: str, step: str) -> None:
        inner: Any = getattr(Files, name)

        @wraps(inner)
        def outer(*arguments: Any, **named: Any) -> Any:
            result = inner(*arguments, **named)
            here(step)
            return result

        setattr(Files, name, outer)

    for name, step in (("_begin", "begin"), ("_write", "write"), ("_finish", "finish"), ("close", "close")):
        after(name, step)


def _arm_driver(here: Callable[[str], None]) -> None:
    from kafkascope.pipeline.ingestion import ingest as ingesting

    def around(name: str, before: str | None = None, behind: str | None = None) -> None:
        inner: Any = getattr(ingesting, name)

        @wraps(inner)
        def outer(*arguments: Any, **named: Any) -> Any:
            if before:
                here(before)
            result = inner(*arguments, **named)
            if behind:
                here(behind)
            return result

        setattr(ingesting, name, outer)

    around("begin", behind="sign")
    around("make_plan", before="plan")
    around("run_on_spark", behind="run")
    around("commit", "commit", "committed")
    around("seal", "seal", "sealed")
    around("compact", "compact")
    around("end", "end")
