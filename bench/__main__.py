"""`python -m bench`: decode and encode against kio, the floor under both, and what a command takes to start."""

import argparse
import platform
from functools import partial
from importlib.metadata import version
from math import exp, log

from bench import start
from bench.floor import copy_bytes, make_objects
from bench.kio_peer import peer
from bench.messages import Case, cases
from bench.timing import ROUNDS, best
from kafkascope.codec.message import decode, encode

HEAD = (
    f"{'':<50}{'bytes':>9} |{'kafkascope':>19} |{'kio':>19} |{'times':>6} |{'objects':>9}{'memcpy':>8}\n"
    f"{'':<50}{'':>9} |{'us':>10}{'MB/s':>9} |{'us':>10}{'MB/s':>9} |{'kio':>6} |{'us':>9}{'us':>8}"
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--gc", action="store_true", help="leave the garbage collector on while timing")
    parser.add_argument("--only", default="", help="only messages whose name holds this; no start-up times then")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    chosen = [case for case in cases() if options.only.lower() in case.label.lower()]
    print(f"Python {platform.python_version()}, kio {version('kio')}; best of {options.rounds} rounds taken in turns,")
    print(f"gc {'on' if options.gc else 'off'} while timing; each result is dropped before the next call, for both.")
    print("Both read the same bytes to equal values and write them back, checked first. times kio: above 1 is faster.")
    print("objects: CPython's marshal making the same bare objects in C; memcpy: one copy of the bytes.")
    for direction in ("decode", "encode"):
        print(f"\n{direction}")
        print(HEAD)
        ratios = [_line(case, direction, with_gc=options.gc, rounds=options.rounds) for case in chosen]
        if ratios:
            mean = exp(sum(map(log, ratios)) / len(ratios))
            print(f"{'geometric mean':<50}{'':>9} |{'':>19} |{'':>19} |{mean:6.2f} |   least {min(ratios):.2f}")
    if not options.only:
        for lines in (start.lines(), start.import_lines()):
            print("", *lines, sep="\n")


def _line(case: Case, direction: str, *, with_gc: bool, rounds: int) -> float:
    theirs = peer(case)
    if direction == "decode":
        calls = [partial(decode, case.name, case.version, case.data), theirs.decode, make_objects(case)]
    else:
        calls = [partial(encode, case.name, case.version, case.value), theirs.encode]
    ours, kio, *objects = best([*calls, copy_bytes(case)], with_gc=with_gc, rounds=rounds)
    size = len(case.data)
    copied = objects.pop()
    floor = f"{1e6 * objects[0]:9.2f}" if objects else f"{'':>9}"
    print(
        f"{case.label:<50}{size:9,} |{1e6 * ours:10.2f}{size / ours / 1e6:9.1f}"
        f" |{1e6 * kio:10.2f}{size / kio / 1e6:9.1f} |{kio / ours:6.2f} |{floor}{1e6 * copied:8.2f}",
        flush=True,
    )
    return kio / ours


main()
