"""Builds the marts of a lake that grows by parts, and times what one more part costs, and all from the beginning.
Prints a line of JSON per number of parts.

`python -m bench.increments_once PARTS… [--cores N]`: parts in ascending order, each with one part more."""

import argparse
import json
import lzma
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.growing_lake import add_part, bytes_of, recorded_tables
from bench.share_once import processor_of_all
from kafkascope.lake.home import Lake, make_lake

_NAMES = ("clients", "quorum", "share", "streams")
_CAPTURES = Path(__file__).parents[1] / "tests" / "captures"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", type=int, nargs="+")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for result in _timed(Path(folder), options.parts, options.cores):
            print(json.dumps(result), flush=True)


def _timed(folder: Path, sizes: list[int], cores: int) -> Iterator[dict[str, Any]]:
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
    lake, parts = make_lake(folder / "lake"), 0
    for size in sizes:
        while parts < size:
            add_part(lake, source, tables, parts)
            parts += 1
        first = _built(spark, lake)
        add_part(lake, source, tables, parts)
        parts += 1
        yield {
            "parts": size,
            "first": first,
            "increment": _built(spark, lake),
            "rebuild": _built(spark, lake, rebuild=True),
            "bytes": bytes_of(folder / "lake"),
        }
    spark.stop()


def _built(spark: Any, lake: Lake, *, rebuild: bool = False) -> dict[str, Any]:
    from kafkascope.pipeline.mart.build import build_marts

    jvm = spark.sparkContext._gateway.proc.pid
    lines: list[str] = []
    began, used = time.perf_counter(), processor_of_all(jvm) + time.process_time()
    rows = build_marts(spark, lake, rebuild=rebuild, report=lines.append)
    return {
        "seconds": time.perf_counter() - began,
        "processor": processor_of_all(jvm) + time.process_time() - used,
        "rows": sum(rows.values()),
        "lines": lines,
    }


if __name__ == "__main__":
    main()
