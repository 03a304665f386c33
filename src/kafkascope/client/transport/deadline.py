"""Implements deadlines of calls and the pauses between retries."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kafkascope.errors import ReachError

# Java's retry.backoff.ms and retry.backoff.max.ms (KIP-580), with its jitter of 20 %.
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0
_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the running loop's clock, and the seconds allowed until then."""

    at: float
    seconds: float

    def left(self) -> float:
        return max(0.0, self.at - asyncio.get_running_loop().time())

    def passed(self) -> bool:
        return self.left() <= 0

    def earlier(self, seconds: float) -> "Deadline":
        """This deadline, or one in `seconds` if that's earlier."""
        other = after(seconds)
        return other if other.at < self.at else self

    def half(self) -> "Deadline":
        """A deadline at half of the remaining time, as a round number."""
        seconds = self.left() / 2
        return Deadline(after(seconds).at, float(f"{seconds:.2g}"))


def after(seconds: float) -> Deadline:
    return Deadline(asyncio.get_running_loop().time() + seconds, seconds)


@asynccontextmanager
async def within(deadline: Deadline, describe: Callable[[], str]) -> AsyncIterator[None]:
    """Raises ReachError with the text of `describe` if the deadline passes inside."""
    try:
        async with asyncio.timeout_at(deadline.at) as scope:
            yield
    except TimeoutError:
        if not scope.expired():
            raise
        raise ReachError(describe()) from None


def pauses() -> Iterator[float]:
    """Seconds to wait before each retry: doubling, and never in step with other clients."""
    pause = _FIRST_PAUSE
    while True:
        yield min(pause, _LONGEST_PAUSE) * random.uniform(1 - _JITTER, 1 + _JITTER)
        pause *= 2
