"""Exchanges in, calls, bytes, errors and latency percentiles by API, client and connection out, in memory that depends
on how many of those there are and not on how many exchanges."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

# Latencies are counted in buckets that grow by this factor: a percentile, rounded, is within 1 % of the true one, or a
# microsecond.
GROWTH = 1.015
_LOG_GROWTH = float(np.log(GROWTH))
# Any int64 has one.
_BUCKETS = 3_072
PERCENTILES = (50, 90, 99)


@dataclass(slots=True)
class Tally:
    """Of one API, client or connection. Long polls are left out of the latencies unless all of it are such."""

    calls: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    errors: int = 0
    unanswered: int = 0
    slowest_us: int = 0
    buckets: dict[int, int] = field(default_factory=dict)

    def add(self, other: "Tally") -> None:
        self.calls += other.calls
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        self.errors += other.errors
        self.unanswered += other.unanswered
        self.slowest_us = max(self.slowest_us, other.slowest_us)
        for bucket, number in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + number

    def percentile(self, percent: float) -> int | None:
        """In microseconds; None where no latency is known."""
        total = sum(self.buckets.values())
        if not total:
            return None
        wanted = max(1, int(np.ceil(total * percent / 100)))
        so_far = 0
        for bucket in sorted(self.buckets):
            so_far += self.buckets[bucket]
            if so_far >= wanted:
                return min(bucket_middle(bucket), self.slowest_us)
        return self.slowest_us


@dataclass(slots=True)
class Stats:
    """`apis` are by (API, whether it waits by design), `clients` by client id, `connections` by both ends and id."""

    apis: dict[tuple[str, bool], Tally] = field(default_factory=dict)
    clients: dict[str, Tally] = field(default_factory=dict)
    connections: dict[tuple[str, str, str], Tally] = field(default_factory=dict)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, columns: pa.RecordBatch) -> None:
        if not columns.num_rows:
            return
        api_index, named = _distinct(columns, "api", "api_key")
        api = [name or ("answers alone" if key is None else f"key {key}") for name, key in named]
        polls = columns.column("long_poll").to_numpy(zero_copy_only=False)
        numbers = _Numbers(columns)
        _tally(self.apis, api_index * 2 + polls, lambda code: (api[code >> 1], bool(code & 1)), numbers, None)
        index, clients = _distinct(columns, "client_id")
        _tally(self.clients, index, lambda code: clients[code][0] or "", numbers, polls)
        index, ends = _distinct(columns, "client_address", "broker_address", "connection_id")
        _tally(self.connections, index, lambda code: ends[code], numbers, polls)
        failed = np.flatnonzero(numbers.failed)
        if len(failed):
            taken = columns.take(pa.array(failed))
            where, pairs = _distinct(taken, "api", "error")
            for code, count in enumerate(np.bincount(where).tolist()):
                self.errors[pairs[code]] += count


class _Numbers:
    def __init__(self, columns: pa.RecordBatch) -> None:
        def ints(name: str, empty: int) -> Ints:
            return np.asarray(columns.column(name).fill_null(empty).to_numpy(), dtype=np.int64)

        self.request_bytes = ints("request_bytes", 0)
        self.response_bytes = ints("response_bytes", 0)
        self.failed = ints("error_code", 0) != 0
        self.latency = ints("latency_us", -1)
        status = columns.column("status").dictionary_encode()
        words = status.dictionary.to_pylist()
        unanswered = words.index("unanswered") if "unanswered" in words else -1
        self.unanswered = status.indices.to_numpy() == unanswered
        self.bucket = np.zeros(len(self.latency), dtype=np.int64)
        known = self.latency > 0
        self.bucket[known] = 1 + (np.log(self.latency[known]) / _LOG_GROWTH).astype(np.int64)


def bucket_middle(bucket: int) -> int:
    return 0 if bucket == 0 else round(GROWTH ** (bucket - 0.5))


def _distinct(columns: pa.RecordBatch, *names: str) -> tuple[Ints, list[tuple[Any, ...]]]:
    """(row to its number, number to the values)"""
    codes = np.zeros(columns.num_rows, dtype=np.int64)
    parts: list[list[Any]] = []
    for name in names:
        encoded = columns.column(name).dictionary_encode()
        words = [*encoded.dictionary.to_pylist(), None]
        codes = codes * len(words) + encoded.indices.fill_null(len(words) - 1).to_numpy()
        parts.append(words)
    found, index = np.unique(codes, return_inverse=True)
    values = []
    for words in reversed(parts):
        found, at = np.divmod(found, len(words))
        values.append([words[number] for number in at.tolist()])
    return index, list(zip(*reversed(values), strict=True))


def _tally(
    tallies: dict[Any, Tally], codes: Ints, name_of: Callable[[int], Any], numbers: _Numbers, leave_out: Any
) -> None:
    """`leave_out` are rows whose latency does not count, None for none."""
    found, where = np.unique(codes, return_inverse=True)
    count = len(found)
    timed = numbers.latency >= 0 if leave_out is None else (numbers.latency >= 0) & ~leave_out
    slowest = np.zeros(count, dtype=np.int64)
    np.maximum.at(slowest, where[timed], numbers.latency[timed])
    summed = (numbers.request_bytes, numbers.response_bytes, numbers.failed, numbers.unanswered)
    sums = [np.bincount(where, weights, count).astype(np.int64) for weights in summed]
    mine = []
    for code, calls, requests, responses, errors, unanswered, longest in zip(
        *(column.tolist() for column in (found, np.bincount(where), *sums, slowest)), strict=True
    ):
        name = name_of(code)
        tally = tallies.get(name)
        if tally is None:
            tally = tallies[name] = Tally()
        tally.calls += calls
        tally.request_bytes += requests
        tally.response_bytes += responses
        tally.errors += errors
        tally.unanswered += unanswered
        tally.slowest_us = max(tally.slowest_us, longest)
        mine.append(tally.buckets)
    pairs, times = np.unique(where[timed] * _BUCKETS + numbers.bucket[timed], return_counts=True)
    for at, bucket, number in zip(*(part.tolist() for part in (*np.divmod(pairs, _BUCKETS), times)), strict=True):
        buckets = mine[at]
        buckets[bucket] = buckets.get(bucket, 0) + number
