"""A driver's program for any Spark: a recording in, a lake with its marts out, and beside it what the shuffle, the data
source and `decode` give. It says what it did as one line of JSON."""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from kafkascope.pipeline import Options, decode, ingest, marts, views
from kafkascope.pipeline.ingestion import plan
from kafkascope.pipeline.ingestion.ingest import cores_of

# Executors come one by one.
SECONDS = 60.0
# Where what goes into a folder, beside the lakes.
SOURCE, BODIES, DECODED = "source.parquet", "bodies.parquet", "decoded.parquet"
BUCKETS, SHUFFLED = "buckets", "shuffled"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="with bodies to decode; what is made goes there")
    parser.add_argument("recording", type=Path)
    parser.add_argument("--cores", type=int, required=True, help="how many there will be")
    arguments = parser.parse_args()
    # However small the recording of a test is, its connections are shared out.
    plan.SMALL_INPUT_BYTES = 0
    spark = SparkSession.builder.getOrCreate()
    report: dict[str, Any] = {"kind": type(spark).__module__, "cores": _cores(spark, arguments.cores)}
    for name, how in ((BUCKETS, "buckets"), (SHUFFLED, "shuffle")):
        report[name] = asdict(ingest(spark, [arguments.recording], arguments.folder / name, Options(plan=how)))
    report["marts"] = marts(spark, arguments.folder / BUCKETS)
    rows = spark.read.format("kafkascope").load(str(arguments.recording))
    pq.write_table(rows.toArrow(), arguments.folder / SOURCE)
    views(spark, arguments.folder / BUCKETS)
    rows_of_view = spark.sql("SELECT exchange_id FROM exchanges").count()
    described = spark.sql("DESCRIBE exchanges").collect()
    report["views"] = [rows_of_view, sum(row.comment is not None for row in described), len(described)]
    table = spark.read.format("kafkascope").option("table", "share_fetch_request")
    several = table.option("tasks", "2").load([str(arguments.recording), str(arguments.recording)])
    of_lake = table.option("columns", "exchange_id").load(str(arguments.folder / BUCKETS))
    report["source"] = [several.count(), of_lake.count(), of_lake.columns]
    bodies = spark.createDataFrame(pq.read_table(arguments.folder / BODIES))
    pq.write_table(decode(bodies, "ShareFetchRequest", "version").toArrow(), arguments.folder / DECODED)
    spark.stop()
    print(json.dumps(report))


def _cores(spark: SparkSession, wanted_cores: int) -> int:
    deadline = time.monotonic() + SECONDS
    while (cores := cores_of(spark, None)) != wanted_cores and time.monotonic() < deadline:
        pass
    return cores


if __name__ == "__main__":
    main()
