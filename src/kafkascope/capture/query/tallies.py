"""Sums measures of exchanges by name, and counts latencies in buckets for percentiles. Memory depends on the number of
names alone."""

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

# Latencies are counted in buckets that grow by this factor: a percentile, rounded, is within 1 % or a microsecond of
# the exact one.
_GROWTH = 1.015
_LOG_GROWTH = math.log(_GROWTH)
# Enough for any int64.
BUCKETS = 3_072
PERCENTILES = (50, 90, 99)


class Measure(IntEnum):
    """The numbers of an exchange. Over many exchanges they are summed, except latency, whose maximum is kept, -1 if
    none is known."""

    REQUEST_BYTES = 0
    RESPONSE_BYTES = 1
    FAILED = 2
    UNANSWERED = 3
    LATENCY = 4


# The column after the measures of a sum: how many exchanges it has.
CALLS = len(Measure)
# Memory of a name besides its characters, with its sums and a few buckets.
NAME_COST = 768
# The name under which all further names are counted.
OTHERS = "(others)"
# New buckets are merged when this many wait, or as many as there are already.
_MOST_WAITING = 1 << 16


class Tally(NamedTuple):
    """`percentiles` are those of `PERCENTILES`, in microseconds. They and the slowest are None if no latency is
    known."""

    calls: int
    request_bytes: int
    response_bytes: int
    errors: int
    unanswered: int
    slowest_us: int | None
    percentiles: tuple[int | None, ...]


class Tallies:
    """Names are numbered as they come, until they take too much memory: calls with a new name then go to `others`. The
    key of a bucket is the number of its name, times `BUCKETS`, plus its own."""

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
        """The code of a row is the index of its name; `leave_out` marks rows whose latency does not count."""
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
        add_sums(self._sums, number, sums, keys[:timed])
        distinct, counts = np.unique(keys[:timed], return_counts=True)
        self._waiting.append((distinct, counts))
        self._waits += len(distinct)
        if self._waits > max(_MOST_WAITING, len(self._keys)):
            self._merge_buckets()

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

    def summaries(self, names: Collection[Any] | None = None) -> list[Tally]:
        """For all names, in their order; or for the given ones, and then for all others together."""
        if names is None:
            return self._summaries(np.arange(len(self._numbers)), len(self._numbers))
        group = np.full(len(self._numbers), len(names), np.int64)
        group[[self._numbers[name] for name in names]] = np.arange(len(names))
        return self._summaries(group, len(names) + (len(names) < len(self._numbers)))

    def _summaries(self, group: Ints, count: int) -> list[Tally]:
        """`group` is the index of the summary, of `count`, that each name goes to."""
        self._merge_buckets()
        sums = np.zeros((count, len(Measure) + 1), np.int64)
        sums[:, Measure.LATENCY] = -1
        keys, counts = self._keys.copy(), self._counts
        add_sums(sums, group, self._sums, keys)
        if len(group) > count:
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
        percentiles = np.empty((count, len(PERCENTILES)), np.int64)
        find_percentiles(keys, counts, sums, np.array(PERCENTILES), percentiles)
        unknown: tuple[None, ...] = (None,) * len(PERCENTILES)
        return [
            Tally(calls, requests, responses, errors, unanswered, slowest, tuple(some))
            if slowest >= 0
            else Tally(calls, requests, responses, errors, unanswered, None, unknown)
            for (requests, responses, errors, unanswered, slowest, calls), some in zip(
                sums.tolist(), percentiles.tolist(), strict=True
            )
        ]

    def _merge_buckets(self) -> None:
        if self._waiting:
            parts = [(self._keys, self._counts), *self._waiting]
            keys, counts = (np.concatenate([part[which] for part in parts]) for which in (0, 1))
            self._keys, where = np.unique(keys, return_inverse=True)
            self._counts = np.bincount(where, counts, len(self._keys)).astype(np.int64)
            self._waiting, self._waits = [], 0


@jit
def add_up(codes: Any, numbers: Any, left_out: Any, sums: Any, keys: Any) -> Number:
    """Adds up by code; returns the number of latencies that count, each with its code and bucket in `keys`."""
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
def add_sums(sums: Any, number: Any, more: Any, keys: Any) -> None:
    """Adds the rows of `more` to `sums`, each at its new number; `keys` get the new numbers too."""
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
def find_percentiles(keys: Any, counts: Any, sums: Any, percents: Any, percentiles: Any) -> None:
    """Keys are sorted. A percentile is the middle of its bucket, or the longest latency if that is less."""
    start = 0
    while start < len(keys):
        number = keys[start] // BUCKETS
        end, total = start, 0
        while end < len(keys) and keys[end] // BUCKETS == number:
            total += counts[end]
            end += 1
        for which in range(len(percents)):
            rank = max(1, (total * percents[which] + 99) // 100)
            at, so_far = start, counts[start]
            while so_far < rank:
                at += 1
                so_far += counts[at]
            bucket = keys[at] % BUCKETS
            middle = np.floor(_GROWTH ** (bucket - 0.5) + 0.5) if bucket else 0.0
            longest = sums[number, Measure.LATENCY]
            percentiles[number, which] = np.int64(middle) if middle < longest else longest
        start = end
