"""Times marts: an increment of one part of a lake that has 1, 4 and 16; one busy share group on one core and on two."""

import json
import subprocess
import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_PARTS = (1, 4, 16)
# Each acquired range is a delivery.
DELIVERIES = 10_000_000


def lines() -> Iterable[str]:
    yield f"{'one more part of a lake that has':<40}{'seconds':>9}{'cpu s':>8}{'all again':>11}{'cpu s':>8}{'MB':>7}"
    for result in _run("bench.increments_once", *map(str, _PARTS)):
        more, again = result["increment"], result["rebuild"]
        yield (
            f"{result['parts']:<40}{more['seconds']:9.1f}{more['processor']:8.1f}{again['seconds']:11.1f}"
            f"{again['processor']:8.1f}{result['bytes'] / 1e6:7.0f}"
        )
        yield f"    {'; '.join(more['lines'])}"
    seconds = {}
    for cores in (1, 2):
        (result,) = _run("bench.share_once", str(DELIVERIES), "--cores", str(cores))
        seconds[cores] = result["seconds"]
        peaks = ", ".join(f"{name} {result[f'{name}_peak'] / 1e6:,.0f} MB" for name in ("worker", "jvm", "driver"))
        used = result["jvm_processor"] + result["python_processor"]
        group = f"one group, {result['deliveries']:,} deliveries, local[{cores}]"
        yield f"{group}: {result['seconds']:.0f} s, {used:.0f} cpu s; {peaks}"
    yield f"local[2] against local[1]: {seconds[1] / seconds[2]:.2f} times (floor 1.6)"


def _run(module: str, *arguments: str) -> Iterable[dict[str, Any]]:
    others: deque[str] = deque(maxlen=30)
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
            else:
                others.append(line)
    if process.returncode:
        raise RuntimeError("".join(others))
