"""Adds `seen` events at intervals while a group was silent and its brokers were recorded, so that a dead group differs
from a hole in the recording."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

Event = TypeVar("Event")

# Well within the session timeouts of groups (45 s by default).
STEP_US = 20_000_000
# After that, more silence proves nothing: locks last at most an hour (group.share.max.record.lock.duration.ms).
_MAX_US = 3_600_000_000

Recorded = Mapping[str, list[tuple[int, int]]]


class Silence:
    """Of one group: when its last event was, and the brokers that it spoke with; only these count."""

    def __init__(self, recorded: Recorded, last: int | None = None, brokers: Iterable[str] = ()) -> None:
        self._recorded = recorded
        self.last = last
        self.brokers = dict.fromkeys(brokers)

    def before(self, at: int) -> list[tuple[int, str]]:
        """Times since the last event, before one at `at`, at which a broker was recorded."""
        last = self.last
        return [] if last is None or at - last <= STEP_US else self._ticks(last, at - 1)

    def met(self, at: int, broker: str | None) -> None:
        """An event."""
        self.last = at
        if broker is not None:
            self.brokers[broker] = None

    def after(self) -> list[tuple[int, str]]:
        """Times since the last event, up to the last recorded one."""
        return [] if self.last is None else self._ticks(self.last, None)

    def _ticks(self, last: int, end: int | None) -> list[tuple[int, str]]:
        all_ticks: list[tuple[int, str]] = []
        for broker in self.brokers:
            times = self._recorded.get(broker, [])
            until = max((high for _, high in times), default=last) if end is None else end
            ticks = (*range(last + STEP_US, min(until, last + _MAX_US), STEP_US), until)
            recorded = (tick for tick in ticks if tick > last and any(low <= tick <= high for low, high in times))
            all_ticks.extend((tick, broker) for tick in recorded)
        return sorted(all_ticks)


def with_seen(
    events: Iterable[Event],
    at_of: Callable[[Event], int],
    broker_of: Callable[[Event], str | None],
    seen: Callable[[int, str], Any],
    recorded: Recorded,
) -> Iterator[Event]:
    """`seen` creates an event."""
    silence = Silence(recorded)
    for event in events:
        at = at_of(event)
        yield from (seen(*tick) for tick in silence.before(at))
        yield event
        silence.met(at, broker_of(event))
    yield from (seen(*tick) for tick in silence.after())
