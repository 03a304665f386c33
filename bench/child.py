"""A command in, what it took out: wall and processor seconds and peak memory of that process alone, on one core."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Run:
    wall: float
    processor: float
    peak_bytes: int
    output: str


def run(command: Sequence[str], *, keep: bool = False, environment: Mapping[str, str] | None = None) -> Run:
    """RuntimeError with the end of its standard error if it fails. `keep` keeps what it prints."""
    with TemporaryFile() as out, TemporaryFile() as err:
        start = perf_counter()
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out if keep else subprocess.DEVNULL,
            stderr=err,
            env=_environment() | dict(environment or {}),
            cwd=Path(__file__).resolve().parents[1],
            preexec_fn=one_core,
        )
        # wait4 and not getrusage: that one has the peak of all children so far.
        _, status, usage = os.wait4(child.pid, 0)
        wall = perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode:
            said = err.read()[-2000:].decode(errors="replace")
            raise RuntimeError(f"{command[0]} exited with {child.returncode}: {said}")
        return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, out.read().decode())


def _environment() -> dict[str, str]:
    """As a user has it: with compiled modules kept on disk."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def one_core() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
