"""Responses and exchanges in, the marts of topics and of groups out: what a name means, from when to when it was seen.
One job writes both, as `several` has it."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkascope.pipeline.mart.events import NO_TOPIC, Tables, columns_of, named_tables, select, union_text
from kafkascope.pipeline.mart.several import rows_of_several

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DESCRIBED = "groups.error_code groups.group_id groups.group_state groups.members.member_id"
TABLES = {
    "metadata_response": "cluster_id topics.error_code topics.name topics.topic_id topics.is_internal"
    " topics.partitions.partition_index",
    "create_topics_request": "validate_only",
    "create_topics_response": "topics.error_code topics.name topics.topic_id topics.num_partitions",
    "describe_topic_partitions_response": "topics.error_code topics.name topics.topic_id topics.is_internal"
    " topics.partitions.partition_index next_cursor",
    "alter_share_group_offsets_response": "error_code responses.topic_id responses.topic_name",
    "describe_share_group_offsets_response": "groups",
    "exchanges": "group_id member_id api broker_address request_at response_at error_code status",
    "join_group_request": "group_id protocol_type",
    "list_groups_response": "error_code groups",
    "describe_groups_response": f"{_DESCRIBED} groups.protocol_type",
    "consumer_group_describe_response": _DESCRIBED,
    "share_group_describe_response": _DESCRIBED,
    "streams_group_describe_response": _DESCRIBED,
}

_TOPIC = columns_of(
    "broker_address string, cluster_id string, topic_id string, topic string, internal boolean, partitions bigint,"
    "at timestamp"
)
# Of a topic `t`, by its highest partition: a page of DescribeTopicPartitions may begin anywhere.
_PARTITIONS = "CAST(array_max(transform(t.partitions, p -> p.partition_index)) AS BIGINT) + 1"
# An error names what was asked for, whether it exists or not.
_THERE = "LATERAL VIEW explode({array}) AS t WHERE t.error_code = 0"


def _topics(source: str, **values: str) -> str:
    return select(
        _TOPIC,
        source,
        **{
            "broker_address": "r.broker_address",
            "topic_id": f"nullif(t.topic_id, '{NO_TOPIC}')",
            "topic": "t.name",
            "at": "coalesce(r.response_at, r.request_at)",
            **values,
        },
    )


_TOPIC_SIGHTINGS = (
    _topics(
        f"FROM {{metadata_response}} r {_THERE.format(array='r.topics')}",
        cluster_id="r.cluster_id", internal="t.is_internal", partitions=_PARTITIONS,
    ),
    # Of what was only validated nothing was created.
    _topics(
        "FROM (SELECT a.*, q.validate_only FROM {create_topics_response} a"
        " LEFT JOIN {create_topics_request} q ON a.exchange_id = q.exchange_id) r"
        f" {_THERE.format(array='r.topics')} AND NOT coalesce(r.validate_only, false)",
        partitions="IF(t.num_partitions > 0, t.num_partitions, NULL)",
    ),
    _topics(
        f"FROM {{describe_topic_partitions_response}} r {_THERE.format(array='r.topics')}",
        # The rest is on the next page.
        internal="t.is_internal", partitions=f"IF(r.next_cursor.topic_name = t.name, NULL, {_PARTITIONS})",
    ),
    _topics(
        "FROM {alter_share_group_offsets_response} r LATERAL VIEW explode(r.responses) AS t WHERE r.error_code = 0",
        topic="t.topic_name",
    ),
    _topics(
        "FROM {describe_share_group_offsets_response} r LATERAL VIEW explode(r.groups) AS g"
        " LATERAL VIEW explode(g.topics) AS t WHERE g.error_code = 0",
        topic="t.topic_name",
    ),
)  # fmt: skip


def _only(value: str, window: str) -> str:
    """The value of all rows of a window that have any; null where they differ."""
    return f"IF(min({value}) OVER {window} = max({value}) OVER {window}, min({value}) OVER {window}, NULL)"


# An id is of one cluster, so it tells whose an address is that nothing else tells of: brokers create topics at a
# controller. Older versions have no ids: what they say is about the topic of that name, where one has it.
_TOPICS = f"""
SELECT topic_id, min(topic) AS topic, cluster_id, max(internal).value AS internal, max(partitions).value AS partitions,
       min(first_at) AS first_at, max(last_at) AS last_at
FROM (
  SELECT *, max(own_id) OVER names IS NULL AS nameless, coalesce(own_id, {_only("own_id", "names")}) AS topic_id
  FROM (
    SELECT *, coalesce(cluster_of_id, IF(address IS NULL, NULL, {_only("cluster_of_id", "addresses")})) AS cluster_id
    FROM (
      SELECT *, coalesce(own_cluster, IF(own_id IS NULL, NULL, {_only("own_cluster", "ids")})) AS cluster_of_id
      FROM (
        SELECT coalesce(s.cluster_id, c.cluster_id) AS own_cluster,
               IF(coalesce(s.cluster_id, c.cluster_id) IS NULL, s.broker_address, NULL) AS address,
               s.topic_id AS own_id, s.topic,
               max(IF(s.internal IS NULL, NULL, struct(s.at, s.internal AS value))) AS internal,
               max(IF(s.partitions IS NULL, NULL, struct(s.at, s.partitions AS value))) AS partitions,
               min(s.at) AS first_at, max(s.at) AS last_at
        FROM ({{sightings}}) s LEFT JOIN {{{{clusters}}}} c ON s.broker_address = c.broker_address
        WHERE s.topic IS NOT NULL
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

_GROUP = columns_of(
    "broker_address string, group_id string, member_id string, at timestamp, calls bigint, group_type string,"
    "certain int, protocol_type string, state string, coordinator string"
)
# A group that moves to the newer protocol has members of both, and so has one type: what only the newer one tells is
# more certain, and what is described or listed most.
_CLASSIC, _NEWER, _DESCRIBED_TYPE = map(str, range(3))
_TYPE_OF_CALL = """CASE
  WHEN coalesce(error_code, 0) <> 0 THEN NULL
  WHEN api IN ('JoinGroup', 'SyncGroup', 'Heartbeat') THEN 'classic'
  WHEN api = 'ConsumerGroupHeartbeat' THEN 'consumer'
  WHEN api IN ('ShareGroupHeartbeat', 'ShareFetch', 'ShareAcknowledge') THEN 'share'
  WHEN api = 'StreamsGroupHeartbeat' THEN 'streams' END"""
# Only the coordinator responds to these without an error; records come from others.
_OF_COORDINATOR = (
    "api IN ('JoinGroup', 'SyncGroup', 'Heartbeat', 'LeaveGroup', 'ConsumerGroupHeartbeat', 'ShareGroupHeartbeat',"
    " 'StreamsGroupHeartbeat', 'OffsetCommit', 'OffsetFetch', 'TxnOffsetCommit')"
)


_LISTED = {
    "broker_address": "r.broker_address",
    "group_id": "g.group_id",
    "at": "coalesce(r.response_at, r.request_at)",
    "calls": "0",
    "certain": _DESCRIBED_TYPE,
    "coordinator": "r.broker_address",
}


def _described(table: str, where: str, **values: str) -> str:
    return select(
        _GROUP,
        f"FROM {{{table}}} r LATERAL VIEW explode(r.groups) AS g"
        f" LATERAL VIEW OUTER explode(g.members.member_id) AS m WHERE g.error_code = 0{where}",
        **{**_LISTED, "member_id": "m", "state": "g.group_state", **values},
    )


_GROUP_SIGHTINGS = (
    select(
        _GROUP,
        "FROM {exchanges} WHERE group_id <> ''",
        broker_address="broker_address",
        group_id="group_id",
        member_id="member_id",
        at="coalesce(request_at, response_at)",
        calls="1",
        group_type=_TYPE_OF_CALL,
        certain=f"IF(api IN ('JoinGroup', 'SyncGroup', 'Heartbeat'), {_CLASSIC}, {_NEWER})",
        coordinator=f"IF(status = 'answered' AND error_code = 0 AND {_OF_COORDINATOR}, broker_address, NULL)",
    ),
    select(
        _GROUP,
        "FROM {join_group_request} WHERE group_id <> ''",
        broker_address="broker_address",
        group_id="group_id",
        at="request_at",
        calls="0",
        protocol_type="protocol_type",
    ),
    select(
        _GROUP,
        "FROM {list_groups_response} r LATERAL VIEW explode(r.groups) AS g WHERE r.error_code = 0",
        **_LISTED,
        group_type="lower(g.group_type)",
        protocol_type="g.protocol_type",
        state="g.group_state",
    ),
    # A broker responds so about every id that is no classic group.
    _described(
        "describe_groups_response",
        " AND g.group_state <> 'Dead'",
        group_type="'classic'",
        protocol_type="g.protocol_type",
    ),
    _described("consumer_group_describe_response", "", group_type="'consumer'"),
    _described("share_group_describe_response", "", group_type="'share'"),
    _described("streams_group_describe_response", "", group_type="'streams'"),
)


def _newest(value: str, *before: str) -> str:
    """With what it goes by; null and empty ones don't count."""
    return f"max(IF({value} <> '', struct({', '.join((*before, 's.at', f'{value} AS value'))}), NULL))"


# First by member, which are few of many calls; then a broker whose cluster nothing names counts to the one where the
# group is.
_GROUPS = f"""
SELECT group_id, cluster_id, max(group_type).value AS group_type, max(protocol_type).value AS protocol_type,
       max(state).value AS state, max(coordinator).value AS coordinator, count(DISTINCT member_id) AS members,
       sum(calls) AS calls, min(first_at) AS first_at, max(last_at) AS last_at
FROM (
  SELECT *, coalesce(own_cluster, {_only("own_cluster", "ids")}) AS cluster_id
  FROM (
    SELECT s.group_id, c.cluster_id AS own_cluster, nullif(s.member_id, '') AS member_id,
           {_newest("s.group_type", "s.certain")} AS group_type, {_newest("s.protocol_type")} AS protocol_type,
           {_newest("s.state")} AS state, {_newest("s.coordinator")} AS coordinator, sum(s.calls) AS calls,
           min(s.at) AS first_at, max(s.at) AS last_at
    FROM ({{sightings}}) s LEFT JOIN {{{{clusters}}}} c ON s.broker_address = c.broker_address
    GROUP BY 1, 2, 3
  )
  WINDOW ids AS (PARTITION BY group_id)
)
GROUP BY group_id, cluster_id
"""

_STATEMENTS = {"topics": (_TOPICS, _TOPIC_SIGHTINGS), "groups": (_GROUPS, _GROUP_SIGHTINGS)}


def name_rows(
    spark: "SparkSession", tables: Tables, absent: Collection[str], clusters: Mapping[str, str]
) -> "DataFrame | None":
    """`tables` are those of TABLES, `absent` those without a row, `clusters` the ids of addresses."""
    texts = {}
    for name, (statement, sightings) in _STATEMENTS.items():
        text = union_text(sightings, absent)
        if text is not None:
            texts[name] = statement.format(sightings=text)
    if not texts:
        return None
    known = pa.table([pa.array(list(clusters), pa.string()), pa.array(list(clusters.values()), pa.string())],
                     names=["broker_address", "cluster_id"])  # fmt: skip
    given = {"clusters": spark.createDataFrame(known)}
    for text in texts.values():
        given |= named_tables(text.replace("{clusters}", ""), tables)
    return rows_of_several(spark, texts, **given)
