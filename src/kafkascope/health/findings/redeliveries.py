"""Deliveries that ended unfinished and deliveries that came again in, who got what from whom out; in any order, and
bounded: of a storm, the first so many are followed."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

# Of each kind. A tuple of these is about 200 bytes.
MOST_FOLLOWED = 50_000

Mark = TypeVar("Mark")


class Follow(Generic[Mark]):
    def __init__(self, most: int = MOST_FOLLOWED) -> None:
        self._left = [most, most]
        self._ended: list[tuple[Hashable, int, int, int, Mark]] = []
        self._again: defaultdict[Hashable, list[tuple[int, int, str]]] = defaultdict(list)

    def ended(self, place: Hashable, first: int, last: int, delivery_count: int, mark: Mark) -> None:
        if self._left[0]:
            self._left[0] -= 1
            self._ended.append((place, first, last, delivery_count, mark))

    def again(self, place: Hashable, first: int, last: int, delivery_count: int, holder: str) -> None:
        if self._left[1]:
            self._left[1] -= 1
            self._again[place, delivery_count].append((first, last, holder))

    def handed_over(self) -> Iterator[tuple[Mark, str, int]]:
        """What `ended` was given as its mark, who got the records with the next count, and how many."""
        for ranges in self._again.values():
            ranges.sort()
        for place, first, last, delivery_count, mark in self._ended:
            ranges = self._again.get((place, delivery_count + 1), [])
            # Ranges of one count do not overlap, so the one before the first that starts later is the first to look at.
            at = max(0, bisect_right(ranges, first, key=lambda one: one[0]) - 1)
            while at < len(ranges) and ranges[at][0] <= last:
                records = min(last, ranges[at][1]) - max(first, ranges[at][0]) + 1
                if records > 0:
                    yield mark, ranges[at][2], records
                at += 1
