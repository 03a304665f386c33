"""Selects what compaction would drop from Kafka's own topics: records that a later one with their key has replaced, and
tombstones past their horizon."""

from collections.abc import Collection

from kafkascope.lake.log_tables import record_schema, record_types
from kafkascope.pipeline.mart.logs.frames import LOCATED_BY, located

_RECORD = "capture_uri offset leader_epoch written_at snapshot_offset topic partition broker key"
KEYED = tuple(sorted(name for name, type_ in record_types().items() if "key" in record_schema(type_).names))
# `value` itself isn't needed, only if it's there: its version is.
TABLES = dict.fromkeys(KEYED, f"{_RECORD} version")
_REPLICA = "cluster, broker, topic, partition"


def _keyed(name: str) -> str:
    return (
        f"SELECT {LOCATED_BY}, coalesce(a.broker, -1) AS broker, a.`offset` AS log_offset, '{name}' AS record_type,"
        f" to_json(a.key) AS record_key, a.version IS NULL AS tombstone FROM {{{name}}} a"
    )


def compaction_waste(absent: Collection[str]) -> str | None:
    """The statement; None if no such record was read. Compaction on one broker has been up to its `clean_until`: what
    was replaced before that is gone from the disk, though its rows are still in the lake."""
    present = [_keyed(name) for name in KEYED if name not in absent]
    if not present:
        return None
    records = located(" UNION ALL ".join(present))
    keyed = (
        f"SELECT {_REPLICA}, log_offset, 1 AS is_record, record_type, record_key, tombstone, NULL AS batch"
        f" FROM ({records})"
    )
    batches = f"""
SELECT {_REPLICA}, base_offset, 0, NULL, NULL, NULL,
       struct(size_bytes / greatest(coalesce(records_count, 1), 1) AS bytes, delete_horizon_at AS horizon)
FROM {{valid}} WHERE startswith(topic, '__') AND NOT is_control"""
    clean = (
        "SELECT coalesce(cluster_id, '') AS cluster, coalesce(broker, -1) AS broker, topic, partition,"
        " max(clean_until) AS clean_until FROM {log_segments} GROUP BY 1, 2, 3, 4"
    )
    return f"""
SELECT nullif(cluster, '') AS cluster_id, CAST(nullif(broker, -1) AS BIGINT) AS broker, topic,
       CAST(partition AS BIGINT) AS partition, record_type, count(*) AS records, CAST(sum(bytes) AS BIGINT) AS bytes,
       count(DISTINCT record_key) AS keys, count_if(next_offset IS NOT NULL) AS superseded,
       CAST(coalesce(sum(IF(next_offset IS NOT NULL, bytes, 0)), 0) AS BIGINT) AS superseded_bytes,
       count_if(tombstone) AS tombstones, count_if(expired) AS expired_tombstones,
       CAST(coalesce(sum(IF(expired, bytes, 0)), 0) AS BIGINT) AS expired_bytes, max(clean_until) AS clean_until
FROM (
  SELECT r.*, c.clean_until, coalesce(r.tombstone AND r.next_offset IS NULL AND r.horizon < w.read_at, false) AS expired
  FROM (
    SELECT *, batch_info.bytes AS bytes, batch_info.horizon AS horizon,
           lead(log_offset) OVER (PARTITION BY {_REPLICA}, record_type, record_key ORDER BY log_offset) AS next_offset
    FROM (SELECT *, last_value(batch, true) OVER (PARTITION BY {_REPLICA} ORDER BY log_offset, is_record) AS batch_info
          FROM ({keyed} UNION ALL {batches}))
    WHERE is_record = 1
  ) r LEFT JOIN ({clean}) c ON {" AND ".join(f"r.{name} = c.{name}" for name in _REPLICA.split(", "))}
  LEFT JOIN {{clock}} w ON r.cluster = w.cluster
)
WHERE next_offset IS NULL OR clean_until IS NULL OR next_offset >= clean_until
GROUP BY cluster, broker, topic, partition, record_type
"""
