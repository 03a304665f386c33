"""Keeps a process of an executor ready between tasks: a batch has many, and each would look up the cluster and log in
again."""

import asyncio
import atexit
import gc
import sys
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar
from zipimport import zipimporter

from kafkascope.client.cluster import Cluster, connect
from kafkascope.client.settings import Settings

T = TypeVar("T")


class Executor:
    """An event loop that runs while a task waits for something, and the cluster of the last task's settings."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self._cluster: Cluster | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def cluster(self, settings: Settings) -> Cluster:
        if self._cluster is None or self._cluster.settings != settings:
            self.run(self._disconnect())
            self._cluster = self.run(self._stack.enter_async_context(connect(settings)))
        return self._cluster

    def close(self) -> None:
        if not self._loop.is_closed():
            self.run(self._disconnect())
            self._loop.close()

    async def _disconnect(self) -> None:
        self._cluster = None
        await self._stack.aclose()


_executor: Executor | None = None


def executor() -> Executor:
    """Of this process."""
    global _executor
    if _executor is None:
        _executor = Executor()
        atexit.register(_executor.close)
        # PySpark collects garbage after each task: what is loaded now isn't looked at again.
        gc.freeze()
    _keep_zip_directories()
    return _executor


class _LastingZip(zipimporter):
    def invalidate_caches(self) -> None:
        """The file doesn't change while it's in use."""


def _keep_zip_directories() -> None:
    """PySpark is imported from a zip file, and invalidates the caches of imports before each task. Python 3.11 then
    reads the directory of the file again, once per package: 50 ms of processor time per task."""
    for path, finder in list(sys.path_importer_cache.items()):
        if type(finder) is zipimporter:
            sys.path_importer_cache[path] = _LastingZip(path)
