"""The recordings are there, whole, and what they say about themselves agrees; no lab is needed."""

import json
import struct
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from lab.recipes import RECIPES
from lab.record import MAX_FILE_BYTES, readme
from tests.captures import HERE, NAMES, capture, recording, request_logs, truth

Event = dict[str, Any]
MICROSECONDS, NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D
ETHERNET = 1
# the clocks are one clock; a request may have been logged a moment before tcpdump was ready
SLACK_US = 2_000_000


def test_every_recipe_is_recorded() -> None:
    assert sorted(RECIPES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_no_file_is_large(name: str) -> None:
    assert {file.name for file in (HERE / name).iterdir() if file.stat().st_size > MAX_FILE_BYTES} == set()


@pytest.mark.parametrize("name", NAMES)
def test_page_and_description_are_those_of_the_recipe(name: str) -> None:
    described = recording(name)
    assert described["tells"] == RECIPES[name].tells
    assert (HERE / name / "README.md").read_text() == readme(described)


@pytest.mark.parametrize("name", NAMES)
def test_capture_holds_whole_packets_of_its_ports(name: str) -> None:
    described = recording(name)
    ports = {port for names in described["ports"].values() for port in names.values()}
    assert len(capture(name)) == described["captureBytes"]
    count = 0
    for at, ends in _packets(capture(name)):
        count += 1
        assert described["from"] - SLACK_US <= at <= described["to"] + SLACK_US
        assert ports & set(ends)
    assert count == described["packets"] > 0


def _packets(data: bytes) -> Iterator[tuple[int, tuple[int, int]]]:
    """(microseconds, (source port, destination port)); what is not TCP over IPv4 over Ethernet, or cut, fails."""
    magic, _, _, _, _, _, link = struct.unpack_from("<IHHiIII", data)
    assert magic in (MICROSECONDS, NANOSECONDS)
    assert link == ETHERNET
    unit = 1 if magic == MICROSECONDS else 1000
    at = 24
    while at < len(data):
        seconds, part, held, length = struct.unpack_from("<IIII", data, at)
        packet = data[at + 16 : at + 16 + held]
        assert len(packet) == held == length
        assert packet[12:14] == b"\x08\x00"
        assert packet[23] == 6
        source, destination = struct.unpack_from(">HH", packet, 14 + (packet[14] & 15) * 4)
        yield seconds * 1_000_000 + part // unit, (source, destination)
        at += 16 + held


@pytest.mark.parametrize("name", NAMES)
def test_request_log_is_whole_lines_of_its_ports(name: str) -> None:
    described = recording(name)
    logs = request_logs(name)
    assert {str(node) for node in logs} == set(described["ports"])
    for node, text in logs.items():
        assert text.endswith("\n")
        for line in text.splitlines():
            start, end = line.index("Completed request:") + len("Completed request:"), line.rindex(" (kafka.request")
            entry = json.loads(line[start:end])
            assert described["ports"][str(node)][entry["listener"]] == int(
                entry["connection"].split("-")[0].split(":")[1]
            )


@pytest.mark.parametrize("name", NAMES)
def test_truth_is_in_order_and_inside_the_recording(name: str) -> None:
    described = recording(name)
    times = [event["at"] for event in truth(name)]
    assert times == sorted(times)
    assert described["from"] <= times[0] <= times[-1] <= described["to"]


def _by_record(events: list[Event], kind: str) -> dict[tuple[str, int, int], list[Event]]:
    by_record: dict[tuple[str, int, int], list[Event]] = defaultdict(list)
    for event in events:
        if event["event"] == kind:
            by_record[event["topic"], event["partition"], event["offset"]].append(event)
    return by_record


POISON, UNWANTED = ("orders", 0, 3), ("orders", 0, 5)
DELIVERY_LIMIT = 5  # Kafka's default


def test_share_delivery_counts_rise() -> None:
    for deliveries in _by_record(truth("share"), "delivered").values():
        # a renewed record is handed out again under the same count; a hung member reads its own copies late
        counts = [event["deliveryCount"] for event in deliveries if not event["renewed"] and event["who"] != "hung"]
        assert counts == sorted(set(counts))
        assert max(counts, default=1) <= DELIVERY_LIMIT


def test_share_acknowledgements_follow_their_delivery() -> None:
    holding: dict[tuple[Any, ...], int] = {}
    for event in truth("share"):
        if event["event"] in ("delivered", "acknowledged"):
            key = (event["who"], event["topic"], event["partition"], event["offset"])
            if event["event"] == "delivered":
                holding[key] = event["deliveryCount"]
            else:
                assert holding.pop(key) == event["deliveryCount"]
    # who halts or leaves in the middle of a batch has one in hand
    assert {key[0] for key in holding} == {"doomed", "leaver"}


def test_share_every_record_is_settled_but_the_poison() -> None:
    events = truth("share")
    refused = {
        (event["who"], event["topic"], event["partition"], offset)
        for event in events
        if event["event"] == "committed" and event["error"]
        for offset in event["offsets"]
    }
    acknowledged = _by_record(events, "acknowledged")
    for record in _by_record(events, "produced"):
        types = {event["type"] for event in acknowledged[record] if (event["who"], *record) not in refused}
        expected = {POISON: {"RELEASE"}, UNWANTED: {"REJECT"}}.get(record, {"ACCEPT"})
        assert types - {"RENEW"} == expected, record
    poisoned = _by_record(events, "delivered")[POISON]
    assert max(event["deliveryCount"] for event in poisoned) == DELIVERY_LIMIT


def test_share_incident_has_its_hang_its_halt_and_its_renewals() -> None:
    events = truth("share")
    refused = [event for event in events if event["event"] == "committed" and event["error"]]
    assert [event["error"] for event in refused if event["who"] == "hung"] == ["InvalidRecordStateException"]
    assert [event["who"] for event in events if event["event"] == "halted" and event["who"] != "recipe"] == ["doomed"]
    renewed = [event for event in events if event.get("type") == "RENEW"]
    held_us = renewed[-1]["at"] - renewed[0]["at"]
    locks = {event["lockMs"] for event in events if event["event"] == "delivered"}
    assert held_us > 1000 * max(locks)
    assert {(event["offset"], event["deliveryCount"]) for event in renewed} == {(0, 1)}


def test_streams_tasks_are_held_once_each_whenever_settled() -> None:
    held: dict[str, Event] = {}
    settled = 0
    for event in truth("streams"):
        if event["event"] == "holds":
            held[event["who"]] = event
            assert not set(event["active"]) & set(event["standby"])
        if event["event"] == "settled":
            settled += 1
            active = sorted(task for who in event["members"] for task in held[who]["active"])
            standby = sorted(task for who in event["members"] for task in held[who]["standby"])
            assert active == ["0_0", "0_1", "0_2", "1_0", "1_1", "1_2"]
            assert standby == (active if len(event["members"]) > 1 else [])
    assert settled == 5


def test_streams_members_end_as_told() -> None:
    ends = {(e["who"], e["event"]) for e in truth("streams") if e["event"] in ("closed", "halted")}
    members = {(who, end) for who, end in ends if who in ("first", "second", "third")}
    assert members == {("first", "closed"), ("second", "halted"), ("third", "closed")}


def test_quorum_epochs_never_fall_and_name_one_leader() -> None:
    answers = [event for event in truth("quorum") if event["event"] == "quorum"]
    epochs = [event["epoch"] for event in answers]
    assert epochs == sorted(epochs)
    leaders: dict[int, set[int]] = defaultdict(set)
    for event in answers:
        leaders[event["epoch"]].add(event["leader"])
        assert {voter["id"] for voter in event["voters"]} == {1, 2, 3}
        assert max(voter["logEndOffset"] for voter in event["voters"]) >= event["highWatermark"]
    assert all(len(nodes) == 1 for nodes in leaders.values())


def test_quorum_lost_a_follower_and_then_its_leader() -> None:
    notes = {(event["event"], event["node"]): event["at"] for event in truth("quorum") if event["who"] == "recipe"}
    killed, frozen = (next(node for kind, node in notes if kind == event_kind) for event_kind in ("killed", "frozen"))
    lags: list[int] = []
    for event in truth("quorum"):
        if event["event"] == "quorum":
            ends = {voter["id"]: voter["logEndOffset"] for voter in event["voters"]}
            if notes["frozen", frozen] < event["at"] < notes["thawed", frozen]:
                lags.append(ends[event["leader"]] - ends[frozen])
            if event["at"] > notes["killed", killed]:
                assert event["leader"] != killed
    assert lags == sorted(lags)
    assert lags[-1] >= 12


def _noted(name: str, event: str) -> int:
    return next(int(line["at"]) for line in truth(name) if line["who"] == "recipe" and line["event"] == event)


def test_frozen_broker_lost_its_partitions_after_its_session_and_came_back_in_sync() -> None:
    frozen, thawed = _noted("frozen", "frozen"), _noted("frozen", "thawed")
    assert thawed - frozen >= 10_000_000
    leads: dict[bool, list[int]] = {True: [], False: []}
    for event in truth("frozen"):
        if event["event"] == "leaders" and event["at"] > frozen:
            leads[4 in event["leaders"].values()].append(event["at"])
    # broker.session.timeout.ms is 9 s, and the broker's last heartbeat came up to 2 s before the freeze
    assert leads[True] and leads[False]
    assert max(leads[True]) < min(leads[False])
    assert 7_000_000 < min(leads[False]) - frozen < thawed - frozen
    last = [event for event in truth("frozen") if event["event"] == "leaders"][-1]
    assert {len(nodes) for nodes in last["inSync"].values()} == {2}


def test_frozen_broker_delayed_the_patient_producer_and_failed_the_hasty_one() -> None:
    frozen, thawed = _noted("frozen", "frozen"), _noted("frozen", "thawed")
    failed = [event for event in truth("frozen") if event["event"] == "failed"]
    assert {(event["who"], event["error"]) for event in failed} == {("sensors", "TimeoutException")}
    assert all(frozen < event["at"] < thawed + SLACK_US for event in failed)
    slow = [event for event in truth("frozen") if event["event"] == "produced" and event["ms"] > 5000]
    assert {event["who"] for event in slow} == {"web-shop"}
    # also where another broker leads and the frozen one follows: acks=all waits for it
    before = [line for line in truth("frozen") if line["event"] == "leaders" and line["at"] < frozen][-1]
    waiting = {f"orders-{event['partition']}" for event in slow}
    assert waiting == {place for place, nodes in before["inSync"].items() if 4 in nodes}


def test_frozen_lost_no_acknowledged_record() -> None:
    events = truth("frozen")
    assert set(_by_record(events, "produced")) <= set(_by_record(events, "consumed"))


def test_poison_record_was_released_until_the_limit_and_the_rejected_one_once() -> None:
    events = truth("poison")
    deliveries = _by_record(events, "delivered")
    releases = [event for event in events if event.get("type") == "RELEASE"]
    assert {event["offset"] for event in releases} == {21}
    assert [event["deliveryCount"] for event in releases] == list(range(1, DELIVERY_LIMIT + 1))
    assert len(deliveries["invoices", 0, 21]) == DELIVERY_LIMIT
    rejects = [(event["offset"], event["deliveryCount"]) for event in events if event.get("type") == "REJECT"]
    assert rejects == [(26, 1)] and len(deliveries["invoices", 0, 26]) == 1
    others = {record for record in _by_record(events, "produced") if record[2] not in (21, 26)}
    accepted = [record for record, made in _by_record(events, "acknowledged").items() if made[0]["type"] == "ACCEPT"]
    assert set(accepted) == others
    assert all(len(deliveries[record]) == 1 for record in others)


def test_poison_slow_member_needed_most_of_its_lock_and_never_more() -> None:
    took: dict[str, list[float]] = defaultdict(list)
    since: dict[str, int] = {}
    for event in truth("poison"):
        if event["event"] == "delivered":
            since.setdefault(event["who"], event["at"])
            lock_us = 1000 * event["lockMs"]
        if event["event"] == "committed":
            assert event["error"] is None
            took[event["who"]].append((event["at"] - since.pop(event["who"])) / lock_us)
    assert all(0.8 < share < 1 for share in took["slow"]) and len(took["slow"]) >= 6
    assert max(took["quick"] + took["brisk"]) < 0.8


def test_clients_read_only_what_was_written() -> None:
    events = truth("clients")
    written = _by_record(events, "produced")
    for record, readers in _by_record(events, "consumed").items():
        assert record in written
        assert len({event["who"] for event in readers}) == len(readers)
    started, closed = ({event["who"] for event in events if event["event"] == kind} for kind in ("started", "closed"))
    assert started == closed
    assert len(started) == 13


def test_clients_read_no_aborted_record() -> None:
    aborted: set[tuple[str, int, int]] = set()
    sent: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for event in truth("clients"):
        if event["event"] == "produced":
            sent[event["who"]].append((event["topic"], event["partition"], event["offset"]))
        if event["event"] == "transaction":
            records = sent.pop(event["who"])
            aborted.update(records if event["outcome"] == "aborted" else ())
    assert len(aborted) == 20
    assert not aborted & set(_by_record(truth("clients"), "consumed"))
