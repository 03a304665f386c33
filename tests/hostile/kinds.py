"""Every fuzzer: how a unit of its cases is made from a random source, and how it runs. Outcomes count its cases."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.hostile import batches, captures, carried, fragments, frames, logs, pcapng_files, probes
from tests.hostile.reading import account_of, read_again, read_recording


@dataclass(frozen=True, slots=True)
class Kind:
    """`cases` of a unit; `is_recording` says that a unit is a file for `kafkascope read`."""

    make: Callable[[Random], bytes]
    run: Callable[[bytes], Counter[str]]
    cases: int = 1
    is_recording: bool = False


def _single(run: Callable[[bytes], str]) -> Callable[[bytes], Counter[str]]:
    return lambda data: Counter({run(data): 1})


KINDS = {
    "captures": Kind(captures.make, _single(read_recording), is_recording=True),
    "pcapng": Kind(pcapng_files.make, _single(read_recording), is_recording=True),
    "fragments": Kind(fragments.make, _single(read_recording), is_recording=True),
    "logs": Kind(logs.make, _single(read_recording), is_recording=True),
    "carried": Kind(carried.make, _single(carried.run)),
    "frames": Kind(frames.make, frames.run, frames.UNIT),
    "batches": Kind(batches.make, batches.run, batches.UNIT),
}
# Files that are there already, and misbehaviour of the program, for the tests of what notices it.
OTHERS = {
    "breaks": Kind(captures.make, account_of),
    "again": Kind(captures.make, _single(read_again)),
    "probes": Kind(probes.make, _single(probes.run)),
}
