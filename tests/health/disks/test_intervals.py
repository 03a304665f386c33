"""Sets of offsets behave as sets, whatever the order of ranges."""

import random
from itertools import pairwise

from kafkascope.health.disks.intervals import Offsets


def plain(offsets: Offsets) -> set[int]:
    return {offset for first, last in offsets for offset in range(first, last + 1)}


def filled(seed: int) -> tuple[Offsets, set[int]]:
    source, ranges, wanted = random.Random(seed), Offsets(), set()
    for _ in range(source.randint(0, 12)):
        first = source.randint(0, 60)
        last = first + source.randint(0, 8)
        ranges.add(first, last)
        wanted |= set(range(first, last + 1))
    return ranges, wanted


def test_ranges_are_those_of_a_set() -> None:
    for seed in range(300):
        left, wanted = filled(seed)
        right, others = filled(seed + 1000)
        assert plain(left) == wanted and len(left) == len(wanted), seed
        ranges = list(left)
        assert all(before[1] + 1 < after[0] for before, after in pairwise(ranges)), seed
        inside, outside = left.split(right)
        assert (plain(inside), plain(outside)) == (wanted & others, wanted - others), seed
