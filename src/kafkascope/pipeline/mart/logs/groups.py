"""Selects what groups committed, minute by minute, with their lag; and for how long each group hasn't committed."""

from kafkascope.pipeline.mart.logs.frames import records

_RECORD = "capture_uri offset leader_epoch written_at snapshot_offset topic partition producer_id"
_SHARE = f"{_RECORD} key value"
TABLES = {
    "offset_commit": f"{_RECORD} key.group key.topic key.partition value.offset",
    "legacy_offset_commit": f"{_RECORD} key.group key.topic key.partition value.offset",
    "control_records": f"{_RECORD} type",
    "group_metadata": f"{_RECORD} key.group value.members.member_id",
    **{f"{kind}_group_metadata": f"{_RECORD} key.group_id value.epoch" for kind in ("consumer", "share", "streams")},
    **{f"{kind}_group_member_metadata": f"{_RECORD} key.group_id key.member_id value.client_id"
       for kind in ("consumer", "share", "streams")},
    "share_update": _SHARE,
    "share_snapshot": _SHARE,
}  # fmt: skip

_COMMIT = (
    "a.key.`group` AS group_id, a.key.topic AS topic, a.key.partition AS partition, a.value.`offset` AS committed,"
    " a.producer_id"
)
_PARTITION = "cluster, group_id, topic, partition"
_KINDS = ("consumer", "share", "streams")


# The last record about each group: its type, or null if the group is gone.
_GROUPS = records(
    "a.key.group_id, CAST(NULL AS INT) AS members, a.value IS NULL AS gone",
    *(f"{kind}_group_metadata" for kind in _KINDS),
)
_CLASSIC = records("a.key.`group` AS group_id, size(a.value.members) AS members, a.value IS NULL AS gone",
                   "group_metadata")  # fmt: skip
_MEMBERS = records(
    "a.key.group_id, a.key.member_id, a.value IS NULL AS gone",
    *(f"{kind}_group_member_metadata" for kind in _KINDS),
)

DERIVED = {
    "all_commits": records(_COMMIT, "offset_commit", "legacy_offset_commit"),
    "markers": f"SELECT * FROM ({records('a.type AS marker, a.producer_id', 'control_records')})"
    " WHERE log_topic = '__consumer_offsets'",
    # Offsets of a transaction count once its marker commits them.
    "commits": """
SELECT cluster, log_partition, log_offset, at, group_id, topic, partition, committed FROM {all_commits}
WHERE producer_id < 0
UNION ALL
SELECT c.cluster, c.log_partition, c.log_offset, any_value(c.at), any_value(c.group_id), any_value(c.topic),
       any_value(c.partition), any_value(c.committed)
FROM {all_commits} c JOIN {markers} m ON c.cluster = m.cluster
  AND c.log_partition = m.log_partition AND c.producer_id = m.producer_id AND m.log_offset > c.log_offset
WHERE c.producer_id >= 0
GROUP BY c.cluster, c.log_partition, c.log_offset HAVING min_by(m.marker, m.log_offset) = 'COMMIT'""",
    "minutes": f"""
SELECT {_PARTITION}, date_trunc('MINUTE', at) AS minute_at, max_by(at, log_offset) AS last_at, count(*) AS commits,
       count_if(committed < before) AS rewinds, max_by(committed, log_offset) AS committed_offset,
       max(log_offset) = max(max(log_offset)) OVER (PARTITION BY {_PARTITION}) AS latest
FROM (SELECT *, lag(committed) OVER (PARTITION BY {_PARTITION} ORDER BY log_offset) AS before FROM {{commits}})
GROUP BY {_PARTITION}, date_trunc('MINUTE', at)""",
    # The end of the log after each minute, by the times of its records.
    "ends_by_minute": """
SELECT l.cluster, l.topic, l.partition, date_trunc('MINUTE', l.written_at) AS minute_at,
       max(l.last_offset) + 1 AS end_offset
FROM {log} l JOIN {current} n ON l.cluster = n.cluster AND l.topic = n.topic AND l.log_id = n.log_id
GROUP BY 1, 2, 3, 4""",
    "group_types": f"""
SELECT cluster, group_id,
       max_by(IF(gone, NULL, IF(type = 'group_metadata', 'classic', replace(type, '_group_metadata'))), at)
         AS group_type, max_by(members, at) AS members
FROM ({_GROUPS} UNION ALL {_CLASSIC}) GROUP BY 1, 2""",
    "group_members": f"""
SELECT cluster, group_id, count_if(NOT gone) AS members FROM (
  SELECT cluster, group_id, member_id, max_by(gone, log_offset) AS gone FROM ({_MEMBERS}) GROUP BY 1, 2, 3)
GROUP BY 1, 2""",
    "share_touched": records(
        "a.key.group_id, a.key.topic_id AS share_topic_id, a.key.partition AS share_partition",
        "share_update",
        "share_snapshot",
    ),
    "known_topics": """
SELECT t.cluster, collect_set(t.name) AS names FROM (
  SELECT p.cluster, a.value.name AS name, a.value.topic_id AS log_id FROM {topic_record} a
  JOIN {places} p ON a.capture_uri = p.capture_uri AND a.ingest_id = p.ingest_id
  LEFT JOIN (SELECT p.cluster, max(a.snapshot_offset) AS latest FROM {topic_record} a
             JOIN {places} p ON a.capture_uri = p.capture_uri AND a.ingest_id = p.ingest_id GROUP BY 1) s
    ON p.cluster = s.cluster
  WHERE a.snapshot_offset = s.latest OR a.snapshot_offset IS NULL AND a.`offset` >= coalesce(s.latest, 0)) t
LEFT ANTI JOIN {removed} r ON t.cluster = r.cluster AND t.log_id = r.log_id
GROUP BY 1""",
    "activity": """
SELECT m.cluster, m.group_id, m.topic, m.partition, m.last_at AS at, e.end_offset - m.committed_offset AS lag
FROM {minutes} m LEFT JOIN {ends} e ON m.cluster = e.cluster AND m.topic = e.topic AND m.partition = e.partition
WHERE m.latest AND m.committed_offset IS NOT NULL
UNION ALL
SELECT s.cluster, s.group_id, coalesce(n.name, s.share_topic_id), s.share_partition, max(s.at), NULL
FROM {share_touched} s LEFT JOIN {names} n ON s.cluster = n.cluster AND s.share_topic_id = n.topic_id
GROUP BY 1, 2, 3, 4""",
}

GROUP_OFFSETS = """
SELECT nullif(cluster, '') AS cluster_id, group_id, topic, CAST(partition AS BIGINT) AS partition, minute_at, last_at,
       commits, rewinds, committed_offset, known_end AS log_end_offset,
       IF(known_end >= committed_offset, known_end - committed_offset, NULL) AS lag, latest,
       IF(latest AND end_offset >= committed_offset, end_offset - committed_offset, NULL) AS lag_now
FROM (
  SELECT u.*, e.end_offset, max(u.minute_end) OVER (PARTITION BY u.cluster, u.topic, u.partition
         ORDER BY u.minute_at RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS known_end
  FROM (
    SELECT cluster, group_id, topic, partition, minute_at, last_at, commits, rewinds, committed_offset, latest,
           NULL AS minute_end FROM {minutes}
    UNION ALL
    SELECT cluster, NULL, topic, partition, minute_at, NULL, NULL, NULL, NULL, NULL, end_offset FROM {ends_by_minute}
  ) u LEFT JOIN {ends} e ON u.cluster = e.cluster AND u.topic = e.topic AND u.partition = e.partition
) WHERE group_id IS NOT NULL
"""

DEAD_GROUPS = """
SELECT nullif(a.cluster, '') AS cluster_id, a.group_id, t.group_type,
       CAST(coalesce(m.members, IF(t.group_type = 'classic', t.members, IF(t.group_type IS NULL, NULL, 0))) AS BIGINT)
         AS members,
       a.partitions, a.topics, IF(k.names IS NULL, array(), array_except(a.topics, k.names)) AS topics_gone,
       a.last_commit_at, w.read_at, unix_millis(w.read_at) - unix_millis(a.last_commit_at) AS silent_ms, a.lag_now
FROM (SELECT cluster, group_id, count(*) AS partitions, sort_array(collect_set(topic)) AS topics,
             max(at) AS last_commit_at, sum(greatest(lag, 0)) AS lag_now
      FROM {activity} GROUP BY 1, 2) a
JOIN {clock} w ON a.cluster = w.cluster
LEFT JOIN {group_types} t ON a.cluster = t.cluster AND a.group_id = t.group_id
LEFT JOIN {group_members} m ON a.cluster = m.cluster AND a.group_id = m.group_id
LEFT JOIN {known_topics} k ON a.cluster = k.cluster
"""
