"""Builds the marts of one busy share group in a process of its own and prints what that took, as a line of JSON.

`python -m bench.share_once DELIVERIES [--cores N]`: seconds, processor seconds of the JVM and of the Python workers,
and the peaks of a worker, of the JVM and of the driver's Python."""

import argparse
import json
import os
import resource
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.share_lake import share_lake

_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("deliveries", type=int)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--make", action="store_true", help="make the lake, and stop")
    options = parser.parse_args()
    lake = share_lake(options.deliveries)
    if not options.make:
        print(json.dumps(_marts(lake, options.cores)))


def _marts(lake: Any, cores: int) -> dict[str, Any]:
    from kafkascope.pipeline.mart.build import build_marts
    from kafkascope.pipeline.session import local_session

    with tempfile.TemporaryDirectory() as folder:
        spark = local_session(cores, log=f"{folder}/spark.log")
        jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        before, waited, peak = _processor(jvm), _processor(jvm, waited=True), _Peak(jvm)
        began = time.perf_counter()
        counts = build_marts(spark, lake, rebuild=True)
        result = {
            "seconds": time.perf_counter() - began,
            "jvm_processor": _processor(jvm) - before,
            # Of workers that have ended as well.
            "python_processor": _processor(jvm, waited=True)
            - waited
            - (_processor(jvm) - before)
            + sum(_processor(pid, waited=True) for pid in _below(jvm)),
            "worker_peak": peak.stop(),
            "jvm_peak": _peak_of(jvm),
            "driver_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "deliveries": counts["share_deliveries"],
        }
        spark.stop()
    return result


class _Peak:
    """The most that a worker of this session has resident: other sessions run on the same machine."""

    def __init__(self, jvm: int) -> None:
        self._jvm, self._most = jvm, 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._stopped.set()
        self._thread.join()
        return self._most

    def _look(self) -> None:
        while not self._stopped.wait(0.5):
            for pid in _below(self._jvm):
                with suppress(OSError, StopIteration):
                    self._most = max(self._most, _peak_of(pid))


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _processor(pid: int, *, waited: bool = False) -> float:
    """With `waited` those of ended children too."""
    return sum(map(int, _stat(pid)[11 : 15 if waited else 13])) / _TICKS


def processor_of_all(pid: int) -> float:
    """Of a process and what it started, also of what has ended."""
    return _processor(pid, waited=True) + sum(_processor(child, waited=True) for child in _below(pid))


def _below(parent: int) -> list[int]:
    children = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _stat(int(pid))[1:2] == [str(parent)]]
    return [*children, *(pid for child in children for pid in _below(child))]


def _peak_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main()
