"""Selects transactions without a marker: whose they are, if the coordinator knows them, and which of them holds the
last stable offset back."""

from kafkascope.pipeline.mart.logs.frames import records, same

_RECORD = "capture_uri offset leader_epoch written_at snapshot_offset topic partition"
TABLES = {
    "transaction_log": f"{_RECORD} key.transactional_id value.producer_id value.transaction_timeout_ms"
    " value.transaction_status value.transaction_partitions value.transaction_start_timestamp_ms",
    "producer_snapshots": "topic partition offset producer_id producer_epoch last_offset current_txn_first_offset"
    " topic_id cluster_id",
}
_STATES = "'Empty', 'Ongoing', 'PrepareCommit', 'PrepareAbort', 'CompleteCommit', 'CompleteAbort', 'Dead',"
_STATES += " 'PrepareEpochFence'"
# With one of these the coordinator still has to write markers.
_UNFINISHED = "('Ongoing', 'PrepareCommit', 'PrepareAbort', 'PrepareEpochFence')"

DERIVED = {
    "transaction_states": records(
        "a.key.transactional_id, a.value.producer_id, a.value.transaction_timeout_ms AS timeout_ms,"
        f" element_at(array({_STATES}), CAST(a.value.transaction_status AS INT) + 1) AS state,"
        " a.value.transaction_partitions AS partitions, a.value.transaction_start_timestamp_ms AS start_ms",
        "transaction_log",
    ),
    "coordinator": """
SELECT cluster, producer_id, max_by(struct(transactional_id, state, timeout_ms, partitions, start_ms), log_offset) AS t
FROM (SELECT *, row_number() OVER (PARTITION BY cluster, transactional_id ORDER BY log_offset DESC) AS nth
      FROM {transaction_states})
WHERE nth = 1 AND producer_id IS NOT NULL GROUP BY cluster, producer_id""",
    "coordinated": "SELECT DISTINCT cluster, true AS known FROM {spans} WHERE topic = '__transaction_state'",
    # A broker's last snapshot of a partition knows transactions whose first batches were gone when the log was read.
    "transactional": """
SELECT cluster, log_id, topic, partition, producer_id, producer_epoch, base_offset, last_offset,
       coalesce(records_count, 1) AS records, written_at
FROM {log} WHERE is_transactional AND NOT is_control
UNION ALL
SELECT cluster, log_id, topic, partition, producer_id, producer_epoch, current_txn_first_offset, last_offset, 0, NULL
FROM (SELECT *, coalesce(cluster_id, '') AS cluster, coalesce(topic_id, '') AS log_id,
             rank() OVER (PARTITION BY cluster_id, topic_id, topic, partition ORDER BY `offset` DESC) AS nth
      FROM {producer_snapshots})
WHERE nth = 1 AND current_txn_first_offset IS NOT NULL""",
    "without_marker": f"""
SELECT d.cluster, d.topic, d.partition, d.producer_id, max(d.producer_epoch) AS producer_epoch,
       min(d.base_offset) AS first_offset, max(d.last_offset) AS last_offset, sum(d.records) AS records,
       min_by(d.written_at, d.base_offset) AS first_at
FROM {{transactional}} d JOIN {{current}} n ON d.cluster = n.cluster AND d.topic = n.topic AND d.log_id = n.log_id
LEFT JOIN (SELECT cluster, log_id, topic, partition, producer_id, max(last_offset) AS ended FROM {{log}}
           WHERE is_control AND is_transactional GROUP BY ALL) m
  ON {same("d", "m")} AND d.producer_id = m.producer_id
WHERE d.base_offset > coalesce(m.ended, -1)
GROUP BY 1, 2, 3, 4""",
}

OPEN_TRANSACTIONS = f"""
SELECT nullif(o.cluster, '') AS cluster_id, o.topic, CAST(o.partition AS BIGINT) AS partition, o.producer_id,
       CAST(o.producer_epoch AS BIGINT) AS producer_epoch, c.t.transactional_id, c.t.state AS coordinator_state,
       IF(k.known, NOT coalesce(c.t.state IN {_UNFINISHED} AND exists(c.t.partitions,
          x -> x.topic = o.topic AND array_contains(x.partition_ids, o.partition)), false), NULL) AS hanging,
       CAST(c.t.timeout_ms AS BIGINT) AS timeout_ms, o.started_at, w.read_at,
       unix_millis(w.read_at) - unix_millis(o.started_at) AS open_ms, o.first_offset, o.last_offset, o.records,
       e.end_offset AS log_end_offset,
       o.first_offset = min(o.first_offset) OVER (PARTITION BY o.cluster, o.topic, o.partition) AS holds_stable_offset
FROM (SELECT o.*, IF(c.t.start_ms > 0 AND c.t.state = 'Ongoing', timestamp_millis(c.t.start_ms), o.first_at)
             AS started_at
      FROM {{without_marker}} o
      LEFT JOIN {{coordinator}} c ON o.cluster = c.cluster AND o.producer_id = c.producer_id) o
LEFT JOIN {{coordinator}} c ON o.cluster = c.cluster AND o.producer_id = c.producer_id
LEFT JOIN {{coordinated}} k ON o.cluster = k.cluster
LEFT JOIN {{clock}} w ON o.cluster = w.cluster
JOIN {{ends}} e ON {same("o", "e", "cluster, topic, partition")}
"""
