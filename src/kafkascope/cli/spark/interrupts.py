"""Handles Ctrl-C while Spark works. An exception during a call to the JVM makes py4j close every link to it, even those
opened meanwhile, so work that has to finish treats Ctrl-C as a request."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType


@contextmanager
def one_interrupt() -> Iterator[None]:
    """The first Ctrl-C ends the work; later ones would only interrupt the cleanup."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def interrupted(_: int, __: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        signal.signal(signal.SIGINT, before)
        raise
    else:
        signal.signal(signal.SIGINT, before)


class StopRequest:
    """Ctrl-C requests the end of the ingest. The first one lets the current work finish."""

    def __init__(self) -> None:
        self.requested = Event()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Later ones only affect `abandonable`."""
        with _handled_by(self.requested.set):
            yield

    @contextmanager
    def abandonable(self) -> Iterator[None]:
        """Work that may stay undone: the second Ctrl-C cuts it off."""

        def again() -> None:
            if self.requested.is_set():
                raise KeyboardInterrupt
            self.requested.set()

        with _handled_by(again):
            yield


@contextmanager
def _handled_by(act: Callable[[], None]) -> Iterator[None]:
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda _, __: act())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def after_interrupt(error: BaseException) -> bool:
    """Whether it happened during the handling of a Ctrl-C."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, KeyboardInterrupt):
        seen = seen.__context__
    return seen is not None
