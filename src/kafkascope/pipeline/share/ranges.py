"""Sets of offsets as sorted, disjoint ranges with inclusive ends; neighbouring ranges are one."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from kafkascope.client.share.values import Range


class OffsetSet:
    """Costs grow with the number of ranges, never with that of offsets."""

    __slots__ = ("_ranges",)

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._ranges: list[Range] = []
        for first, last in ranges:
            self.add(first, last)

    def __iter__(self) -> Iterator[Range]:
        return iter(self._ranges)

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetSet) and self._ranges == other._ranges

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"OffsetSet({[tuple(part) for part in self._ranges]})"

    @property
    def offsets(self) -> int:
        return sum(part.size for part in self._ranges)

    @property
    def ranges(self) -> int:
        return len(self._ranges)

    def add(self, first: int, last: int) -> None:
        start = bisect_left(self._ranges, first, key=lambda part: part.last + 1)
        end = start
        while end < len(self._ranges) and self._ranges[end].first <= last + 1:
            first, last = min(first, self._ranges[end].first), max(last, self._ranges[end].last)
            end += 1
        self._ranges[start:end] = [Range(first, last)]

    def remove(self, first: int, last: int) -> None:
        start = bisect_left(self._ranges, first, key=lambda part: part.last)
        end = start
        rest: list[Range] = []
        while end < len(self._ranges) and self._ranges[end].first <= last:
            part = self._ranges[end]
            if part.first < first:
                rest.append(Range(part.first, first - 1))
            if part.last > last:
                rest.append(Range(last + 1, part.last))
            end += 1
        self._ranges[start:end] = rest

    def within(self, first: int, last: int) -> Iterator[Range]:
        """The parts of it that are between these offsets."""
        index = bisect_left(self._ranges, first, key=lambda part: part.last)
        while index < len(self._ranges) and self._ranges[index].first <= last:
            part = self._ranges[index]
            yield Range(max(part.first, first), min(part.last, last))
            index += 1

    def missing(self, first: int, last: int) -> Iterator[Range]:
        """The parts between these offsets that aren't in it."""
        position = first
        for part in self.within(first, last):
            if part.first > position:
                yield Range(position, part.first - 1)
            position = part.last + 1
        if position <= last:
            yield Range(position, last)
