"""Adds `seen` events at intervals while a group was silent and its brokers were recorded, so that a dead group differs
from a hole in the recording."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

Event = TypeVar("Event")

# Well within the session timeouts of groups (45 s by default).
STEP_US = 20_000_000
# After that, more silence proves nothing: locks last at most an hour (group.share.max.record.lock.duration.ms).
_MAX_US = 3_600_000_000


def with_seen(
    events: Iterable[Event],
    at_of: Callable[[Event], int],
    broker_of: Callable[[Event], str | None],
    seen: Callable[[int, str], Any],
    recorded: Mapping[str, list[tuple[int, int]]],
) -> Iterator[Event]:
    """`seen` creates an event. Only brokers that the group spoke with count."""
    brokers: dict[str, list[tuple[int, int]]] = {}
    last: int | None = None
    for event in events:
        at = at_of(event)
        if last is not None and at - last > STEP_US:
            yield from (seen(*tick) for tick in _ticks(last, at - 1, brokers))
        yield event
        last = at
        broker = broker_of(event)
        if broker is not None and broker not in brokers:
            brokers[broker] = recorded.get(broker, [])
    if last is not None:
        yield from (seen(*tick) for tick in _ticks(last, None, brokers))


def _ticks(last: int, end: int | None, brokers: Mapping[str, list[tuple[int, int]]]) -> list[tuple[int, str]]:
    """Times after `last`, up to `end` or to the last recorded one, at which a broker was recorded."""
    all_ticks: list[tuple[int, str]] = []
    for broker, times in brokers.items():
        until = max((high for _, high in times), default=last) if end is None else end
        ticks = (*range(last + STEP_US, min(until, last + _MAX_US), STEP_US), until)
        recorded = (tick for tick in ticks if tick > last and any(low <= tick <= high for low, high in times))
        all_ticks.extend((tick, broker) for tick in recorded)
    return sorted(all_ticks)
