"""`python -m tests.hostile.worker FOLDER` runs cases of fuzzers in this process, as many as it is asked to; with the
file of one case as a second argument, that case alone.

An order is a line `kind seed first last` on standard input. Each unit of cases is written to `FOLDER/now` before it
runs, so that it is there when the process dies of it; then one line tells what became of its cases."""

import json
import os
import struct
import sys
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from tests.hostile.guard import guard_captures
from tests.hostile.kinds import KINDS

NOW = struct.Struct("<QQ")
FAILED = "failed"
# What `read` may take, whatever the file.
MEMORY_BYTES = 1_000_000_000


def unit_of(kind: str, seed: int, number: int) -> bytes:
    """The same bytes for the same three, in any process."""
    return KINDS[kind].make(Random(f"{seed} {kind} {number}"))


def attempt(kind: str, data: bytes) -> tuple[Counter[str], str]:
    """What became of the cases; and of a failure, where it happened."""
    forget_peak()
    try:
        outcomes = KINDS[kind].run(data)
    except Exception:  # noqa: BLE001 - whatever a case does to the program, the next one is to be run
        return Counter({FAILED: 1}), traceback.format_exc()
    if peak_bytes() > MEMORY_BYTES:
        return Counter({FAILED: 1}), f"{peak_bytes():,} bytes of memory, {MEMORY_BYTES:,} allowed"
    return outcomes, ""


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status[status.index("VmHWM:") + 6 :].split(maxsplit=1)[0])


def main() -> None:
    folder = Path(sys.argv[1])
    guard_captures()
    if len(sys.argv) > 2:
        file = Path(sys.argv[2])
        outcomes, why = attempt(file.name.partition("-")[0], file.read_bytes())
        print(why or dict(outcomes))
        return
    now = os.open(folder / "now", os.O_RDWR | os.O_CREAT)
    for order in sys.stdin:
        kind, *numbers = order.split()
        seed, first, last = map(int, numbers)
        print(json.dumps({"ready": kind}), flush=True)
        for number in range(first, last):
            os.pwrite(now, NOW.pack(number, 0), 0)
            data = unit_of(kind, seed, number)
            os.pwritev(now, [NOW.pack(number, len(data)), data], 0)
            outcomes, why = attempt(kind, data)
            if why:
                saved = folder / f"{kind}-{seed}-{number}"
                saved.write_bytes(data)
                why = f"{saved}: {why}"
            print(json.dumps({"unit": number, "outcomes": outcomes, "why": why}), flush=True)


if __name__ == "__main__":
    main()
