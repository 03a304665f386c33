"""Rows of marts in, a lake with them out; and those that the recorded incidents become, without Spark."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkascope.health.findings.diagnosis import Finding, findings_of
from kafkascope.health.incidents.diagnosis import incidents_of
from kafkascope.health.quorum.history import history_of
from kafkascope.health.share.group_health import share_group_health
from kafkascope.health.share.ledger import share_deliveries
from kafkascope.health.streams.group_health import health_of
from kafkascope.health.streams.timeline import timeline_of
from kafkascope.lake.home import Lake, make_lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.tables import table_named
from kafkascope.lake.write.commit import commit
from kafkascope.lake.write.files import Files
from kafkascope.lake.write.replace import replace
from kafkascope.pipeline.mart.findings import incident_row
from kafkascope.report.build import Report, build
from kafkascope.report.summaries.findings import _finding
from kafkascope.report.summaries.scope import Scope

Row = dict[str, Any]
NOW = datetime(2026, 11, 16, 8, tzinfo=UTC)
SECOND = 1_000_000
MINUTE = 60 * SECOND
NOON = 1_794_744_000 * SECOND  # 2026-11-15T12:00:00Z
ALL = Scope()
HOSTILE = "<script>alert(1)</script>\"onload='x'&amp;\x1b[31m\u202e"


def plain(row: Any) -> Row:
    """As Arrow takes it: maps are lists of pairs."""
    return {name: list(value.items()) if isinstance(value, dict) else value for name, value in _fields(row).items()}


def _fields(row: Any) -> Row:
    return asdict(row) if is_dataclass(row) and not isinstance(row, type) else dict(row)


def put(lake: Lake, name: str, rows: Iterable[Any]) -> None:
    """A mart, or one of the tables that a report looks into. What a row does not say is null."""
    mart = MARTS.get(name)
    table = mart or table_named(name)
    mart_table = pa.Table.from_pylist([plain(row) for row in rows], schema=table.file_schema)
    files = Files(lake, "5d1f", "mart") if mart else Files(lake, "5d1f")
    files.add(table, mart_table)
    if mart:
        replace(lake, table, files.close())
    else:
        commit(lake, table, files.close(), "5d1f")


def lake_of(folder: Path, marts: Mapping[str, Iterable[Any]], **recording: Any) -> Lake:
    lake = make_lake(folder)
    # One exchange unless others are given: of a lake without any nothing is said.
    tables = {"exchanges": [{"exchange_id": "e", "request_at": NOON}]} | dict(marts)
    if "findings" in tables and "incidents" not in tables:
        findings = [_finding({"advice": None, "evidence": None} | plain(row)) for row in tables["findings"]]
        tables["incidents"] = [incident_row(incident) for incident in incidents_of(findings, {})]
    for name, rows in tables.items():
        put(lake, name, rows)
    put(lake, "captures", [{"ingest_id": "5d1f", "capture_uri": "night.pcap", "exchanges": 12} | recording])
    return lake


def report_of(folder: Path, **marts: Iterable[Any]) -> Report:
    return build(lake_of(folder, marts), ALL, NOW)


def finding(severity: str = "warning", **values: Any) -> Row:
    row = {
        "rule": "share_lock_expired",
        "severity": severity,
        "subject_kind": "share_group",
        "subject": "processors",
        "from_at": NOON,
        "to_at": NOON + SECOND,
        "summary": "Member `hung` held 4 records past their lock.",
        "figures": json.dumps({"records": 4, "lock_timeout_ms": 3000}),
        "advice": "Take a thread dump.",
        "evidence": ["c0511e2113b124aead24e186"],
    }
    return row | values


def delivery(**values: Any) -> Row:
    """One record of orders-0, accepted by `steady` after 5 ms."""
    row = {
        "group_id": "processors",
        "topic": "orders",
        "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "partition": 0,
        "first_offset": 7,
        "last_offset": 7,
        "delivery_count": 1,
        "member_id": "m-1",
        "client_id": "steady",
        "acquired_at": NOON,
        "lock_timeout_ms": 30_000,
        "renewals": 0,
        "outcome": "accepted",
        "outcome_at": NOON + 5_000,
        "archived": False,
    }
    return row | values


@cache
def incident(name: str) -> dict[str, list[Any]]:
    """Marts of a recorded incident, with what the rules find in them."""
    marts = {"share": _share, "streams": _streams, "quorum": _quorum, "clients": _clients}[name]()
    rows = _microseconds(marts)
    findings = list(findings_of(rows, {}))
    incidents = [incident_row(incident) for incident in incidents_of(findings, rows)]
    return marts | {"findings": [as_row(finding) for finding in findings], "incidents": incidents}


def _share() -> dict[str, list[Any]]:
    from tests.health.share_recorded import group_events, share_events

    deliveries = list(share_deliveries(share_events("share", "processors")))
    minutes = list(share_group_health(deliveries, group_events("share", "processors")))
    return {"share_deliveries": deliveries, "share_group_health": minutes}


def _streams() -> dict[str, list[Any]]:
    from tests.health.test_streams_recording import recorded_events

    timeline = timeline_of(sorted(recorded_events(), key=lambda event: (event.at_us, event.order)))
    assert timeline is not None
    return {
        "streams_tasks": timeline.tasks,
        "streams_moves": timeline.moves,
        "streams_unheld": timeline.unheld,
        "streams_lost_members": timeline.lost,
        "streams_statuses": timeline.statuses,
        "streams_group_health": list(health_of(timeline)),
    }


def _quorum() -> dict[str, list[Any]]:
    from tests.health.test_quorum_recording import recorded_events

    history = history_of(sorted(recorded_events(), key=lambda event: (event.at_us, event.order)))
    return {"quorum_replicas": history.replicas, "quorum_events": history.events}


def _clients() -> dict[str, list[Any]]:
    """Every exchange a row of its own: a report sums them up."""
    from tests.health.share_recorded import exchanges

    latency, errors, versions = [], [], []
    for exchange in exchanges("clients"):
        if exchange.request_at is None:
            continue
        at = round(exchange.request_at.timestamp() * SECOND)
        call = {"api": exchange.api, "client_id": exchange.client_id, "calls": 1}
        minute = {"minute_at": at // MINUTE * MINUTE, "broker_address": exchange.broker_address}
        times = dict.fromkeys(("p50_us", "p95_us", "p99_us", "max_us"), exchange.latency_us)
        unanswered = int(exchange.status == "unanswered")
        sizes = {"request_bytes": exchange.request_bytes, "response_bytes": exchange.response_bytes}
        slowest = {
            "long_poll": exchange.long_poll,
            "slowest_exchange_id": exchange.exchange_id,
            "unanswered": unanswered,
        }
        latency.append(
            without_client(call) | minute | times | sizes | slowest | {"errors": int(bool(exchange.error_code))}
        )
        if exchange.error_code:
            seen = {"first_at": at, "last_at": at, "first_exchange_id": exchange.exchange_id}
            errors.append(call | minute | seen | {"error": exchange.error, "error_code": exchange.error_code})
        spoken = {
            "client_software": exchange.client_software,
            "api_key": exchange.api_key,
            "api_version": exchange.api_version,
        }
        served = {"first_release": "2.1", "last_release": None, "in_newest_release": True}
        versions.append(
            call | spoken | served | {"first_at": at, "last_at": at, "last_exchange_id": exchange.exchange_id}
        )
    return {"api_latency": latency, "api_errors": errors, "client_versions": versions}


def without_client(call: Row) -> dict[str, Any]:
    return {name: value for name, value in call.items() if name != "client_id"}


def as_row(a_finding: Finding) -> Row:
    return asdict(a_finding) | {"figures": json.dumps(a_finding.figures), "evidence": list(a_finding.evidence)}


def _microseconds(marts: Mapping[str, list[Any]]) -> dict[str, list[Row]]:
    return {name: [_fields(row) for row in rows] for name, rows in marts.items()}
