"""A lake in, its marts out, all of them anew: rows are written by tasks, and each mart is replaced in one commit."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from kafkascope.lake.files import NewFile
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.reading import visible_files, visible_ingests
from kafkascope.lake.replace import replace
from kafkascope.pipeline.marts import quorum, share, streams
from kafkascope.pipeline.marts.apis import api_marts
from kafkascope.pipeline.marts.findings import write_findings
from kafkascope.pipeline.marts.names import topic_names
from kafkascope.pipeline.marts.walk import quorum_rows, share_rows, streams_rows, writer
from kafkascope.pipeline.tables import read_table, write_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def build_marts(spark: "SparkSession", lake: Lake, thresholds: Mapping[str, float] | None = None) -> dict[str, int]:
    """Mart to rows. `thresholds` are those of findings that are not to be the defaults, as `rule.threshold`."""
    ingests = visible_ingests(lake)
    prefix = f"mart-{uuid4().hex}"
    tables = _Tables(spark, lake, ingests)
    found: list[NewFile] = []
    names = topic_names(spark, tables)
    absent = tables.absent(*share.TABLES, *streams.TABLES, *quorum.TABLES)
    walks = [
        (share.share_events(spark, tables.of(*share.TABLES), names, absent), share_rows, "group_id"),
        (streams.streams_events(spark, tables.of(*streams.TABLES), absent), streams_rows, "group_id"),
        (quorum.quorum_events(spark, tables.of(*quorum.TABLES), absent), quorum_rows, "cluster_id"),
    ]
    for events, walk, key in walks:
        if events is None:
            continue
        written: Any = events.mapInArrow(writer(lake, prefix, walk, key), "file string")
        found += [NewFile(**json.loads(row.file)) for row in written.collect()]
    for name, rows in api_marts(spark, tables["exchanges"]).items():
        found += write_files(lake, MARTS[name], rows, prefix)
    by_table: dict[str, list[NewFile]] = {name: [] for name in MARTS if name != "findings"}
    for file in found:
        by_table[file.table].append(file)
    for name, files in by_table.items():
        replace(lake, MARTS[name], files)
    counts = {name: sum(file.rows for file in files) for name, files in by_table.items()}
    return {**counts, "findings": write_findings(lake, thresholds or {}, prefix)}


class _Tables:
    """DataFrames of the lake's tables, made when asked for."""

    def __init__(self, spark: "SparkSession", lake: Lake, ingests: frozenset[str]) -> None:
        self._spark, self._lake, self._ingests = spark, lake, ingests
        self._known: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> "DataFrame":
        if name not in self._known:
            self._known[name] = read_table(self._spark, self._lake, name, self._ingests)
        return self._known[name]

    def absent(self, *names: str) -> frozenset[str]:
        """Those of them that have no row."""
        return frozenset(name for name in names if not visible_files(self._lake, name, self._ingests))

    def of(self, *names: str) -> dict[str, "DataFrame"]:
        """These, the connections as they stood last, and when the recordings end."""
        from pyspark.sql import functions as f

        latest = f.max_by(f.struct("*"), "last_at").alias("c")
        connections = self["connections"].groupBy("connection_id").agg(latest).select("c.*")
        end = self["exchanges"].agg(f.max(f.greatest("request_at", "response_at")).alias("at"))
        last = end.selectExpr("unix_micros(at) AS at_us").where("at_us IS NOT NULL")
        return {**{name: self[name] for name in names}, "connections": connections, "last": last}
