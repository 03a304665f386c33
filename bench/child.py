"""Runs a command and measures its wall time, processor time and peak memory on one core.

A process begins with the memory of the one that started it, and its peak counts that. So a small one starts it:
`python -m bench.child '{"command": [...], "keep": false}'` runs it and prints what it took as a line of JSON."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter

_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Run:
    wall: float
    processor: float
    peak_bytes: int
    output: str


def run(command: Sequence[str], *, keep: bool = False, environment: Mapping[str, str] | None = None) -> Run:
    """RuntimeError with the end of its standard error if it fails. `keep` keeps what it prints."""
    request = json.dumps({"command": list(command), "keep": keep})
    done = subprocess.run(
        [sys.executable, "-m", "bench.child", request],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=_environment() | dict(environment or {}),
        cwd=_ROOT,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return Run(**json.loads(done.stdout))


def _measure(command: Sequence[str], *, keep: bool) -> Run:
    with TemporaryFile() as out, TemporaryFile() as err:
        start = perf_counter()
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out if keep else subprocess.DEVNULL,
            stderr=err,
            preexec_fn=one_core,
        )
        # wait4 and not getrusage: that one has the peak of all children so far.
        _, status, usage = os.wait4(child.pid, 0)
        wall = perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode:
            error_text = err.read()[-2000:].decode(errors="replace")
            sys.exit(f"{command[0]} exited with {child.returncode}: {error_text}")
        return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, out.read().decode())


def _environment() -> dict[str, str]:
    """As a user has it: with compiled modules kept on disk."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def one_core() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


if __name__ == "__main__":
    print(json.dumps(asdict(_measure(**json.loads(sys.argv[1])))))
