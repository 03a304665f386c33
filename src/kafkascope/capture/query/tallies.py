"""Numbers of exchanges by name in, what they come to out, in memory that depends on the names alone: sums, and
latencies in buckets for percentiles."""

import math
from collections.abc import Collection, Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.numbers import Number
from kafkascope.columnar.compiling.jit import jit
from kafkascope.limits import MAX_TALLIED_BYTES

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Latencies are counted in buckets that grow by this factor: a percentile, rounded, is within 1 % of the true one, or a
# microsecond.
GROWTH = 1.015
_LOG_GROWTH = math.log(GROWTH)
# Any int64 has one.
BUCKETS = 3_072
PERCENTILES = (50, 90, 99)


class Measure(IntEnum):
    """The numbers of an exchange; of many they are summed, but of latencies there is the longest, -1 where none is
    known."""

    REQUEST_BYTES = 0
    RESPONSE_BYTES = 1
    FAILED = 2
    UNANSWERED = 3
    LATENCY = 4


# After the measures of a sum: how many exchanges it has.
CALLS = len(Measure)
# What a name takes beside its letters, with its sums and a few buckets; and that of all further names.
NAME_COST = 768
OTHERS = "(others)"
# Buckets are put together when so many new ones wait, or as many as there are.
_MOST_WAITING = 1 << 16


class Tally(NamedTuple):
    """`percentiles` are those of `PERCENTILES`, in microseconds. They and the slowest are None where no latency is
    known."""

    calls: int
    request_bytes: int
    response_bytes: int
    errors: int
    unanswered: int
    slowest_us: int | None
    percentiles: tuple[int | None, ...]


class Tallies:
    """Names are numbered as they come, until they take too much: calls with a new name then go to `others`. A bucket's
    key is the number of its name, times `BUCKETS`, and its own."""

    def __init__(self, others: Any = OTHERS) -> None:
        self._others = others
        self._numbers: dict[Any, int] = {}
        self._name_bytes = 0
        self._sums = np.zeros((0, len(Measure) + 1), np.int64)
        self._keys = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)
        self._waiting: list[tuple[Ints, Ints]] = []
        self._waits = 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self._numbers)

    def add(self, codes: Ints, names: Sequence[Any], numbers: Ints, leave_out: Mask | None) -> None:
        """A code a row says which of `names` it is for; `leave_out` are rows whose latency does not count."""
        sums = np.zeros((len(names), len(Measure) + 1), np.int64)
        sums[:, Measure.LATENCY] = -1
        keys = np.empty(len(codes), np.int64)
        left_out = np.zeros(len(codes), np.bool_) if leave_out is None else leave_out
        timed = add_up(codes, numbers, left_out, sums, keys)
        used = np.flatnonzero(sums[:, CALLS])
        mine = [self._number(names[code]) for code in used.tolist()]
        if len(self._numbers) > len(self._sums):
            more = np.zeros((max(64, 2 * len(self._numbers)), len(Measure) + 1), np.int64)
            more[:, Measure.LATENCY] = -1
            more[: len(self._sums)] = self._sums
            self._sums = more
        number = np.zeros(len(names), np.int64)
        number[used] = mine
        take_over(self._sums, number, sums, keys[:timed])
        found, counts = np.unique(keys[:timed], return_counts=True)
        self._waiting.append((found, counts))
        self._waits += len(found)
        if self._waits > max(_MOST_WAITING, len(self._keys)):
            self._settle()

    def _number(self, name: Any) -> int:
        number = self._numbers.get(name)
        if number is None:
            self._name_bytes += NAME_COST + len(name if isinstance(name, str) else str(name))
            if self._name_bytes > MAX_TALLIED_BYTES:
                name = self._others
            number = self._numbers.setdefault(name, len(self._numbers))
        return number

    def calls(self) -> dict[Any, int]:
        return dict(zip(self._numbers, self._sums[:, CALLS].tolist(), strict=False))

    def told(self, names: Collection[Any] | None = None) -> list[Tally]:
        """Of all, in their order, or of these and then of all others together."""
        if names is None:
            return self._told(np.arange(len(self._numbers)), len(self._numbers))
        group = np.full(len(self._numbers), len(names), np.int64)
        group[[self._numbers[name] for name in names]] = np.arange(len(names))
        return self._told(group, len(names) + (len(names) < len(self._numbers)))

    def _told(self, group: Ints, count: int) -> list[Tally]:
        """`group` is which of `count` each name goes to."""
        self._settle()
        sums = np.zeros((count, len(Measure) + 1), np.int64)
        sums[:, Measure.LATENCY] = -1
        keys, counts = self._keys.copy(), self._counts
        take_over(sums, group, self._sums, keys)
        if len(group) > count:
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
        found = np.empty((count, len(PERCENTILES)), np.int64)
        find_percentiles(keys, counts, sums, np.array(PERCENTILES), found)
        unknown: tuple[None, ...] = (None,) * len(PERCENTILES)
        return [
            Tally(calls, requests, responses, errors, unanswered, slowest, tuple(some))
            if slowest >= 0
            else Tally(calls, requests, responses, errors, unanswered, None, unknown)
            for (requests, responses, errors, unanswered, slowest, calls), some in zip(
                sums.tolist(), found.tolist(), strict=True
            )
        ]

    def _settle(self) -> None:
        if self._waiting:
            parts = [(self._keys, self._counts), *self._waiting]
            keys, counts = (np.concatenate([part[which] for part in parts]) for which in (0, 1))
            self._keys, where = np.unique(keys, return_inverse=True)
            self._counts = np.bincount(where, counts, len(self._keys)).astype(np.int64)
            self._waiting, self._waits = [], 0


@jit
def add_up(codes: Any, numbers: Any, left_out: Any, sums: Any, keys: Any) -> Number:
    """Sums by code; how many latencies count, each with its code and bucket in `keys`."""
    count = 0
    for row in range(len(codes)):
        mine = sums[codes[row]]
        mine[CALLS] += 1
        for column in range(Measure.LATENCY):
            mine[column] += numbers[row, column]
        latency = numbers[row, Measure.LATENCY]
        if latency >= 0 and not left_out[row]:
            mine[Measure.LATENCY] = max(mine[Measure.LATENCY], latency)
            bucket = 1 + np.int64(math.log(latency) / _LOG_GROWTH) if latency else np.int64(0)
            keys[count] = codes[row] * BUCKETS + bucket
            count += 1
    return count


@jit
def take_over(sums: Any, number: Any, more: Any, keys: Any) -> None:
    """Those of other numbers to these; keys get the new numbers."""
    for row in range(len(number)):
        mine = sums[number[row]]
        if more[row, CALLS]:
            for column in range(more.shape[1]):
                mine[column] = (
                    max(mine[column], more[row, column])
                    if column == Measure.LATENCY
                    else mine[column] + more[row, column]
                )
    for at in range(len(keys)):
        keys[at] = number[keys[at] // BUCKETS] * BUCKETS + keys[at] % BUCKETS


@jit
def find_percentiles(keys: Any, counts: Any, sums: Any, percents: Any, found: Any) -> None:
    """Keys are sorted; the middle of a bucket, or the longest where that is less."""
    start = 0
    while start < len(keys):
        number = keys[start] // BUCKETS
        end, total = start, 0
        while end < len(keys) and keys[end] // BUCKETS == number:
            total += counts[end]
            end += 1
        for which in range(len(percents)):
            wanted = max(1, (total * percents[which] + 99) // 100)
            at, so_far = start, counts[start]
            while so_far < wanted:
                at += 1
                so_far += counts[at]
            bucket = keys[at] % BUCKETS
            middle = np.floor(GROWTH ** (bucket - 0.5) + 0.5) if bucket else 0.0
            longest = sums[number, Measure.LATENCY]
            found[number, which] = np.int64(middle) if middle < longest else longest
        start = end
