"""Limits what the server does and holds at once. Requests beyond the limit wait, or are refused with the time to
retry.

Everything here runs in the event loop, so no lock is needed."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from kafkascope.errors import KafkascopeError
from kafkascope.limits import MAX_QUEUE_SECONDS, MAX_QUEUED_REQUESTS


class Busy(KafkascopeError):
    """too many uploads are being decoded; try again in 10 s"""

    def __init__(self, reason: str, seconds: int = MAX_QUEUE_SECONDS) -> None:
        super().__init__(f"{reason}; try again in {seconds} s")
        self.seconds = seconds


class Gate:
    """Admits `at_once` requests. Of the next ones, `queued` wait for at most `seconds`."""

    def __init__(
        self, reason: str, at_once: int, *, queued: int = MAX_QUEUED_REQUESTS, seconds: float = MAX_QUEUE_SECONDS
    ) -> None:
        self._reason = reason
        self._free = at_once
        self._queued = queued
        self._seconds = seconds
        self._queue: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """`Busy` if the queue is full or no place became free in time."""
        await self._enter()
        try:
            yield
        finally:
            self._leave()

    async def _enter(self) -> None:
        if self._free:
            self._free -= 1
            return
        if len(self._queue) >= self._queued:
            raise Busy(self._reason)
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout(self._seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                # Its turn came at the moment it timed out.
                self._leave()
            else:
                self._queue.remove(turn)
            if isinstance(error, TimeoutError):
                raise Busy(self._reason) from None
            raise

    def _leave(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class ByteBudget:
    """Limits the bytes that all requests together hold."""

    def __init__(self, reason: str, most: int) -> None:
        self._reason = reason
        self._left = most

    @contextmanager
    def held(self, size: int) -> Iterator[None]:
        """`Busy` at once if fewer are left: a queued request would only hold its connection."""
        if size > self._left:
            raise Busy(self._reason)
        self._left -= size
        try:
            yield
        finally:
            self._left += size
