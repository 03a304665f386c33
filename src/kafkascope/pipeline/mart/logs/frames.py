"""Derives what the statements share from the lake's tables of log directories: batches and records with their cluster,
once however many brokers have them, without what a later leader replaced."""

from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING

from kafkascope.pipeline.mart.base.events import TablesByName, named_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = "cluster, log_id, topic, partition"
_BATCH = (
    "base_offset last_offset records_count written_at leader_epoch size_bytes producer_id producer_epoch"
    " is_transactional is_control delete_horizon_at crc crc_ok"
).split()


def same(left: str, right: str, columns: str = _LOG) -> str:
    """A condition: two tables are about the same log."""
    return " AND ".join(f"{left}.{name} = {right}.{name}" for name in columns.replace(" ", "").split(","))


# What places a row of a table of log directories.
LOCATED_BY = "a.ingest_id, a.capture_uri, a.topic, a.partition, a.leader_epoch"


def located(rows: str) -> str:
    """Rows with the columns of `LOCATED_BY` and `log_offset`, with `cluster` and `log_id`, without what a later leader
    replaced."""
    return f"""
SELECT p.cluster, p.log_id, x.* FROM ({rows}) x
JOIN {{places}} p ON x.capture_uri = p.capture_uri AND x.ingest_id = p.ingest_id
LEFT ANTI JOIN {{replaced}} e ON p.cluster = e.cluster AND p.log_id = e.log_id AND x.topic = e.topic
  AND x.partition = e.partition AND x.leader_epoch = e.leader_epoch AND x.log_offset >= e.until"""


def records(columns: str, *tables: str) -> str:
    """Records with `cluster`, `log_topic`, `log_partition`, `log_offset`, `at`, `type`, which is the name of their
    table, and `columns` of it, `a`; from one of the brokers that have them."""
    rows = "\nUNION ALL\n".join(
        f"SELECT {LOCATED_BY}, a.`offset` AS log_offset, a.written_at, '{table}' AS type, struct({columns}) AS row"
        f" FROM {{{table}}} a WHERE a.snapshot_offset IS NULL"
        for table in tables
    )
    return f"""
SELECT cluster, log_topic, log_partition, log_offset, at, type, row.* FROM (
  SELECT cluster, topic AS log_topic, partition AS log_partition, log_offset, type, min(written_at) AS at,
         any_value(row) AS row
  FROM ({located(rows)}) GROUP BY 1, 2, 3, 4, 5
)"""


# Frames by name; each names others, or tables of the lake.
_FRAMES = {
    "places": "SELECT DISTINCT ingest_id, capture_uri, coalesce(cluster_id, '') AS cluster,"
    " coalesce(topic_id, '') AS log_id FROM {log_segments}",
    "batches": f"""
SELECT p.cluster, p.log_id, coalesce(a.broker, -1) AS broker, a.topic, a.partition,
       {", ".join(f"a.{name}" for name in _BATCH)}
FROM {{log_batches}} a JOIN {{places}} p
  ON a.capture_uri = p.capture_uri AND a.ingest_id = p.ingest_id AND a.snapshot_offset IS NULL""",
    "spans": f"""
SELECT {_LOG}, leader_epoch, min(base_offset) AS first_offset, max(base_offset) AS last_base,
       max(last_offset) AS last_offset, max(written_at) AS last_at
FROM {{batches}} GROUP BY {_LOG}, leader_epoch""",
    # Epochs never go back in a log: what an earlier leader wrote at or after the first offset of a later one is gone.
    "replaced": f"""
SELECT {_LOG}, leader_epoch, until FROM (
  SELECT *, min(first_offset) OVER (PARTITION BY {_LOG} ORDER BY leader_epoch
         ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS until FROM {{spans}}
) WHERE last_base >= until""",
    "valid": f"""
SELECT b.* FROM {{batches}} b LEFT ANTI JOIN {{replaced}} e
  ON {same("b", "e")} AND b.leader_epoch = e.leader_epoch AND b.base_offset >= e.until""",
    "log": f"""
SELECT {_LOG}, base_offset, max(last_offset) AS last_offset, max(records_count) AS records_count,
       min(written_at) AS written_at, max(producer_id) AS producer_id, max(producer_epoch) AS producer_epoch,
       max(is_transactional) AS is_transactional, max(is_control) AS is_control
FROM {{valid}} GROUP BY {_LOG}, base_offset""",
    # Deleted topics leave their rows; of a name the latest log counts.
    "removed": """
SELECT DISTINCT p.cluster, a.value.topic_id AS log_id FROM {remove_topic_record} a
JOIN {places} p ON a.capture_uri = p.capture_uri AND a.ingest_id = p.ingest_id""",
    "current": """
SELECT s.cluster, s.topic, max_by(s.log_id, s.last_at) AS log_id FROM (
  SELECT coalesce(cluster_id, '') AS cluster, topic, coalesce(topic_id, '') AS log_id,
         coalesce(max(last_at), TIMESTAMP '1970-01-01') AS last_at
  FROM {log_segments} WHERE kind = 'segment' GROUP BY 1, 2, 3) s
LEFT ANTI JOIN {removed} r ON s.cluster = r.cluster AND s.log_id = r.log_id
GROUP BY s.cluster, s.topic""",
    "ends": f"""
SELECT s.cluster, s.topic, s.partition,
       max(IF(s.last_base >= e.until, e.until - 1, s.last_offset)) + 1 AS end_offset
FROM {{spans}} s JOIN {{current}} c ON s.cluster = c.cluster AND s.topic = c.topic AND s.log_id = c.log_id
LEFT JOIN {{replaced}} e ON {same("s", "e")} AND s.leader_epoch = e.leader_epoch
GROUP BY 1, 2, 3""",
    # Brokers write their own topics all the time, with their own clock.
    "clock": "SELECT cluster, max(last_at) AS read_at FROM {spans} WHERE startswith(topic, '__') GROUP BY cluster",
    "names": """
SELECT p.cluster, a.value.topic_id AS topic_id, min(a.value.name) AS name FROM {topic_record} a
JOIN {places} p ON a.capture_uri = p.capture_uri AND a.ingest_id = p.ingest_id GROUP BY 1, 2""",
}
TABLES = {
    "log_segments": "broker topic partition kind base_offset first_offset end_offset batches records first_at last_at"
    " size_bytes damaged_bytes log_start_offset high_watermark clean_until listed_segments topic_id cluster_id"
    " capture_uri",
    "log_batches": f"broker topic partition snapshot_offset capture_uri {' '.join(_BATCH)}",
    "remove_topic_record": "value.topic_id capture_uri offset leader_epoch written_at snapshot_offset topic partition",
    "topic_record": "value capture_uri offset leader_epoch written_at snapshot_offset topic partition",
}


# Small, and needed by almost every other frame.
_KEPT = ("places", "spans", "replaced", "removed", "current", "ends", "clock", "names")


class LogFrames:
    """The frames and tables by name, made when they are first asked for. `more` are texts of further frames. What all
    of them need is computed once, until `release`."""

    def __init__(self, spark: "SparkSession", tables: TablesByName, more: Mapping[str, str]) -> None:
        self._spark, self._tables = spark, tables
        self._texts = {**_FRAMES, **more}
        self._frames: dict[str, DataFrame] = {}
        self._making = RLock()

    def __getitem__(self, name: str) -> "DataFrame":
        text = self._texts.get(name)
        if text is None:
            return self._tables[name]
        with self._making:
            if name not in self._frames:
                frame = self.sql(text)
                self._frames[name] = frame.persist() if name in _KEPT else frame
            return self._frames[name]

    def sql(self, text: str) -> "DataFrame":
        return self._spark.sql(text, **named_tables(text, self))

    def release(self) -> None:
        for name in _KEPT:
            if name in self._frames:
                self._frames[name].unpersist()
