"""Splits an interval into equal steps of a round length, never more than the given number."""

from dataclasses import dataclass

_SECOND_US = 1_000_000
DAY_US = 86_400 * _SECOND_US
_STEPS_US = (
    *(1_000 * count for count in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(_SECOND_US * count for count in (1, 2, 5, 10, 15, 30)),
    *(60 * _SECOND_US * count for count in (1, 2, 5, 10, 15, 30)),
    *(3_600 * _SECOND_US * count for count in (1, 2, 3, 6, 12)),
    *(DAY_US * count for count in (1, 2, 7, 14, 28)),
)


@dataclass(frozen=True, slots=True)
class Buckets:
    """`count` steps of `step_us` from `first_at` on."""

    first_at: int
    step_us: int
    count: int

    @property
    def last_at(self) -> int:
        return self.first_at + self.step_us * self.count

    def start(self, index: int) -> int:
        return self.first_at + self.step_us * index


def step_for(length_us: int, most: int) -> int:
    """The shortest step that splits an interval into at most `most` steps, wherever it begins."""
    for step in _STEPS_US:
        if length_us // step + 2 <= most:
            return step
    return -(-length_us // (max(1, most - 2) * DAY_US)) * DAY_US


def buckets_of(first: int, last: int, most: int) -> Buckets:
    """Steps that include both ends."""
    step = step_for(last - first, most)
    start = first // step * step
    return Buckets(start, step, (last - start) // step + 1)
