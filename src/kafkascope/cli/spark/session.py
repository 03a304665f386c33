"""Runs a command on Spark: a session on this machine, a progress line, and Spark's own log in a file that is kept only
after errors that aren't ours."""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, Any

from kafkascope.cli.progress import BAR_LETTERS, bar, pace_text
from kafkascope.cli.spark.interrupts import after_interrupt, one_interrupt
from kafkascope.cli.terminal import note, takes_commands, width
from kafkascope.errors import InputError, KafkascopeError, ReachError
from kafkascope.formatting import count, size, span

if TYPE_CHECKING:
    from kafkascope.pipeline.ingestion.progress import IngestProgress

BAR_SECONDS, PLAIN_SECONDS = 0.2, 30.0


class ProgressLine:
    """Progress: a line that updates itself on a terminal; elsewhere a line per step, and one now and then. `seconds`
    are those of every finished step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._terminal: IO[str] | None = None
        if takes_commands(sys.stderr):
            # Its own copy: the start of the session redirects the original to the log.
            self._terminal = os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8", errors="replace")
        self._text = ""
        self._latest: IngestProgress | None = None
        self._began = self._reported_at = 0.0

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        self._text, self._latest = text, None
        self._began = self._reported_at = time.monotonic()
        stop = Event()
        drawing = Thread(target=self._draw, args=(stop,), daemon=True)
        if self._terminal:
            drawing.start()
        else:
            note(text)
        try:
            yield
        finally:
            stop.set()
            if self._terminal:
                drawing.join()
                self._show("")
            self.seconds[text] = time.monotonic() - self._began

    def update(self, state: "IngestProgress") -> None:
        """Shows how far the step is."""
        self._latest = state
        if self._terminal is None and time.monotonic() - self._reported_at >= PLAIN_SECONDS:
            self._reported_at = time.monotonic()
            note(f"{self._text}: {progress_text(state, self._reported_at - self._began)}")

    def _draw(self, stop: Event) -> None:
        while not stop.is_set():
            seconds = time.monotonic() - self._began
            if self._latest is None:
                self._show(f"{self._text}, {seconds:.0f} s")
            else:
                self._show(bar_line(self._latest, seconds, width() - 1))
            stop.wait(BAR_SECONDS)

    def _show(self, text: str) -> None:
        if self._terminal:
            # A terminal that is gone doesn't matter.
            with suppress(OSError):
                self._terminal.write(f"\r\033[K{text[: width() - 1]}")
                self._terminal.flush()


def progress_text(state: "IngestProgress", seconds: float) -> str:
    share = _share(state)
    if state.compiling and not state.read_bytes:
        return f"compiling kernels, once per machine, {seconds:.0f} s"
    whole = f"{share:.0%} of {size(state.total_bytes)} in {count(state.files, 'file')}"
    if not state.read_bytes:
        return f"{whole}, {seconds:.0f} s"
    contents = count(state.frames, "frame") if state.frames else count(state.exchanges, "exchange")
    pace = pace_text(state.read_bytes, state.total_bytes, seconds)
    return f"{whole}, {pace}, {contents}{', writing' if share == 1 else ''}"


def bar_line(state: "IngestProgress", seconds: float, room: int) -> str:
    """In a narrow window the bar gets shorter."""
    text = progress_text(state, seconds)
    if state.compiling and not state.read_bytes:
        return text
    letters = min(BAR_LETTERS, room - len(text) - 3)
    if letters < 4:
        return text
    return f"{bar(_share(state), letters)} {text}"


def _share(state: "IngestProgress") -> float:
    return min(state.read_bytes / state.total_bytes, 1.0) if state.total_bytes else 0.0


@contextmanager
def spark_session(cores: int | None, progress: ProgressLine) -> Iterator[Any]:
    """Always stopped at the end, unless it existed before."""
    from kafkascope.pipeline.session import error_line, has_session, local_session, own_error

    handle, log = tempfile.mkstemp(prefix="kafkascope-spark-", suffix=".log")
    os.close(handle)
    keep = False
    ours = not has_session()
    try:
        with _logging_to(log), one_interrupt():
            with progress.step("starting Spark"), _no_orphans():
                spark = local_session(cores, log=log)
            try:
                # Again, since the session has replaced it.
                with one_interrupt():
                    yield spark
            finally:
                if ours:
                    _stop(spark)
    except KafkascopeError:
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        if after_interrupt(error):
            # The link was cut.
            raise KeyboardInterrupt from None
        keep = True
        kind = ReachError if isinstance(own_error(error), ReachError) else InputError
        raise kind(f"{error_line(error)} (Spark's own log is {log})") from None
    finally:
        if not keep:
            os.unlink(log)


def _stop(spark: Any) -> None:
    """A JVM that Ctrl-C or a kill has ended needs no stop; PySpark would warn about it in several lines."""
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        spark.stop()


@contextmanager
def _no_orphans() -> Iterator[None]:
    """A JVM whose start is interrupted has nowhere to report its port and would stay forever."""
    before = _children()
    try:
        yield
    except BaseException:
        for child in _children() - before:
            with suppress(OSError):
                os.kill(child, signal.SIGTERM)
        raise


def _children() -> set[int]:
    try:
        output = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    except OSError:
        return set()
    pairs = [line.split() for line in output.splitlines()]
    return {int(pid) for pid, parent in pairs if int(parent) == os.getpid()}


@contextmanager
def _logging_to(path: str) -> Iterator[None]:
    """Silences the long messages of the link to the JVM when Ctrl-C cuts it."""
    handler = logging.FileHandler(path, delay=True)
    logging.root.addHandler(handler)
    try:
        yield
    finally:
        logging.root.removeHandler(handler)
        handler.close()


def timings(seconds: dict[str, float]) -> str:
    """`31 s: starting Spark 8 s, reading 10 s, building the marts 13 s`"""
    steps = ", ".join(f"{step} {span(1000 * duration)}" for step, duration in seconds.items())
    return f"{span(1000 * sum(seconds.values()))}: {steps}"
