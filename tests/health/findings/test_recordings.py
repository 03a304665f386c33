"""The recorded incidents: what was done to each is found, with whom it was done to; what was not done is not."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import pytest

from kafkascope.health.findings.diagnosis import Finding, findings_of, verdict_of
from kafkascope.health.quorum.history import history_of
from kafkascope.health.share.group_health import share_group_health
from kafkascope.health.share.ledger import share_deliveries
from kafkascope.health.streams.group_health import health_of
from kafkascope.health.streams.timeline import timeline_of
from tests.captures import truth

pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from tests.health import test_quorum_recording, test_streams_recording
from tests.health.share_recorded import exchanges, group_events, micros, share_events

MINUTE_US = 60_000_000
SECOND_US = 1_000_000
Rows = Iterator[dict[str, Any]]


def plain(rows: Iterable[Any]) -> Rows:
    return (asdict(row) for row in rows)


def share_marts(name: str, group: str) -> dict[str, Rows]:
    deliveries = list(share_deliveries(share_events(name, group)))
    minutes = share_group_health(deliveries, group_events(name, group))
    return {"share_deliveries": plain(deliveries), "share_group_health": plain(minutes)}


def streams_marts() -> dict[str, Rows]:
    events = sorted(test_streams_recording.recorded_events(), key=lambda event: (event.at_us, event.order))
    timeline = timeline_of(events)
    if timeline is None:
        return {}
    return {
        "streams_tasks": plain(timeline.tasks),
        "streams_moves": plain(timeline.moves),
        "streams_unheld": plain(timeline.unheld),
        "streams_lost_members": plain(timeline.lost),
        "streams_statuses": plain(timeline.statuses),
        "streams_group_health": plain(health_of(timeline)),
    }


def quorum_marts() -> dict[str, Rows]:
    events = sorted(test_quorum_recording.recorded_events(), key=lambda event: (event.at_us, event.order))
    history = history_of(events)
    return {"quorum_replicas": plain(history.replicas), "quorum_events": plain(history.events)}


def api_marts(name: str) -> dict[str, Rows]:
    """Errors by API, client and minute, as the pipeline groups them."""
    errors: defaultdict[tuple[Any, ...], list[tuple[int, str]]] = defaultdict(list)
    for exchange in exchanges(name):
        if exchange.error_code and exchange.request_at is not None:
            at = micros(exchange.request_at)
            key = (
                at // MINUTE_US * MINUTE_US,
                exchange.api,
                exchange.error_code,
                exchange.error,
                exchange.client_id,
                exchange.broker_address,
            )
            errors[key].append((at, exchange.exchange_id))
    columns = ("minute_at", "api", "error_code", "error", "client_id", "broker_address")
    rows = (
        {
            **dict(zip(columns, key, strict=True)),
            "calls": len(calls),
            "first_at": min(calls)[0],
            "last_at": max(calls)[0],
            "first_exchange_id": min(calls)[1],
        }
        for key, calls in errors.items()
    )
    return {"api_errors": rows}


def by_rule(findings: Iterable[Finding]) -> dict[str, Finding]:
    named: dict[str, Finding] = {}
    for finding in findings:
        assert finding.rule not in named, finding
        named[finding.rule] = finding
    return named


def test_the_share_incident_is_found() -> None:
    by_name = by_rule(findings_of({**share_marts("share", "processors"), **api_marts("share")}, {}))
    assert set(by_name) >= {
        "share_lock_expired",
        "share_refused_acknowledgements",
        "share_member_disconnected",
        "share_poison_record",
        "share_rejected",
        "share_near_limit",
    }
    hung, halted = by_name["share_lock_expired"], by_name["share_member_disconnected"]
    assert hung.summary.startswith("Member `hung` of share group `processors` held 4 records past their 3 s lock")
    assert halted.summary.startswith(
        "Member `doomed` of share group `processors` lost its connection while it held 4 records"
    )
    assert {hung.subject_kind, halted.subject_kind} == {"share_member"}
    assert by_name["share_refused_acknowledgements"].subject == "hung"
    assert by_name["share_poison_record"].figures["offsets"] == "3"
    assert by_name["share_poison_record"].figures["delivery_count"] == 5
    assert by_name["share_rejected"].figures["offsets"] == "5"
    known = {exchange.exchange_id for exchange in exchanges("share")}
    assert all(finding.evidence and known.issuperset(finding.evidence) for finding in (hung, halted))
    assert verdict_of(by_name.values()).state == "attention"


def test_records_went_where_the_programs_logged_that_they_came_again() -> None:
    by_name = by_rule(findings_of(share_marts("share", "processors"), {}))
    logged = truth("share")
    held = {
        (event["topicId"], event["partition"], offset)
        for event in logged
        if event["event"] == "acquired" and event["who"] == "doomed" and event["deliveryCount"] == 1
        for offset in range(event["firstOffset"], event["lastOffset"] + 1)
    }
    again = {
        event["who"]
        for event in logged
        if event["event"] == "acquired" and event["deliveryCount"] == 2
        for offset in range(event["firstOffset"], event["lastOffset"] + 1)
        if (event["topicId"], event["partition"], offset) in held
    }
    assert {
        part.split(" ")[0] for part in str(by_name["share_member_disconnected"].figures["redelivered_to"]).split(", ")
    } == again


def test_the_streams_incident_is_the_member_that_was_lost() -> None:
    by_name = by_rule(findings_of(streams_marts(), {}))
    assert set(by_name) == {"streams_member_lost"}
    lost = by_name["streams_member_lost"]
    halted = next(line["at"] for line in truth("streams") if line["event"] == "halted" and line["who"] == "second")
    assert abs(lost.from_at - halted) < SECOND_US
    assert lost.figures["active_tasks"] == 2 and "Member `second-" in lost.summary and lost.evidence


def test_pauses_of_the_streams_incident_are_told_when_asked_for() -> None:
    findings_made = list(findings_of(streams_marts(), {"streams_long_pause.ms": 3000}))
    pauses = {finding.subject for finding in findings_made if finding.rule == "streams_long_pause"}
    assert pauses == {"counters/0_2", "counters/1_1"}


def test_the_quorum_incident_is_the_frozen_follower_and_the_killed_leader() -> None:
    by_name = by_rule(findings_of(quorum_marts(), {}))
    assert set(by_name) == {"quorum_follower_behind", "quorum_leader_lost"}
    logged = {line["event"]: line for line in truth("quorum") if line["event"] in ("frozen", "thawed", "killed")}
    behind, lost = by_name["quorum_follower_behind"], by_name["quorum_leader_lost"]
    assert behind.subject == f"node {logged['frozen']['node']}"
    assert abs(behind.from_at - logged["frozen"]["at"]) < SECOND_US
    assert logged["frozen"]["at"] < behind.to_at < logged["thawed"]["at"] + SECOND_US
    assert abs(lost.from_at - logged["killed"]["at"]) < SECOND_US
    assert lost.figures["lost_leaders"] == f"node {logged['killed']['node']} 1"


def test_clients_show_no_trouble_of_groups_and_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    fetches = test_quorum_recording.fetches

    def with_topic_ids(exchange: Any, request_body: dict[str, Any], answer: dict[str, Any] | None) -> Iterator[Any]:
        """Controllers fetch by topic id here; clients of older versions name their topics."""
        if request_body["topics"] and "topicId" in request_body["topics"][0]:
            yield from fetches(exchange, request_body, answer)

    monkeypatch.setattr(test_quorum_recording, "fetches", with_topic_ids)
    recording = test_quorum_recording.RECORDING.parent / "clients"
    monkeypatch.setattr(test_quorum_recording, "RECORDING", recording)
    monkeypatch.setattr(test_streams_recording, "RECORDING", recording)
    marts = {**share_marts("clients", "processors"), **streams_marts(), **quorum_marts(), **api_marts("clients")}
    rules = {finding.rule for finding in findings_of(marts, {})}
    assert not {rule for rule in rules if rule.startswith(("share_", "streams_", "quorum_"))}
