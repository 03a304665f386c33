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
IS_METADATA = f"(t.topic = '{METADATA_TOPIC}' OR t.topic_id = '{METADATA_TOPIC_ID_TEXT}')"

# Requests and responses that show which cluster an address belongs to; DescribeQuorum doesn't.
CLUSTERS = (
    f"SELECT broker_address AS address, cluster_id FROM {{fetch_request}} WHERE exists(topics, t -> {IS_METADATA})",
    "SELECT broker_address AS address, cluster_id FROM {vote_request}",
    "SELECT broker_address AS address, cluster_id FROM {broker_registration_request}",
    "SELECT broker_address AS address, cluster_id FROM {describe_cluster_response}",
    "SELECT broker_address AS address, cluster_id FROM {metadata_response}",
)
