"""Makes rows of marts that show a trouble, or nearly."""

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
