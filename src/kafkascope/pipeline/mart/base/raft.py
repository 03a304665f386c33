"""Names what shows the metadata topic in messages, and the messages that show which cluster an address belongs to."""

# The columns needed of Raft's fetches.
FETCH_REQUEST = (
    "cluster_id replica_id replica_state max_wait_ms topics.topic topics.topic_id"
    " topics.partitions.current_leader_epoch topics.partitions.fetch_offset topics.partitions.replica_directory_id"
)

METADATA_TOPIC = "__cluster_metadata"
# The id of the metadata topic is the same in every cluster (Uuid.METADATA_TOPIC_ID).
METADATA_TOPIC_ID_TEXT = "AAAAAAAAAAAAAAAAAAAAAQ"
# For a topic `t`, by name or id, whichever the version has.
IS_METADATA_TOPIC = f"(t.topic = '{METADATA_TOPIC}' OR t.topic_id = '{METADATA_TOPIC_ID_TEXT}')"

# Requests and responses that show which cluster an address belongs to; DescribeQuorum doesn't.
_NAMED = "SELECT unix_micros(coalesce(request_at, response_at)) AS row_at, broker_address AS address, cluster_id"
CLUSTERS = (
    f"{_NAMED} FROM {{fetch_request}} WHERE exists(topics, t -> {IS_METADATA_TOPIC})",
    f"{_NAMED} FROM {{vote_request}}",
    f"{_NAMED} FROM {{broker_registration_request}}",
    f"{_NAMED} FROM {{describe_cluster_response}}",
    f"{_NAMED} FROM {{metadata_response}}",
)
