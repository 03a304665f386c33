"""Walks what was written in order: the metadata log of a cluster, and the share state of a share partition. Runs inside
a Spark task and holds one cluster's metadata, or one share partition's state, at a time."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.health.disks.image import KEPT_TYPES
from kafkascope.health.disks.metadata_history import READ_TYPES, history_of
from kafkascope.health.disks.metadata_records import MetadataRecord
from kafkascope.health.disks.runs import Run, runs_of
from kafkascope.health.disks.share_state import DELETED, SNAPSHOT, UPDATE, ShareWrite, StateBatch, states_of
from kafkascope.lake.home import Lake
from kafkascope.lake.log_tables import LOG_SEGMENTS
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline.mart.base.row_files import RowFiles, rare_gc
from kafkascope.pipeline.mart.logs.frames import LogFrames, records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

METADATA_TYPES = tuple(sorted({*KEPT_TYPES, *READ_TYPES}))
_RECORD = "capture_uri offset leader_epoch written_at snapshot_offset topic partition value"
TABLES = dict.fromkeys(METADATA_TYPES, _RECORD) | {"control_records": f"{_RECORD} type"}
SHARE_TABLES = ("share_update", "share_snapshot")
_METADATA_TOPIC = "__cluster_metadata"
_KRAFT_VERSION, _FEATURE = "KRAFT_VERSION", "feature_level_record"
_SHARE_KEYS = ("cluster", "group_id", "topic_id", "partition", "topic")
_MartRows = Iterator[tuple[str, Any]]
# Of rows with the same keys.
Walk = Callable[[tuple[Any, ...], Iterable[dict[str, Any]]], _MartRows]


def cluster_runs(lake: Lake) -> dict[str, list[Run]]:
    """From few rows: one for each file and ingest."""
    columns = ["cluster_id", "kind", "base_offset", "first_offset", "end_offset", "damaged_bytes", "capture_uri"]
    rows = dataset(lake, LOG_SEGMENTS).to_table(columns=columns, filter=pc.field("topic") == _METADATA_TOPIC)
    parts: dict[str, list[tuple[int, int]]] = {}
    snapshots: dict[str, list[tuple[int, str]]] = {}
    for row in rows.to_pylist():
        cluster = row["cluster_id"] or ""
        if row["kind"] == "snapshot":
            # bootstrap.checkpoint has no offset: the log has its records.
            if row["base_offset"] and not row["damaged_bytes"]:
                snapshots.setdefault(cluster, []).append((row["base_offset"], row["capture_uri"]))
        elif row["first_offset"] is not None:
            parts.setdefault(cluster, []).append((row["first_offset"], row["end_offset"]))
    clusters = {*parts, *snapshots}
    return {cluster: runs_of(parts.get(cluster, ()), snapshots.get(cluster, ())) for cluster in clusters}


def metadata_records(frames: LogFrames, present: Sequence[str], runs: Mapping[str, Sequence[Run]]) -> "DataFrame":
    """The records of a cluster are adjacent, in order. Of the snapshots only those that a run starts from."""
    files = [run.snapshot for chosen in runs.values() for run in chosen if run.snapshot is not None]
    of_log = records("to_json(a.value) AS value", *present)
    text = (
        "SELECT cluster, log_offset, at, type, value, NULL AS snapshot_offset, NULL AS file, log_offset AS position,"
        f" 1 AS nth FROM ({of_log})"
    )
    text += (
        f"\nUNION ALL SELECT cluster, log_offset, at, '{_FEATURE}', {_kraft_version('content')}, NULL, NULL,"
        f" log_offset, 1"
        f" FROM ({records('a.type AS control, a.value AS content', 'control_records')})"
        f" WHERE log_topic = '{_METADATA_TOPIC}' AND control = '{_KRAFT_VERSION}'"
    )
    if files:
        listed = ", ".join(f"'{file}'" for file in map(_quoted, files))
        of_snapshots = "\nUNION ALL\n".join(
            f"SELECT a.ingest_id, a.capture_uri, a.`offset` AS log_offset, a.written_at, '{name}' AS type,"
            f" to_json(a.value) AS value, a.snapshot_offset FROM {{{name}}} a WHERE a.capture_uri IN ({listed})"
            for name in present
        )
        of_snapshots += (
            f"\nUNION ALL SELECT a.ingest_id, a.capture_uri, a.`offset`, a.written_at, '{_FEATURE}',"
            f" {_kraft_version('a.value')}, a.snapshot_offset FROM {{control_records}} a"
            f" WHERE a.capture_uri IN ({listed}) AND a.type = '{_KRAFT_VERSION}'"
        )
        text += (
            "\nUNION ALL SELECT p.cluster, s.log_offset, s.written_at, s.type, s.value, s.snapshot_offset,"
            f" s.capture_uri, s.snapshot_offset, 0 FROM ({of_snapshots}) s JOIN {{places}} p"
            " ON s.capture_uri = p.capture_uri AND s.ingest_id = p.ingest_id"
        )
    rows = frames.sql(text)
    return rows.repartition("cluster").sortWithinPartitions("cluster", "position", "nth", "log_offset")


def _kraft_version(value: str) -> str:
    """As the record of a feature: its level is in a control record."""
    level = f"CAST(get_json_object({value}, '$.kRaftVersion') AS SMALLINT)"
    return f"to_json(named_struct('name', 'kraft.version', 'feature_level', {level}))"


def _quoted(text: str) -> str:
    # A brace would name a table.
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("{", "\\u007B").replace("}", "\\u007D")


def share_writes(frames: LogFrames) -> "DataFrame":
    """The writes of a share partition are adjacent, in order."""
    keys = [name for name in _SHARE_KEYS if name != "topic"]
    return share_write_rows(frames).repartition(*keys).sortWithinPartitions(*keys, "log_partition", "log_offset")


def share_write_rows(frames: LogFrames) -> "DataFrame":
    common = (
        "a.key.group_id, a.key.topic_id, a.key.partition, a.value.snapshot_epoch, {} AS state_epoch,"
        " a.value.leader_epoch, a.value.start_offset, a.value.delivery_complete_count,"
        " a.value.state_batches AS batches, IF(a.value IS NULL, '" + DELETED + "', '{}') AS kind"
    )
    update = records(common.format("CAST(NULL AS INT)", UPDATE), "share_update")
    snapshot = records(common.format("a.value.state_epoch", SNAPSHOT), "share_snapshot")
    return frames.sql(
        f"SELECT w.*, n.name AS topic FROM ({update}\nUNION ALL\n{snapshot}) w"
        " LEFT JOIN {names} n ON w.cluster = n.cluster AND w.topic_id = n.topic_id"
    )


def metadata_rows(
    runs: Mapping[str, Sequence[Run]],
) -> Callable[[tuple[Any, ...], Iterable[dict[str, Any]]], _MartRows]:
    def walk(keys: tuple[Any, ...], rows: Iterable[dict[str, Any]]) -> _MartRows:
        (cluster,) = keys
        read = (
            MetadataRecord(
                row["log_offset"], row["at"], row["type"], json.loads(row["value"]), row["snapshot_offset"], row["file"]
            )
            for row in rows
        )
        yield from history_of(cluster or None, read, runs.get(cluster, ()))

    return walk


def share_rows(keys: tuple[Any, ...], rows: Iterable[dict[str, Any]]) -> _MartRows:
    cluster, group_id, topic_id, partition, topic = keys
    for state in states_of(cluster or None, group_id, topic, topic_id, partition, map(share_write, rows)):
        yield "share_state", state


def share_write(row: Mapping[str, Any]) -> ShareWrite:
    def number(name: str) -> int:
        return -1 if row[name] is None else int(row[name])

    batches = tuple(
        StateBatch(b["first_offset"], b["last_offset"], b["delivery_state"], b["delivery_count"])
        for b in row["batches"] or ()
    )
    return ShareWrite(
        row["log_offset"], row["at"], row["kind"], number("snapshot_epoch"), number("state_epoch"),
        number("leader_epoch"), number("start_offset"), number("delivery_complete_count"), batches,
    )  # fmt: skip


METADATA_KEYS, SHARE_KEYS = ("cluster",), _SHARE_KEYS


def walk_writer(
    lake: Lake, prefix: str, keys: Sequence[str],
    walk: Walk,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:  # fmt: skip
    """A function for `mapInArrow` that returns the new files as JSON. `keys` separate one walk from the next."""

    def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        for batch in batches:
            index = batch.schema.get_field_index("at")
            yield from batch.set_column(index, "at", batch.column(index).cast(pa.int64())).to_pylist()

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = RowFiles(lake, prefix)
        with rare_gc():
            for key, rows in groupby(rows_of(batches), lambda row: tuple(row[name] for name in keys)):
                for name, row in walk(key, rows):
                    files.add(name, row, row.cluster_id)
        new_files = [json.dumps(asdict(file)) for file in files.close()]
        yield pa.record_batch([pa.array(new_files, pa.string())], names=["file"])

    return write
