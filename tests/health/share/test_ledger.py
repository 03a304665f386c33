"""One rule a test: a handful of events in, how each delivery ended out."""

from typing import Any

import pytest

from kafkascope.health.share.events import ACCEPT, GAP, REJECT, RELEASE, RENEW, Delivery, ShareEvent
from kafkascope.health.share.ledger import share_deliveries

S = 1_000_000
LOCK_MS = 3000


def event(kind: str, at: float, **fields: Any) -> ShareEvent:
    """Member m over connection c at broker b, partition 0 of orders; times in seconds."""
    base: dict[str, Any] = {"broker": "b", "member_id": "m", "connection_id": "c", "topic_id": "T", "topic": "orders"}
    return ShareEvent(kind, round(at * S), **{"group_id": "g", "partition": 0, **base, **fields})


def acquired(at: float, first: int, last: int, count: int = 1, **fields: Any) -> ShareEvent:
    sent_at = round(at * S) - 500
    place = {"first_offset": first, "last_offset": last, "delivery_count": count, "lock_timeout_ms": LOCK_MS}
    return event("acquired", at, **{"exchange_id": f"fetch@{at}", "asked_us": sent_at, **place, **fields})


def acknowledged(
    at: float, first: int, last: int, kind: int = ACCEPT, error: int | None = 0, **fields: Any
) -> ShareEvent:
    place = {"first_offset": first, "last_offset": last, "value": kind, "error_code": error}
    answered = None if error is None else round(at * S) + 900
    return event("acknowledged", at, **{"exchange_id": f"ack@{at}", "answered_us": answered, **place, **fields})


def written(at: float, first: int, last: int, state: int, count: int = 1, **fields: Any) -> ShareEvent:
    place = {"first_offset": first, "last_offset": last, "value": state, "delivery_count": count, "error_code": 0}
    return event("state_written", at, **{"exchange_id": f"write@{at}", "member_id": None, **place, **fields})


def session(at: float, epoch: int, error: int | None = 0, **fields: Any) -> ShareEvent:
    return event("session", at, **{"value": epoch, "error_code": error, "exchange_id": f"session@{at}", **fields})


def ledger(*events: ShareEvent, limit: int | None = None) -> list[Delivery]:
    numbered = [event._replace(order=order) for order, event in enumerate(events)]
    assert numbered == sorted(numbered, key=lambda event: event.at_us)
    rows = share_deliveries(numbered, delivery_limit=limit)
    return sorted(rows, key=lambda row: (row.first_offset, row.delivery_count or 0))


def ends(*events: ShareEvent, limit: int | None = None) -> list[tuple[int, int, str, str]]:
    return [(row.first_offset, row.last_offset, row.outcome, row.rule) for row in ledger(*events, limit=limit)]


def test_row_tells_acquisition_and_acknowledgement() -> None:
    (row,) = ledger(acquired(1, 0, 9, client_id="app"), acknowledged(2, 0, 9))
    assert row == Delivery(
        group_id="g",
        topic="orders",
        topic_id="T",
        partition=0,
        first_offset=0,
        last_offset=9,
        delivery_count=1,
        member_id="m",
        client_id="app",
        acquired_at=1 * S,
        lock_timeout_ms=LOCK_MS,
        renewals=0,
        outcome="accepted",
        outcome_at=2 * S,
        archived=False,
        acquire_exchange_id="fetch@1",
        outcome_exchange_id="ack@2",
        broker_address="b",
        rule="acknowledged",
        uncertain=None,
    )


def test_acknowledgements_split_a_range_by_type_and_rejoin_equal_neighbours() -> None:
    events = [acquired(1, 0, 9)]
    events += [acknowledged(2, 0, 2, ACCEPT), acknowledged(2, 3, 4, ACCEPT), acknowledged(2, 5, 5, REJECT)]
    events += [acknowledged(2, 6, 9, RELEASE)]
    assert ends(*events) == [
        (0, 4, "accepted", "acknowledged"),
        (5, 5, "rejected", "acknowledged"),
        (6, 9, "released", "acknowledged"),
    ]


def test_offsets_acknowledged_as_gaps_have_no_row() -> None:
    events = [acquired(1, 0, 9), acknowledged(2, 0, 3), acknowledged(2, 4, 5, GAP), acknowledged(2, 6, 9)]
    assert ends(*events) == [(0, 3, "accepted", "acknowledged"), (6, 9, "accepted", "acknowledged")]


def test_what_is_not_acknowledged_stays_held() -> None:
    rows = ends(acquired(1, 0, 9), acknowledged(2, 3, 5))
    assert [row[:3] for row in rows] == [(0, 2, "open"), (3, 5, "accepted"), (6, 9, "open")]


def test_one_acknowledgement_spans_several_acquisitions() -> None:
    rows = ends(acquired(1, 0, 4), acquired(1.5, 5, 9), acknowledged(2, 3, 7))
    assert [row[:3] for row in rows] == [(0, 2, "open"), (3, 4, "accepted"), (5, 7, "accepted"), (8, 9, "open")]


def test_refused_acknowledgement_does_not_count() -> None:
    (row,) = ledger(acquired(1, 0, 9), acknowledged(2, 0, 9, error=121), acknowledged(3, 0, 9, RELEASE))
    assert (row.outcome, row.outcome_at) == ("released", 3 * S)


def test_acknowledgement_of_another_member_is_not_this_members() -> None:
    rows = ledger(acquired(1, 0, 9), acknowledged(2, 0, 9, member_id="other"), event("seen", 3.5, broker=None))
    assert {(row.member_id, row.outcome) for row in rows} == {("m", "open"), ("other", "accepted")}


def test_unanswered_acknowledgement_leaves_it_open_and_says_so() -> None:
    (row,) = ledger(acquired(1, 0, 9), acknowledged(2, 0, 9, error=None))
    assert (row.outcome, row.uncertain) == ("open", "acknowledgement_unanswered")


def test_state_write_proves_an_unanswered_acknowledgement() -> None:
    (row,) = ledger(acquired(1, 0, 9), acknowledged(2, 0, 9, error=None), written(2.1, 0, 9, 2))
    assert (row.outcome, row.outcome_at, row.rule, row.uncertain) == ("accepted", 2 * S, "state_written", None)


def test_redelivery_disproves_an_unanswered_accept() -> None:
    events = [acquired(1, 0, 9), acknowledged(2, 0, 9, error=None), event("disconnected", 2.1)]
    first, _ = ledger(*events, acquired(2.2, 0, 9, 2, member_id="other", connection_id="d"))
    assert (first.outcome, first.uncertain) == ("disconnected", None)


def test_redelivery_proves_an_unanswered_release() -> None:
    events = [acquired(1, 0, 9), acknowledged(2, 0, 9, RELEASE, error=None)]
    first, _ = ledger(*events, acquired(2.2, 0, 9, 2, member_id="other", connection_id="d"))
    assert (first.outcome, first.outcome_at, first.rule) == ("released", 2 * S, "delivered_again")


def test_redelivery_after_the_lock_time_proves_expiry() -> None:
    first, second = ledger(acquired(1, 0, 9), acquired(4.5, 0, 9, 2, member_id="other", connection_id="d"))
    assert (first.outcome, first.outcome_at, first.rule) == ("lock_expired", 4 * S, "delivered_again")
    assert first.outcome_exchange_id == "fetch@4.5"
    assert second.outcome == "open"


def test_lock_counts_from_the_time_the_fetch_was_asked_at_the_earliest() -> None:
    events = [acquired(1, 0, 9, asked_us=round(0.5 * S)), acquired(3.7, 0, 9, 2, member_id="other")]
    assert ledger(*events)[0].outcome == "lock_expired"


def test_redelivery_of_a_part_ends_only_that_part() -> None:
    rows = ends(acquired(1, 0, 9), acquired(4.5, 2, 3, 2, member_id="other"), acknowledged(4.6, 0, 1, error=121))
    assert [row[:3] for row in rows][:3] == [
        (0, 1, "lock_expired"),
        (2, 3, "lock_expired"),
        (2, 3, "open"),
    ]


def test_redelivery_before_the_lock_time_without_a_cause_is_said_to_be_unexplained() -> None:
    first, _ = ledger(acquired(1, 0, 9), acquired(2, 0, 9, 2, member_id="other", connection_id="d"))
    assert (first.outcome, first.rule, first.uncertain) == ("moved", "unexplained", "cause_not_recorded")


def test_state_write_at_the_lock_time_proves_expiry() -> None:
    (row,) = ledger(acquired(1, 0, 9), written(4.0005, 0, 9, 0))
    assert (row.outcome, row.outcome_at, row.outcome_exchange_id) == ("lock_expired", 4 * S, "write@4.0005")


def test_state_write_before_the_lock_time_proves_no_expiry() -> None:
    (row,) = ledger(acquired(1, 0, 9), written(2, 0, 9, 0))
    assert (row.outcome, row.rule, row.uncertain) == ("moved", "state_written", "cause_not_recorded")


def test_state_write_of_another_delivery_count_says_nothing() -> None:
    (row,) = ledger(acquired(1, 0, 9, 2), written(4.0005, 0, 9, 0, count=1))
    assert row.rule != "state_written"


def test_refused_state_write_says_nothing() -> None:
    (row,) = ledger(acquired(1, 0, 9), written(2, 0, 9, 2, error_code=15))
    assert row.outcome == "open"


def test_refusal_after_the_lock_time_proves_expiry() -> None:
    (row,) = ledger(acquired(1, 0, 9), acknowledged(4.5, 0, 9, error=121))
    assert (row.outcome, row.outcome_at, row.rule) == ("lock_expired", 4 * S, "refused_late")


def test_lock_that_is_over_was_not_ended_by_the_close_that_follows() -> None:
    (row,) = ledger(session(0.5, 0), acquired(1, 0, 9), session(6, -1))
    assert (row.outcome, row.outcome_at, row.rule) == ("lock_expired", 4 * S, "lock_passed")


def test_lock_over_before_the_recording_ends_is_not_open() -> None:
    (row,) = ledger(acquired(1, 0, 9), event("seen", 60, broker=None))
    assert (row.outcome, row.rule, row.uncertain) == ("lock_expired", "lock_passed", "not_delivered_again")


def test_lock_not_over_when_its_broker_was_last_seen_is_open() -> None:
    events = [acquired(1, 0, 9), event("seen", 3, broker="b"), event("seen", 60, broker="other")]
    assert [row.outcome for row in ledger(*events)] == ["open"]


def test_renewal_moves_the_locks_end_and_is_no_delivery() -> None:
    events = [acquired(1, 0, 9), acknowledged(3, 0, 4, RENEW), acquired(5, 5, 9, 2, member_id="other")]
    kept, expired, _ = ledger(*events)
    assert (kept.first_offset, kept.last_offset, kept.renewals, kept.outcome) == (0, 4, 1, "open")
    assert (expired.first_offset, expired.last_offset, expired.renewals, expired.outcome) == (5, 9, 0, "lock_expired")


def test_lock_runs_out_after_its_last_renewal() -> None:
    events = [acquired(1, 0, 9), acknowledged(3, 0, 9, RENEW), acknowledged(5, 0, 9, RENEW)]
    first, _ = ledger(*events, acquired(8.1, 0, 9, 2, member_id="other", connection_id="d"))
    assert (first.outcome, first.renewals, first.outcome_at) == ("lock_expired", 2, 8 * S + 900)


def test_lock_that_was_renewed_did_not_run_out_at_its_first_end() -> None:
    events = [acquired(1, 0, 9), acknowledged(3, 0, 9, RENEW), acquired(4.5, 0, 9, 2, member_id="other")]
    assert ledger(*events)[0].rule == "unexplained"


@pytest.mark.parametrize("error", [None, 121])
def test_renewal_that_was_not_granted_does_not_count(error: int | None) -> None:
    first, _ = ledger(acquired(1, 0, 9), acknowledged(3, 0, 9, RENEW, error), acquired(4.5, 0, 9, 2, member_id="other"))
    assert (first.outcome, first.renewals, first.outcome_at) == ("lock_expired", 0, 4 * S)


def test_session_close_releases_what_the_member_holds_there() -> None:
    events = [acquired(1, 0, 4), acquired(1, 5, 9, partition=1, broker="other", connection_id="d")]
    events += [acquired(1.1, 10, 14, member_id="n", connection_id="e"), session(2, -1)]
    rows = ledger(*events)
    assert [(row.first_offset, row.outcome) for row in rows] == [(0, "session_closed"), (5, "open"), (10, "open")]
    assert (rows[0].outcome_at, rows[0].outcome_exchange_id) == (2 * S, "session@2")


def test_acknowledgements_in_a_close_come_first() -> None:
    rows = ends(acquired(1, 0, 9), acknowledged(2, 0, 4), session(2, -1))
    assert rows == [(0, 4, "accepted", "acknowledged"), (5, 9, "session_closed", "session_closed")]


def test_refused_close_releases_nothing() -> None:
    assert [row.outcome for row in ledger(acquired(1, 0, 9), session(2, -1, error=42))] == ["open"]


def test_unanswered_close_counts_and_says_so() -> None:
    (row,) = ledger(acquired(1, 0, 9), session(2, -1, error=None))
    assert (row.outcome, row.uncertain) == ("session_closed", "close_unanswered")


def test_epoch_0_releases_nothing() -> None:
    assert ends(session(0.5, 0), acquired(1, 0, 9), session(2, 0), acknowledged(2.5, 0, 9)) == [
        (0, 9, "accepted", "acknowledged")
    ]


def test_end_of_the_sessions_connection_releases() -> None:
    (row,) = ledger(session(0.5, 0), acquired(1, 0, 9), event("disconnected", 2, member_id=None))
    assert (row.outcome, row.outcome_at, row.outcome_exchange_id) == ("disconnected", 2 * S, None)


def test_end_of_a_connection_that_a_newer_session_replaced_releases_nothing() -> None:
    events = [session(0.5, 0), acquired(1, 0, 9), session(2, 0, connection_id="newer"), event("disconnected", 2.1)]
    assert ends(*events, acknowledged(2.5, 0, 9, connection_id="newer")) == [(0, 9, "accepted", "acknowledged")]


def test_answer_that_passes_the_fin_is_released_at_once() -> None:
    (row,) = ledger(session(0.5, 0), event("disconnected", 0.9), acquired(1, 0, 9))
    assert (row.outcome, row.outcome_at) == ("disconnected", 1 * S)


def test_forgotten_partition_is_not_released_with_the_session() -> None:
    events = [acquired(1, 0, 9), event("forgotten", 1.5), event("disconnected", 2)]
    first, _ = ledger(*events, acquired(4.5, 0, 9, 2, member_id="other", connection_id="d"))
    assert first.outcome == "lock_expired"


def test_session_not_found_means_evicted() -> None:
    (row,) = ledger(acquired(1, 0, 9), session(2, 7, error=122))
    assert (row.outcome, row.rule) == ("moved", "session_evicted")


@pytest.mark.parametrize("error", [6, 74])
def test_broker_that_leads_no_more_has_lost_all_its_locks(error: int) -> None:
    events = [acquired(1, 0, 4), acquired(1.1, 5, 9, member_id="n", connection_id="d")]
    rows = ends(*events, event("broker_error", 2, error_code=error))
    assert rows == [(0, 4, "moved", "leader_moved"), (5, 9, "moved", "leader_moved")]


def test_error_that_leaves_the_leader_moves_nothing() -> None:
    assert [row.outcome for row in ledger(acquired(1, 0, 9), event("broker_error", 2, error_code=29))] == ["open"]


def test_acknowledgement_refused_for_a_moved_leader_ends_it() -> None:
    assert ends(acquired(1, 0, 9), acknowledged(2, 0, 9, error=6)) == [(0, 9, "moved", "leader_moved")]


def test_member_that_acquires_from_another_broker_shows_a_new_leader() -> None:
    rows = ends(acquired(1, 0, 4), acquired(2, 5, 9, broker="other", connection_id="d"))
    assert rows == [(0, 4, "moved", "leader_moved"), (5, 9, "open", "end_of_recording")]


def test_members_may_reach_one_leader_at_two_addresses() -> None:
    rows = ledger(acquired(1, 0, 4), acquired(2, 5, 9, broker="b:9094", member_id="n", connection_id="d"))
    assert [row.outcome for row in rows] == ["open", "open"]


def test_count_that_does_not_rise_means_that_the_state_was_read_anew() -> None:
    first, _ = ledger(acquired(1, 0, 9, 3), acquired(10, 0, 9, 3, member_id="n", broker="other", connection_id="d"))
    assert (first.outcome, first.rule, first.archived) == ("moved", "state_reloaded", False)


def test_count_that_jumps_says_that_deliveries_are_missing() -> None:
    first, _ = ledger(acquired(1, 0, 9, 1), acquired(10, 0, 9, 3, member_id="n", connection_id="d"))
    assert (first.outcome, first.uncertain) == ("lock_expired", "deliveries_between_not_recorded")


def test_fenced_state_write_loses_the_locks() -> None:
    assert ends(acquired(1, 0, 9), written(2, 0, 9, 2, error_code=124)) == [(0, 9, "moved", "leader_moved")]


@pytest.mark.parametrize("topic_id", ["T", None])
def test_deleted_records_are_moved_up_to_the_new_start(topic_id: str | None) -> None:
    rows = ends(acquired(1, 0, 9), event("altered", 2, start_offset=4, topic_id=topic_id))
    assert rows == [(0, 3, "moved", "records_deleted"), (4, 9, "open", "end_of_recording")]


def test_altered_offsets_move_the_whole_partition() -> None:
    rows = ends(acquired(1, 0, 9), acquired(1, 0, 9, partition=1), event("altered", 2))
    assert rows == [(0, 9, "moved", "offsets_altered"), (0, 9, "open", "end_of_recording")]


def test_start_offset_that_passes_held_records_moves_them() -> None:
    rows = ends(acquired(1, 0, 9), written(2, -1, -1, 0, start_offset=6))
    assert rows == [(0, 5, "moved", "start_offset_moved"), (6, 9, "open", "end_of_recording")]


def test_rejected_is_archived() -> None:
    assert [row.archived for row in ledger(acquired(1, 0, 9), acknowledged(2, 0, 9, REJECT))] == [True]


def test_state_4_after_a_release_tells_the_limit_and_the_archiving() -> None:
    events = [acquired(1, 0, 0, 3), acknowledged(2, 0, 0, RELEASE), written(2.001, 0, 0, 4, count=3)]
    events += [
        acquired(3, 1, 1, 3),
        acknowledged(4, 1, 1, RELEASE),
        acquired(5, 2, 2, 2),
        acknowledged(6, 2, 2, RELEASE),
    ]
    rows = ledger(*events)
    assert [(row.archived, row.uncertain) for row in rows] == [(True, None), (True, None), (False, None)]


def test_a_record_on_its_way_to_the_dead_letter_queue_is_archived() -> None:
    # KIP-1191: state 3 when the delivery limit is reached, state 4 once the dead-letter record was tried
    at_limit = [acquired(1, 0, 0, 3), acknowledged(2, 0, 0, RELEASE)]
    rejected = [acquired(3, 1, 1, 1), acknowledged(4, 1, 1, REJECT, error=None)]
    writes = [written(2.001, 0, 0, 3, count=3), written(2.1, 0, 0, 4, count=3)]
    rows = ledger(*at_limit, *writes, *rejected, written(4.001, 1, 1, 3), written(4.1, 1, 1, 4))
    assert [(row.outcome, row.archived) for row in rows] == [("released", True), ("rejected", True)]


def test_default_limit_archives_but_is_said_to_be_assumed() -> None:
    (row,) = ledger(acquired(1, 0, 0, 5), acknowledged(2, 0, 0, RELEASE))
    assert (row.archived, row.uncertain) == (True, "limit_not_recorded")


def test_known_limit_archives() -> None:
    (row,) = ledger(acquired(1, 0, 0, 2), acknowledged(2, 0, 0, RELEASE), limit=2)
    assert (row.archived, row.uncertain) == (True, None)


def test_delivered_beyond_the_default_limit_was_not_archived() -> None:
    events = [acquired(1, 0, 0, 5), acknowledged(2, 0, 0, RELEASE), acquired(3, 0, 0, 6), acknowledged(4, 0, 0)]
    assert [(row.archived, row.outcome) for row in ledger(*events)] == [(False, "released"), (False, "accepted")]


def test_expiry_at_the_limit_is_archived() -> None:
    (row,) = ledger(acquired(1, 0, 9, 5), written(4.0005, 0, 9, 4, count=5))
    assert (row.outcome, row.archived, row.uncertain) == ("lock_expired", True, None)


def test_the_same_answer_twice_is_one_acquisition() -> None:
    rows = ledger(acquired(1, 0, 9), acquired(1, 0, 9), acknowledged(2, 0, 9), acknowledged(2, 0, 9))
    assert [(row.outcome, row.uncertain) for row in rows] == [("accepted", None)]


def test_acknowledgement_of_an_acquisition_that_was_not_recorded() -> None:
    (row,) = ledger(acknowledged(2, 0, 9, connection_id="c"), event("seen", 9, broker=None))
    assert (row.acquired_at, row.delivery_count, row.outcome) == (None, None, "accepted")
    assert (row.acquire_exchange_id, row.uncertain) == (None, "acquisition_not_recorded")


def test_renewal_of_an_acquisition_that_was_not_recorded_is_held() -> None:
    (row,) = ledger(acknowledged(2, 0, 9, RENEW), acknowledged(4, 20, 29), acknowledged(5, 0, 9), event("seen", 9))[:1]
    assert (row.renewals, row.outcome, row.outcome_at) == (1, "accepted", 5 * S)


def test_acknowledgement_recorded_before_its_acquisition_finds_it() -> None:
    (row,) = ledger(acknowledged(1, 0, 9), acquired(1.001, 0, 9))
    assert (row.outcome, row.acquired_at, row.uncertain) == ("accepted", 1_001_000, None)


def test_what_a_request_acknowledged_was_not_acquired_by_its_own_answer() -> None:
    released = acknowledged(1, 5, 5, RELEASE, exchange_id="fetch")
    events = released, acquired(1.005, 5, 5, 3, exchange_id="fetch"), acknowledged(2, 5, 5)
    rows = {(row.delivery_count, row.outcome, row.rule) for row in ledger(*events)}
    assert rows == {(None, "released", "acknowledged"), (3, "accepted", "acknowledged")}


def test_release_recorded_after_the_redelivery_explains_it() -> None:
    events = [
        acquired(1, 0, 9),
        acquired(2, 0, 9, 2, member_id="n", connection_id="d"),
        acknowledged(2.001, 0, 9, RELEASE),
    ]
    first, second = ledger(*events, acknowledged(2.5, 0, 9, member_id="n"))
    assert (first.outcome, first.uncertain, second.outcome) == ("released", None, "accepted")


def test_fin_recorded_after_the_redelivery_explains_it() -> None:
    events = [acquired(1, 0, 9), acquired(2, 0, 9, 2, member_id="n", connection_id="d"), event("disconnected", 2.001)]
    first, second = ledger(*events)
    assert (first.outcome, second.outcome) == ("disconnected", "open")


def test_state_write_recorded_before_its_acknowledgement_decides_nothing() -> None:
    (row,) = ledger(acquired(1, 0, 9), written(1.9, 0, 9, 2), acknowledged(2, 0, 9))
    assert (row.rule, row.outcome_at, row.uncertain) == ("acknowledged", 2 * S, None)


def test_state_write_without_acknowledgement_accepts_and_says_what_is_missing() -> None:
    (row,) = ledger(acquired(1, 0, 9), written(1.9, 0, 9, 2))
    assert (row.outcome, row.rule, row.uncertain) == ("accepted", "state_written", "acknowledgement_not_recorded")


def test_unknown_lock_time_is_the_default_and_said_so() -> None:
    events = [acquired(1, 0, 9, lock_timeout_ms=None), acquired(32, 0, 9, 2, member_id="n", lock_timeout_ms=None)]
    assert (ledger(*events)[0].outcome, ledger(*events)[0].uncertain) == ("lock_expired", "lock_time_unknown")


def test_acknowledge_type_of_a_later_kafka_changes_nothing() -> None:
    assert [row.outcome for row in ledger(acquired(1, 0, 9), acknowledged(2, 0, 9, 9))] == ["open"]


def test_long_ranges_cost_no_more_than_short_ones() -> None:
    last = 10**15
    rows = ends(acquired(1, 0, last), acknowledged(2, 5, 10**14))
    assert [row[:2] for row in rows] == [(0, 4), (5, 10**14), (10**14 + 1, last)]
