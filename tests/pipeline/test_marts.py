"""Marts of the recorded incidents are what the Java programs logged, and what `health/` makes of the recordings without
Spark."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.health.quorum.rows import QuorumHappening, QuorumReplica
from kafkascope.health.share.events import Delivery
from kafkascope.health.streams.rows import LostMember, StreamsTask
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline.mart.base.settings import session_of_its_own
from kafkascope.pipeline.mart.build import build_marts
from tests.capture.truth_events import topic_ids
from tests.captures import truth
from tests.health.findings.test_recordings import api_marts, quorum_marts, share_marts, streams_marts
from tests.pipeline.mart_lakes import NAMES, PACKETS, incidents
from tests.pipeline.mart_rows import Plain, all_marts, mart, rows_of
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

GROUP = "processors"
# The last packet of a connection stands for its FIN: what ends with one is so much later.
CLOSED_US = 1_000_000


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    return incidents(spark, tmp_path_factory, PACKETS)


def cluster(lake: str) -> str:
    """Of the quorum incident."""
    (cluster_id,) = {row["cluster_id"] for row in mart(lake, "quorum_events", kind="elected")}
    return str(cluster_id)


def test_every_delivery_ended_as_the_programs_logged(lake: str) -> None:
    rows = rows_of(Delivery, mart(lake, "share_deliveries"))
    assert delivered_outcomes(rows) == logged_outcomes()
    check_locks_expired_when_they_did(rows)
    names = {topic_id: name for name, topic_id in topic_ids("share").items()}
    assert {(row.group_id, row.topic) for row in rows} == {(GROUP, names[str(row.topic_id)]) for row in rows}
    renewed = sum(event["event"] == "acknowledged" and event["type"] == "RENEW" for event in truth("share"))
    assert sum(row.renewals for row in rows) == renewed


def test_share_group_by_the_minute_adds_up_to_its_deliveries(lake: str) -> None:
    minutes = mart(lake, "share_group_health")
    logged = logged_outcomes()
    assert sum(row["acquired"] for row in minutes) == len(logged)
    for column, outcome in (("expired", "lock_expired"), ("disconnected", "disconnected"), ("accepted", "accepted")):
        assert sum(row[column] for row in minutes) == sum(label == outcome for label in logged.values())
    last_event = [event for event in truth("share") if event["event"] == "group"][-1]
    assert minutes[-1]["members"] == len(last_event["members"]) and minutes[-1]["state"] == last_event["state"]
    assert minutes[-1]["lag"] == sum(lag for _, lag in last_event["startOffsetAndLag"].values())


def test_streams_tasks_were_held_as_the_programs_logged(lake: str) -> None:
    tasks = rows_of(StreamsTask, mart(lake, "streams_tasks"))
    lost = rows_of(LostMember, mart(lake, "streams_lost_members"))
    check_members_held_what_they_logged(tasks)
    check_settled_group_held_what_was_described(tasks, lost)
    check_halted_member_is_lost(lost)
    closed = {line["who"] for line in truth("streams") if line["event"] == "closed" and line["who"] != "watch"}
    left = {row.client_id.partition("-")[0] for row in tasks if row.ended_by == "left" and row.client_id}
    assert left and left <= closed


def test_quorum_is_what_the_tool_printed(lake: str) -> None:
    replicas = rows_of(QuorumReplica, mart(lake, "quorum_replicas", cluster_id=cluster(lake)))
    check_lag_is_what_was_described(replicas)
    check_replication_is_what_the_tool_printed(replicas)
    events = rows_of(QuorumHappening, mart(lake, "quorum_events", cluster_id=cluster(lake)))
    check_leaders_are_those_elected(events, "lost")


def test_status_of_the_quorum_is_what_the_tool_printed(lake: str) -> None:
    """Of the last description before it printed."""
    described = [row for row in mart(lake, "quorum_replicas", cluster_id=cluster(lake)) if row["source"] == "describe"]
    compared = 0
    for line in truth("quorum"):
        if line["event"] != "printed" or line["command"] != "--status":
            continue
        fields = dict(row.split(":", 1) for row in line["lines"])
        last = [row for row in described if row["observed_at"] <= line["at"]][-1]
        assert last["cluster_id"] == fields["ClusterId"].strip()
        names = (("leader_id", "LeaderId"), ("leader_epoch", "LeaderEpoch"), ("high_watermark", "HighWatermark"))
        assert [last[column] for column, _ in names] == [int(fields[name]) for _, name in names]
        compared += 1
    assert compared >= 4


def plain(rows: Iterable[Plain], leave_out: set[str]) -> Iterator[Plain]:
    for row in rows:
        yield {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in row.items()
            if name not in leave_out
        }


def same(rows: list[Plain], expected: list[Plain], name: str) -> None:
    """Every row has one like it: equal, save for the end of a connection where that is all that differs."""
    left = list(expected)
    for row in rows:
        alike = [candidate for candidate in left if _alike(row, candidate)]
        assert alike, (name, row)
        left.remove(alike[0])
    assert not left, (name, left[:1])


def _alike(row: Plain, other: Plain) -> bool:
    assert row.keys() == other.keys(), row.keys() ^ other.keys()
    return all(
        value == other[name]
        or (name in OF_CLOSING and None not in (value, other[name]) and abs(value - other[name]) < CLOSED_US)
        for name, value in row.items()
    )


# What is told by, or counted from, the end of a connection.
OF_CLOSING = {
    "to_at", "from_at", "released_at", "last_seen_at", "outcome_at", "pause_ms", "silent_ms", "unheld_ms",
    "pause_total_ms", "pause_max_ms",
}  # fmt: skip


def test_rows_are_those_of_the_machines_without_spark(lake: str) -> None:
    """The helpers of `tests/health` read the recordings one exchange at a time, and know topics by their ids alone."""
    direct: dict[str, Any] = {**share_marts("share", GROUP), **streams_marts(), **quorum_marts()}
    for name, rows in direct.items():
        filters = {"cluster_id": cluster(lake)} if name.startswith("quorum_") else {}
        leave_out = {"topic", "cluster_id", "detail"}
        rows_found = list(plain(mart(lake, name, **filters), leave_out))
        assert rows_found, name
        same(rows_found, list(plain(rows, leave_out)), name)


def test_errors_are_those_of_the_exchanges(lake: str) -> None:
    expected = [row for name in NAMES for row in api_marts(name)["api_errors"]]
    rows = mart(lake, "api_errors")
    assert rows and sorted(map(repr, plain(rows, set()))) == sorted(map(repr, plain(expected, set())))


def test_calls_add_up_to_the_exchanges(lake: str) -> None:
    columns = ["api", "api_key", "latency_us", "status"]
    exchanges = dataset(open_lake(lake), "exchanges").to_table(columns=columns).to_pylist()
    named = [row for row in exchanges if row["api"] is not None]
    latency = mart(lake, "api_latency")
    assert sum(row["calls"] for row in latency) == len(named)
    assert sum(row["unanswered"] for row in latency) == sum(row["status"] == "unanswered" for row in named)
    assert max(row["max_us"] or 0 for row in latency) == max(row["latency_us"] or 0 for row in named)
    versions = mart(lake, "client_versions")
    # A bare SASL token has no key.
    assert sum(row["calls"] for row in versions) == sum(row["api_key"] is not None for row in named)
    assert not any(row["in_newest_release"] for row in versions if row["last_release"] is not None)
    assert {row["api"] for row in versions if row["in_newest_release"]} >= {"ShareFetch", "Metadata"}


def test_building_again_changes_nothing(spark: "SparkSession", lake: str) -> None:
    before = all_marts(lake)
    counts = build_marts(spark, open_lake(lake))
    assert all_marts(lake) == before
    assert counts == {name: len(rows) for name, rows in before.items()}


def test_settings_of_the_session_are_the_callers(spark: "SparkSession") -> None:
    """While marts are built too: other threads use them. What the caller has set counts for the marts as well."""
    spark.conf.set("spark.sql.files.maxPartitionBytes", "77m")
    spark.conf.set("spark.kafkascope.test", "here")
    before = dict(spark.conf.getAll)
    with session_of_its_own(spark, 0) as own:
        assert dict(spark.conf.getAll) == before
        assert own.conf.get("spark.sql.files.maxPartitionBytes") == "77m"
        assert own.conf.get("spark.kafkascope.test") == "here"
        assert own.conf.get("spark.sql.adaptive.enabled") == "false" != before.get("spark.sql.adaptive.enabled")
    for name in ("spark.sql.files.maxPartitionBytes", "spark.kafkascope.test"):
        spark.conf.unset(name)
