"""Runs an ingest twice in a process of its own and prints what the second one took, as a line of JSON.

`python -m bench.ingest_once FILE [--cores N] [--plan buckets|shuffle] [--plain] [--marts]`"""

import argparse
import json
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--plan", default="buckets")
    parser.add_argument("--plain", action="store_true", help="the same functions without Spark, in this process")
    parser.add_argument("--marts", action="store_true")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="kafkascope-bench-")
    try:
        print(json.dumps(_plain(options, folder) if options.plain else _spark(options, folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _plain(options: argparse.Namespace, folder: str) -> dict[str, Any]:
    from kafkascope.columnar.kernel.entry import warm_up
    from kafkascope.lake.home import make_lake
    from kafkascope.pipeline.ingestion.task import CAPTURES, Task, run

    warm_up()
    for name in ("first", "lake"):
        lake = make_lake(f"{folder}/{name}")
        began = time.perf_counter()
        done = run(Task(lake.uri, "0123456789", 0, CAPTURES, (options.file,)))
    return {"ingest": time.perf_counter() - began, "exchanges": done.exchanges}


def _spark(options: argparse.Namespace, folder: str) -> dict[str, Any]:
    from kafkascope.lake.home import make_lake
    from kafkascope.pipeline.ingestion.ingest import Options, ingest
    from kafkascope.pipeline.session import local_session

    result: dict[str, Any] = {}
    began = time.perf_counter()
    spark = local_session(options.cores, log=f"{folder}/spark.log")
    result["session"] = time.perf_counter() - began
    began = time.perf_counter()
    _start_workers(spark, options.cores)
    # The first ingest loads the kernels: a worker loads one when it first meets what that is for.
    how = Options(plan=options.plan, tasks=options.cores)
    ingest(spark, [options.file], f"{folder}/first", how)
    shutil.rmtree(f"{folder}/first")
    result["first"] = time.perf_counter() - began
    peak = _Peak()
    before_cpu = _worker_seconds()
    began = time.perf_counter()
    lake = make_lake(f"{folder}/lake")
    done = ingest(spark, [options.file], lake, how)
    result["ingest"] = time.perf_counter() - began
    result["cpu"] = _worker_seconds() - before_cpu
    result["exchanges"] = done.exchanges
    result["worker_peak"] = peak.stop()
    result["lake_bytes"] = sum(path.stat().st_size for path in Path(folder, "lake").rglob("*.parquet"))
    if options.marts:
        from kafkascope.pipeline.mart.build import build_marts

        began = time.perf_counter()
        build_marts(spark, lake, rebuild=True)
        result["marts"] = time.perf_counter() - began
        try:
            from kafkascope.cli.main import main as command
        except ImportError:
            return result
        began = time.perf_counter()
        command(["report", lake.uri, "--html", f"{folder}/report.html"])
        result["report"] = time.perf_counter() - began
    spark.stop()
    return result


def _start_workers(spark: Any, cores: int) -> None:
    """One a core, all at once: else one that is done with its first task takes the other's, and that one's worker
    loads its kernels when the clock runs."""

    def wait(rows: Any) -> Any:
        time.sleep(1)
        yield from rows

    spark.range(0, cores, 1, cores).mapInArrow(wait, "id long").count()


class _Peak:
    """The most that any Python worker below this process has resident."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._most = 0
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        return self._most

    def _look(self) -> None:
        while not self._stop.wait(0.2):
            for pid in os.listdir("/proc"):
                if pid.isdigit() and int(pid) != os.getpid():
                    self._most = max(self._most, _resident(pid))


def _worker_seconds() -> float:
    """CPU seconds of this session's Python workers so far, with those that have ended."""
    ticks = 0
    for pid in os.listdir("/proc"):
        try:
            if pid.isdigit() and _is_worker(pid):
                ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def _is_worker(pid: str) -> bool:
    """Of this process: other sessions of Spark have workers too."""
    if b"pyspark.daemon" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        return False
    while pid not in ("0", "1"):
        if pid == str(os.getpid()):
            return True
        pid = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    return False


def _resident(pid: str) -> int:
    try:
        if not _is_worker(pid):
            return 0
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0


if __name__ == "__main__":
    main()
