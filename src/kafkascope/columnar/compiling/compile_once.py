"""Lets one process of a user compile a kernel while the others wait for its file. Waiting has an end: then a process
compiles for itself, and the result is the same."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kafkascope.limits import MAX_KERNEL_WAIT_SECONDS

LOCK = "compiling.lock"
_POLL_SECONDS = 0.05
# The last hex digits of a kernel's name are its place in the lock file: any system can lock a byte up to there.
_DIGITS = 7

_on_compile: Callable[[], None] | None = None


def on_compile(listener: Callable[[], None] | None) -> None:
    """`listener` is called whenever a kernel has no file yet, before this process compiles it or waits for it."""
    global _on_compile
    _on_compile = listener


@contextmanager
def compiling_once(path: Path | None) -> Iterator[None]:
    """Around the search for a kernel's file at `path` and its compilation. Where there is a file, it costs one look."""
    if path is None or path.exists():
        yield
        return
    if _on_compile is not None:
        _on_compile()
    number = _locked(path)
    try:
        yield
    finally:
        if number is not None:
            os.close(number)


def _locked(path: Path) -> int | None:
    """An open file whose lock on this kernel ends with the process, however that ends. None where others wait for
    nobody: the folder is read-only, its filesystem has no locks, or the process that has this one takes too long.

    A lock is a byte of one file: a lock of POSIX, which NFS has too, and which a forked process doesn't inherit."""
    try:
        import fcntl
    except ImportError:  # of Windows: every process compiles what is missing
        return None
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        number = os.open(path.with_name(LOCK), flags, 0o600)
    except OSError:
        return None
    place = int(path.stem[-_DIGITS:], 16)
    deadline = time.monotonic() + MAX_KERNEL_WAIT_SECONDS
    try:
        while True:
            with suppress(BlockingIOError, PermissionError):
                fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                return number
            if path.exists() or time.monotonic() >= deadline:
                break
            time.sleep(_POLL_SECONDS)
    except OSError:
        pass  # a filesystem without locks
    except BaseException:
        os.close(number)
        raise
    os.close(number)
    return None
