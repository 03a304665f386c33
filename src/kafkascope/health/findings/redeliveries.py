"""Matches deliveries that ended unfinished with the redeliveries of their records, in any order and with bounded
memory."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

# Per kind. A tuple of these takes about 200 bytes.
_MAX_TRACKED = 50_000

_Mark = TypeVar("_Mark")


class RedeliveryTracker(Generic[_Mark]):
    def __init__(self, most: int = _MAX_TRACKED) -> None:
        self._left = [most, most]
        self._ended: list[tuple[Hashable, int, int, int, _Mark]] = []
        self._again: defaultdict[Hashable, list[tuple[int, int, str]]] = defaultdict(list)

    def ended(self, place: Hashable, first: int, last: int, delivery_count: int, mark: _Mark) -> None:
        if self._left[0]:
            self._left[0] -= 1
            self._ended.append((place, first, last, delivery_count, mark))

    def again(self, place: Hashable, first: int, last: int, delivery_count: int, holder: str) -> None:
        if self._left[1]:
            self._left[1] -= 1
            self._again[place, delivery_count].append((first, last, holder))

    def handed_over(self) -> Iterator[tuple[_Mark, str, int]]:
        """Yields the mark passed to `ended`, who got the records with the next delivery count, and how many records."""
        for ranges in self._again.values():
            ranges.sort()
        for place, first, last, delivery_count, mark in self._ended:
            ranges = self._again.get((place, delivery_count + 1), [])
            # Ranges of one count don't overlap, so start with the last range that starts at or before the first offset.
            index = max(0, bisect_right(ranges, first, key=lambda range_: range_[0]) - 1)
            while index < len(ranges) and ranges[index][0] <= last:
                records = min(last, ranges[index][1]) - max(first, ranges[index][0]) + 1
                if records > 0:
                    yield mark, ranges[index][2], records
                index += 1
