"""Lists the columns and rows of each mart that incidents need in addition to the findings."""

from kafkascope.health.findings.needs import Need, need

INCIDENT_NEEDS: dict[str, Need] = {
    "brokers": need("broker_address cluster_id node_id calls"),
    "groups": need("group_id coordinator"),
    "captures": need("kind last_at"),
    "quorum_events": need(
        "occurred_at kind epoch node_id cause duration_ms previous_leader_id detail cluster_id",
        lambda column: column("kind").isin(["elected", "late_resignation", "disconnected"]),
    ),
    "quorum_replicas": need("observed_at replica_id lag lag_ms fetch_age_ms cluster_id"),
    "share_deliveries": need(
        "group_id topic topic_id partition member_id client_id acquired_at outcome outcome_at broker_address",
        lambda column: column("outcome").isin(["lock_expired", "disconnected", "moved"]),
    ),
    "streams_unheld": need("group_id from_at to_at cause"),
    "api_errors": need("minute_at api error_code error client_id broker_address calls first_at last_at"),
    "api_latency": need("minute_at api broker_address long_poll unanswered", lambda column: column("unanswered") > 0),
}
