"""Each rule by which leaders, elections and votes are told."""

from typing import Any

import pytest

from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import event_rows_of
from kafkascope.health.quorum.rows import QuorumHappening

SECOND = 1_000_000


def fetch(at: float, node: int, epoch: int, offset: int = 0, broker: str = "n1", **more: Any) -> QuorumEvent:
    return QuorumEvent(
        "fetch", int(at * SECOND), 0, f"f{node}@{at}", f"c{node}-{broker}", broker, node, leader_epoch=epoch,
        offset=offset, max_wait_ms=500, **more,
    )  # fmt: skip


def fetched(
    at: float, node: int, leader: int, epoch: int, offset: int = 0, asked_at: float | None = None, **more: Any
) -> QuorumEvent:
    """An answer; of the fetch at `asked_at`, without which it stands alone."""
    more = {"broker": f"n{leader}", "error_code": 0, "records_bytes": 0, **more}
    return QuorumEvent(
        "fetch_answer", int(at * SECOND), 1, f"f{node}@{asked_at}", f"c{node}-{more['broker']}", node_id=node,
        leader_id=leader, leader_epoch=epoch, offset=offset, **more,
    )  # fmt: skip


def vote(at: float, node: int, voter: int, epoch: int, **more: Any) -> QuorumEvent:
    return QuorumEvent("vote", int(at * SECOND), 0, f"v{at}", node_id=node, peer_id=voter, epoch=epoch, **more)


def voted(at: float, request_event: QuorumEvent, granted: bool, **more: Any) -> QuorumEvent:
    return request_event._replace(kind="vote_answer", at_us=int(at * SECOND), granted=granted, **more)


def begin(at: float, leader: int, epoch: int, voter: int) -> QuorumEvent:
    return QuorumEvent("begin", int(at * SECOND), 0, f"b{at}", peer_id=voter, leader_id=leader, leader_epoch=epoch)


def end(at: float, leader: int, epoch: int) -> QuorumEvent:
    return QuorumEvent("end", int(at * SECOND), 0, f"e{at}", leader_id=leader, leader_epoch=epoch)


def happened(*events: QuorumEvent) -> list[QuorumHappening]:
    return list(event_rows_of(events))


def only(rows: list[QuorumHappening], kind: str) -> QuorumHappening:
    (row,) = [row for row in rows if row.kind == kind]
    return row


LED = (fetch(0, 2, 4), fetched(0.5, 2, 1, 4, asked_at=0))  # node 1 leads epoch 4


def test_a_leader_that_was_there_before_the_recording_is_observed_not_elected() -> None:
    rows = happened(*LED, begin(1, 1, 4, 3))
    assert [(row.occurred_at, row.kind, row.epoch, row.node_id, row.cause) for row in rows] == [
        (500000, "observed", 4, 1, "unknown"),
        (1000000, "announced", 4, 1, None),
    ]


def test_an_election_after_a_resignation_lasts_from_it_to_the_first_sign_of_the_new_leader() -> None:
    rows = happened(*LED, end(2, 1, 4), end(2.001, 1, 4), vote(2.1, 2, 3, 5), begin(2.3, 2, 5, 3))
    row = only(rows, "elected")
    assert (row.occurred_at, row.epoch, row.node_id, row.cause, row.previous_leader_id) == (
        2300000,
        5,
        2,
        "resigned",
        1,
    )
    assert (row.duration_ms, row.voting_ms, row.rounds, row.exchange_id) == (300, 200, 1, "b2.3")
    assert (only(rows, "resigned").occurred_at, only(rows, "resigned").node_id) == (2000000, 1)


def test_a_closed_connection_to_the_leader_is_its_loss() -> None:
    closed = QuorumEvent("disconnected", 1 * SECOND, 0, connection_id="c2-n1", how="reset")
    row = only(happened(*LED, closed, vote(3, 2, 3, 5), begin(3.1, 2, 5, 3)), "elected")
    assert (row.cause, row.duration_ms) == ("lost", 2600)
    assert row.detail == "connection to node 1 closed (reset) 500 ms after its last sign of life"


def test_a_connection_that_closed_while_the_leader_went_on_is_not_its_loss() -> None:
    closed = QuorumEvent("disconnected", 1 * SECOND, 0, connection_id="c2-n1", how="reset")
    other = QuorumEvent("disconnected", 1 * SECOND, 0, connection_id="elsewhere", how="reset")
    rows = happened(*LED, closed, fetched(1.5, 3, 1, 4), other, vote(3, 2, 3, 5), begin(3.1, 2, 5, 3))
    assert only(rows, "elected").cause == "timeout"


def test_a_fetch_that_the_leader_leaves_waiting_is_its_loss() -> None:
    row = only(happened(*LED, fetch(0.6, 2, 4), vote(2.8, 2, 3, 5), begin(3, 2, 5, 3)), "elected")
    assert (row.cause, row.detail) == ("lost", "node 1 didn't respond to a fetch for 2400 ms")


def test_a_fetch_within_its_time_or_at_another_node_says_nothing_of_the_leader() -> None:
    rows = happened(*LED, fetch(0.6, 3, 4, broker="n3"), fetch(2.9, 2, 4), vote(2.95, 2, 3, 5), begin(3, 2, 5, 3))
    assert only(rows, "elected").cause == "timeout"


def test_an_election_that_the_recording_does_not_explain_has_an_unknown_cause() -> None:
    row = only(happened(*LED, fetched(9, 3, 2, 6)), "elected")
    assert (row.cause, row.duration_ms, row.rounds, row.voting_ms) == ("unknown", 8500, 2, None)


def test_the_first_leader_of_nodes_that_said_they_had_none_is_elected() -> None:
    rows = happened(fetched(0, 2, -1, 0, error_code=6), vote(1, 1, 2, 1), begin(1.2, 1, 1, 2))
    row = only(rows, "elected")
    assert (row.cause, row.duration_ms, row.voting_ms, row.previous_leader_id) == ("no_leader", None, 200, None)


def test_other_nodes_tell_of_a_new_leader_but_not_that_the_old_one_lives() -> None:
    stale = fetched(4, 3, 1, 4, broker="n2", error_code=6)
    news = fetched(5, 3, 2, 5, broker="n3", error_code=74)
    row = only(happened(*LED, stale, news), "elected")
    assert (row.occurred_at, row.node_id, row.duration_ms) == (5000000, 2, 4500)


def test_an_old_leader_that_goes_on_in_its_epoch_changes_nothing() -> None:
    rows = happened(*LED, begin(2, 2, 5, 3), fetched(3, 3, 1, 4), begin(4, 1, 4, 3), fetched(5, 3, 2, 5))
    assert [(row.node_id, row.epoch) for row in rows if row.kind == "elected"] == [(2, 5)]


def test_a_resignation_from_an_epoch_that_is_over_is_late_and_no_cause() -> None:
    rows = happened(*LED, begin(2, 2, 5, 3), end(3, 1, 4), end(3.1, 1, 4), begin(9, 3, 6, 2))
    assert only(rows, "late_resignation").node_id == 1
    assert [row.cause for row in rows if row.kind == "elected"] == ["unknown", "unknown"]


def test_an_election_without_a_winner_failed() -> None:
    rows = happened(*LED, vote(2, 2, 3, 5), vote(3, 3, 2, 6), begin(3.5, 3, 6, 2))
    failed, row = only(rows, "election_failed"), only(rows, "elected")
    assert (failed.occurred_at, failed.epoch, failed.node_id) == (2000000, 5, 2)
    assert (row.rounds, row.voting_ms) == (2, 1500)


def test_votes_have_their_answer_and_pre_votes_are_apart() -> None:
    trial, real, deaf = vote(1, 2, 3, 4, pre_vote=True), vote(2, 2, 3, 5), vote(3, 2, 1, 5)
    rows = happened(trial, voted(1.1, trial, True), real, voted(2.1, real, False, error_code=74), deaf)
    assert [
        (row.occurred_at, row.kind, row.epoch, row.node_id, row.voter_id, row.granted, row.detail) for row in rows
    ] == [
        (1000000, "pre_vote", 4, 2, 3, True, None),
        (2000000, "vote", 5, 2, 3, False, "error 74"),
        (3000000, "vote", 5, 2, 1, None, None),
    ]


def test_a_pre_vote_that_the_leader_outlived_did_not_start_the_election() -> None:
    rows = happened(
        *LED, vote(1, 2, 3, 4, pre_vote=True), fetched(2, 3, 1, 4), vote(8, 3, 2, 4, pre_vote=True), begin(8.1, 3, 5, 2)
    )
    assert only(rows, "elected").voting_ms == 100


@pytest.mark.parametrize(
    ("last", "cause"), [(end(2, 1, 4), "resigned"), (vote(2, 2, 3, 5), "timeout")], ids=["resigned", "voting"]
)
def test_a_recording_that_ends_without_a_leader_says_since_when(last: QuorumEvent, cause: str) -> None:
    row = only(happened(*LED, last, QuorumEvent("seen", 9 * SECOND, 0)), "leaderless")
    since = 2000000 if cause == "resigned" else 500000
    assert (row.occurred_at, row.node_id, row.cause, row.duration_ms) == (since, 1, cause, (9000000 - since) // 1000)


def test_a_quorum_that_never_had_a_leader_is_leaderless_from_the_start() -> None:
    row = only(happened(fetched(1, 2, -1, 3, error_code=6), fetched(4, 2, -1, 3, error_code=6)), "leaderless")
    assert (row.occurred_at, row.epoch, row.node_id, row.cause, row.duration_ms) == (
        1000000,
        3,
        None,
        "no_leader",
        3000,
    )


def test_a_recording_that_ends_under_a_leader_is_not_leaderless() -> None:
    assert [row.kind for row in happened(*LED, vote(1, 2, 3, 4, pre_vote=True))] == ["observed", "pre_vote"]
    assert happened() == []


def test_a_leader_of_nodes_that_had_none_is_elected_also_when_the_votes_are_not_in_the_recording() -> None:
    rows = happened(fetched(0, 2, -1, 1, error_code=6), begin(1.2, 1, 1, 2))
    assert (only(rows, "elected").cause, only(rows, "elected").voting_ms) == ("no_leader", None)
