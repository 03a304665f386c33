"""Keeps Ctrl-C out of numba: an exception in the middle of compiling or loading a kernel can crash the process."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

# Set by the command line, which owns its process.
OWN_PROCESS = "_kafkascope_own_process"
INTERRUPTED = 130


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C ends a process of our own at once; in a process of others it is raised at the end, because a kernel takes
    seconds. If other code handles the signal, nothing changes."""
    before = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or before is not signal.default_int_handler:
        yield
        return
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if getattr(sys, OWN_PROCESS, False):
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os._exit(INTERRUPTED)
        came.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
