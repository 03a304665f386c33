"""Sets of offsets as sorted ranges that don't touch: as small as the offsets are contiguous."""

from bisect import bisect_left
from collections.abc import Iterator


class Offsets:
    """Ranges include both ends."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, first: int, last: int) -> None:
        # The first range that ends at or after the offset before this one: it touches or overlaps, or comes later.
        low = bisect_left(self._lasts, first - 1)
        high = low
        while high < len(self._firsts) and self._firsts[high] <= last + 1:
            first, last = min(first, self._firsts[high]), max(last, self._lasts[high])
            high += 1
        self._firsts[low:high] = [first]
        self._lasts[low:high] = [last]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._firsts, self._lasts, strict=True)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self)

    def split(self, other: "Offsets") -> tuple["Offsets", "Offsets"]:
        """The offsets that `other` has too, and those that it lacks."""
        inside, outside = Offsets(), Offsets()
        for first, last in self:
            at = first
            for other_first, other_last in other.overlapping(first, last):
                if other_first > at:
                    outside.add(at, other_first - 1)
                low, high = max(at, other_first), min(last, other_last)
                inside.add(low, high)
                at = high + 1
            if at <= last:
                outside.add(at, last)
        return inside, outside

    def overlapping(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        index = bisect_left(self._lasts, first)
        while index < len(self._firsts) and self._firsts[index] <= last:
            yield self._firsts[index], self._lasts[index]
            index += 1
