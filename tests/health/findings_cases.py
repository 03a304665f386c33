"""For every rule, rows that show its trouble and rows that nearly do; and how to make more of them."""

from typing import Any

from tests.health.findings_rows import MINUTE, SECOND, T0, row

Rows = list[dict[str, Any]]
Marts = dict[str, Rows]


def held(outcome: str, **values: Any) -> dict[str, Any]:
    usual = {"outcome": outcome, "outcome_at": T0 + 30 * SECOND, "rule": "delivered_again"}
    return row("share_deliveries", **{**usual, **values})


def group(**values: Any) -> Marts:
    return {"share_group_health": [row("share_group_health", **values)]}


def lags(*values: int, step: int = 1) -> Marts:
    rows = [
        row("share_group_health", minute_at=T0 + index * step * MINUTE, lag=lag, lag_partitions=3)
        for index, lag in enumerate(values)
    ]
    return {"share_group_health": rows}


def still(*minutes: int, lag: int | None = None) -> Marts:
    rows = [
        row(
            "share_group_health",
            minute_at=T0 + minute * MINUTE,
            standing_still=["orders-0"],
            lag=None if lag is None else lag * minute,
            lag_partitions=1,
        )
        for minute in minutes
    ]
    return {"share_group_health": rows}


def late(slow: int, taken_s: int, **values: Any) -> Marts:
    at = T0 + taken_s * SECOND
    return {
        "share_deliveries": [row("share_deliveries", last_offset=slow - 1, outcome_at=at, **values)],
        "share_group_health": [row("share_group_health")],
    }


def refused(api: str, error: str, calls: int = 1) -> Marts:
    errors = {"api_errors": [row("api_errors", api=api, error=error, calls=calls)]}
    return {**errors, "api_latency": [row("api_latency")]} if api == "Metadata" else errors


def lasting(error: str) -> Marts:
    marts: Marts = {"api_errors": [], "api_latency": []}
    for index in range(7):
        at = T0 + index * MINUTE
        marts["api_latency"].append(row("api_latency", minute_at=at, calls=20))
        marts["api_errors"].append(
            row("api_errors", minute_at=at, error=error, calls=15, first_at=at, last_at=at + SECOND)
        )
    return marts


def unheld(seconds: int | None, **values: Any) -> Marts:
    end = None if seconds is None else T0 + seconds * SECOND
    return {"streams_unheld": [row("streams_unheld", to_at=end, **values)]}


def moved(pause_s: int) -> Marts:
    return {"streams_moves": [row("streams_moves", pause_ms=pause_s * 1000, taken_at=T0 + pause_s * SECOND)]}


def minutes(number: int, **values: Any) -> Marts:
    return {
        "streams_group_health": [
            row("streams_group_health", minute_at=T0 + index * MINUTE, **values) for index in range(number)
        ]
    }


# As a broker of 4.3 words them, but for braces around `a=1, b=2`; None where the page of rules shall have none.
_DETAILS = {
    "ASSIGNMENT_DELAYED": "Assignment delayed due to the configured initial rebalance delay.",
    "INCORRECTLY_PARTITIONED_TOPICS": "Following topics do not have the same number of partitions: [a=1, b=2]",
    "MISSING_CLIENT_TAGS": None,
    "MISSING_INTERNAL_TOPICS": "Internal topics are missing: [s-counts-changelog]",
    "MISSING_SOURCE_TOPICS": "Source topics words are missing.",
    "STALE_TOPOLOGY": None,
}


def status(name: str, seconds: int) -> Marts:
    to_at = T0 + seconds * SECOND
    return {"streams_statuses": [row("streams_statuses", name=name, to_at=to_at, detail=_DETAILS[name])]}


def warmup(seconds: int, ended_by: str | None, times: int = 1) -> Marts:
    rows = [
        row("streams_tasks", from_at=T0 + turn * MINUTE, to_at=T0 + turn * MINUTE + seconds * SECOND, ended_by=ended_by)
        for turn in range(times)
    ]
    return {"streams_tasks": rows}


def elected(cause: str, **values: Any) -> Marts:
    return {"quorum_events": [row("quorum_events", cause=cause, previous_leader_id=1, duration_ms=2100, **values)]}


def elections(number: int, apart_s: int) -> Marts:
    rows = [
        row("quorum_events", occurred_at=T0 + index * apart_s * SECOND, cause="resigned", previous_leader_id=1)
        for index in range(number)
    ]
    return {"quorum_events": rows}


def event(kind: str, **values: Any) -> Marts:
    return {"quorum_events": [row("quorum_events", kind=kind, **values)]}


def replica(**values: Any) -> Marts:
    return {"quorum_replicas": [row("quorum_replicas", replica_id=1, role="leader"), row("quorum_replicas", **values)]}


def voters(*ages_ms: int) -> Marts:
    """The leader, and followers with these ages, in one observation."""
    followers = [row("quorum_replicas", replica_id=2 + index, fetch_age_ms=age) for index, age in enumerate(ages_ms)]
    return {"quorum_replicas": [row("quorum_replicas", replica_id=1, role="leader"), *followers]}


def unknown(*seconds: int) -> Marts:
    rows = [row("quorum_replicas", observed_at=T0 + at * SECOND, lag=None, fetch_age_ms=None) for at in seconds]
    return {"quorum_replicas": rows}


def calls(**values: Any) -> Marts:
    return {"api_latency": [row("api_latency", **values)]}


def version(**values: Any) -> Marts:
    return {"client_versions": [row("client_versions", **values)]}


def recording(**values: Any) -> Marts:
    return {"captures": [row("captures", frames=1000, **values)]}


def unreadable(*kinds: str) -> Marts:
    return {**recording(), "quarantine": [row("quarantine", kind=kind) for kind in kinds]}


def leader_changes(number: int, apart_s: int) -> Marts:
    rows = [
        row("partition_events", occurred_at=T0 + index * apart_s * SECOND, to_leader=1 + index % 2)
        for index in range(number)
    ]
    return {"partition_events": rows}


# Rule to: rows that show it, its severity and words of its summary; and rows that nearly do.
CASES: dict[str, tuple[Marts, str, str, Marts]] = {
    "share_lock_expired": (
        {"share_deliveries": [held("lock_expired", last_offset=3)]},
        "warning",
        "Member `c1` of share group `g` held 4 records past their 30 s lock; no redelivery was recorded.",
        {"share_deliveries": [held("session_closed", last_offset=3)]},
    ),
    "share_redelivery_storm": (
        group(redelivered=300),
        "warning",
        "30 % of the records that share group `g` acquired were redeliveries: 300 of 1,000.",
        group(redelivered=240),
    ),
    "share_poison_record": (
        {"share_deliveries": [held("released", archived=True, delivery_count=5, first_offset=3, last_offset=3)]},
        "warning",
        "Offset `3` of `orders-0` was archived after 5 deliveries to share group `g`; last outcome: released.",
        {"share_deliveries": [held("released", delivery_count=4)]},
    ),
    "share_rejected": (
        {"share_deliveries": [held("rejected", archived=True)]},
        "info",
        "Member `c1` of share group `g` rejected 1 record of `orders-0` for good.",
        {"share_deliveries": [held("released", archived=True, delivery_count=5)]},
    ),
    "share_near_limit": (
        group(near_limit=2),
        "warning",
        "Share group `g` had 2 deliveries with at most one more left before the limit.",
        group(redelivered=2),
    ),
    "share_member_disconnected": (
        {"share_deliveries": [held("disconnected")]},
        "warning",
        "Member `c1` of share group `g` lost its connection while it held 1 record.",
        {"share_deliveries": [held("session_closed")]},
    ),
    "share_standing_still": (
        still(0, 1, 2, lag=50),
        "critical",
        "`orders-0` of share group `g` made no progress for 3 min while the group's lag grew by 100 records.",
        still(0, 2, 4),
    ),
    "share_slow_acknowledgement": (
        late(60, 25),
        "warning",
        "acknowledged 6 % of 1,000 records after 80 % or more of their 30 s lock: `c1` ×60; slowest 25 s.",
        late(60, 25, renewals=1),
    ),
    "share_refused_acknowledgements": (
        refused("ShareAcknowledge", "INVALID_RECORD_STATE"),
        "warning",
        "Client `c1` had acknowledgements refused (`INVALID_RECORD_STATE`) in 1 call.",
        refused("Produce", "INVALID_RECORD_STATE"),
    ),
    "share_lag_growing": (
        lags(0, 300, 200, 800, 1200, 1500),
        "warning",
        "The lag of share group `g` grew by 1,500 records in 5 min, to 1,500.",
        lags(1000, 2500, 900, 2400, 800, 1900),
    ),
    "share_no_members": (
        group(members=0, lag=7, acquired=0, accepted=0),
        "warning",
        "Share group `g` had no members for 1 min while 7 records waited.",
        group(members=0, lag=0, acquired=0, accepted=0),
    ),
    "share_session_reset": (
        refused("ShareFetch", "SHARE_SESSION_NOT_FOUND", 2),
        "info",
        "Client `c1` lost its share session 2 times: `SHARE_SESSION_NOT_FOUND`.",
        refused("Fetch", "FETCH_SESSION_ID_NOT_FOUND"),
    ),
    "share_moved": (
        {"share_deliveries": [held("moved", rule="start_offset_moved")]},
        "info",
        "1 record of share group `g` was taken from the members that held it; reason: start offset moved.",
        {"share_deliveries": [held("released")]},
    ),
    "streams_task_unheld": (
        unheld(20),
        "warning",
        "Task `0_0` of streams group `s` had no owner for 20 s; cause: new task.",
        unheld(20, cause="lost"),
    ),
    "streams_long_pause": (
        moved(61),
        "critical",
        "Task `0_0` of streams group `s` stalled for up to 1 min 1 s in 1 move; cause: revoked from its member.",
        moved(10),
    ),
    "streams_member_lost": (
        {"streams_lost_members": [row("streams_lost_members", active_tasks=2)]},
        "warning",
        "Member `c1` of streams group `s` with 2 active tasks disappeared without leaving the group, which noticed "
        "after 45 s.",
        {"streams_lost_members": []},
    ),
    "streams_many_moves": (
        minutes(4, moves=5),
        "warning",
        "Streams group `s` with 6 tasks had 20 moves in 4 min.",
        minutes(3, moves=4),
    ),
    "streams_standbys_missing": (
        minutes(5, standbys_missing=3),
        "warning",
        "Streams group `s` lacked up to 3 standby tasks for 5 min.",
        minutes(4, standbys_missing=3),
    ),
    "streams_warmup_stuck": (
        warmup(900, "revoked"),
        "warning",
        "Task `0_0` of streams group `s` was warmed up for up to 15 min, was dropped once and didn't become active.",
        warmup(900, "promoted"),
    ),
    "streams_fenced_members": (
        minutes(1, fenced=1),
        "warning",
        "1 member of streams group `s` had to rejoin: the group had removed it.",
        minutes(1),
    ),
    "streams_missing_source_topics": (
        status("MISSING_SOURCE_TOPICS", 1),
        "critical",
        "Streams group `s` lacked source topics for 1 s: `Source topics words are missing`.",
        status("ASSIGNMENT_DELAYED", 1),
    ),
    "streams_incorrectly_partitioned_topics": (
        status("INCORRECTLY_PARTITIONED_TOPICS", 1),
        "critical",
        "wrong number of partitions",
        status("ASSIGNMENT_DELAYED", 1),
    ),
    "streams_missing_internal_topics": (
        status("MISSING_INTERNAL_TOPICS", 11),
        "warning",
        "lacked internal topics for 11 s",
        status("MISSING_INTERNAL_TOPICS", 5),
    ),
    "streams_stale_topology": (
        status("STALE_TOPOLOGY", 30),
        "info",
        "older topology for 30 s",
        status("MISSING_INTERNAL_TOPICS", 5),
    ),
    "streams_topology_refused": (
        refused("StreamsGroupHeartbeat", "STREAMS_TOPOLOGY_FENCED"),
        "warning",
        "The topology of client `c1` was refused: `STREAMS_TOPOLOGY_FENCED`.",
        refused("StreamsGroupHeartbeat", "UNKNOWN_MEMBER_ID"),
    ),
    "streams_shutdown": (
        minutes(1, shutdown_requests=1),
        "critical",
        "All members of streams group `s` were ordered to shut down by 1 request.",
        minutes(1),
    ),
    "streams_assignment_delayed": (
        status("ASSIGNMENT_DELAYED", 12),
        "info",
        "waited for its assignment for 12 s",
        status("ASSIGNMENT_DELAYED", 3),
    ),
    "streams_other_status": (
        status("MISSING_CLIENT_TAGS", 1),
        "info",
        "had another status",
        status("ASSIGNMENT_DELAYED", 3),
    ),
    "quorum_leader_lost": (
        elected("lost"),
        "warning",
        "lost its leader, node `1`, and had no leader for 2.1 s; new leader: node `2`.",
        elected("resigned"),
    ),
    "quorum_leaderless": (
        event("leaderless", duration_ms=12_000),
        "critical",
        "no leader for 12 s when the recording ended",
        event("leaderless", duration_ms=3000),
    ),
    "quorum_frequent_elections": (
        elections(4, 600),
        "warning",
        "held 4 elections in 30 min; cause: leader resigned.",
        elections(4, 1300),
    ),
    "quorum_follower_behind": (
        replica(fetch_age_ms=4600, lag_ms=4800, lag=12),
        "warning",
        "Voter node `2` didn't fetch for up to 4.6 s and was 12 records behind.",
        replica(fetch_age_ms=500, lag_ms=500, lag=3),
    ),
    "quorum_observer_behind": (
        replica(role="observer", fetch_age_ms=100, lag_ms=10_000, lag=500),
        "warning",
        "Observer node `2` lagged by up to 10 s and was 500 records behind.",
        replica(role="observer", fetch_age_ms=2300, lag_ms=2300, lag=8),
    ),
    "quorum_replica_never_fetched": (
        unknown(0, 5, 11),
        "warning",
        "Node `2` didn't fetch from the leader of epoch 7 for 11 s.",
        unknown(0, 1, 2),
    ),
    "quorum_majority_at_risk": (
        voters(3000, 4000),
        "critical",
        "2 of 3 voters were lagging at the same time: the quorum is about to lose its majority.",
        voters(3000, 400),
    ),
    "quorum_leader_resigned": (event("resigned"), "info", "resigned: node `2`.", event("late_resignation")),
    "quorum_voters_changed": (
        event("voters_changed", detail="1,2,3 to 1,2,3,4"),
        "info",
        "changed from `1,2,3` to `1,2,3,4`.",
        event("announced"),
    ),
    "api_error_rate": (
        refused("Metadata", "TOPIC_AUTHORIZATION_FAILED", 80),
        "warning",
        "`Metadata` failed in 80 of 1,000 calls (8 %): `TOPIC_AUTHORIZATION_FAILED`.",
        refused("Metadata", "NOT_CONTROLLER", 80),
    ),
    "api_passing_errors": (
        refused("Metadata", "LEADER_NOT_AVAILABLE", 30),
        "info",
        "`Metadata` was redirected or retried in 30 of 1,000 calls: `LEADER_NOT_AVAILABLE`.",
        refused("Metadata", "LEADER_NOT_AVAILABLE", 3),
    ),
    "api_unanswered": (
        calls(unanswered=30),
        "warning",
        "`Metadata` got no response to 30 of 1,000 calls (3 %).",
        calls(unanswered=30, long_poll=True),
    ),
    "api_slow": (
        calls(p99_us=1_500_000, max_us=2_000_000),
        "warning",
        "`Metadata` at `b:9092`: p99 latency 1.5 s, over 1 min with 1,000 calls.",
        calls(p99_us=1_500_000, max_us=2_000_000, long_poll=True),
    ),
    "client_throttled": (
        {"throttling": [row("throttling", throttled=9, throttle_ms=4000, max_throttle_ms=900)]},
        "warning",
        "Client `c1` was throttled in 9 responses for 4 s in all, at most 900 ms at a time: `Produce`.",
        {"throttling": [row("throttling", throttled=1, throttle_ms=40, max_throttle_ms=40)]},
    ),
    "client_versions_dropped": (
        version(in_newest_release=False, api_version=2, last_release="3.9"),
        "warning",
        "`lib 1.0` uses versions that the newest release no longer serves, in 1 call: `Fetch v2`; last served by Kafka "
        "3.9.",
        version(),
    ),
    "api_unknown": (
        version(in_newest_release=False, api=None, api_key=10_000, first_release=None),
        "info",
        "`API key 10000 v12` isn't in any known release; 1 call by `lib 1.0`.",
        version(in_newest_release=False, last_release="3.9"),
    ),
    "recording_tls": (
        recording(tls_bytes=600_000),
        "warning",
        "60 % of the bytes of `night.pcap` are TLS and couldn't be read.",
        recording(tls_bytes=10_000),
    ),
    "recording_lost": (
        recording(lost_bytes=30_000),
        "warning",
        "30,000 bytes of the connections in `night.pcap` are missing (2.9 %).",
        recording(lost_bytes=10),
    ),
    "recording_unreadable": (
        unreadable(*["undecoded"] * 12, "cut"),
        "warning",
        "13 places of `night.pcap` couldn't be read: undecoded ×12, cut ×1.",
        unreadable(),
    ),
    "log_damaged": (
        {"log_health": [row("log_health", damaged_bytes=1200, bad_crc=1)]},
        "critical",
        "The log of `orders-0` on node `2` is damaged: 1 batch with a wrong checksum and 1.2 kB that can't be read.",
        {"log_health": [row("log_health")]},
    ),
    "log_replicas_differ": (
        {"log_health": [row("log_health", differing_batches=3, differs_from=41)]},
        "critical",
        "3 batches of `orders-0` on node `2` differ from other replicas, from offset `41` on.",
        {"log_health": [row("log_health", missing_records=3)]},
    ),
    "log_replica_short": (
        {"log_health": [row("log_health", missing_records=25_000)]},
        "warning",
        "The log of `orders-0` on node `2` ends 25,000 records before that of another replica.",
        {"log_health": [row("log_health", missing_records=900)]},
    ),
    "log_compaction_behind": (
        {"compaction_waste": [row("compaction_waste", bytes=300_000_000, superseded_bytes=240_000_000)]},
        "warning",
        "80 % of the records of `__consumer_offsets-7` on node `2` are superseded by later ones but not yet "
        "removed: 240 MB.",
        {"compaction_waste": [row("compaction_waste", partition=8, bytes=900_000_000, superseded_bytes=240_000_000)]},
    ),
    "log_share_state_differs": (
        {
            "share_agreement": [
                row("share_agreement", first_offset=5, last_offset=9, verdict="only_recorded"),
                row("share_agreement", first_offset=7, last_offset=7, verdict="only_written"),
            ]
        },
        "warning",
        "Recorded deliveries and the brokers' share state of `orders-0` of share group `g` differ: 5 records only in "
        "the recording and 1 record only on disk; offsets `5-9, 7`.",
        {"share_agreement": [row("share_agreement", last_offset=9)]},
    ),
    "partition_leaderless": (
        {"metadata_at": [row("metadata_at", leader=None, to_at=T0 + 5 * SECOND, to_offset=9)]},
        "critical",
        "`orders-0` had no leader for 5 s.",
        {"metadata_at": [row("metadata_at", leader=None, to_at=T0 + SECOND // 2, to_offset=9)]},
    ),
    "partition_under_replicated": (
        {"metadata_at": [row("metadata_at", isr=[1], to_at=T0 + 20 * MINUTE, to_offset=9)]},
        "warning",
        "`orders-0` had replicas out of sync for 20 min: node `2`, node `3`.",
        {"metadata_at": [row("metadata_at", isr=[1], to_at=T0 + MINUTE, to_offset=9)]},
    ),
    "partition_leader_changes": (
        leader_changes(6, 10),
        "warning",
        "The leader of `orders-0` changed 6 times in 50 s; new leaders: node `1`, node `2`.",
        leader_changes(6, 900),
    ),
    "transaction_hanging": (
        {"open_transactions": [row("open_transactions", hanging=True, open_ms=3_600_000)]},
        "critical",
        "A transaction in `orders-0` hangs: its coordinator doesn't know it, so nothing will end it (producer `7`). "
        "Readers of committed records wait at offset `12`, 8 records before the end.",
        {"open_transactions": [row("open_transactions", hanging=True, open_ms=3_600_000, holds_stable_offset=False)]},
    ),
    "transaction_open": (
        {"open_transactions": [row("open_transactions", open_ms=1_800_000, transactional_id="billing")]},
        "warning",
        "A transaction in `orders-0` was open for 30 min (transactional id `billing`). Readers of committed records "
        "wait at offset `12`.",
        {"open_transactions": [row("open_transactions", open_ms=60_000)]},
    ),
    "group_silent": (
        {"dead_groups": [row("dead_groups", silent_ms=8 * 86_400_000, lag_now=40)]},
        "info",
        "Group `g` hasn't committed for 8 days; 40 records waited.",
        {"dead_groups": [row("dead_groups", silent_ms=86_400_000)]},
    ),
    "group_topics_gone": (
        {"dead_groups": [row("dead_groups", topics_gone=["old"])]},
        "info",
        "Group `g` has offsets of topics that don't exist: `old`.",
        {"dead_groups": [row("dead_groups")]},
    ),
}
