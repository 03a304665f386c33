"""Polls in, what one commit takes out: calls with their frames, and what was asked in vain, like things told once."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kafkascope.client.answer import Answer
from kafkascope.client.observe.observer import Poll
from kafkascope.limits import MAX_OBSERVED_BYTES

# With a call for each of a hundred groups and nodes a poll, that is a commit each hundred polls.
ENOUGH_CALLS = 10_000


@dataclass(slots=True)
class Gathered:
    """`vain` is by what was said: when it was first, and in how many polls."""

    answers: list[Answer] = field(default_factory=list)
    vain: dict[str, tuple[int, int]] = field(default_factory=dict)
    polls: int = 0
    size: int = 0


class Portions:
    """`seconds` is how long answers wait for a commit at the most."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._since: float | None = None
        self._now = Gathered()

    def add(self, poll: Poll) -> None:
        now = self._now
        if self._since is None:
            self._since = self._clock()
        now.polls += 1
        for answer in poll.answers:
            # A login's frames are not shown to anybody.
            if answer.request_bytes:
                # Bytes are what lands; the value holds ten times as much.
                now.answers.append(replace(answer, value={}))
                now.size += len(answer.request_bytes) + len(answer.response_bytes)
        for said, at in {one.detail: one.at for one in poll.vain if not one.reached}.items():
            first, polls = now.vain.get(said, (at, 0))
            now.vain[said] = (first, polls + 1)

    @property
    def due(self) -> bool:
        if self._since is None:
            return False
        waited = self._clock() - self._since >= self._seconds
        return waited or self._now.size >= MAX_OBSERVED_BYTES or len(self._now.answers) >= ENOUGH_CALLS

    def take(self) -> Gathered:
        found, self._now, self._since = self._now, Gathered(), None
        return found
