"""Orders for a worker, and what became of every case: a worker that dies, hangs or takes too much memory costs the case
that it was at, whose bytes are kept, and the next one goes on behind it."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hostile.worker import FAILED, MEMORY_BYTES, NOW

ROOT = Path(__file__).parents[2]
# A unit takes milliseconds, and seconds on a machine that has other work: only a hang takes so long.
DEADLINE_S = 120.0
# Kernels may have to be compiled first.
START_S = 1_200.0
_LOOK_S = 0.5


@dataclass(slots=True)
class Tally:
    """Cases by their outcome; a failure is the path of its bytes and what happened."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        return f"{self.outcomes.total():,} cases: {counts}"


class Died(Exception):
    """the worker died of SIGSEGV"""


class Supervisor:
    """One worker at a time, started when it is needed. `folder` keeps what failed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._worker: subprocess.Popen[bytes] | None = None
        self._held = b""

    def fuzz(self, kind: str, seed: int, first: int, last: int) -> Tally:
        tally = Tally()
        while first < last:
            first = self._units([kind, seed, first, last], tally)
        return tally

    def run(self, kind: str, file: Path) -> Tally:
        """One unit that is there already."""
        tally = Tally()
        self._units([kind, 0, 0, 1, str(file)], tally)
        return tally

    def close(self) -> None:
        if self._worker is not None:
            assert self._worker.stdin is not None and self._worker.stdout is not None
            self._worker.stdin.close()
            self._worker.kill()
            self._worker.wait()
            self._worker.stdout.close()
            self._worker = None
            self._held = b""

    def _units(self, order: list[Any], tally: Tally) -> int:
        """The unit to go on with."""
        kind, seed, first, last = order[:4]
        worker = self._worker = self._worker or self._start()
        assert worker.stdin is not None
        (self._folder / "now").write_bytes(NOW.pack(first, 0))
        worker.stdin.write(json.dumps(order).encode() + b"\n")
        worker.stdin.flush()
        try:
            self._line(worker, START_S)
            for number in range(first, last):
                line = self._line(worker, START_S if number == first else DEADLINE_S)
                tally.outcomes.update(line["outcomes"])
                tally.failures += [line["why"]] if line["why"] else []
            return int(last)
        except Died as death:
            self.close()
            number, size = NOW.unpack((held := (self._folder / "now").read_bytes())[: NOW.size])
            saved = self._folder / f"{kind}-{seed}-{number}"
            saved.write_bytes(held[NOW.size : NOW.size + size])
            tally.outcomes[FAILED] += 1
            tally.failures.append(f"{saved}: {death}")
            return int(number) + 1

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-W", "error", "-m", "tests.hostile.worker", str(self._folder)]
        return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _line(self, worker: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
        assert worker.stdout is not None
        end = time.monotonic() + seconds
        while b"\n" not in self._held:
            if time.monotonic() > end:
                raise Died(f"no end within {seconds:.0f} s")
            if select.select([worker.stdout], [], [], _LOOK_S)[0]:
                read = os.read(worker.stdout.fileno(), 65_536)
                if not read:
                    raise Died(_cause(worker.wait()))
                self._held += read
            elif resident_bytes(worker.pid) > 2 * MEMORY_BYTES:
                raise Died(f"more than {2 * MEMORY_BYTES:,} bytes of memory")
        line, _, self._held = self._held.partition(b"\n")
        made: dict[str, Any] = json.loads(line)
        return made


def resident_bytes(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0  # it has ended, which reading tells
    return pages * os.sysconf("SC_PAGESIZE")


def _cause(code: int) -> str:
    return f"the worker died of {signal.Signals(-code).name}" if code < 0 else f"the worker ended with code {code}"
