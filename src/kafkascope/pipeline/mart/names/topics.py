"""Selects the mart of topics: the ids and names in responses, with the cluster, from when to when."""

from kafkascope.pipeline.mart.base.events import NO_TOPIC, ROW_AT, columns_of, select
from kafkascope.pipeline.mart.increments.sums import Sums

TABLES = {
    "metadata_response": "cluster_id topics.error_code topics.name topics.topic_id topics.is_internal"
    " topics.partitions.partition_index",
    "create_topics_request": "validate_only",
    "create_topics_response": "topics.error_code topics.name topics.topic_id topics.num_partitions",
    "describe_topic_partitions_response": "topics.error_code topics.name topics.topic_id topics.is_internal"
    " topics.partitions.partition_index next_cursor",
    "alter_share_group_offsets_response": "error_code responses.topic_id responses.topic_name"
    " responses.partitions.error_code",
    "describe_share_group_offsets_response": "groups",
}

_TOPIC = columns_of(
    "broker_address string, cluster_id string, topic_id string, topic string, internal boolean, partitions bigint,"
    "at bigint, row_at bigint"
)
# For a topic `t`, by its highest partition: a page of DescribeTopicPartitions may begin anywhere.
_PARTITIONS = "CAST(array_max(transform(t.partitions, p -> p.partition_index)) AS BIGINT) + 1"
# With an error, a response repeats the requested name, whether that topic exists or not.
_THERE = "LATERAL VIEW explode({array}) AS t WHERE t.error_code = 0"
_PARTITION_THERE = "exists(t.partitions, p -> p.error_code = 0)"


def _topics(source: str, **values: str) -> str:
    return select(
        _TOPIC,
        source,
        **{
            "broker_address": "r.broker_address",
            "topic_id": f"nullif(t.topic_id, '{NO_TOPIC}')",
            "topic": "t.name",
            "at": "unix_micros(coalesce(r.response_at, r.request_at))",
            "row_at": ROW_AT.format("r"),
            **values,
        },
    )


SIGHTINGS = (
    _topics(
        f"FROM {{metadata_response}} r {_THERE.format(array='r.topics')}",
        cluster_id="r.cluster_id", internal="t.is_internal", partitions=_PARTITIONS,
    ),
    # A request with validate_only creates nothing.
    _topics(
        "FROM (SELECT a.*, q.validate_only FROM {create_topics_response} a"
        " LEFT JOIN {create_topics_request} q ON a.exchange_id = q.exchange_id) r"
        f" {_THERE.format(array='r.topics')} AND NOT coalesce(r.validate_only, false)",
        partitions="IF(t.num_partitions > 0, t.num_partitions, NULL)",
    ),
    _topics(
        f"FROM {{describe_topic_partitions_response}} r {_THERE.format(array='r.topics')}",
        # The other partitions are on the next page.
        internal="t.is_internal", partitions=f"IF(r.next_cursor.topic_name = t.name, NULL, {_PARTITIONS})",
    ),
    _topics(
        "FROM {alter_share_group_offsets_response} r LATERAL VIEW explode(r.responses) AS t"
        f" WHERE r.error_code = 0 AND {_PARTITION_THERE}",
        topic="t.topic_name",
    ),
    _topics(
        "FROM {describe_share_group_offsets_response} r LATERAL VIEW explode(r.groups) AS g"
        f" LATERAL VIEW explode(g.topics) AS t WHERE g.error_code = 0 AND {_PARTITION_THERE}",
        topic="t.topic_name",
    ),
)  # fmt: skip


def only(value: str, window: str) -> str:
    """The value in all rows of a window that have one; null if they differ."""
    return f"IF(min({value}) OVER {window} = max({value}) OVER {window}, min({value}) OVER {window}, NULL)"


_NEWEST = "struct<at:bigint, value:{}>"
SUMS = Sums(
    "topics",
    {"broker_address": "string", "cluster_id": "string", "topic_id": "string", "topic": "string"},
    {
        "internal": (_NEWEST.format("boolean"), "max"),
        "partitions": (_NEWEST.format("bigint"), "max"),
        "first_at": ("bigint", "min"),
        "last_at": ("bigint", "max"),
    },
)
# What is added up, of the union of sightings.
COUNTED_SIGHTINGS = """
SELECT row_at, broker_address, cluster_id, topic_id, topic,
       IF(internal IS NULL, NULL, struct(at, internal AS value)) AS internal,
       IF(partitions IS NULL, NULL, struct(at, partitions AS value)) AS partitions, at AS first_at, at AS last_at
FROM ({sightings}) WHERE topic IS NOT NULL
"""

# Topic ids are unique across clusters, so they show which cluster an address belongs to if nothing else does: the
# address of a lone controller, at which brokers create topics. Older versions send only names: such a row gets the id
# of that name if there is exactly one.
STATEMENT = f"""
SELECT topic_id, min(topic) AS topic, cluster_id, max(internal).value AS internal, max(partitions).value AS partitions,
       timestamp_micros(min(first_at)) AS first_at, timestamp_micros(max(last_at)) AS last_at
FROM (
  SELECT *, max(own_id) OVER names IS NULL AS nameless, coalesce(own_id, {only("own_id", "names")}) AS topic_id
  FROM (
    SELECT *, coalesce(cluster_of_id, IF(address IS NULL, NULL, {only("cluster_of_id", "addresses")})) AS cluster_id
    FROM (
      SELECT *, coalesce(own_cluster, IF(own_id IS NULL, NULL, {only("own_cluster", "ids")})) AS cluster_of_id
      FROM (
        SELECT coalesce(s.cluster_id, c.cluster_id) AS own_cluster,
               IF(coalesce(s.cluster_id, c.cluster_id) IS NULL, s.broker_address, NULL) AS address,
               s.topic_id AS own_id, s.topic, max(s.internal) AS internal, max(s.partitions) AS partitions,
               min(s.first_at) AS first_at, max(s.last_at) AS last_at
        FROM {{{{topic_sums}}}} s LEFT JOIN {{{{clusters}}}} c ON s.broker_address = c.broker_address
        WHERE {{now}}
        GROUP BY 1, 2, 3, 4
      )
      WINDOW ids AS (PARTITION BY own_id)
    )
    WINDOW addresses AS (PARTITION BY address)
  )
  WINDOW names AS (PARTITION BY cluster_id, topic)
)
WHERE topic_id IS NOT NULL OR nameless
GROUP BY cluster_id, topic_id, IF(topic_id IS NULL, topic, NULL)
"""
