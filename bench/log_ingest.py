"""Ingests of log directories with Spark: beside DumpLogSegments on the same mixed segments, by cores, by sizes, and of
one large segment that is cut or not."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.log_segments import MB, MIXED_MEGABYTES, Segment, kinds, mixed, written

_ROOT = Path(__file__).resolve().parents[1]
_ROUNDS = 2
_HEAD = f"  {'':<44}{'MB':>7}{'ingest s':>10}{'MB/s':>8}{'CPU s':>8}{'worker MB':>11}"


def lines(dumped: float | None = None) -> Iterator[str]:
    """`dumped` is what DumpLogSegments took of the mixed segments, in CPU seconds."""
    yield _HEAD
    with tempfile.TemporaryDirectory(prefix="kafkascope-bench-") as place:
        folder = Path(place, "mixed")
        size = sum(segment.size for segment in mixed(folder, MIXED_MEGABYTES))
        double, single = _best(folder, 2), _best(folder, 1)
        yield _line("mixed segments, local[2]", size, double)
        yield _line("mixed segments, local[1]", size, single)
        yield f"  local[2] against local[1]: {single['ingest'] / double['ingest']:.2f} times (floor 1.7)"
        if dumped is not None:
            yield (
                f"  DumpLogSegments took {dumped:.1f} CPU s: {dumped / double['cpu']:.1f} times as much as ingest with"
                f" local[2], {dumped / double['ingest']:.1f} times by the clock (floor 10, aim 30)"
            )
        yield from _cut(Path(place))
        yield from _sizes(Path(place))


def _cut(place: Path) -> Iterator[str]:
    segment = _commits(place / "cut", MIXED_MEGABYTES)
    cut = _best(segment.path.parent, 2)
    segment.path.with_suffix(".index").unlink()
    whole = _best(segment.path.parent, 2)
    yield _line("one segment, cut by its index", segment.size, cut)
    yield _line("the same without its index", segment.size, whole)
    yield f"  cut against whole: {whole['ingest'] / cut['ingest']:.2f} times as fast (floor 1.6)"


def _sizes(place: Path) -> Iterator[str]:
    peaks = []
    for share in (0.15, 3):
        folder = place / f"mixed-{share}"
        size = sum(segment.size for segment in mixed(folder, share * MIXED_MEGABYTES))
        result = _ingest(folder, 2)
        peaks.append(result["worker_peak"])
        yield _line(f"mixed segments, {share} times as much", size, result)
    yield f"  peak of a worker, the large one against the small one: {peaks[1] / peaks[0]:.2f} (flat within 1.2)"


def _commits(folder: Path, megabytes: float) -> Segment:
    kind = next(kind for kind in kinds() if kind.topic == "__consumer_offsets")
    return written(folder, kind, int(megabytes * MB))


def _best(folder: Path, cores: int) -> dict[str, Any]:
    return min((_ingest(folder, cores) for _ in range(_ROUNDS)), key=lambda result: float(result["ingest"]))


def _ingest(folder: Path, cores: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.ingest_once", str(folder), "--cores", str(cores)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _line(title: str, size: int, result: dict[str, Any]) -> str:
    return (
        f"  {title:<44}{size / MB:>7.0f}{result['ingest']:>10.2f}{size / MB / result['ingest']:>8.0f}"
        f"{result['cpu']:>8.2f}{result['worker_peak'] / 1e6:>11.0f}"
    )
