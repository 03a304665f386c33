"""One promise a test: deliveries and group events in, the row of a minute out."""

from typing import Any

from kafkascope.health.share.events import Delivery
from kafkascope.health.share.group_health import ShareGroupEvent, ShareGroupHealth, share_group_health

MINUTE = 60_000_000
S = 1_000_000


def delivery(first: int, last: int, at: float | None, end: float | None, **fields: Any) -> Delivery:
    """Accepted at `end`, in seconds, unless told otherwise."""
    base: dict[str, Any] = {
        "group_id": "g",
        "topic": "orders",
        "topic_id": "T",
        "partition": 0,
        "first_offset": first,
        "last_offset": last,
        "delivery_count": 1,
        "member_id": "m",
        "client_id": None,
        "acquired_at": None if at is None else round(at * S),
        "lock_timeout_ms": 30_000,
        "renewals": 0,
        "outcome": "accepted" if end is not None else "open",
        "outcome_at": None if end is None else round(end * S),
        "archived": False,
        "acquire_exchange_id": None,
        "outcome_exchange_id": None,
        "broker_address": None,
        "rule": "",
        "uncertain": None,
    }
    return Delivery(**{**base, **fields})


def group_event(kind: str, at: float, **fields: Any) -> ShareGroupEvent:
    return ShareGroupEvent(kind, round(at * S), group_id="g", **fields)


def health(deliveries: list[Delivery], *events: ShareGroupEvent, limit: int | None = None) -> list[ShareGroupHealth]:
    return list(share_group_health(deliveries, events, delivery_limit=limit))


def test_counts_records_not_ranges() -> None:
    (row,) = health([delivery(0, 9, 1, 2), delivery(10, 12, 1, 3, outcome="lock_expired")])
    assert (row.minute_at, row.acquired, row.accepted, row.expired) == (0, 13, 10, 3)


def test_acquired_and_ended_count_each_in_its_own_minute() -> None:
    first, second = health([delivery(0, 9, 59, 61, renewals=2)])
    assert (first.acquired, first.accepted, second.acquired, second.accepted) == (10, 0, 0, 10)
    assert (second.minute_at, second.renewals) == (MINUTE, 2)


def test_redeliveries_are_told_by_delivery_count() -> None:
    rows = [delivery(0, 9, 1, 2), delivery(0, 3, 3, 4, delivery_count=2), delivery(0, 1, 5, 6, delivery_count=3)]
    (row,) = health(rows)
    assert (row.redelivered, row.redeliveries) == (6, {2: 4, 3: 2})


def test_time_to_acknowledge_counts_each_record() -> None:
    rows = [delivery(0, 93, 1, 2), delivery(94, 95, 1, 3), delivery(96, 99, 1, 11, outcome="rejected")]
    (row,) = health([*rows, delivery(100, 199, 1, 40, outcome="lock_expired")])
    assert (row.acknowledge_p50_us, row.acknowledge_p95_us, row.acknowledge_max_us) == (1 * S, 2 * S, 10 * S)


def test_lag_is_unknown_unless_seen() -> None:
    unknown = group_event("offsets", 1, topic="orders", topic_id="T", partition=0, start_offset=5, lag=-1)
    (row,) = health([delivery(0, 9, 1, 2)], unknown)
    assert (row.lag, row.lag_partitions) == (None, 0)


def test_lag_is_the_sum_of_what_was_last_seen_in_the_minute() -> None:
    place = {"topic": "orders", "topic_id": "T", "start_offset": 0}
    events = [
        group_event("offsets", at, lag=lag, partition=number, **place)
        for at, number, lag in [(1, 0, 9), (2, 1, 4), (3, 0, 6)]
    ]
    (row,) = health([], *events)
    assert (row.group_id, row.lag, row.lag_partitions) == ("g", 10, 2)


def test_members_are_those_that_beat_and_did_not_leave() -> None:
    events = [group_event("heartbeat", 1, member_id="a", member_epoch=0, group_epoch=3, assigned=2)]
    events += [group_event("heartbeat", 2, member_id="b", member_epoch=0, group_epoch=4, assigned=1)]
    events += [group_event("heartbeat", 3, member_id="a", member_epoch=4, group_epoch=4)]
    events += [group_event("heartbeat", 4, member_id="b", member_epoch=-1, group_epoch=-1)]
    (row,) = health([], *events)
    assert (row.state, row.members, row.assignments, row.group_epoch) == ("Stable", 1, 2, 4)
    assert row.assignment_epoch is None


def test_assignment_is_remembered_over_minutes_and_unknown_where_it_was_never_told() -> None:
    events = [group_event("heartbeat", 1, member_id="a", member_epoch=0, assigned=2)]
    events += [group_event("heartbeat", 61, member_id="a", member_epoch=3)]
    events += [
        group_event("heartbeat", 121, member_id="a", member_epoch=3),
        group_event("heartbeat", 122, member_id="b", member_epoch=3),
    ]
    assert [row.assignments for row in health([], *events)] == [2, 2, None]


def test_description_knows_better_than_heartbeats() -> None:
    described = {"state": "Stable", "members": 3, "assigned": 6, "group_epoch": 7, "assignment_epoch": 6}
    events = [
        group_event("described", 1, **described),
        group_event("heartbeat", 2, member_id="a", member_epoch=7, group_epoch=7),
    ]
    (row,) = health([], *events)
    assert (row.state, row.members, row.assignments, row.group_epoch, row.assignment_epoch) == ("Stable", 3, 6, 7, 6)


def test_description_with_an_error_is_no_empty_group() -> None:
    assert health([], group_event("described", 1, state="", members=0, error_code=69)) == []


def test_partition_stands_still_where_records_were_held_and_none_was_finished() -> None:
    rows = [delivery(0, 9, 30, 200, outcome="lock_expired"), delivery(10, 19, 130, 131)]
    beats = [group_event("heartbeat", at, member_id="m", member_epoch=1) for at in range(0, 260, 10)]
    assert [row.standing_still for row in health(rows, *beats)] == [[], ["orders-0"], [], ["orders-0"], []]


def test_partition_stands_still_where_lag_stays_and_the_start_offset_too() -> None:
    place = {"topic": "orders", "topic_id": "T", "partition": 0}
    at_start = [(0, 5, 9), (70, 5, 9), (130, 6, 8), (190, 6, 0), (250, 6, 0)]
    events = [group_event("offsets", at, start_offset=start, lag=lag, **place) for at, start, lag in at_start]
    assert [row.standing_still for row in health([], *events)] == [[], ["orders-0"], [], [], []]


def test_minute_that_the_recording_covers_in_part_stands_not_still() -> None:
    rows = [delivery(0, 9, 30, None)]
    assert [row.standing_still for row in health(rows, group_event("seen", 119))] == [[]]


def test_near_the_limit_is_one_delivery_before_it() -> None:
    rows = [
        delivery(0, 3, 1, 2, delivery_count=3),
        delivery(4, 5, 1, 2, delivery_count=4),
        delivery(6, 6, 1, 2, delivery_count=5),
    ]
    assert [row.near_limit for row in health(rows)] == [3]
    assert [row.near_limit for row in health(rows, limit=10)] == [0]


def test_limit_is_learned_from_what_was_archived() -> None:
    rows = [
        delivery(0, 0, 1, 2, delivery_count=3, outcome="released", archived=True),
        delivery(1, 5, 1, 2, delivery_count=2),
    ]
    assert [(row.near_limit, row.archived) for row in health(rows)] == [(6, 1)]


def test_nothing_seen_gives_no_row() -> None:
    assert health([]) == []
