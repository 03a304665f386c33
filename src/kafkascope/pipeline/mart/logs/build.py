"""Builds the marts about log directories, if the lake has any: three jobs, two that walk and one that counts."""

import json
from typing import TYPE_CHECKING, Any

from kafkascope.lake.home import Lake
from kafkascope.lake.write.files import NewFile
from kafkascope.pipeline.mart.base.events import named_tables
from kafkascope.pipeline.mart.base.multi_writer import rows_of_several, writer_of_several
from kafkascope.pipeline.mart.base.sources import Sources
from kafkascope.pipeline.mart.increments.plan import Plan
from kafkascope.pipeline.mart.logs import compaction, frames, groups, replicas, transactions, walks
from kafkascope.pipeline.mart.logs.frames import LogFrames

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MORE = {**transactions.DERIVED, **groups.DERIVED, **replicas.DERIVED}
TABLES = (
    frames.TABLES, transactions.TABLES, groups.TABLES, compaction.TABLES, replicas.TABLES, walks.TABLES
)  # fmt: skip
_SEGMENTS = "log_segments"


def log_rows(spark: "SparkSession", lake: Lake, sources: Sources, plan: Plan) -> list[NewFile]:
    """None for a lake without log directories."""
    absent, prefix = sources.absent, plan.prefix(plan.tail)
    if _SEGMENTS in absent:
        return []

    def listed(rows: Any) -> list[NewFile]:
        return [NewFile(**json.loads(row.file)) for row in rows.collect()]

    def counted(derived: LogFrames) -> list[NewFile]:
        texts = {"log_health": replicas.LOG_HEALTH}
        if "offset_commit" not in absent or "legacy_offset_commit" not in absent:
            texts["group_offsets"] = groups.GROUP_OFFSETS
        if not {"offset_commit", "legacy_offset_commit", "share_update", "share_snapshot"} <= absent:
            texts["dead_groups"] = groups.DEAD_GROUPS
        texts["open_transactions"] = transactions.OPEN_TRANSACTIONS
        waste = compaction.compaction_waste(absent)
        if waste is not None:
            texts["compaction_waste"] = waste
        named: dict[str, Any] = {}
        for text in texts.values():
            named |= named_tables(text, derived)
        rows = rows_of_several(spark, texts, **named)
        return listed(rows.mapInArrow(writer_of_several(lake, plan), "file string"))

    def metadata(derived: LogFrames) -> list[NewFile]:
        present = [name for name in walks.METADATA_TYPES if name not in absent]
        runs = walks.cluster_runs(lake)
        if not present or not runs:
            return []
        rows = walks.metadata_records(derived, present, runs)
        write = walks.walk_writer(lake, prefix, walks.METADATA_KEYS, walks.metadata_rows(runs))
        return listed(rows.mapInArrow(write, "file string"))

    def share(derived: LogFrames) -> list[NewFile]:
        if set(walks.SHARE_TABLES) <= absent:
            return []
        rows = walks.share_writes(derived)
        write = walks.walk_writer(lake, prefix, walks.SHARE_KEYS, walks.share_rows)
        return listed(rows.mapInArrow(write, "file string"))

    derived = LogFrames(spark, sources, _MORE)
    try:
        return [file for job in (metadata, share, counted) for file in job(derived)]
    finally:
        derived.release()
