"""The Spark pipeline on the honest capture: against tshark, against itself without Spark, by cores, plans and sizes.

Wall time: Spark works in several processes. What is compared with each other takes turns, and the best of each counts.
Session start and the first ingest of a session, which loads the kernels, are printed apart."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.captures import LARGE_MEGABYTES, MEGABYTES, PART_MEGABYTES, TSHARK_MEGABYTES, tshark_command
from bench.traffic import busy, elephant, first_part

_AIMS = {"ek": (150, 50), "fields": (20, 7)}
HEAD = f"{'':<44}{'MB':>8}{'ingest s':>10}{'MB/s':>8}{'session':>9}{'first':>9}{'worker MB':>11}"
_ROOT = Path(__file__).resolve().parents[1]
_ROUNDS = 3
# Sizes are compared by their slopes, which magnify what disturbed a run.
_SIZE_ROUNDS = 3
KINDS = {
    "local[2], buckets": (),
    "local[1], buckets": ("--cores", "1"),
    "without Spark, one core": ("--plain",),
    "local[2], shuffle": ("--plan", "shuffle"),
}


def lines(*, whole: bool = False) -> Iterable[str]:
    traffic = busy(MEGABYTES)
    path = Path(traffic.path)
    yield traffic.line()
    yield HEAD
    best: dict[str, dict[str, Any]] = {}
    for _ in range(_ROUNDS):
        for label, more in KINDS.items():
            result = _ingest_once(path, *more)
            yield _line(label, path, result)
            best[label] = min(best.get(label, result), result, key=lambda timed: float(timed["ingest"]))
    two, single, plain, shuffled = best.values()
    yield f"local[2] against local[1]: {single['ingest'] / two['ingest']:.2f} times (aim 1.9, floor 1.7)"
    yield f"Spark local[2] against no Spark, one core: {plain['ingest'] / two['ingest']:.2f} times (aim 1.8, floor 1.3)"
    yield f"buckets against shuffle: {shuffled['ingest'] / two['ingest']:.2f} times"
    yield from _elephant()
    marts = _ingest_once(path, "--marts")
    yield f"marts {marts['marts']:.1f} s, report {marts['report']:.1f} s at {MEGABYTES} MB"
    yield from _tshark(path if whole else first_part(traffic, TSHARK_MEGABYTES), path.stat().st_size / two["ingest"])
    yield from _sizes()
    yield from _decode()
    yield from _demo()


def _ingest_once(path: Path, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.ingest_once", str(path), *more]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _line(label: str, path: Path, result: dict[str, Any]) -> str:
    size = path.stat().st_size / 1e6
    return (
        f"{label:<44}{size:8,.0f}{result['ingest']:10.2f}{size / result['ingest']:8.0f}{result.get('session', 0):9.1f}"
        f"{result.get('first', 0):9.1f}{result.get('worker_peak', 0) / 1e6:11.0f}"
    )


def _elephant() -> Iterator[str]:
    """One connection, which two tasks read."""
    for role in ("follower", "consumer"):
        traffic = elephant(MEGABYTES, role=role)
        path = Path(traffic.path)
        best: dict[str, float] = {}
        for _ in range(_ROUNDS):
            for label in ("local[2], buckets", "local[1], buckets"):
                result = _ingest_once(path, *KINDS[label])
                yield _line(f"one {role}'s connection, {label}", path, result)
                best[label] = min(best.get(label, float("inf")), float(result["ingest"]))
        two, single = best.values()
        yield f"one {role}'s connection, local[2] against local[1]: {single / two:.2f} times (floor 1.6)"


def _tshark(part: Path, ours: float) -> Iterator[str]:
    if shutil.which("tshark") is None:
        yield "tshark isn't installed, so there is no comparison"
        return
    for form, (aim, floor) in _AIMS.items():
        began = perf_counter()
        subprocess.run(tshark_command(part, form), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        speed = part.stat().st_size / (perf_counter() - began)
        yield (
            f"tshark -T {form}: {speed / 1e6:.1f} MB/s on {part.stat().st_size / 1e6:,.0f} MB; ingest is"
            f" {ours / speed:.0f} times that (aim {aim}, floor {floor})"
        )


def _sizes() -> Iterator[str]:
    """Some of it is fixed, so three sizes are compared with a straight line."""
    paths = [Path(busy(megabytes).path) for megabytes in (PART_MEGABYTES, MEGABYTES, LARGE_MEGABYTES)]
    runs: list[list[dict[str, Any]]] = []
    for _ in range(_SIZE_ROUNDS):
        runs.append([])
        for path in paths:
            runs[-1].append(_ingest_once(path))
            yield _line("local[2], buckets", path, runs[-1][-1])
    sizes = [path.stat().st_size / 1e9 for path in paths]
    seconds = [min(float(result["ingest"]) for result in of_size) for of_size in zip(*runs, strict=True)]
    rates = ", ".join(f"{taken / size:.1f}" for taken, size in zip(seconds, sizes, strict=True))
    further = (seconds[2] - seconds[0]) / (sizes[2] - sizes[0])
    fixed = seconds[0] - further * sizes[0]
    line = fixed + further * sizes[1]
    first, then = ((seconds[i + 1] - seconds[i]) / (sizes[i + 1] - sizes[i]) for i in range(2))
    yield f"seconds per GB, in all: {rates}; {fixed:.1f} s are fixed and a further GB takes {further:.1f} s"
    yield f"a further GB, to 3 GB against to 1 GB: {then / first:.2f} (linear within 1.15)"
    yield f"1 GB against the line through the other two: {seconds[1] / line:.2f} (linear within 1.15)"
    peaks = [max(int(result["worker_peak"]) for result in of_size) for of_size in zip(*runs, strict=True)]
    yield f"peak of a worker, 3 GB against 150 MB: {peaks[2] / peaks[0]:.2f} (flat within 1.2)"


def _decode() -> Iterator[str]:
    command = [sys.executable, "-m", "bench.decode_once"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    yield done.stdout.splitlines()[-1] if not done.returncode else f"pipeline.decode failed: {done.stderr[-500:]}"


def _demo() -> Iterator[str]:
    began = perf_counter()
    done = subprocess.run([sys.executable, "-m", "tools.demo"], cwd=_ROOT, capture_output=True, text=True, check=False)
    split = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith("took ")]
    yield f"make demo, installed: {perf_counter() - began:.1f} s in all; {split[0] if split else done.stderr[-300:]}"
