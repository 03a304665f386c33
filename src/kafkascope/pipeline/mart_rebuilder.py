"""Rebuilds the marts of a followed folder once rows have landed and no file waits, but not more often than requested.
Marts are built from the whole lake, so building them after every file would leave no time for the files."""

import time
from collections.abc import Callable
from threading import Lock

EVERY_SECONDS = 60.0
# If files arrive faster than they are read, one always waits: then the marts are rebuilt after this much longer.
PATIENCE = 10


class MartRebuilder:
    """Hold `busy` while reading: nothing is built meanwhile. `stale`: the marts lack rows already."""

    def __init__(
        self,
        build: Callable[[], None],
        every: float = EVERY_SECONDS,
        *,
        stale: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._build, self._every, self._now = build, every, now
        self._stale = stale
        self._built_at = now() - every
        self.busy = Lock()

    def landed(self) -> None:
        self._stale = True

    def rebuild_if_due(self, has_more: Callable[[], bool]) -> None:
        """Call it regularly; `has_more` returns if more files wait."""
        since = self._now() - self._built_at
        if not self._stale or since < self._every or not self.busy.acquire(blocking=False):
            return
        try:
            if since >= PATIENCE * self._every or not has_more():
                self._rebuild()
        finally:
            self.busy.release()

    def finish(self) -> None:
        """Call it at the end, once nothing reads any more."""
        if self._stale:
            self._rebuild()

    def _rebuild(self) -> None:
        self._build()
        self._stale = False
        self._built_at = self._now()
