"""A walk that is cut anywhere, and goes on from the state that it left, makes the rows of an uncut one. A state that no
walk leaves is refused."""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import QuorumWalk, history_of
from kafkascope.health.share.events import Delivery, ShareEvent
from kafkascope.health.share.ledger import Ledger
from kafkascope.health.streams.events import StreamsEvent
from kafkascope.health.streams.timeline import StreamsWalk, timeline_of
from tests.health.share_partitions import split
from tests.health.share_simulator import Simulation
from tests.health.test_quorum_recording import recorded_events as quorum_recorded
from tests.health.test_quorum_simulation import played
from tests.health.test_streams_recording import recorded_events as streams_recorded
from tests.health.test_streams_simulation import SESSION, Group

CUTS = 12


def stored(state: object) -> Any:
    return json.loads(json.dumps(state))


def parts(events: Sequence[Any], random: Random) -> Iterable[Sequence[Any]]:
    places = [0, *sorted(random.sample(range(len(events)), min(CUTS, len(events)))), len(events)]
    return [events[first:last] for first, last in pairwise(places)]


def texts(rows: Iterable[object]) -> list[str]:
    return sorted(map(repr, rows))


def share_events(seed: int) -> list[ShareEvent]:
    simulation = Simulation(seed, writes=bool(seed % 2)).run()
    return list(split(simulation.events, 7, len(simulation.records)))


def test_a_share_ledger_goes_on_from_its_state() -> None:
    for seed in range(40):
        events, rows = share_events(seed), list[Delivery]()
        ledger = Ledger()
        for part in parts(events, Random(seed)):
            rows += ledger.walked(part)
            ledger = Ledger(state=stored(ledger.state()))
        rows += ledger.finish()
        whole = Ledger()
        assert texts(rows) == texts(whole.deliveries(events)), seed
        assert ledger.evidence == whole.evidence


def quorum_rows(parts_of_events: Iterable[Sequence[QuorumEvent]]) -> tuple[list[str], list[str], bool]:
    walk, replicas, happenings = QuorumWalk(), list[object](), list[object]()
    for part in parts_of_events:
        for event in part:
            walk.feed(event)
        taken = walk.taken()
        replicas += taken.replicas
        happenings += taken.events
        walk = QuorumWalk(stored(walk.state()))
    last = walk.finish()
    return texts([*replicas, *last.replicas]), texts([*happenings, *last.events]), walk.is_as_assumed


def test_a_quorum_goes_on_from_its_state() -> None:
    went_on = 0
    for seed, events in enumerate([list(quorum_recorded()), *(played(seed).events for seed in range(6))]):
        whole = history_of(events)
        replicas, happenings, as_assumed = quorum_rows(parts(events, Random(seed)))
        assert happenings == texts(whole.events), seed
        # A role that showed later than its rows were taken: such a lake is walked from the beginning.
        assert replicas == texts(whole.replicas) or not as_assumed, seed
        went_on += as_assumed
    assert went_on > 2


@cache
def streams_events(seed: int) -> list[StreamsEvent]:
    if seed < 0:
        return list(streams_recorded())
    group = Group(seed)
    group.run(120)
    return sorted(group.events, key=lambda event: (event.at_us, event.order))


def test_a_streams_group_goes_on_from_its_state() -> None:
    for seed in range(-1, 8):
        events, timeout = streams_events(seed), SESSION // 1000
        walk = StreamsWalk(session_timeout_ms=timeout)
        for part in parts(events, Random(seed)):
            for event in part:
                walk.feed(event)
            walk = StreamsWalk(stored(walk.state()), session_timeout_ms=timeout)
        assert walk.finish() == timeline_of(events, timeout), seed


def share_state() -> Any:
    ledger = Ledger()
    list(ledger.walked(share_events(3)[:60]))
    return stored(ledger.state())


def quorum_state() -> Any:
    walk = QuorumWalk()
    for event in list(quorum_recorded())[:400]:
        walk.feed(event)
    walk.taken()
    return stored(walk.state())


def streams_state() -> Any:
    walk = StreamsWalk()
    for event in streams_events(-1)[:400]:
        walk.feed(event)
    return stored(walk.state())


STATES: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "share": (share_state, lambda state: Ledger(state=state)),
    "quorum": (quorum_state, QuorumWalk),
    "streams": (streams_state, StreamsWalk),
}
ODD: tuple[Any, ...] = (None, True, -1, 1 << 70, 1.5, "x", "\ud800", [], {}, [[]], float("nan"))


@pytest.mark.parametrize("name", STATES)
def test_a_state_of_another_form_is_refused(name: str) -> None:
    """Every value in turn is replaced by others: a `ValueError`, or a state of the declared types."""
    state, resume = STATES[name][0](), STATES[name][1]
    resume(json.loads(json.dumps(state)))
    random, refused, tried = Random(11), 0, 0
    for _ in range(1500):
        damaged = json.loads(json.dumps(state))
        holder, place = damaged, random.randrange(len(damaged))
        while isinstance(holder[place], list) and holder[place] and random.random() < 0.8:
            holder, place = holder[place], random.randrange(len(holder[place]))
        odd = random.choice(ODD)
        if holder[place] == odd:
            continue
        holder[place], tried = odd, tried + 1
        try:
            resume(damaged)
        except ValueError:
            refused += 1
    assert refused > tried * 0.7
