"""One share session, request by request."""

from typing import Any
from uuid import UUID

import pytest

from kafkascope.client.share.holding import Holding
from kafkascope.client.share.membership import Membership
from kafkascope.client.share.requests import FETCH_API, acknowledge_request, for_version, needs_version_2
from kafkascope.client.share.session import ShareSession
from kafkascope.client.share.values import (
    CONNECTION_LOST,
    DELIVERED_AGAIN,
    NO_RESULT,
    Acknowledge,
    AcknowledgeRange,
    Acquired,
    AcquireMode,
    DeliveryId,
    FetchLimits,
    SharePartition,
)
from kafkascope.codec.message import encode
from kafkascope.limits import MAX_HELD_RANGES

TOPIC = UUID(int=5)
FIRST, SECOND = SharePartition(TOPIC, 0), SharePartition(TOPIC, 1)
ASSIGNED = {"topicPartitions": [{"topicId": TOPIC, "partitions": [0]}]}
LIMITS = FetchLimits()
EARLIER, LATER = DeliveryId(1, -2), DeliveryId(1, -1)


def row(number: int, *acquired: tuple[int, int, int], **more: Any) -> dict[str, Any]:
    ranges = [dict(zip(("firstOffset", "lastOffset", "deliveryCount"), part, strict=True)) for part in acquired]
    base: dict[str, Any] = {"partitionIndex": number, "errorCode": 0, "errorMessage": None, "acknowledgeErrorCode": 0}
    base |= {"acknowledgeErrorMessage": None, "currentLeader": {"leaderId": -1, "leaderEpoch": -1}, "records": b""}
    return base | {"acquiredRecords": ranges} | more


def response(*rows: dict[str, Any], code: int = 0, lock: int = 30_000) -> dict[str, Any]:
    topics = [{"topicId": TOPIC, "partitions": list(rows)}] if rows else []
    value = {"throttleTimeMs": 0, "errorCode": code, "errorMessage": None, "acquisitionLockTimeoutMs": lock}
    return value | {"responses": topics, "nodeEndpoints": []}


def opened(*acquired: tuple[int, int, int], wanted: frozenset[SharePartition] = frozenset((FIRST,))) -> ShareSession:
    """With one fetch done at time 0."""
    session = ShareSession(1, "g", "m")
    session.wanted = wanted
    assert session.request(0.0, LIMITS, flush=False) is not None
    session.received(response(row(0, *acquired)), 0.0)
    return session


def names(value: dict[str, Any], field: str = "topics") -> list[int]:
    return [
        part["partitionIndex"] if isinstance(part, dict) else part
        for topic in value[field]
        for part in topic["partitions"]
    ]


def test_a_first_fetch_names_all_partitions_and_later_ones_only_changes() -> None:
    session = opened(wanted=frozenset((FIRST, SECOND)))
    quiet = session.request(1.0, LIMITS, flush=False)
    assert quiet is not None
    assert (names(quiet.value), quiet.value["shareSessionEpoch"]) == ([], 1)
    session.received(response(), 1.0)
    session.wanted = frozenset((SECOND, SharePartition(TOPIC, 2)))
    changed = session.request(2.0, LIMITS, flush=False)
    assert changed is not None
    assert (names(changed.value), names(changed.value, "forgottenTopicsData")) == ([2], [0])


def test_acknowledgements_ride_on_the_next_fetch() -> None:
    session = opened((0, 9, 1))
    session.holdings[FIRST].acknowledge(0, 4, Acknowledge.ACCEPT)
    fetch = session.request(1.0, LIMITS, flush=True)
    assert fetch is not None and fetch.api == FETCH_API
    batches = fetch.value["topics"][0]["partitions"][0]["acknowledgementBatches"]
    assert batches == [{"firstOffset": 0, "lastOffset": 4, "acknowledgeTypes": [1]}]
    assert [result.code for result in session.received(response(row(0)), 1.0).results] == [0]


def test_acknowledgements_go_alone_if_no_fetch_is_wanted() -> None:
    session = opened((0, 9, 1))
    session.holdings[FIRST].acknowledge(0, 0, Acknowledge.REJECT)
    assert session.request(1.0, None, flush=False) is None
    alone = session.request(1.0, None, flush=True)
    assert alone is not None and (alone.api, alone.epoch) == ("ShareAcknowledge", 1)


def test_a_partition_that_is_fetched_no_more_is_acknowledged_without_fetching_it() -> None:
    """A ShareFetch that names it would put it back into the session."""
    session = opened((0, 9, 1))
    session.wanted = frozenset((SECOND,))
    session.holdings[FIRST].acknowledge(0, 9, Acknowledge.ACCEPT)
    request = session.request(1.0, LIMITS, flush=False)
    assert request is not None and request.api == "ShareAcknowledge"


def test_a_renewal_goes_alone_and_restarts_the_lock() -> None:
    session = opened((0, 9, 1))
    session.holdings[FIRST].acknowledge(0, 9, Acknowledge.RENEW)
    request = session.request(20.0, LIMITS, flush=False)
    assert request is not None and request.value["isRenewAck"] is True
    session.received(response(row(0)), 20.0)
    assert session.holdings[FIRST].find(5) == (1, 50.0)


def test_an_acknowledgement_during_a_renewal_follows_it() -> None:
    session = opened((0, 0, 1))
    holding = session.holdings[FIRST]
    holding.acknowledge(0, 0, Acknowledge.RENEW)
    session.request(1.0, None, flush=False)
    assert holding.acknowledge(0, 0, Acknowledge.ACCEPT) == []
    session.received(response(row(0)), 1.0)
    request = session.request(2.0, None, flush=True)
    assert request is not None
    assert request.value["topics"][0]["partitions"][0]["acknowledgementBatches"][0]["acknowledgeTypes"] == [1]


def test_a_result_that_is_missing_in_the_response_is_reported_as_missing() -> None:
    session = opened((0, 9, 1))
    session.holdings[FIRST].acknowledge(0, 9, Acknowledge.ACCEPT)
    session.request(1.0, LIMITS, flush=False)
    assert [(r.code, r.sent) for r in session.received(response(), 1.0).results] == [(NO_RESULT, True)]


def test_a_failed_state_write_is_tried_again_until_the_lock_ends() -> None:
    session = opened((0, 9, 1))
    session.holdings[FIRST].acknowledge(0, 9, Acknowledge.ACCEPT)
    session.request(1.0, None, flush=True)
    assert session.received(response(row(0, errorCode=15)), 1.0).results == []
    assert session.request(1.05, None, flush=True) is None, "it waits before it tries again"
    assert session.request(2.0, None, flush=True) is not None
    late = session.received(response(row(0, errorCode=15)), 31.0)
    assert [(result.code, result.unknown) for result in late.results] == [(15, True)]


def test_a_refusal_after_a_failed_state_write_leaves_open_what_counted() -> None:
    """The first try may be stored: then another leader finds the records accepted."""
    session = opened((0, 9, 1))
    session.holdings[FIRST].acknowledge(0, 9, Acknowledge.ACCEPT)
    session.request(1.0, None, flush=True)
    session.received(response(row(0, errorCode=15)), 1.0)
    session.request(2.0, None, flush=True)
    outcome = session.received(response(row(0, errorCode=121)), 2.0)
    assert [(result.code, result.unknown) for result in outcome.results] == [(121, True)]


def test_a_lost_connection_ends_everything_that_was_held_there() -> None:
    session = opened((0, 9, 1))
    session.holdings[FIRST].acknowledge(0, 4, Acknowledge.ACCEPT)
    session.request(1.0, LIMITS, flush=False)
    outcome = session.lost(1.0)
    assert [(result.code, result.records) for result in outcome.results] == [(CONNECTION_LOST, 5)]
    assert (outcome.lost, session.epoch, outcome.stale) == (5, 0, True)


@pytest.mark.parametrize("code", [122, 123, 133])
def test_a_session_that_is_gone_is_opened_again_with_all_partitions(code: int) -> None:
    session = opened(wanted=frozenset((FIRST, SECOND)))
    session.request(1.0, LIMITS, flush=False)
    session.received(response(code=code), 1.0)
    again = session.request(2.0, LIMITS, flush=False)
    assert again is not None and (again.epoch, names(again.value)) == (0, [0, 1])


def test_a_broker_with_too_many_sessions_is_reported_once() -> None:
    session = ShareSession(1, "g", "m")
    session.wanted = frozenset((FIRST,))
    problems = []
    for now in (0.0, 10.0, 20.0):
        assert session.request(now, LIMITS, flush=False) is not None
        problems += session.received(response(code=133), now).problems
    assert [(problem.code, problem.severe) for problem in problems] == [(133, False)]


def test_a_redelivery_ends_what_was_held_before() -> None:
    session = opened((0, 9, 1))
    session.holdings[FIRST].acknowledge(3, 3, Acknowledge.ACCEPT)
    session.epoch, session._known = 1, frozenset((FIRST,))
    session.request(1.0, LIMITS, flush=False)
    held_again = response(row(0, (0, 9, 2), acknowledgeErrorCode=121))
    codes = [result.code for result in session.received(held_again, 1.0).results]
    assert codes == [121]
    assert session.holdings[FIRST].find(3) == (2, 31.0)
    holding = Holding(FIRST)
    holding.acquire([Acquired(0, 3, 1)], EARLIER, 10.0)
    holding.acknowledge(0, 0, Acknowledge.ACCEPT)
    assert [result.code for result in holding.acquire([Acquired(0, 3, 2)], LATER, 20.0)] == [DELIVERED_AGAIN]


def test_an_acknowledgement_of_an_earlier_delivery_never_ends_the_present_one() -> None:
    holding = Holding(FIRST)
    holding.acquire([Acquired(0, 9, 1)], EARLIER, 10.0)
    holding.acquire([Acquired(3, 5, 2)], LATER, 20.0)
    refused = holding.acknowledge(2, 6, Acknowledge.RELEASE, EARLIER)
    assert [(part.first, part.last, part.code, part.sent) for part in refused] == [(3, 5, DELIVERED_AGAIN, False)]
    assert [(part.first, part.last) for part in holding.take(renewals=True)] == [(2, 2), (6, 6)]
    assert (holding.find(4, EARLIER), holding.find(4, LATER)) == (None, (2, 20.0))
    assert [held for held, _ in holding.held(0, 9, LATER)] == [(3, 5)]
    assert holding.acknowledge(3, 5, Acknowledge.ACCEPT, LATER) == []


def test_a_leader_that_moved_is_named_and_its_locks_are_gone() -> None:
    session = opened((0, 9, 1))
    session.request(1.0, LIMITS, flush=False)
    moved = row(0, errorCode=6, currentLeader={"leaderId": 2, "leaderEpoch": 7})
    outcome = session.received(response(moved), 1.0)
    assert [(change.leader, change.epoch) for change in outcome.leaders] == [(2, 7)]
    assert (outcome.lost, session.holdings) == (10, {})


def test_the_close_carries_what_is_queued_and_releases_the_rest() -> None:
    session = opened((0, 9, 1))
    session.holdings[FIRST].acknowledge(0, 1, Acknowledge.ACCEPT)
    session.close()
    request = session.request(1.0, None, flush=False)
    assert request is not None and (request.api, request.value["shareSessionEpoch"]) == ("ShareAcknowledge", -1)
    outcome = session.received(response(row(0)), 1.0)
    assert ([r.code for r in outcome.results], outcome.lost, session.closed) == ([0], 8, True)


def test_epochs_wrap_to_one() -> None:
    session = opened()
    session.epoch = 2**31 - 1
    session.request(1.0, LIMITS, flush=False)
    session.received(response(), 1.0)
    assert session.epoch == 1


def test_overlapping_inverted_and_negative_ranges_are_left_out() -> None:
    session = ShareSession(1, "g", "m")
    session.wanted = frozenset((FIRST,))
    session.request(0.0, LIMITS, flush=False)
    outcome = session.received(response(row(0, (5, 9, 1), (7, 12, 3), (30, 20, 1), (-5, -1, 1))), 0.0)
    assert outcome.deliveries[0].acquired == (Acquired(5, 9, 1), Acquired(10, 12, 3))
    assert outcome.ignored == 3


def test_records_of_a_partition_that_was_not_asked_for_are_ignored() -> None:
    session = ShareSession(1, "g", "m")
    session.wanted = frozenset((FIRST,))
    session.request(0.0, LIMITS, flush=False)
    outcome = session.received(response(row(1, (0, 9, 1))), 0.0)
    assert (outcome.deliveries, outcome.ignored) == ([], 1)


def test_short_neighbouring_ranges_go_as_one_batch_with_a_type_for_each_offset() -> None:
    ranges = [
        AcknowledgeRange(0, 0, 1),
        AcknowledgeRange(1, 2, 2),
        AcknowledgeRange(3, 3, 0),
        AcknowledgeRange(9, 99, 1),
    ]
    value = acknowledge_request("g", "m", 3, {FIRST: ranges})
    assert value["topics"][0]["partitions"][0]["acknowledgementBatches"] == [
        {"firstOffset": 0, "lastOffset": 3, "acknowledgeTypes": [1, 2, 2, 0]},
        {"firstOffset": 9, "lastOffset": 99, "acknowledgeTypes": [1]},
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_requests_fit_their_version(version: int) -> None:
    session = opened((0, 9, 1))
    session.holdings[FIRST].acknowledge(0, 4, Acknowledge.ACCEPT)
    fetch = session.request(1.0, LIMITS, flush=False)
    assert fetch is not None and not needs_version_2(FETCH_API, fetch.value)
    assert encode("ShareFetchRequest", version, for_version(FETCH_API, fetch.value, version))
    session.received(response(row(0)), 1.0)
    session.close()
    close = session.request(2.0, None, flush=False)
    assert close is not None and encode(
        "ShareAcknowledgeRequest", version, for_version(close.api, close.value, version)
    )


def test_record_limit_and_renewal_need_version_2() -> None:
    session = ShareSession(1, "g", "m")
    session.wanted = frozenset((FIRST,))
    fetch = session.request(0.0, FetchLimits(mode=AcquireMode.RECORD_LIMIT), flush=False)
    assert fetch is not None and needs_version_2(FETCH_API, fetch.value)
    renewal = acknowledge_request("g", "m", 1, {FIRST: [AcknowledgeRange(0, 0, Acknowledge.RENEW)]})
    assert needs_version_2("ShareAcknowledge", renewal)


def heartbeat(**fields: Any) -> dict[str, Any]:
    base: dict[str, Any] = {"errorCode": 0, "errorMessage": None, "memberEpoch": 1, "heartbeatIntervalMs": 1_000}
    return base | {"assignment": None} | fields


def test_the_second_heartbeat_is_one_interval_after_the_first() -> None:
    """The interval of the response counts for it too, not the guess that the first one was sent with."""
    membership = Membership("g", "m", ("orders",))
    membership.request(10.0)
    membership.received(heartbeat(assignment=ASSIGNED), 10.3)
    assert membership.due_at() == 11.0
    assert membership.request(10.9) is None and membership.request(11.0) is not None


def test_a_member_without_partitions_asks_for_them_before_the_interval_is_over() -> None:
    """A quarter later each time, so that a group without topics isn't flooded."""
    membership = Membership("g", "m", ("orders",))
    now, waits = 10.0, []
    for assignment in (*[None] * 13, ASSIGNED, None):
        assert membership.request(now) is not None
        membership.received(heartbeat(assignment=assignment), now)
        waits.append(round(membership.due_at() - now, 3))
        now = membership.due_at()
    assert waits[:3] == [0.1, 0.125, 0.156] and waits == sorted(waits) and waits[-4:] == [1.0, 1.0, 1.0, 1.0]
    assert membership.assignment == {FIRST}


@pytest.mark.parametrize("code", [25, 110])
def test_a_fenced_member_joins_again_with_epoch_0_and_the_same_id(code: int) -> None:
    membership = Membership("g", "m", ("orders",))
    membership.request(0.0)
    membership.received(heartbeat(memberEpoch=4, assignment=ASSIGNED), 0.0)
    membership.request(1.0)
    membership.received(heartbeat(errorCode=code), 1.0)
    assert membership.assignment == frozenset()
    again = membership.request(1.0)
    assert again is not None
    assert (again["memberEpoch"], again["memberId"], again["subscribedTopicNames"]) == (0, "m", ["orders"])


def test_the_last_heartbeat_has_epoch_minus_1() -> None:
    membership = Membership("g", "m", ("orders",))
    membership.request(0.0)
    membership.received(heartbeat(), 0.0)
    membership.leave()
    last = membership.request(0.1)
    assert last is not None and last["memberEpoch"] == -1
    membership.received(heartbeat(memberEpoch=-1), 0.2)
    assert membership.left


def test_ranges_beyond_the_cap_are_left_to_expire() -> None:
    """A range for each offset, from a broker that has no end of them."""
    session = ShareSession(1, "g", "m")
    session.wanted = frozenset((FIRST, SECOND))
    session.request(0.0, LIMITS, flush=False)
    many = [(2 * number, 2 * number, 1) for number in range(MAX_HELD_RANGES)]
    outcome = session.received(response(row(0, *many), row(1, (0, 0, 1))), 0.0)
    assert (session.held_ranges, outcome.ignored) == (MAX_HELD_RANGES, 1)
    assert list(session.holdings) == [FIRST]
