"""Decides after a failed call whether to retry: pauses before the next attempt within the deadline, or raises the most
useful error."""

import asyncio

from kafkascope.client.transport.connection import LostError
from kafkascope.client.transport.deadline import Deadline, pauses
from kafkascope.client.transport.dialling import UnreachableError
from kafkascope.errors import ReachError

NO_ANSWER_REASON = "no response"
# Consecutive connections that end at their first request. A broker that shuts down does it only once.
_MAX_EARLY_ENDS = 3


class Attempts:
    """The attempts of one call, which errors call by its `name`."""

    def __init__(self, name: str, deadline: Deadline) -> None:
        self._name = name
        self._deadline = deadline
        self._pauses = pauses()
        self._reason: str | None = None
        self._early_ends = 0

    async def failed(self, error: ReachError) -> None:
        """Returns when it's time for the next attempt. Retries only errors that may be gone by then."""
        if not isinstance(error, UnreachableError | LostError):
            # Out of time during a retry: the error that caused the retry is more useful.
            if self._reason is not None and self._deadline.passed():
                raise ReachError(self.with_timeout(self._reason)) from None
            raise error
        self._early_ends = self._early_ends + 1 if isinstance(error, LostError) and error.early else 0
        if self._early_ends == _MAX_EARLY_ENDS or error.final:
            raise ReachError(str(error)) from None
        await self.retry(str(error))

    async def retry(self, reason: str) -> None:
        if self._reason is None or not reason.endswith(NO_ANSWER_REASON):
            self._reason = reason
        pause = next(self._pauses)
        if pause >= self._deadline.left():
            raise ReachError(self.with_timeout(self._reason)) from None
        await asyncio.sleep(pause)

    def with_timeout(self, reason: str) -> str:
        if reason.endswith(NO_ANSWER_REASON):
            return f"{reason} within {self._deadline.seconds:g} s; --timeout SECONDS waits longer"
        place = reason if reason.startswith(self._name) else f"{self._name}: {reason}"
        return f"{place} (tried for {self._deadline.seconds:g} s)"
