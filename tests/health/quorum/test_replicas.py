"""Each rule by which a replica's log end, lag and times are told."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import event_rows_of, history_of, replica_rows_of
from kafkascope.health.quorum.rows import QuorumHappening, QuorumReplica
from tests.health.quorum.test_elections import SECOND, begin, fetch, fetched, vote

MS = 1_000


def described(at: float, node: int, offset: int, fetch_ms: int = -1, caught_ms: int = -1, **more: Any) -> QuorumEvent:
    more = {"leader_id": 1, "leader_epoch": 4, "high_watermark": 90, "voter": True, "error_code": 0, **more}
    return QuorumEvent(
        "described", int(at * SECOND), 0, f"d{at}", node_id=node, directory_id=f"dir-{node}", offset=offset,
        last_fetch_ms=fetch_ms, last_caught_up_ms=caught_ms, **more,
    )  # fmt: skip


def rows(*events: QuorumEvent, source: str = "fetch") -> list[QuorumReplica]:
    return [row for row in replica_rows_of(events) if row.source == source]


def last(*events: QuorumEvent) -> dict[int, QuorumReplica]:
    """The last sample, by replica."""
    last_rows = rows(*events)
    return {row.replica_id: row for row in last_rows if row.observed_at == last_rows[-1].observed_at}


def test_lag_is_the_leaders_log_end_less_the_replicas() -> None:
    leader, follower, observer = rows(
        described(1, 1, 100, 7000, 7000), described(1, 2, 90, 6600, 5800),
        described(1, 4, 100, 6900, 6900, voter=False), source="describe",
    )  # fmt: skip
    assert [(row.role, row.log_end_offset, row.lag) for row in (leader, follower, observer)] == [
        ("leader", 100, 0),
        ("follower", 90, 10),
        ("observer", 100, 0),
    ]
    assert (follower.lag_ms, follower.fetch_age_ms, follower.lag_bound) == (1200, 400, "exact")
    assert (follower.last_fetch_at, follower.last_caught_up_at) == (6600 * MS, 5800 * MS)
    assert (observer.lag_ms, observer.fetch_age_ms) == (0, 100)
    assert (leader.high_watermark, leader.observed_at, leader.directory_id) == (90, SECOND, "dir-1")


def test_a_replica_that_has_not_fetched_from_this_leader_has_an_unknown_lag() -> None:
    _, silent = rows(described(1, 1, 100, 7000, 7000), described(1, 3, -1), source="describe")
    assert (silent.log_end_offset, silent.lag, silent.lag_ms, silent.lag_bound, silent.last_fetch_at) == (None,) * 5


def test_without_the_leader_in_the_answer_no_lag_is_known() -> None:
    (row,) = rows(described(1, 2, 90), source="describe")
    assert (row.lag, row.log_end_offset) == (None, 90)


def test_an_answer_with_an_error_is_no_observation() -> None:
    assert rows(described(1, 1, -1, error_code=6), source="describe") == []


def test_an_answer_that_a_broker_passed_on_counts_once() -> None:
    first = [described(1, 1, 100, 7000, 7000), described(1, 2, 90, 6600, 5800)]
    again = [event._replace(at_us=event.at_us + 2000, exchange_id="inner") for event in first]
    later = [described(2, 1, 100, 8000, 8000), described(2, 2, 90, 6600, 5800)]
    assert {row.exchange_id for row in rows(*first, *again, *later, source="describe")} == {"d1", "d2"}


def test_a_changed_voter_set_is_told() -> None:
    events = [
        described(1, 1, 9, 1, 1), described(1, 2, 9, 1, 1),
        described(2, 1, 9, 2, 2), described(2, 3, 9, 2, 2), described(2, 2, 9, 2, 2, voter=False),
    ]  # fmt: skip
    (change,) = [row for row in event_rows_of(events) if row.kind == "voters_changed"]
    assert (change.occurred_at, change.detail, change.exchange_id) == (2000000, "1,2 to 1,3", "d2")


def test_fetches_alone_show_the_lag_of_a_replica_that_fell_silent() -> None:
    """Both ask for 10. Then 2 says nothing more, while 3 fetches 10 to 13."""
    result = last(
        fetched(0.1, 2, 1, 4, 10), fetched(0.1, 3, 1, 4, 10),
        fetch(0.2, 2, 4, 10), fetch(0.2, 3, 4, 10),
        fetched(0.5, 2, 1, 4, 10, asked_at=0.2, records_bytes=70),
        fetched(0.5, 3, 1, 4, 10, asked_at=0.2, records_bytes=70),
        fetch(0.6, 3, 4, 11), fetched(1.1, 3, 1, 4, 11, asked_at=0.6, records_bytes=140),
        fetch(1.2, 3, 4, 13), fetched(2.5, 3, 1, 4, 13, asked_at=1.2, high_watermark=11),
    )  # fmt: skip
    assert (result[1].role, result[1].log_end_offset, result[1].lag) == ("leader", 13, 0)
    assert (result[3].log_end_offset, result[3].lag, result[3].lag_ms) == (13, 0, 0)
    silent = result[2]
    assert (silent.log_end_offset, silent.lag, silent.fetch_age_ms) == (10, 3, 2000)
    assert (silent.last_fetch_at, silent.last_caught_up_at, silent.lag_ms) == (500000, 200000, 2300)


def test_a_fetch_counts_when_it_comes_and_again_when_it_is_answered() -> None:
    result = last(
        fetched(0.1, 2, 1, 4, 10),
        fetch(0.2, 2, 4, 10),
        fetched(0.7, 2, 1, 4, 10, asked_at=0.2),
        fetched(1.2, 3, 1, 4, 10),
    )
    assert (result[2].last_fetch_at, result[2].last_caught_up_at) == (700000, 700000)


def test_lag_is_exact_while_a_fetch_waits_at_the_log_end_and_at_least_otherwise() -> None:
    start = [fetched(0.1, 2, 1, 4, 10), fetched(0.1, 3, 1, 4, 9)]
    waiting = last(*start, fetch(0.8, 2, 4, 10), fetched(1.1, 3, 1, 4, 9, records_bytes=1))
    assert (waiting[3].lag, waiting[3].lag_bound) == (1, "exact")
    overdue = last(*start, fetch(0.2, 2, 4, 10), fetched(1.1, 3, 1, 4, 9, records_bytes=1))
    assert (overdue[3].lag, overdue[3].lag_bound) == (1, "at_least")


@pytest.mark.parametrize(
    ("more", "end"),
    [
        ({"records_bytes": 70}, 11),
        ({"records_bytes": 70, "end_offset": 15}, 15),
        ({"records_bytes": 0}, 10),
        ({"records_bytes": 70, "high_watermark": 12}, 12),
    ],
)
def test_the_leaders_log_end_is_at_least_what_an_answer_shows(more: dict[str, int], end: int) -> None:
    assert last(fetched(0.1, 2, 1, 4, 10, **more), fetched(1.1, 3, 1, 4, 0))[1].log_end_offset == end


def test_a_description_raises_the_leaders_log_end() -> None:
    result = last(fetched(0.1, 2, 1, 4, 10), described(0.5, 1, 40, 1, 1), fetched(1.1, 2, 1, 4, 10))
    assert (result[1].log_end_offset, result[2].lag) == (90, 80)  # its high watermark is higher still


def test_a_diverging_replica_does_not_tell_the_leaders_log_end() -> None:
    result = last(
        fetched(0.1, 2, 1, 4, 10), fetched(0.2, 3, 1, 4, 99, how="diverging"), fetch(0.3, 3, 4, 99),
        fetched(1.1, 2, 1, 4, 10),
    )  # fmt: skip
    assert result[1].log_end_offset == 10
    assert (result[3].log_end_offset, result[3].lag) == (None, None)


def test_what_a_new_leader_has_is_at_least_what_was_committed() -> None:
    result = last(
        fetched(0.1, 2, 1, 4, 20, high_watermark=15), fetched(0.1, 3, 1, 4, 18),
        fetched(2.1, 3, 2, 5, 16), fetched(3.1, 3, 2, 5, 16),
    )  # fmt: skip
    assert {row.leader_id for row in result.values()} == {2}
    assert (result[2].role, result[2].log_end_offset) == ("leader", 16)


def test_a_replica_that_has_not_fetched_from_the_new_leader_is_there_without_an_offset() -> None:
    result = last(
        fetched(0.1, 2, 1, 4, 20), fetched(0.1, 3, 1, 4, 18), fetched(2.1, 3, 2, 5, 20), fetched(3.1, 3, 2, 5, 20)
    )
    assert 1 not in result  # it led, and was never seen to fetch
    again = last(
        fetched(0.1, 3, 1, 4, 5), fetched(0.1, 4, 1, 4, 5), fetched(2.1, 3, 2, 5, 20), fetched(3.1, 3, 2, 5, 20)
    )
    assert (again[4].log_end_offset, again[4].lag, again[4].last_fetch_at) == (None, None, None)


def test_a_fetch_at_a_node_that_does_not_lead_is_not_the_leaders_knowledge() -> None:
    result = last(
        fetched(0.1, 2, 1, 4, 10), fetch(0.5, 2, 4, 30, broker="n3"),
        fetched(0.6, 2, 1, 4, 30, broker="n3", error_code=6), fetched(1.1, 3, 1, 4, 10),
    )  # fmt: skip
    assert (result[2].log_end_offset, result[1].log_end_offset) == (10, 10)


def test_samples_come_once_a_second_and_only_while_the_leader_answers() -> None:
    result = rows(
        fetched(0.1, 2, 1, 4, 10), fetched(1.1, 2, 1, 4, 10), fetched(1.2, 2, 1, 4, 10),
        fetched(2.1, 2, 1, 4, 10, error_code=6), fetched(9.5, 2, 1, 4, 10),
    )  # fmt: skip
    assert [row.observed_at for row in result if row.replica_id == 2] == [1100000, 9500000]


def test_an_observer_that_is_silent_for_five_minutes_drops_out_and_a_voter_does_not() -> None:
    result = last(
        vote(0, 3, 2, 4), fetched(0.1, 2, 1, 4, 10), fetched(0.1, 3, 1, 4, 10), fetched(0.1, 7, 1, 4, 10),
        fetched(301, 2, 1, 4, 10),
    )  # fmt: skip
    assert set(result) == {1, 2, 3}


def test_roles_come_from_descriptions_votes_and_announcements_also_later_ones() -> None:
    early = [fetched(0.1, node, 1, 4, 10) for node in (2, 3, 4, 5)]
    sample = [fetched(1.1, 2, 1, 4, 10)]
    assert {row.role for row in rows(*early, *sample) if row.replica_id != 1} == {None}
    later = rows(*early, *sample, vote(2, 2, 3, 5))
    assert {row.replica_id: row.role for row in later} == {1: "leader", 2: "follower", 3: "follower", 4: None, 5: None}
    result = rows(*early, *sample, described(2, 1, 10, 1, 1), described(2, 5, 10, 1, 1, voter=False))
    assert {row.replica_id: row.role for row in result}[5] == "observer"


def test_who_fetches_under_an_announced_leader_and_was_not_told_is_an_observer() -> None:
    result = rows(begin(0, 1, 4, 2), fetched(0.1, 2, 1, 4, 10), fetched(0.1, 7, 1, 4, 10), fetched(1.1, 2, 1, 4, 10))
    assert {row.replica_id: row.role for row in result} == {1: "leader", 2: "follower", 7: "observer"}


def test_directory_ids_are_kept() -> None:
    result = last(fetched(0.1, 2, 1, 4, 10, directory_id="x"), fetched(1.1, 3, 1, 4, 10))
    assert result[2].directory_id == "x"


def test_no_events_make_no_rows() -> None:
    assert history_of([]).replicas == [] and history_of([]).events == []


def test_a_replica_was_caught_up_at_its_fetch_before_if_it_now_asks_for_what_was_the_end_then() -> None:
    result = last(
        fetched(0.1, 2, 1, 4, 10, records_bytes=350, end_offset=15),
        fetched(0.2, 3, 1, 4, 15, records_bytes=350, end_offset=20),
        fetch(0.6, 2, 4, 15), fetched(1.1, 3, 1, 4, 20),
    )  # fmt: skip
    assert (result[2].lag, result[2].last_fetch_at, result[2].last_caught_up_at) == (5, 600000, 100000)


def test_every_column_is_told_in_the_docs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "health-quorum.md").read_text(encoding="utf-8")
    columns = [column.name for row in (QuorumReplica, QuorumHappening) for column in fields(row)]
    assert [column for column in columns if f"`{column}`" not in page] == []
