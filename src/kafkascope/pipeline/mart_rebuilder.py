"""Rebuilds the marts of a followed folder: once rows have landed and no file waits, and not more often than requested.
All marts are made of the whole lake, so building them after every file would leave no time for the files."""

import time
from collections.abc import Callable
from threading import Lock

EVERY_SECONDS = 60.0
# Where files come faster than they are read, something always waits: then the marts follow so much later.
PATIENCE = 10


class MartRebuilder:
    """`busy` is held by who reads; nothing is built meanwhile. `stale` says that the marts lack something already."""

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
        """To be called now and then; `has_more` says whether there is more to read."""
        since = self._now() - self._built_at
        if not self._stale or since < self._every or not self.busy.acquire(blocking=False):
            return
        try:
            if since >= PATIENCE * self._every or not has_more():
                self._rebuild()
        finally:
            self.busy.release()

    def finish(self) -> None:
        """At the end, once nobody reads any more."""
        if self._stale:
            self._rebuild()

    def _rebuild(self) -> None:
        self._build()
        self._stale = False
        self._built_at = self._now()
