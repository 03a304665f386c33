"""Aggregates calls, bytes, errors and latency percentiles by API, client and connection. Memory depends on how many of
those there are, not on how many exchanges."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.query.tallies import OTHERS, Ints, Measure, Tallies


@dataclass(slots=True)
class Stats:
    """`apis` are by (API, whether it waits by design), `clients` by client id, `connections` by both ends and id."""

    apis: Tallies = field(default_factory=lambda: Tallies((OTHERS, False)))
    clients: Tallies = field(default_factory=Tallies)
    connections: Tallies = field(default_factory=lambda: Tallies((OTHERS, OTHERS, OTHERS)))
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, columns: pa.RecordBatch) -> None:
        if not columns.num_rows:
            return
        polls = columns.column("long_poll").to_numpy(zero_copy_only=False)
        numbers = _numbers(columns)
        apis, named = _distinct(columns, "api", "api_key")
        api = [name or ("responses without a request" if key is None else f"key {key}") for name, key in named]
        self.apis.add(apis * 2 + polls, [(name, waits) for name in api for waits in (False, True)], numbers, None)
        index, clients = _distinct(columns, "client_id")
        self.clients.add(index, [name or "" for (name,) in clients], numbers, polls)
        index, ends = _distinct(columns, "client_address", "broker_address", "connection_id")
        self.connections.add(index, ends, numbers, polls)
        failed = np.flatnonzero(numbers[:, Measure.FAILED])
        if len(failed):
            which, words = _distinct(columns, "error")
            pairs = apis[failed] * len(words) + which[failed]
            for pair, count in zip(*(part.tolist() for part in np.unique(pairs, return_counts=True)), strict=True):
                code, error = divmod(pair, len(words))
                self.errors[named[code][0], words[error][0]] += count


def _numbers(columns: pa.RecordBatch) -> Ints:
    """The measures of each row; an unknown latency is -1."""
    table = np.empty((columns.num_rows, len(Measure)), np.int64)
    for at, name in enumerate(("request_bytes", "response_bytes", "error_code")):
        table[:, at] = _without_nulls(columns.column(name), 0)
    table[:, Measure.FAILED] = table[:, Measure.FAILED] != 0
    status = columns.column("status").dictionary_encode()
    words = status.dictionary.to_pylist()
    table[:, Measure.UNANSWERED] = status.indices.to_numpy() == (
        words.index("unanswered") if "unanswered" in words else -1
    )
    table[:, Measure.LATENCY] = _without_nulls(columns.column("latency_us"), -1)
    return table


def _without_nulls(column: pa.Array, value: int) -> npt.NDArray[np.integer]:
    """The column with `value` in place of nulls."""
    values: npt.NDArray[np.integer] = (column.fill_null(value) if column.null_count else column).to_numpy()
    return values


def _distinct(columns: pa.RecordBatch, *names: str) -> tuple[Ints, list[tuple[Any, ...]]]:
    """(row to its number, number to the values)"""
    encoded = [columns.column(name).dictionary_encode() for name in names]
    words = [[*column.dictionary.to_pylist(), None] for column in encoded]
    indices = [_without_nulls(column.indices, len(column.dictionary)) for column in encoded]
    codes = indices[0].astype(np.int64)
    if len(names) == 1:
        return codes, [(word,) for word in words[0]]
    for more, known in zip(indices[1:], words[1:], strict=True):
        codes = codes * len(known) + more
    _, first, where = np.unique(codes, return_index=True, return_inverse=True)
    values = [[known[at] for at in which[first].tolist()] for known, which in zip(words, indices, strict=True)]
    return where, list(zip(*values, strict=True))
