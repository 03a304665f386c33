"""Lists the columns and rows of each mart that the rules need for given thresholds, so that readers can skip the rest.

Applying `where` is optional: the rules check again. It's a function that receives a factory of columns by name (times
are whole microseconds) and combines them with the operators of Arrow expressions, so that this module needn't import
Arrow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor
from typing import Any

from kafkascope.health.findings.rules.table import limits_of

Where = Callable[[Callable[[str], Any]], Any]


@dataclass(frozen=True, slots=True)
class Need:
    """Columns of a mart and a filter for its rows; no filter means all rows."""

    columns: tuple[str, ...]
    where: Where | None = None


def needs_of(thresholds: Mapping[str, float]) -> dict[str, Need]:
    limits = limits_of(thresholds)
    late_us = _whole(limits["share_slow_acknowledgement"]["lock_share"] * 1000)
    pause_ms = _whole(limits["streams_long_pause"]["ms"])
    return {
        # For the commands in advice.
        "brokers": need("broker_address cluster_id node_id calls"),
        "groups": need("group_id coordinator"),
        "captures": need("capture_uri kind first_at last_at frames lost_bytes tls_bytes tcp_bytes quarantined"),
        "quarantine": need("capture_uri recorded_at exchange_id kind message"),
        "share_deliveries": need(
            "group_id topic topic_id partition first_offset last_offset delivery_count member_id client_id acquired_at"
            " lock_timeout_ms renewals outcome outcome_at archived acquire_exchange_id outcome_exchange_id rule",
            lambda column: (
                (column("delivery_count") > 1)
                | column("archived")
                | column("outcome").isin(["lock_expired", "disconnected", "moved"])
                | (
                    (column("renewals") == 0)
                    & (column("outcome_at") - column("acquired_at") >= column("lock_timeout_ms") * late_us)
                )
            ),
        ),
        "share_group_health": need(
            "group_id minute_at members acquired redelivered accepted released rejected lag lag_partitions"
            " standing_still near_limit"
        ),
        "streams_group_health": need(
            "group_id minute_at members joined left lost fenced tasks moves pause_max_ms standbys_missing"
            " shutdown_requests"
        ),
        "streams_tasks": need(
            "group_id member_id client_id subtopology_id partition role from_at to_at ended_by from_exchange_id"
            " to_exchange_id",
            lambda column: column("role") == "warmup",
        ),
        "streams_moves": need(
            "group_id subtopology_id partition released_at taken_at pause_ms cause warm exchange_id",
            lambda column: column("pause_ms") >= pause_ms,
        ),
        "streams_unheld": need(
            "group_id subtopology_id partition from_at to_at cause ended_by known exchange_id",
            lambda column: (
                column("known")
                & ((column("cause") == "new") | column("ended_by").is_null() | (column("ended_by") != "taken"))
            ),
        ),
        "streams_lost_members": need(
            "group_id member_id client_id last_seen_at noticed_at silent_ms how active_tasks standby_tasks warmup_tasks"
            " exchange_id"
        ),
        "streams_statuses": need("group_id name detail from_at to_at members exchange_id"),
        "quorum_replicas": need(
            "observed_at leader_id leader_epoch replica_id role lag lag_ms fetch_age_ms exchange_id cluster_id"
        ),
        "quorum_events": need(
            "occurred_at kind node_id cause duration_ms voting_ms previous_leader_id detail exchange_id cluster_id",
            lambda column: column("kind").isin(
                ["elected", "election_failed", "leaderless", "resigned", "voters_changed"]
            ),
        ),
        "api_latency": need(
            "minute_at api broker_address long_poll calls unanswered p99_us max_us slowest_exchange_id"
        ),
        "api_errors": need(
            "minute_at api error_code error client_id broker_address calls first_at last_at first_exchange_id"
        ),
        "throttling": need(
            "minute_at api client_id broker_address throttled throttle_ms max_throttle_ms longest_exchange_id"
        ),
        "client_versions": need(
            "client_software client_id api_key api api_version calls connections first_at last_at first_release"
            " last_release in_newest_release last_exchange_id",
            lambda column: ~column("in_newest_release"),
        ),
        "log_health": need(
            "cluster_id broker topic partition end_offset latest_at damaged_bytes bad_crc quarantined missing_records"
            " differing_batches differs_from"
        ),
        "compaction_waste": need(
            "cluster_id broker topic partition bytes superseded superseded_bytes expired_tombstones"
        ),
        "share_agreement": need(
            "group_id topic topic_id partition first_offset last_offset state verdict",
            lambda column: column("verdict") != "agree",
        ),
        "metadata_at": need(
            "cluster_id kind topic partition leader replicas isr from_at to_offset to_at",
            lambda column: column("kind") == "partition",
        ),
        "partition_events": need(
            "cluster_id occurred_at kind topic partition to_leader", lambda column: column("kind") == "leader"
        ),
        "open_transactions": need(
            "cluster_id topic partition producer_id transactional_id hanging timeout_ms started_at read_at open_ms"
            " first_offset log_end_offset holds_stable_offset"
        ),
        "dead_groups": need("group_id members partitions topics_gone last_commit_at read_at silent_ms lag_now"),
    }


def _whole(threshold: float) -> int:
    """Rounds the threshold down, and caps it so that its product with 32-bit milliseconds doesn't overflow: Arrow
    compares an integer with a fraction only if both are small."""
    return floor(min(threshold, 1 << 31))


def need(columns: str, where: Where | None = None) -> Need:
    return Need(tuple(columns.split()), where)


NEEDS = needs_of({})
