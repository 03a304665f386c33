"""A group that fell silent is told from a hole in the recording, and a lock that ran out from one that nobody saw."""

from typing import Any

import pytest

from kafkascope.health.share.events import ShareEvent
from kafkascope.health.streams.events import StreamsEvent
from kafkascope.pipeline.mart.history.walks import streams_rows
from kafkascope.pipeline.mart.names.facts import LakeFacts
from kafkascope.pipeline.mart.names.silence import _MAX_US, STEP_US, with_seen
from kafkascope.pipeline.mart.share.walk import PartitionWalk

TOPIC = "x67f1zwCR96dV41oFufCfw"
ACQUIRED = ShareEvent(
    "acquired", 0, 0, "g", "e", "c", "b:9092", "m", "app", TOPIC, None, 0, 5, 9, None, 1, 30_000, None, 0
)


def seen_after(times: list[tuple[int, int]], *events: int) -> list[int]:
    made = [ShareEvent("session", at, broker="b:9092") for at in events]
    seen = with_seen(
        made,
        lambda made_event: made_event.at_us,
        lambda made_event: made_event.broker,
        lambda at, _: ShareEvent("seen", at),
        {"b:9092": times},
    )
    order = [event.at_us for event in seen]
    assert order == sorted(order)
    return [at for at in order if at not in events]


def test_seen_fills_silences_that_were_recorded() -> None:
    end = 5 * STEP_US
    assert seen_after([(0, end)], 0) == [STEP_US, 2 * STEP_US, 3 * STEP_US, 4 * STEP_US, end]
    assert seen_after([(0, end)], 0, end) == [STEP_US, 2 * STEP_US, 3 * STEP_US, 4 * STEP_US, end - 1]
    assert seen_after([(0, end)], *range(0, end + 1, STEP_US)) == []


def test_seen_says_nothing_of_a_hole() -> None:
    assert seen_after([(0, 10), (10 * STEP_US, 11 * STEP_US)], 5, 10 * STEP_US) == [11 * STEP_US]
    assert seen_after([], 0, 10 * STEP_US) == []


def test_a_silence_of_days_is_told_in_an_hour() -> None:
    day = 86_400_000_000
    events = seen_after([(0, 30 * day)], 0)
    assert events[-1] == 30 * day
    assert len(events) == _MAX_US // STEP_US


def heartbeat(at: int, member: str, epoch: int, active: str | None = None) -> tuple[Any, ...]:
    event = StreamsEvent("heartbeat", at, 0, "g", "e", "c", member, member_epoch=epoch, active=active)
    return "g", "b:9092", event


@pytest.mark.parametrize(("recorded", "ended_by"), [([(0, 920_000_000)], "lost"), ([], "unseen")])
def test_a_member_that_fell_silent_is_lost_where_the_recording_went_on(
    recorded: list[tuple[int, int]], ended_by: str
) -> None:
    rows = [heartbeat(0, "m", 0), heartbeat(1_000_000, "m", 1, "0_0"), heartbeat(900_000_000, "n", 0)]
    rows_found = list(streams_rows("g", rows, LakeFacts(recorded={"b:9092": recorded})))
    (task,) = (row for name, row in rows_found if name == "streams_tasks")
    assert task.ended_by == ended_by
    assert sum(name == "streams_lost_members" for name, _ in rows_found) == (ended_by == "lost")


@pytest.mark.parametrize(("until", "outcome"), [(20_000_000, "open"), (40_000_000, "lock_expired")])
def test_a_lock_runs_out_only_where_its_broker_was_recorded_until_then(until: int, outcome: str) -> None:
    recorded = {"b:9092": [(0, until)], "other:9092": [(0, 900_000_000)]}
    (delivery,) = PartitionWalk("g", [ACQUIRED], LakeFacts(recorded=recorded), None).finish()
    assert delivery.outcome == outcome


@pytest.mark.parametrize(("end", "outcome"), [(20_000_000, "open"), (40_000_000, "lock_expired")])
def test_a_lock_runs_out_where_its_group_goes_on_at_other_partitions(end: int, outcome: str) -> None:
    (delivery,) = PartitionWalk("g", [ACQUIRED], LakeFacts(), end).finish()
    assert delivery.outcome == outcome
