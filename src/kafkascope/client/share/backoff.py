"""Decides how long to wait after failures: twice as long each time, up to a second, and nothing after a success."""

# Java's retry.backoff.ms and retry.backoff.max.ms (KIP-580).
_FIRST, _LONGEST = 0.1, 1.0
_MOST_DOUBLINGS = 10


class Backoff:
    """`until` is the time before which nothing is sent."""

    __slots__ = ("_failures", "until")

    def __init__(self) -> None:
        self._failures = 0
        self.until = float("-inf")

    @property
    def failing(self) -> bool:
        return self._failures > 0

    def failed(self, now: float) -> None:
        self.until = now + min(_FIRST * 2 ** min(self._failures, _MOST_DOUBLINGS), _LONGEST)
        self._failures += 1

    def reset(self) -> None:
        self._failures = 0
        self.until = float("-inf")
