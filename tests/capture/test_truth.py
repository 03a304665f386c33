"""What the programs of the recorded incidents logged is what kafkascope reads in the captures, to the record."""

from collections import Counter
from typing import Any

import pytest

from tests.capture.same_exchanges import captured
from tests.capture.truth_events import (
    Event,
    acknowledge_error,
    acknowledged,
    acquired,
    body,
    events,
    exchanges,
    tasks,
    topic_ids,
)

SHARE_MEMBERS = ("renewer", "hung", "steady", "doomed", "leaver")
STREAMS_MEMBERS = ("first", "second", "third")
HEARTBEATS = [("share", "ShareGroupHeartbeat", who) for who in SHARE_MEMBERS] + [
    ("streams", "StreamsGroupHeartbeat", who) for who in STREAMS_MEMBERS
]
TYPES = {1: "ACCEPT", 2: "RELEASE", 3: "REJECT", 4: "RENEW"}
AVAILABLE = 0
ERRORS = {None: 0, "InvalidRecordStateException": 121}


@pytest.mark.parametrize(("name", "api", "who"), HEARTBEATS, ids=lambda value: str(value))
def test_every_heartbeat_has_the_body_that_the_client_logged(name: str, api: str, who: str) -> None:
    """All fields both ways: member ids, epochs, topologies, tasks owned and assigned, intervals, statuses."""
    heartbeats = exchanges(name, api, who)
    for kind, event in (("request", "sent"), ("response", "received")):
        expected = [(entry["version"], entry["correlationId"], entry["body"]) for entry in events(name, event, who)]
        assert [
            (exchange.api_version, exchange.correlation_id, body(exchange, kind)) for exchange in heartbeats
        ] == expected
    assert len(heartbeats) >= 2


@pytest.mark.parametrize(("name", "api", "who"), HEARTBEATS, ids=lambda value: str(value))
def test_members_that_closed_left_and_those_that_halted_did_not(name: str, api: str, who: str) -> None:
    epochs = [body(exchange, "request")["memberEpoch"] for exchange in exchanges(name, api, who)]
    assert epochs[0] == 0
    assert epochs.count(-1) == len(events(name, "closed", who))
    assert (epochs[-1] == -1) == bool(events(name, "closed", who)) != bool(events(name, "halted", who))


def test_a_member_has_one_id_in_all_its_requests() -> None:
    for who in SHARE_MEMBERS:
        (member,) = {event["body"]["memberId"] for event in events("share", "sent", who)}
        for api in ("ShareFetch", "ShareAcknowledge"):
            assert {body(exchange, "request")["memberId"] for exchange in exchanges("share", api, who)} <= {member}
    ids = {event["body"]["memberId"] for event in events("share", "sent")}
    assert len(ids) == len(SHARE_MEMBERS)
    asking = {body(exchange, "request")["memberId"] for exchange in captured("share") if exchange.api == "ShareFetch"}
    assert asking == ids


@pytest.mark.parametrize("who", SHARE_MEMBERS)
def test_acquired_ranges_are_those_that_the_client_got(who: str) -> None:
    names = ("correlationId", "topicId", "partition", "firstOffset", "lastOffset", "deliveryCount")
    expected = [{name: event[name] for name in names} for event in events("share", "acquired", who)]
    assert list(acquired("share", who)) == expected
    assert expected


def _records(ranges: list[Event]) -> Counter[tuple[Any, ...]]:
    return Counter(
        (acquired_range["topicId"], acquired_range["partition"], offset, acquired_range["deliveryCount"])
        for acquired_range in ranges
        for offset in range(acquired_range["firstOffset"], acquired_range["lastOffset"] + 1)
    )


@pytest.mark.parametrize("who", SHARE_MEMBERS)
def test_acquired_records_are_those_that_the_application_was_handed(who: str) -> None:
    """A renewed record is handed out again without being acquired again. What a member that halts or leaves has fetched
    and not come to yet never reaches it: the end of its last fetch."""
    ids = topic_ids("share")
    delivered = [event for event in events("share", "delivered", who) if not event["renewed"]]
    handed = Counter((ids[e["topic"]], e["partition"], e["offset"], e["deliveryCount"]) for e in delivered)
    ranges = list(acquired("share", who))
    assert not handed - _records(ranges)
    never = _records(ranges) - handed
    if who not in ("doomed", "leaver"):
        assert not never
        return
    last = [event for event in ranges if event["correlationId"] == ranges[-1]["correlationId"]]
    place = (ids[delivered[-1]["topic"]], delivered[-1]["partition"], delivered[-1]["offset"])
    assert never == Counter({record: 1 for record in _records(last) if record[:3] > place})
    assert never


@pytest.mark.parametrize("who", SHARE_MEMBERS)
def test_acknowledgements_are_those_that_the_application_gave(who: str) -> None:
    """They ride on the next request. A member that halts has none: what it acknowledged since its last one is lost.
    That one may have been sent before the application was handed what the one before it brought."""
    ids = topic_ids("share")
    acknowledged_records = [
        (ids[e["topic"]], e["partition"], e["offset"], e["type"]) for e in events("share", "acknowledged", who)
    ]
    sent = [
        (topic_id, partition, offset, TYPES[kind])
        for _, topic_id, partition, records in acknowledged("share", who)
        for offset, kind in records
    ]
    lost = Counter(acknowledged_records) - Counter(sent)
    assert Counter(sent) == Counter(acknowledged_records) - lost
    if who != "doomed":
        assert not lost
        assert acknowledged_records
        return
    last = exchanges("share", "ShareFetch", who)[-1]
    assert last.request_at is not None
    late = [e for e in events("share", "acknowledged", who) if e["at"] > last.request_at.timestamp() * 1e6]
    assert lost == Counter((ids[e["topic"]], e["partition"], e["offset"], e["type"]) for e in late)


@pytest.mark.parametrize("who", SHARE_MEMBERS)
def test_acknowledgements_were_taken_or_refused_as_the_client_was_told(who: str) -> None:
    expected = Counter(
        (e["topicId"], e["partition"], tuple(e["offsets"]), ERRORS[e["error"]])
        for e in events("share", "committed", who)
    )
    actual = Counter(
        (topic_id, partition, tuple(offset for offset, _ in records), acknowledge_error(exchange, topic_id, partition))
        for exchange, topic_id, partition, records in acknowledged("share", who)
    )
    assert actual == expected


def test_locks_last_as_long_as_the_client_was_told() -> None:
    lock_times = {e["lockMs"] for e in events("share", "delivered")}
    answers = [body(exchange, "response") for exchange in captured("share") if exchange.api == "ShareFetch"]
    assert {answer["acquisitionLockTimeoutMs"] for answer in answers} == lock_times == {3000}


def test_a_lock_ran_out_when_it_was_due() -> None:
    """The coordinator is told of each offset that is free again (protocol note 49): within a second of the time that
    follows from when the client got it and how long the lock lasts. It was renewed by nobody."""
    held = events("share", "acquired", "hung")[0]
    due = held["at"] + 1000 * events("share", "delivered", "hung")[0]["lockMs"]
    freed = {
        batch["firstOffset"]: exchange.request_at.timestamp() * 1e6
        for exchange in captured("share")
        if exchange.api == "WriteShareGroupState" and exchange.request_at is not None
        for topic in body(exchange, "request")["topics"]
        if topic["topicId"] == held["topicId"]
        for partition in topic["partitions"]
        for batch in partition["stateBatches"]
        if (batch["deliveryState"], batch["deliveryCount"]) == (AVAILABLE, held["deliveryCount"])
        if held["firstOffset"] <= batch["firstOffset"] <= held["lastOffset"]
    }
    assert sorted(freed) == list(range(held["firstOffset"], held["lastOffset"] + 1))
    assert {offset for offset, at in freed.items() if abs(at - due) > 1e6} == set()


def _described(name: str, api: str) -> list[Event]:
    return [group for exchange in exchanges(name, api, "watch") for group in body(exchange, "response")["groups"]]


def test_share_group_descriptions_are_those_that_the_tool_got() -> None:
    descriptions = [
        (group["groupState"], group["groupEpoch"], {m["memberId"]: m["clientId"] for m in group["members"]})
        for group in _described("share", "ShareGroupDescribe")
        if group["errorCode"] == 0
    ]
    assert descriptions == [(e["state"], e["epoch"], e["members"]) for e in events("share", "group", "watch")]
    assert len(descriptions) > 5


def test_share_group_offsets_are_those_that_the_tool_got() -> None:
    offsets = []
    for exchange in exchanges("share", "DescribeShareGroupOffsets", "watch"):
        (group,) = body(exchange, "response")["groups"]
        figures = {
            f"{topic['topicName']}-{place['partitionIndex']}": [place["startOffset"], place["lag"]]
            for topic in group["topics"]
            for place in topic["partitions"]
        }
        # a partition without a start offset yet is null to the tool
        offsets.append({place: pair if pair[0] >= 0 else None for place, pair in figures.items()})
    assert offsets == [e["startOffsetAndLag"] for e in events("share", "group", "watch")]


def test_streams_group_descriptions_are_those_that_the_tool_got() -> None:
    descriptions = []
    for group in _described("streams", "StreamsGroupDescribe"):
        members = [
            {
                "memberId": member["memberId"],
                "clientId": member["clientId"],
                "epoch": member["memberEpoch"],
                "active": tasks(member["assignment"]["activeTasks"]),
                "standby": tasks(member["assignment"]["standbyTasks"]),
                "targetActive": tasks(member["targetAssignment"]["activeTasks"]),
                "targetStandby": tasks(member["targetAssignment"]["standbyTasks"]),
            }
            for member in group["members"]
        ]
        descriptions.append((group["groupState"], group["groupEpoch"], group["assignmentEpoch"], members))
    expected = [(e["state"], e["epoch"], e["targetEpoch"], e["members"]) for e in events("streams", "group", "watch")]
    assert descriptions == expected
    assert len(descriptions) > 5


def _states(who: str, kind: str) -> list[tuple[float, Any]]:
    """(when, (active, standby)) of each change; a heartbeat leaves out what is as it was."""
    states: list[tuple[float, Any]] = []
    for exchange in exchanges("streams", "StreamsGroupHeartbeat", who):
        heartbeat, at = body(exchange, kind), exchange.request_at
        if heartbeat["activeTasks"] is not None and at is not None:
            state = (tasks(heartbeat["activeTasks"]), tasks(heartbeat["standbyTasks"]))
            if not states or states[-1][1] != state:
                states.append((at.timestamp(), state))
    return states


@pytest.mark.parametrize("who", STREAMS_MEMBERS)
def test_assignments_are_the_tasks_that_the_member_came_to_hold(who: str) -> None:
    """Each in turn: what an answer gives is what the next request says it owns, and what Streams says it runs, unless
    the next one came within a heartbeat's time."""
    nothing: Any = ([], [])
    owned, assigned = _states(who, "request"), _states(who, "response")
    # it starts with nothing, whether or not its first answer says so
    assert [nothing, *(state for _, state in assigned if state != nothing)] == [state for _, state in owned]
    held = [(e["active"], e["standby"]) for e in events("streams", "holds", who)]
    ends = [at for at, _ in owned[1:]] + [float("inf")]
    for (since, state), until in zip(owned, ends, strict=True):
        if held and held[0] == state:
            held.pop(0)
        else:
            assert until - since < 1, state
    assert not held
    assert len(owned) > 4
