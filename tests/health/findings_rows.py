"""A mart and a few values in, a row with just the columns that the rules and the incidents say they need out."""

from typing import Any

from kafkascope.health.findings.needs import NEEDS
from kafkascope.health.incidents.needs import INCIDENT_NEEDS

SECOND = 1_000_000
MINUTE = 60 * SECOND
# The start of a minute.
T0 = 1_794_744_420 * SECOND

_USUAL: dict[str, dict[str, Any]] = {
    "captures": {
        "capture_uri": "night.pcap",
        "kind": "capture",
        "first_at": T0,
        "last_at": T0 + 60 * MINUTE,
        "tcp_bytes": 1_000_000,
    },
    "quarantine": {"capture_uri": "night.pcap", "recorded_at": T0, "exchange_id": "q1", "kind": "undecoded"},
    "share_deliveries": {
        "group_id": "g",
        "topic": "orders",
        "topic_id": "t1",
        "member_id": "m1",
        "client_id": "c1",
        "delivery_count": 1,
        "acquired_at": T0,
        "lock_timeout_ms": 30_000,
        "outcome": "accepted",
        "outcome_at": T0 + SECOND,
        "archived": False,
        "acquire_exchange_id": "a1",
        "outcome_exchange_id": "o1",
        "rule": "acknowledged",
    },
    "share_group_health": {
        "group_id": "g",
        "minute_at": T0,
        "members": 2,
        "acquired": 1000,
        "accepted": 1000,
        "lag": None,
        "standing_still": [],
    },
    "streams_group_health": {"group_id": "s", "minute_at": T0, "members": 2, "tasks": 6},
    "streams_tasks": {
        "group_id": "s",
        "member_id": "m1",
        "client_id": "c1",
        "subtopology_id": "0",
        "role": "warmup",
        "from_at": T0,
        "from_exchange_id": "f1",
    },
    "streams_moves": {
        "group_id": "s",
        "subtopology_id": "0",
        "released_at": T0,
        "taken_at": T0 + SECOND,
        "pause_ms": 1000,
        "cause": "revoked",
        "warm": True,
        "exchange_id": "x1",
    },
    "streams_unheld": {
        "group_id": "s",
        "subtopology_id": "0",
        "from_at": T0,
        "to_at": T0 + SECOND,
        "cause": "new",
        "ended_by": "taken",
        "known": True,
        "exchange_id": "x1",
    },
    "streams_lost_members": {
        "group_id": "s",
        "member_id": "m1",
        "client_id": "c1",
        "last_seen_at": T0,
        "noticed_at": T0 + 45 * SECOND,
        "silent_ms": 45_000,
        "how": "silent",
        "exchange_id": "x1",
    },
    "streams_statuses": {
        "group_id": "s",
        "name": "ASSIGNMENT_DELAYED",
        "detail": None,
        "from_at": T0,
        "to_at": T0 + SECOND,
        "exchange_id": "x1",
    },
    "quorum_replicas": {
        "observed_at": T0,
        "leader_id": 1,
        "leader_epoch": 7,
        "replica_id": 2,
        "role": "follower",
        "fetch_age_ms": 300,
        "exchange_id": "x1",
        "cluster_id": None,
    },
    "quorum_events": {"occurred_at": T0, "kind": "elected", "node_id": 2, "exchange_id": "x1", "cluster_id": None},
    "api_latency": {
        "minute_at": T0,
        "api": "Metadata",
        "broker_address": "b:9092",
        "long_poll": False,
        "calls": 1000,
        "p99_us": 2000,
        "max_us": 3000,
        "slowest_exchange_id": "x1",
    },
    "api_errors": {
        "minute_at": T0,
        "api": "Metadata",
        "client_id": "c1",
        "broker_address": "b:9092",
        "calls": 1,
        "first_at": T0,
        "last_at": T0 + SECOND,
        "first_exchange_id": "x1",
    },
    "throttling": {"minute_at": T0, "api": "Produce", "client_id": "c1", "broker_address": "b:9092", "throttled": 1},
    "client_versions": {
        "client_software": "lib 1.0",
        "client_id": "c1",
        "api": "Fetch",
        "api_version": 12,
        "calls": 1,
        "connections": 1,
        "first_at": T0,
        "last_at": T0 + SECOND,
        "first_release": "2.7",
        "in_newest_release": True,
        "last_exchange_id": "x1",
    },
    "log_health": {"cluster_id": None, "broker": 2, "topic": "orders", "latest_at": T0, "differs_from": None},
    "compaction_waste": {"cluster_id": None, "broker": 2, "topic": "__consumer_offsets", "partition": 7},
    "share_agreement": {"group_id": "g", "topic": "orders", "topic_id": "t1", "state": "archived", "verdict": "agree"},
    "metadata_at": {
        "cluster_id": None,
        "kind": "partition",
        "topic": "orders",
        "leader": 1,
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "from_at": T0,
    },
    "partition_events": {"cluster_id": None, "occurred_at": T0, "kind": "leader", "topic": "orders", "to_leader": 2},
    "open_transactions": {
        "cluster_id": None,
        "topic": "orders",
        "producer_id": 7,
        "transactional_id": None,
        "hanging": False,
        "started_at": T0,
        "read_at": T0 + MINUTE,
        "first_offset": 12,
        "log_end_offset": 20,
        "holds_stable_offset": True,
    },
    "dead_groups": {"group_id": "g", "topics_gone": [], "last_commit_at": T0, "read_at": T0 + MINUTE, "lag_now": None},
    "brokers": {"broker_address": "b:9092", "cluster_id": None, "node_id": 1, "calls": 1000},
    "groups": {"group_id": "g", "coordinator": "b:9092"},
}
# What is null where nothing was seen; other columns are counts.
_NULL = frozenset(
    "to_at ended_by to_exchange_id message detail cause previous_leader_id voting_ms duration_ms last_release error"
    " standbys_missing broker_address epoch".split()
)


def row(mart: str, **values: Any) -> dict[str, Any]:
    """Healthy, save what is given."""
    usual = {**_USUAL[mart], **values}
    needs = [needs[mart].columns for needs in (NEEDS, INCIDENT_NEEDS) if mart in needs]
    columns = dict.fromkeys(name for names in needs for name in names)
    return {name: usual.pop(name) if name in usual else None if name in _NULL else 0 for name in columns}
