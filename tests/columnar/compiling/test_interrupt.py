"""Ctrl-C while numba is at work: raised afterwards, or the end of a process of our own."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from kafkascope.columnar.compiling.interrupt import INTERRUPTED, uninterrupted


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Who starts the tests in the background has made Ctrl-C something to be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_it_is_raised_when_the_work_is_done() -> None:
    done: list[bool] = []

    def work() -> None:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_of_others_and_other_threads_are_left_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]

    def work() -> None:
        with uninterrupted():
            heard.append(0)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert heard[-1] == 0


def test_a_process_of_our_own_ends_at_once_and_keeps_what_it_printed() -> None:
    code = (
        "import os, signal, sys\n"
        "from kafkascope.columnar.compiling.interrupt import uninterrupted\n"
        "sys._kafkascope_own_process = True\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('read')\n"
        "with uninterrupted():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    print('more')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "read\n", "")
