"""Builds the marts of a lake of several parts, then of one more, in a process of its own, and prints what that took as
a line of JSON.

`python -m bench.increments_once PARTS [--cores N]`: seconds and processor seconds of the increment, and of everything
from the beginning."""

import argparse
import json
import lzma
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.growing_lake import add_part, bytes_of, recorded_tables
from bench.share_once import processor_of_all
from kafkascope.lake.home import Lake, make_lake

_NAMES = ("clients", "quorum", "share", "streams")
_CAPTURES = Path(__file__).parents[1] / "tests" / "captures"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", type=int)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(_timed(Path(folder), options.parts, options.cores)))


def _timed(folder: Path, parts: int, cores: int) -> dict[str, Any]:
    from kafkascope.pipeline.ingestion.ingest import ingest
    from kafkascope.pipeline.session import local_session

    spark = local_session(cores, log=str(folder / "spark.log"))
    files = []
    for name in _NAMES:
        files.append(folder / f"{name}.pcap")
        files[-1].write_bytes(lzma.decompress((_CAPTURES / name / "capture.pcap.xz").read_bytes()))
    source = make_lake(folder / "recorded")
    ingest(spark, files, source)
    tables = recorded_tables(source)
    lake = make_lake(folder / "lake")
    for part in range(parts):
        add_part(lake, source, tables, part)
    first = _built(spark, lake)
    add_part(lake, source, tables, parts)
    result = {
        "first": first,
        "increment": _built(spark, lake),
        "rebuild": _built(spark, lake, rebuild=True),
        "bytes": bytes_of(folder / "lake"),
    }
    spark.stop()
    return result


def _built(spark: Any, lake: Lake, *, rebuild: bool = False) -> dict[str, Any]:
    from kafkascope.pipeline.mart.build import build_marts

    jvm = spark.sparkContext._gateway.proc.pid
    lines: list[str] = []
    began, used = time.perf_counter(), processor_of_all(jvm)
    rows = build_marts(spark, lake, rebuild=rebuild, report=lines.append)
    return {
        "seconds": time.perf_counter() - began,
        "processor": processor_of_all(jvm) - used,
        "rows": sum(rows.values()),
        "lines": lines,
    }


if __name__ == "__main__":
    main()
