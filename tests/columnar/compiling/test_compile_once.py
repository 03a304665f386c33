"""Processes that need the same kernel at once compile it once; one that dies or is stopped doesn't hold up the others
for long, and neither does a folder that has no locks."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkascope.columnar.compiling import compile_once
from kafkascope.columnar.compiling.compile_once import LOCK, compiling_once, on_compile
from kafkascope.limits import MAX_KERNEL_WAIT_SECONDS

NAME = "kafkascope.capture.made.kernel-0123456789abcdef0123456789abcdef.kernel"
# Compiles one kernel once a line comes, slowly, and prints how often it came from a file and how often it was compiled.
PROGRAM = """
import sys
import numpy as np
from kafkascope.columnar.compiling.jit import jit

@jit
def add(value):
    return value + 1

print("ready", flush=True)
sys.stdin.readline()
assert add(1) == 2
print(sum(add.stats.cache_hits.values()), sum(add.stats.cache_misses.values()), flush=True)
"""
# Takes the lock, reports it, and keeps it until it is ended.
HOLDER = """
import sys, time
from pathlib import Path
from kafkascope.columnar.compiling.compile_once import compiling_once
with compiling_once(Path(sys.argv[1])):
    print("holds", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


def is_free(path: Path) -> bool:
    """Whether another process could take the lock of this kernel."""
    program = (
        "import sys; from pathlib import Path\n"
        "from kafkascope.columnar.compiling import compile_once\n"
        "compile_once.MAX_KERNEL_WAIT_SECONDS = 0\n"
        "print(compile_once._locked(Path(sys.argv[1])) is not None)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Killed in the end."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "holds\n"
        try:
            yield process
        finally:
            process.kill()


def test_of_three_processes_one_compiles_and_the_others_load(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM, encoding="utf-8")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    running = [
        subprocess.Popen(
            [sys.executable, script], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in running:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    counts = []
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in running:
        counts.append(process.communicate()[0].split())
        assert process.returncode == 0
    assert sorted(counts) == [["0", "1"], ["1", "0"], ["1", "0"]]


def test_a_process_that_is_killed_holds_nothing(path: Path) -> None:
    with holder(path):
        assert not is_free(path)
    assert is_free(path)


def test_while_one_is_stopped_others_wait_as_long_as_the_cap_says(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with holder(path) as process:
        process.send_signal(signal.SIGSTOP)
        assert MAX_KERNEL_WAIT_SECONDS == 60
        monkeypatch.setattr(compile_once, "MAX_KERNEL_WAIT_SECONDS", 0.2)
        began = time.monotonic()
        with compiling_once(path):
            assert time.monotonic() - began >= 0.2


def test_whoever_waits_goes_on_as_soon_as_there_is_a_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        path.touch()

    monkeypatch.setattr(time, "sleep", sleep)
    with holder(path), compiling_once(path):
        assert slept == [0.05]


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EIO])
def test_a_filesystem_without_locks_keeps_nobody_waiting(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "lockf", refuse)
    before = len(os.listdir("/proc/self/fd"))
    with compiling_once(path):
        pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_cannot_be_written_to_keeps_nobody_waiting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(name: Any, *more: Any) -> int:
        if Path(name).name == LOCK:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(name, *more)

    monkeypatch.setattr(os, "open", refuse)
    with compiling_once(path):
        pass
    assert os.listdir(path.parent) == []


def test_a_kernel_that_has_a_file_takes_no_lock_and_is_not_reported(path: Path) -> None:
    reported: list[int] = []
    on_compile(lambda: reported.append(1))
    try:
        path.touch()
        with compiling_once(path):
            assert os.listdir(path.parent) == [NAME]
        with compiling_once(None):
            pass
        assert reported == []
        path.unlink()
        with compiling_once(path):
            assert os.listdir(path.parent) == [LOCK]
        assert reported == [1]
    finally:
        on_compile(None)
