"""Buffers polls until the next commit: calls with their frames, and failed calls, each error message once."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kafkascope.client.answer import Answer
from kafkascope.client.observe.observer import Poll
from kafkascope.limits import MAX_OBSERVED_BYTES

# With a hundred calls per poll, for groups and nodes, this is a commit every hundred polls.
MAX_CALLS = 10_000


@dataclass(slots=True)
class PollBatch:
    """`failures` is by message: the time of the first, and the number of polls with it."""

    answers: list[Answer] = field(default_factory=list)
    failures: dict[str, tuple[int, int]] = field(default_factory=dict)
    polls: int = 0
    size: int = 0


class PollBuffer:
    """`seconds` is the longest time that responses wait for a commit."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._since: float | None = None
        self._now = PollBatch()

    def add(self, poll: Poll) -> None:
        now = self._now
        if self._since is None:
            self._since = self._clock()
        now.polls += 1
        for call in poll.answers:
            # Frames of a login are never stored.
            if call.request_bytes:
                # Only bytes are committed; the value takes ten times as much memory.
                now.answers.append(replace(call, value={}))
                now.size += len(call.request_bytes) + len(call.response_bytes)
        for detail, failed_at in {
            failure.detail: failure.at for failure in poll.failures if not failure.reached
        }.items():
            first, polls = now.failures.get(detail, (failed_at, 0))
            now.failures[detail] = (first, polls + 1)

    @property
    def due(self) -> bool:
        if self._since is None:
            return False
        waited = self._clock() - self._since >= self._seconds
        return waited or self._now.size >= MAX_OBSERVED_BYTES or len(self._now.answers) >= MAX_CALLS

    def take(self) -> PollBatch:
        batch, self._now, self._since = self._now, PollBatch(), None
        return batch
