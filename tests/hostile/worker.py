"""`python -m tests.hostile.worker FOLDER` runs cases of fuzzers in this process, as many as it is asked to; with the
file of one case as a second argument, that case alone.

An order is a line of JSON on standard input: kind, seed, first and last unit, and the file of a unit that exists
already. Each unit of cases is written to `FOLDER/now` before it runs, so that it is there when the process dies of it;
then one line reports the outcomes of its cases."""

import json
import os
import struct
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.hostile.guard import guard_captures
from tests.hostile.kinds import KINDS, OTHERS

NOW = struct.Struct("<QQ")
FAILED = "failed"
# What `read` may take, whatever the file.
MEMORY_BYTES = 1_000_000_000


def unit_of(kind: str, seed: int, number: int) -> bytes:
    """The same bytes for the same three, in any process."""
    return (KINDS | OTHERS)[kind].make(Random(f"{seed} {kind} {number}"))


def attempt(kind: str, data: bytes) -> tuple[Counter[str], str]:
    """What became of the cases; and of a failure, where it happened."""
    forget_peak()
    try:
        outcomes = (KINDS | OTHERS)[kind].run(data)
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
        outcomes, why = attempt(Path(sys.argv[2]).name.partition("-")[0], Path(sys.argv[2]).read_bytes())
        print(why or dict(outcomes))
        return
    now = os.open(folder / "now", os.O_RDWR | os.O_CREAT)
    for order in sys.stdin:
        kind, *numbers = json.loads(order)
        print(json.dumps({"ready": kind}), flush=True)
        for number, data in units(kind, now, *numbers):
            outcomes, why = attempt(kind, data)
            if why:
                saved = folder / f"{kind}-{numbers[0]}-{number}"
                saved.write_bytes(data)
                why = f"{saved}: {why}"
            print(json.dumps({"unit": number, "outcomes": outcomes, "why": why}), flush=True)


def units(
    kind: str, now: int, seed: int, first: int, last: int, file: str | None = None
) -> Iterator[tuple[int, bytes]]:
    for number in range(first, last):
        os.pwrite(now, NOW.pack(number, 0), 0)
        data = Path(file).read_bytes() if file is not None else unit_of(kind, seed, number)
        os.pwritev(now, [NOW.pack(number, len(data)), data], 0)
        yield number, data


if __name__ == "__main__":
    main()
