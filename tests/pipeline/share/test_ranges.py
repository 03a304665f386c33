"""Sets of offsets do what sets of numbers do."""

import random
from itertools import pairwise

import pytest

from kafkascope.pipeline.share.ranges import OffsetSet

TOP = 60


@pytest.mark.parametrize("seed", range(20))
def test_ranges_are_the_set_of_their_offsets(seed: int) -> None:
    source = random.Random(seed)
    ranges, numbers = OffsetSet(), set[int]()
    for _ in range(100):
        first = source.randrange(TOP)
        last = source.randrange(first, TOP)
        span = set(range(first, last + 1))
        if source.random() < 0.5:
            ranges.add(first, last)
            numbers |= span
        else:
            ranges.remove(first, last)
            numbers -= span
        pairs = list(ranges)
        assert {offset for start, end in pairs for offset in range(start, end + 1)} == numbers
        assert all(before.last + 1 < after.first for before, after in pairwise(pairs))
        assert ranges.offsets == len(numbers)
        within = {offset for start, end in ranges.within(first, last) for offset in range(start, end + 1)}
        missing = {offset for start, end in ranges.missing(first, last) for offset in range(start, end + 1)}
        assert (within, missing) == (numbers & span, span - numbers)
