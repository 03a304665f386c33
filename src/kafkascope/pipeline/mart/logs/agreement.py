"""Compares what the brokers wrote about share partitions with the recorded deliveries, where a lake has both."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kafkascope.health.disks.agreement import EndedDelivery, agreement_of
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.write.files import NewFile
from kafkascope.lake.write.replace import replace
from kafkascope.pipeline.mart.base.sources import Sources
from kafkascope.pipeline.mart.logs.frames import LogFrames
from kafkascope.pipeline.mart.logs.walks import SHARE_TABLES, share_write, share_write_rows, walk_writer
from kafkascope.pipeline.tables import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = "share_agreement"
_KEYS = ("group_id", "topic_id", "partition")


def write_agreement(spark: "SparkSession", lake: Lake, sources: Sources, prefix: str, deliveries: int) -> int:
    """After the mart of deliveries; that is how many it has. Returns the number of rows."""
    files: list[NewFile] = []
    if deliveries and not set(SHARE_TABLES) <= sources.absent:
        files = _compared(spark, lake, sources, prefix)
    replace(lake, MARTS[_NAME], files)
    return sum(file.rows for file in files)


def _compared(spark: "SparkSession", lake: Lake, sources: Sources, prefix: str) -> list[NewFile]:
    from pyspark.sql import functions as f

    frames = LogFrames(spark, sources, {})
    writes = share_write_rows(frames).join(frames["clock"], "cluster", "left")
    writes = writes.withColumn("read_at", f.unix_micros("read_at"))
    write = f.struct(*(name for name in writes.columns if name not in _KEYS))
    deliveries = read_table(spark, lake, "share_deliveries")
    delivery = f.struct(
        *("first_offset", "last_offset", "delivery_count", "outcome", "archived"),
        f.unix_micros("acquired_at").alias("acquired_at"), f.unix_micros("outcome_at").alias("outcome_at"),
    )  # fmt: skip
    none = f.lit(None)
    rows = writes.select(*_KEYS, f.to_json(write).alias("write"), none.cast("string").alias("delivery"),
                         f.col("log_offset").alias("nth"), "at").unionByName(
        deliveries.select(*_KEYS, none.cast("string").alias("write"), f.to_json(delivery).alias("delivery"),
                          f.lit(-1).alias("nth"), f.col("acquired_at").alias("at")))  # fmt: skip
    ordered = rows.repartition(*_KEYS).sortWithinPartitions(*_KEYS, "nth")
    listed = ordered.mapInArrow(walk_writer(lake, prefix, _KEYS, _rows), "file string").collect()
    frames.release()
    return [NewFile(**json.loads(row.file)) for row in listed]


def _rows(keys: tuple[Any, ...], rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    group_id, topic_id, partition = keys
    deliveries, writes, cluster, topic, read_at = [], [], None, None, None
    for row in rows:
        if row["delivery"] is not None:
            deliveries.append(_delivery(json.loads(row["delivery"])))
        else:
            write = json.loads(row["write"])
            cluster, topic, read_at = write.get("cluster") or None, write.get("topic"), write.get("read_at")
            writes.append(share_write({**_NOTHING, **write, "at": row["at"]}))
    for agreed in agreement_of(cluster, group_id, topic, topic_id, partition, deliveries, writes, read_at):
        yield _NAME, agreed


_NOTHING = dict.fromkeys("snapshot_epoch state_epoch leader_epoch start_offset delivery_complete_count batches".split())


def _delivery(row: dict[str, Any]) -> EndedDelivery:
    return EndedDelivery(
        row["first_offset"], row["last_offset"], row.get("delivery_count"), row["outcome"], bool(row.get("archived")),
        row["acquired_at"], row.get("outcome_at"),
    )  # fmt: skip
