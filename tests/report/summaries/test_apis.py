"""Calls, clients and what was not read: sums over minutes, brokers and recordings."""

from pathlib import Path
from typing import Any

from kafkascope.report.build import build
from kafkascope.report.page.page import page
from kafkascope.report.summaries.apis import MOST_CLIENTS
from kafkascope.report.summaries.scope import Scope
from tests.report.build import MINUTE, NOON, NOW, Row, incident, lake_of, put, report_of


def test_calls_are_those_of_the_recorded_clients(tmp_path: Path) -> None:
    marts = incident("clients")
    apis = report_of(tmp_path / "lake", **marts).apis
    assert sum(api_latency.calls for api_latency in apis.latency) == len(marts["api_latency"])
    assert sum(error.calls for error in apis.errors) == len(marts["api_errors"])
    assert {api_latency.api for api_latency in apis.latency if api_latency.long_poll} == {
        "Fetch",
        "JoinGroup",
        "SyncGroup",
    }
    assert [api_latency.long_poll for api_latency in apis.latency] == sorted(
        api_latency.long_poll for api_latency in apis.latency
    )


def test_minutes_and_brokers_are_summed_and_the_worst_told(tmp_path: Path) -> None:
    rows = [
        latency(calls=1, p50_us=100, p99_us=200, max_us=200, slowest_exchange_id="a"),
        latency(
            minute_at=NOON + MINUTE, calls=3, p50_us=500, p99_us=900, max_us=1000, slowest_exchange_id="b", errors=2
        ),
        latency(broker_address="b:2", calls=1, p50_us=None, unanswered=1),
    ]
    (api_latency,) = report_of(tmp_path / "lake", api_latency=rows).apis.latency
    assert (api_latency.calls, api_latency.errors, api_latency.unanswered) == (5, 2, 1)
    assert (api_latency.p50_us, api_latency.p99_us, api_latency.max_us, api_latency.slowest_exchange_id) == (
        400,
        900,
        1000,
        "b",
    )


def test_between_takes_whole_minutes(tmp_path: Path) -> None:
    rows = [latency(minute_at=NOON + at * MINUTE, calls=10**at) for at in range(4)]
    lake = lake_of(tmp_path / "lake", {"api_latency": rows})
    report = build(lake, Scope(since=NOON + MINUTE + 1, until=NOON + 2 * MINUTE + 1), NOW)
    assert report.apis.latency[0].calls == 110


def test_an_error_names_its_first_exchange_and_the_clients_that_got_it_most(tmp_path: Path) -> None:
    rows = [
        {"minute_at": NOON, "api": "Fetch", "error_code": 6, "error": "NOT_LEADER_OR_FOLLOWER", "client_id": f"c{at}"}
        | {"calls": at + 1, "first_at": NOON + 9 - at, "last_at": NOON + 9, "first_exchange_id": f"x{at}"}
        for at in range(5)
    ]
    (error,) = report_of(tmp_path / "lake", api_errors=rows).apis.errors
    assert (error.calls, error.first_exchange_id) == (15, "x4")
    assert error.clients == ["c4", "c3", "c2"] and error.clients_left_out == 5 - MOST_CLIENTS


def test_throttling_is_summed_by_client_and_api(tmp_path: Path) -> None:
    rows = [
        {"minute_at": NOON + at * MINUTE, "api": "Produce", "client_id": "p", "calls": 10, "throttled": 1}
        | {"throttle_ms": 100 * at, "max_throttle_ms": 50 * at, "longest_exchange_id": f"x{at}"}
        for at in (1, 2)
    ]
    (throttled,) = report_of(tmp_path / "lake", throttling=rows).apis.throttling
    assert (throttled.calls, throttled.throttle_ms, throttled.max_throttle_ms, throttled.longest_exchange_id) == (
        20,
        300,
        100,
        "x2",
    )


def test_software_is_ready_where_the_newest_release_serves_all_that_it_says(tmp_path: Path) -> None:
    rows = [
        version(client_software="old 1.0", api="Produce", api_version=2, last_release="3.9", in_newest_release=False),
        version(client_software="old 1.0", api="Fetch", api_version=4, first_release="0.11.0"),
        version(client_software="new 4.3", api="Fetch", api_version=17, first_release="4.0"),
        version(client_software="new 4.3", api="Produce", api_version=9, first_release="2.4"),
    ]
    old, new = report_of(tmp_path / "lake", client_versions=rows).clients.software
    assert (old.client_software, old.ready, old.until_release) == ("old 1.0", False, "3.9")
    assert [(gone.api, gone.api_version) for gone in old.dropped] == [("Produce", 2)]
    assert (new.ready, new.needs_release, new.until_release, new.apis) == (True, "4.0", None, 2)


def test_versions_that_were_negotiated_are_not_what_a_client_needs(tmp_path: Path) -> None:
    rows = [version(client_software="new 4.3", api="Fetch", api_version=17, first_release="4.0")]
    text = page(report_of(tmp_path / "lake", client_versions=rows))
    assert "newest versions used" in text and "of Kafka 4.0" in text
    assert "needs</th>" not in text and "or newer" not in text


def test_losses_encryption_and_quarantine_are_summed(tmp_path: Path) -> None:
    values = {"lost_bytes": 20, "lost_places": 2, "tls_bytes": 30, "tcp_bytes": 100, "quarantined": 3, "first_at": NOON}
    lake = lake_of(tmp_path / "lake", {"api_latency": [latency()]}, **values)
    put(lake, "connections", [{"connection_id": str(at), "protocol": "tls", "client_bytes": 15} for at in range(2)])
    row = {"recorded_at": NOON, "kind": "body", "message": "FetchResponse", "api_version": 17, "bytes": 7}
    put(lake, "quarantine", [row | {"detail": "count 9 needs 9 bytes, 1 left"}] * 3)
    unread = build(lake, Scope(), NOW).unread
    assert (unread.total.lost_bytes, unread.total.tls_bytes, unread.total.quarantined) == (20, 30, 3)
    assert [(protocol.protocol, protocol.connections, protocol.bytes) for protocol in unread.protocols] == [
        ("tls", 2, 30)
    ]
    assert [(quarantined.rows, quarantined.bytes, quarantined.detail) for quarantined in unread.quarantine] == [
        (3, 21, "count 9 needs 9 bytes, 1 left")
    ]


def latency(**values: Any) -> Row:
    return {"minute_at": NOON, "api": "Metadata", "broker_address": "b:1", "long_poll": False, "calls": 1} | values


def version(**values: Any) -> Row:
    row = {"client_id": "c", "api_key": 1, "calls": 1, "first_release": "0.9", "last_release": None}
    return row | {"in_newest_release": True, "first_at": NOON, "last_at": NOON} | values
