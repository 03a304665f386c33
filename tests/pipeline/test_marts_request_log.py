"""From the brokers' request logs come the same marts as from packets, save what only packets can show: docs/marts.md
lists that, and nothing else differs."""

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.health.quorum.rows import QuorumHappening, QuorumReplica
from kafkascope.health.share.events import Delivery
from kafkascope.health.streams.rows import LostMember, StreamsTask
from tests.captures import recording
from tests.pipeline.mart_lakes import LOGS, PACKETS, incidents
from tests.pipeline.mart_rows import Plain, mart, rows_of
from tests.pipeline.test_marts import cluster
from tests.support.incidents import (
    check_halted_member_is_lost,
    check_lag_is_what_was_described,
    check_leaders_are_those_elected,
    check_locks_expired_when_they_did,
    check_members_held_what_they_logged,
    check_replication_is_what_the_tool_printed,
    check_settled_group_held_what_was_described,
    delivered_outcomes,
    logged_outcomes,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "marts.md"
# What a row is about, in each mart; its times tell rows about the same apart.
ABOUT = {
    "share_deliveries": ("group_id", "topic_id", "partition", "first_offset", "delivery_count", "member_id"),
    "share_group_health": ("group_id", "minute_at"),
    "streams_tasks": ("group_id", "member_id", "subtopology_id", "partition", "role"),
    "streams_moves": ("group_id", "subtopology_id", "partition", "from_member_id", "to_member_id"),
    "streams_unheld": ("group_id", "subtopology_id", "partition", "cause"),
    "streams_lost_members": ("group_id", "member_id"),
    "streams_statuses": ("group_id", "code"),
    "streams_group_health": ("group_id", "minute_at"),
    "quorum_replicas": ("source", "leader_epoch", "replica_id"),
    "quorum_events": ("kind", "epoch", "node_id", "voter_id"),
}
# The log tells when a broker had a request whole and when it had sent the answer, on a machine with more to do.
APART_US = 100_000


@pytest.fixture(scope="module")
def packets(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    return incidents(spark, tmp_path_factory, PACKETS)


@pytest.fixture(scope="module")
def logs(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    return incidents(spark, tmp_path_factory, LOGS)


def test_request_logs_tell_of_the_incidents_what_the_programs_logged(logs: str) -> None:
    deliveries = rows_of(Delivery, mart(logs, "share_deliveries"))
    # No log has a FIN.
    unseen = {"disconnected": "moved"}
    assert delivered_outcomes(deliveries) == {
        key: unseen.get(outcomes, outcomes) for key, outcomes in logged_outcomes().items()
    }
    check_locks_expired_when_they_did(deliveries)
    tasks = rows_of(StreamsTask, mart(logs, "streams_tasks"))
    lost = rows_of(LostMember, mart(logs, "streams_lost_members"))
    check_members_held_what_they_logged(tasks)
    check_settled_group_held_what_was_described(tasks, lost)
    check_halted_member_is_lost(lost)
    replicas = rows_of(QuorumReplica, mart(logs, "quorum_replicas", cluster_id=cluster(logs)))
    check_lag_is_what_was_described(replicas)
    check_replication_is_what_the_tool_printed(replicas)
    events = rows_of(QuorumHappening, mart(logs, "quorum_events", cluster_id=cluster(logs)))
    check_leaders_are_those_elected(events, "timeout")


def listed() -> set[tuple[str, str]]:
    """(mart, column) of the page's table."""
    text = PAGE.read_text(encoding="utf-8")
    part = text[text.index("## From a request log") :].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", part, re.MULTILINE)
    return {(name, column) for name, columns in rows for column in re.findall(r"`(\w+)`", columns)}


def differing(name: str, packets: str, logs: str) -> set[str]:
    """Columns that say something else. Exchanges have ids of their own."""
    about = ABOUT[name]
    both = []
    for lake in (packets, logs):
        filters = {"cluster_id": cluster(lake)} if name.startswith("quorum_") else {}
        rows = mart(lake, name, **filters)
        both.append(sorted(rows, key=lambda row: [str(row[column]) for column in about]))
    if name == "quorum_events":
        # No log has a FIN.
        assert not any(row["kind"] == "disconnected" for row in both[1])
        both[0] = [row for row in both[0] if row["kind"] != "disconnected"]
    assert [[row[column] for column in about] for row in both[0]] == [
        [row[column] for column in about] for row in both[1]
    ], name
    assert both[0]
    pairs = zip(*both, strict=True)
    return {
        column
        for row, other in pairs
        for column in row
        if not column.endswith("exchange_id") and not _like(column, row[column], other[column])
    }


def _like(column: str, value: Any, other: Any) -> bool:
    if value == other or None in (value, other) or not isinstance(value, int):
        return bool(value == other)
    unit = 1 if column.endswith(("_at", "_us")) else 1000 if column.endswith("_ms") else None
    return unit is not None and abs(value - other) * unit < APART_US


def test_nothing_differs_but_what_the_page_lists(packets: str, logs: str) -> None:
    differences = {(name, column) for name in ABOUT for column in differing(name, packets, logs)}
    assert differences == {listed_column for listed_column in listed() if listed_column[0] in ABOUT}


def calls(lake: str, brokers: set[str]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for row in mart(lake, "api_latency"):
        if row["broker_address"] in brokers:
            counts[row["broker_address"], row["api"]] += row["calls"]
    return counts


@pytest.mark.parametrize("name", ["share", "streams"])
def test_calls_are_the_same_and_those_in_an_envelope_stand_for_themselves(packets: str, logs: str, name: str) -> None:
    ports = recording(name)["ports"]["1"]
    brokers = {f"127.0.0.1:{ports[listener]}" for listener in ("PLAINTEXT", "CONTROLLER")}
    from_packets, logged = calls(packets, brokers), calls(logs, brokers)
    envelopes = sum(count for (_, api), count in from_packets.items() if api == "Envelope")
    more = {key: count - from_packets[key] for key, count in logged.items() if count != from_packets[key]}
    assert sum(more.values()) == envelopes > 0
    assert {broker for broker, _ in more} == {f"127.0.0.1:{ports['CONTROLLER']}"}
    assert {key for key in from_packets if key not in logged} == {
        (f"127.0.0.1:{ports['CONTROLLER']}", "Envelope"),
    }


def test_logs_have_no_sizes_and_no_connections(logs: str) -> None:
    sizes: list[Plain] = mart(logs, "api_latency")
    assert {(row["request_bytes"], row["response_bytes"], row["unanswered"]) for row in sizes} == {(None, None, 0)}
    assert {("api_latency", column) for column in ("request_bytes", "response_bytes", "unanswered")} <= listed()
