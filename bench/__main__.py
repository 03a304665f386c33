"""`python -m bench`: decode and encode against kio, columns against kio and Java, captures against tshark, the
share consumer against Java, the Spark source against Spark's own, and what a command takes to start. Sections can be
named; without a name all are run."""

import argparse
import platform
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from math import exp, log
from typing import Any

from bench import start
from bench.captures import lines as capture_lines
from bench.columns import lines as column_lines
from bench.explorer import lines as explorer_lines
from bench.floor import copy_bytes, make_objects
from bench.kio_peer import peer
from bench.logs import lines as log_lines
from bench.marts import lines as mart_lines
from bench.messages import Case, cases
from bench.pipeline import lines as pipeline_lines
from bench.share_consumer import lines as share_lines
from bench.share_source import lines as share_source_lines
from bench.timing import ROUNDS, best
from kafkascope.codec.fast.engine import fast_decoder, is_native
from kafkascope.codec.fast.fast_encode import compile_encoder
from kafkascope.codec.message import decode, encode
from kafkascope.schema.layouts.layout import layout

HEAD = (
    f"{'':<52}{'':>9} |{'kafkascope':>19} |{'kio':>19} |{'times kio':>14} |{'floor':>17}\n"
    f"{'':<52}{'bytes':>9} |{'us':>10}{'MB/s':>9} |{'us':>10}{'MB/s':>9}"
    f" |{'call':>6}{'bare':>8} |{'objects':>9}{'memcpy':>8}"
)


_SECTIONS = (
    *("codec", "columns", "captures", "logs", "pipeline", "marts", "share", "share-source"),
    *("explorer", "start"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"{', '.join(_SECTIONS)}; all if none is named")
    parser.add_argument("--gc", action="store_true", help="leave the garbage collector on while timing")
    parser.add_argument("--only", default="", help="only messages whose name holds this; codec and columns alone then")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--whole", action="store_true", help="let tshark read all of the 1 GB capture: it takes long")
    options = parser.parse_args()
    chosen = options.sections or (_SECTIONS[:2] if options.only else _SECTIONS)
    for section in chosen:
        if section not in _SECTIONS:
            parser.error(f"unknown section {section}; choose from {', '.join(_SECTIONS)}")
    if "codec" in chosen:
        _codec(options)
    if "columns" in chosen:
        print("\ncolumns")
        for line in column_lines(options.only):
            print(line, flush=True)
    if "captures" in chosen:
        print("\ncaptures")
        for line in capture_lines(whole=options.whole):
            print(line, flush=True)
    if "logs" in chosen:
        print("\nlogs")
        for line in log_lines():
            print(line, flush=True)
    if "pipeline" in chosen:
        print("\npipeline")
        for line in pipeline_lines(whole=options.whole):
            print(line, flush=True)
    if "marts" in chosen:
        print("\nmarts")
        for line in mart_lines():
            print(line, flush=True)
    if "share" in chosen:
        print("\nshare consumer")
        for line in share_lines():
            print(line, flush=True)
    if "share-source" in chosen:
        print("\nSpark source of share groups")
        for line in share_source_lines():
            print(line, flush=True)
    if "explorer" in chosen:
        print("\nexplorer")
        for line in explorer_lines():
            print(line, flush=True)
    if "start" in chosen:
        for lines in (start.lines(), start.import_lines()):
            print("", *lines, sep="\n")


def _codec(options: argparse.Namespace) -> None:
    chosen = [case for case in cases() if options.only.lower() in case.label.lower()]
    print(f"Python {platform.python_version()}, kio {version('kio')}; best of {options.rounds} rounds taken in turns,")
    print(f"gc {'on' if options.gc else 'off'} while timing; each result is dropped before the next call, for both.")
    print("Both read the same bytes to equal values and write them back, checked first. Times kio: above 1 is faster;")
    print(
        "call: kafkascope.decode or encode against kio's reader or writer; bare: the function that it calls, made once."
    )
    print(f"The decoder is in {'C' if is_native() else 'Python: there was no compiler when it was built'}.")
    print("Floor, in us: CPython's marshal making the same objects in C; one copy of the bytes.")
    for direction in ("decode", "encode"):
        print(f"\n{direction}")
        print(HEAD)
        ratios = [_line(case, direction, with_gc=options.gc, rounds=options.rounds) for case in chosen]
        if ratios:
            for label, combine in (("geometric mean", _mean), ("least", min)):
                call, bare = (combine(column) for column in zip(*ratios, strict=True))
                print(f"{label:<52}{'':>9} |{'':>19} |{'':>19} |{call:6.2f}{bare:8.2f} |")


def _mean(ratios: Iterable[float]) -> float:
    logarithms = [log(ratio) for ratio in ratios]
    return exp(sum(logarithms) / len(logarithms))


def _line(case: Case, direction: str, *, with_gc: bool, rounds: int) -> tuple[float, float]:
    theirs = peer(case)
    message_layout = layout(case.name, case.version)
    if direction == "decode":
        calls: list[Callable[[], Any]] = [
            partial(decode, case.name, case.version, case.data),
            theirs.decode,
            partial(fast_decoder(message_layout), case.data, 0),
            copy_bytes(case),
            make_objects(case),
        ]
    else:
        calls = [
            partial(encode, case.name, case.version, case.value),
            theirs.encode,
            partial(compile_encoder(message_layout), case.value),
            copy_bytes(case),
        ]
    ours, kio, bare, copied, *objects = best(calls, with_gc=with_gc, rounds=rounds)
    size = len(case.data)
    floor = f"{1e6 * objects[0]:9.2f}" if objects else f"{'':>9}"
    print(
        f"{case.label:<52}{size:9,} |{1e6 * ours:10.2f}{size / ours / 1e6:9.1f}"
        f" |{1e6 * kio:10.2f}{size / kio / 1e6:9.1f} |{kio / ours:6.2f}{kio / bare:8.2f} |{floor}{1e6 * copied:8.2f}",
        flush=True,
    )
    return kio / ours, kio / bare


if __name__ == "__main__":
    main()
