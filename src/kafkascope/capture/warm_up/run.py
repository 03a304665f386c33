"""Compiles all kernels into the user's folder, in two processes, and reports what it did."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from kafkascope.columnar.compiling.interrupt import INTERRUPTED
from kafkascope.columnar.compiling.kernel_folder import base_folder, contents, folder, is_complete, mark_complete
from kafkascope.errors import InputError

_MODULE, _HALVES = "kafkascope.capture.warm_up.kernels", ("packets", "frames")


@dataclass(frozen=True, slots=True)
class WarmedUp:
    """`kernels` are in `folder`, and `compiled` of them are new."""

    folder: str
    kernels: int
    bytes: int
    compiled: int
    seconds: float


def is_warm() -> bool:
    """Whether a warm-up has compiled every kernel of this version for this processor. True too where no folder can
    keep one: a warm-up would be for nothing."""
    kept = folder()
    return kept is None or is_complete(kept) or not os.access(kept, os.W_OK)


def warm_up() -> WarmedUp:
    """`InputError` where no folder can keep kernels, `UsageError` where somebody else could write to it."""
    began = perf_counter()
    kept = folder()
    if kept is None:
        raise _unkept(base_folder())
    before, size = contents(kept)
    if is_complete(kept):
        return WarmedUp(str(kept), before, size, 0, perf_counter() - began)
    if not os.access(kept, os.W_OK):
        raise _unkept(kept)
    with _halves() as halves:
        outputs = [half.communicate()[1] for half in halves]
    for half, output in zip(halves, outputs, strict=True):
        if half.returncode in (INTERRUPTED, -signal.SIGINT):
            raise KeyboardInterrupt
        if half.returncode:
            last = output.strip().splitlines()[-1:] or [f"exit code {half.returncode}"]
            raise InputError(f"compiling the kernels failed: {last[0]}")
    mark_complete(kept)
    after, size = contents(kept)
    if not is_complete(kept):
        raise _unkept(kept)
    return WarmedUp(str(kept), after, size, after - before, perf_counter() - began)


def _unkept(place: Path | None) -> InputError:
    fix = "set NUMBA_CACHE_DIR to a folder that can be written to, or every process compiles for itself"
    return InputError(f"kernels can't be kept: {place} cannot be written to; {fix}")


@contextmanager
def _halves() -> Iterator[list[subprocess.Popen[str]]]:
    """They end with this process, whatever ends it."""
    command = [sys.executable, "-m", _MODULE]
    with ExitStack() as stack:
        halves = []
        for half in _HALVES:
            process = stack.enter_context(subprocess.Popen([*command, half], stderr=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            halves.append(process)
        yield halves
