"""Deliveries and minutes of a share group that are made a stretch of time after the other, each from the state of one
before, are those that are made at once: simulated groups, cut at random. No Spark: what it does in between is in
`tests/pipeline/test_marts_increments.py`."""

import json
import os
from dataclasses import dataclass, field, replace
from itertools import chain
from random import Random
from typing import Any

import pytest

from kafkascope.health.share.counted import ACKNOWLEDGED_OUTCOMES, MINUTE_US, AcknowledgeTimes, counts_of
from kafkascope.health.share.events import Delivery, ShareEvent
from kafkascope.health.share.group_health import ShareGroupEvent, ShareGroupHealth
from kafkascope.health.share.limit import decided, is_undecided, limit_of
from kafkascope.pipeline.mart.base.links import STATE
from kafkascope.pipeline.mart.increments.plan import EVERY_ROW, Plan
from kafkascope.pipeline.mart.names.facts import LakeFacts
from kafkascope.pipeline.mart.share.counts import GroupHistory
from kafkascope.pipeline.mart.share.walk import PartitionWalk
from tests.health.share_partitions import by_partition, split
from tests.health.share_simulator import Simulation

SEEDS = 600 if "KAFKASCOPE_SOAK" in os.environ else 40
# Simulations last some seconds: so much slower they last some minutes.
SLOWER = 40
BROKER = "b1"
GROUP = ("g", None)


@dataclass
class Recorded:
    partitions: list[list[ShareEvent]]
    described: list[ShareGroupEvent]
    first: int
    end: int


def recorded(seed: int) -> Recorded:
    simulation = Simulation(seed, writes=seed % 2 == 0).run()
    events = [event._replace(group_id="g") for event in split(simulation.events, 9, len(simulation.records))]
    slow = [_slower(event) for event in events]
    random = Random(seed)
    described = []
    for at in sorted(event.at_us for event in slow if event.kind == "acquired")[::3]:
        base = ShareGroupEvent("", at, 0, "g", f"{at}")
        described.append(base._replace(kind="heartbeat", member_id="m", member_epoch=3, group_epoch=4, assigned=2))
        lag, start = random.choice([None, -1, 0, 5]), random.randint(0, 20)
        offsets = base._replace(kind="offsets", topic="orders", topic_id="T", partition=1, lag=lag, start_offset=start)
        described.append(offsets)
    times = [event.at_us for event in slow]
    return Recorded(list(by_partition(slow)), described, min(times), max(times) + 1)


def _slower(event: ShareEvent) -> ShareEvent:
    times = {
        name: at and at * SLOWER for name, at in event._asdict().items() if name in ("at_us", "asked_us", "answered_us")
    }
    lock = event.lock_timeout_ms and event.lock_timeout_ms * SLOWER
    return event._replace(**times, lock_timeout_ms=lock)


@dataclass
class Marts:
    """By the start of their segment; states by mark."""

    deliveries: dict[int, list[Delivery]] = field(default_factory=dict)
    minutes: dict[int, list[ShareGroupHealth]] = field(default_factory=dict)
    walks: dict[int, list[Any]] = field(default_factory=dict)
    groups: dict[int, str] = field(default_factory=dict)

    def build(self, source: Recorded, plan: Plan, until: int) -> None:
        """Of what was recorded before `until`."""
        since, starts = plan.since, plan.starts
        kept = list(chain(*(rows for start, rows in self.deliveries.items() if start < since)))
        for by_start in (self.deliveries, self.minutes):
            for start in [start for start in by_start if start >= since]:
                del by_start[start]
            by_start.update({start: [] for start in starts})
        unsettled: list[int | None] = [None] * len(plan.marks)
        undecided, evidence, brokers = list[Delivery](), [], set[str]()
        facts = LakeFacts(recorded={BROKER: [(0, until)]})
        for number, events in enumerate(source.partitions):
            state = json.loads(json.dumps(self.walks[since][number])) if since else None
            within = [event for event in events if since <= event.at_us < until and event.kind != "seen"]
            walk = PartitionWalk("g", within, facts, until, state)
            for index, mark in enumerate(plan.marks):
                self.deliveries[starts[index]] += walk.before(mark)
                minutes = (unsettled[index], walk.unsettled_minute)
                unsettled[index] = min((minute for minute in minutes if minute is not None), default=None)
                self.walks.setdefault(mark, [None] * len(source.partitions))[number] = walk.state()
            for row in walk.finish():
                (undecided if is_undecided(row) else self.deliveries[plan.tail]).append(row)
            evidence.append(walk.evidence)
            brokers |= walk.brokers
        limit = limit_of(evidence)
        self.deliveries[plan.tail] += [decided(row, limit) for row in undecided]
        self._count(source, plan, until, kept, brokers, unsettled)

    def _count(
        self, source: Recorded, plan: Plan, until: int, kept: list[Delivery], brokers: set[str],
        unsettled: list[int | None],
    ) -> None:  # fmt: skip
        history = GroupHistory(GROUP, plan, brokers, unsettled)
        if plan.since:
            history.feed(-1, None, json.loads(self.groups[plan.since])[STATE])
        so_far = [row for row in kept if row.outcome in ACKNOWLEDGED_OUTCOMES]
        for segment, start in enumerate(plan.starts):
            rows = self.deliveries[start]
            so_far += [row for row in rows if row.outcome in ACKNOWLEDGED_OUTCOMES]
            ends = {row.outcome_at // MINUTE_US for row in rows if row.outcome_at is not None}
            of_ends = [row for row in so_far if row.outcome_at is not None and row.outcome_at // MINUTE_US in ends]
            for count in counts_of(rows):
                if not isinstance(count, AcknowledgeTimes):
                    history.feed(segment, None, count)
            for count in counts_of(of_ends):
                if isinstance(count, AcknowledgeTimes):
                    history.feed(segment, None, count)
            end = plan.starts[segment + 1] if segment + 1 < len(plan.starts) else until
            for event in source.described:
                if start <= event.at_us < end:
                    history.feed(segment, BROKER, event)
        for number, minute in history.finish({BROKER: [(0, until)]}):
            self.minutes[plan.starts[number]].append(minute)
        self.groups |= {mark: json.dumps(state) for mark, state in history.states}
        if history.is_near_another:
            for minutes in self.minutes.values():
                for place, minute in enumerate(minutes):
                    again = minute.redeliveries.items()
                    minutes[place] = replace(minute, near_limit=sum(n for count, n in again if count >= history.near))

    def texts(self) -> tuple[list[str], list[str]]:
        return tuple(sorted(map(repr, chain(*rows.values()))) for rows in (self.deliveries, self.minutes))  # type: ignore[return-value]


@pytest.mark.parametrize("late", [False, True])
def test_a_group_goes_on_from_its_state(late: bool) -> None:
    went_on = carried = 0
    for seed in range(SEEDS):
        source, random = recorded(seed), Random(seed)
        minutes = range(source.first // MINUTE_US + 1, source.end // MINUTE_US + 1)
        marts, marks = Marts(), list[int]()
        ends = [*sorted(random.sample(minutes, min(4, len(minutes)))), source.end // MINUTE_US + 1]
        for end in ends:
            until = end * MINUTE_US - random.choice((0, 7_000_000))
            since = max((mark for mark in marks[: -1 if late else None] if mark < until), default=0)
            new = sorted(
                {at * MINUTE_US for at in minutes if since < at * MINUTE_US <= until and random.random() < 0.5}
            )
            marks = [*(mark for mark in marks if mark <= since), *new]
            marts.build(source, Plan("share", since, tuple(new), "run"), until)
            went_on += since > 0
            carried += any(
                row.acquired_at is not None and row.acquired_at < since
                for start, rows in marts.deliveries.items()
                for row in rows
                if start >= since
            )
            whole = Marts()
            whole.build(source, EVERY_ROW, until)
            assert marts.texts() == whole.texts(), (seed, until)
    assert went_on > SEEDS and carried > SEEDS
