"""News of rows that have landed in, marts built anew out: when nothing waits to be read, and not more often than said.
All marts are made of the whole lake, so that building them after every file would leave no time for the files."""

import time
from collections.abc import Callable
from threading import Lock

EVERY_SECONDS = 60.0
# Where files come faster than they are read, something always waits: then the marts follow so much later.
PATIENCE = 10


class Rebuilding:
    """`busy` is held by who reads; nothing is built meanwhile. `old` says that the marts lack something already."""

    def __init__(
        self,
        build: Callable[[], None],
        every: float = EVERY_SECONDS,
        *,
        old: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._build, self._every, self._now = build, every, now
        self._old = old
        self._built_at = now() - every
        self.busy = Lock()

    def landed(self) -> None:
        self._old = True

    def look(self, waits: Callable[[], bool]) -> None:
        """To be called now and then; `waits` says whether there is more to read."""
        since = self._now() - self._built_at
        if not self._old or since < self._every or not self.busy.acquire(blocking=False):
            return
        try:
            if since >= PATIENCE * self._every or not waits():
                self._go()
        finally:
            self.busy.release()

    def finish(self) -> None:
        """At the end, once nobody reads any more."""
        if self._old:
            self._go()

    def _go(self) -> None:
        self._build()
        self._old = False
        self._built_at = self._now()
