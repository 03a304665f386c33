"""Selects the health of each replica: its size and range, damage, and what differs from the other replicas. Segments
that a broker has removed since they were read don't count."""

TABLES = {"quarantine": "capture_uri bytes", "captures": "ingested_at"}
_LOG = "cluster, topic, partition, log_id"
_REPLICA = f"broker, {_LOG}"
# Of a row of `log_segments`.
_OF_SEGMENT = (
    "coalesce(s.broker, -1) AS broker, coalesce(s.cluster_id, '') AS cluster, s.topic, s.partition,"
    " coalesce(s.topic_id, '') AS log_id"
)


def _on(left: str, right: str, columns: str) -> str:
    return " AND ".join(f"{left}.{name} = {right}.{name}" for name in columns.split(", "))


def _of(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{name}" for name in columns.split(", "))


DERIVED = {
    "clean": "SELECT coalesce(cluster_id, '') AS cluster, topic, partition, coalesce(topic_id, '') AS log_id,"
    " max(clean_until) AS clean_until FROM {log_segments} GROUP BY 1, 2, 3, 4",
    "ingests": "SELECT ingest_id, max(ingested_at) AS ingested_at FROM {captures} GROUP BY 1",
    # The segments that the latest ingest saw of each replica. Retention removes the first, compaction joins others.
    "kept": f"""
SELECT {_OF_SEGMENT}, max_by(s.listed_segments, i.ingested_at) AS listed,
       array_min(max_by(s.listed_segments, i.ingested_at)) AS first_segment
FROM {{log_segments}} s JOIN {{ingests}} i ON s.ingest_id = i.ingest_id
WHERE s.kind = 'segment' AND s.listed_segments IS NOT NULL GROUP BY 1, 2, 3, 4, 5""",
    # Compaction rewrites batches, on each broker for itself: only what it hasn't reached can be compared.
    "differing": f"""
SELECT {_REPLICA}, count(*) AS differing_batches, min(base_offset) AS differs_from FROM (
  SELECT {_LOG}, base_offset, copies, inline(copies) FROM (
    SELECT {_of("b", _LOG)}, b.base_offset, collect_list(struct(b.broker, b.crc, b.last_offset)) AS copies
    FROM {{valid}} b LEFT JOIN {{clean}} c ON {_on("b", "c", _LOG)} LEFT JOIN {{kept}} k ON {_on("b", "k", _REPLICA)}
    WHERE b.base_offset >= greatest(c.clean_until, k.first_segment, 0) AND b.delete_horizon_at IS NULL
    GROUP BY ALL HAVING count(DISTINCT b.crc, b.last_offset) > 1
  )
) WHERE size(filter(copies, x -> x.crc = crc AND x.last_offset = last_offset)) * 2 <= size(copies)
GROUP BY {_REPLICA}""",
    "checked": f"""
SELECT {_of("b", _REPLICA)}, count_if(NOT b.crc_ok) AS bad_crc,
       IF(max(c.clean_until) IS NULL, NULL, sum(IF(b.base_offset >= c.clean_until, b.size_bytes, 0))) AS dirty_bytes
FROM {{batches}} b LEFT JOIN {{clean}} c ON {_on("b", "c", _LOG)} LEFT JOIN {{kept}} k ON {_on("b", "k", _REPLICA)}
WHERE b.base_offset >= coalesce(k.first_segment, b.base_offset) GROUP BY 1, 2, 3, 4, 5""",
    # A segment that moved to another disk of its broker is the same one.
    "segment_files": f"""
SELECT {_OF_SEGMENT}, IF(s.broker IS NULL, s.capture_uri, NULL) AS file, s.base_offset,
       max_by(s.size_bytes, i.ingested_at) AS bytes, sum(s.batches) AS batches, sum(s.records) AS records,
       min(s.first_offset) AS first_offset, max(s.end_offset) AS end_offset, min(s.first_at) AS earliest_at,
       max(s.last_at) AS latest_at, max(s.log_start_offset) AS log_start_offset,
       max(s.high_watermark) AS high_watermark, max(s.clean_until) AS clean_until,
       sum(s.damaged_bytes) AS damaged_bytes, max(coalesce(q.quarantined, 0)) AS quarantined
FROM {{log_segments}} s JOIN {{ingests}} i ON s.ingest_id = i.ingest_id
LEFT JOIN (SELECT capture_uri, count(*) AS quarantined FROM {{quarantine}} GROUP BY 1) q
  ON s.capture_uri = q.capture_uri
WHERE s.kind = 'segment' GROUP BY 1, 2, 3, 4, 5, 6, 7""",
    "replica_sums": f"""
SELECT {_of("f", _REPLICA)}, count_if(is_there) AS segments, sum(IF(is_there, bytes, 0)) AS bytes,
       sum(batches) AS batches, sum(records) AS records,
       min(first_offset) AS first_offset, max(end_offset) AS end_offset, min(earliest_at) AS earliest_at,
       max(latest_at) AS latest_at, max(log_start_offset) AS log_start_offset, max(high_watermark) AS high_watermark,
       max(clean_until) AS clean_until, sum(damaged_bytes) AS damaged_bytes, sum(quarantined) AS quarantined
FROM (SELECT f.*, coalesce(array_contains(k.listed, f.base_offset), true) AS is_there
      FROM {{segment_files}} f LEFT JOIN {{kept}} k ON {_on("f", "k", _REPLICA)}
      WHERE f.base_offset >= coalesce(k.first_segment, f.base_offset)) f
GROUP BY {_of("f", _REPLICA)}""",
}

LOG_HEALTH = f"""
SELECT nullif(r.cluster, '') AS cluster_id, CAST(nullif(r.broker, -1) AS BIGINT) AS broker, r.topic,
       nullif(r.log_id, '') AS topic_id, CAST(r.partition AS BIGINT) AS partition,
       count(*) OVER logs AS replicas, r.segments, r.bytes, r.batches, r.records, r.first_offset, r.end_offset,
       r.earliest_at, r.latest_at, r.log_start_offset, r.high_watermark, r.clean_until, k.dirty_bytes, r.damaged_bytes,
       coalesce(k.bad_crc, 0) AS bad_crc, r.quarantined,
       coalesce((max(r.end_offset) OVER logs) - r.end_offset, 0) AS missing_records,
       (max(r.bytes) OVER logs) - r.bytes AS missing_bytes,
       coalesce(d.differing_batches, 0) AS differing_batches, d.differs_from
FROM {{replica_sums}} r
LEFT JOIN {{checked}} k ON {_on("r", "k", _REPLICA)}
LEFT JOIN {{differing}} d ON {_on("r", "d", _REPLICA)}
WINDOW logs AS (PARTITION BY r.cluster, r.topic, r.partition, r.log_id)
"""
