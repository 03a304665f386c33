"""Selects the exchanges of a batch that match a filter."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.base.arrow_arrays import Mask
from kafkascope.capture.exchanges.exchange_columns import TIME
from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.facts import ENVELOPE
from kafkascope.capture.exchanges.name_cache import Names
from kafkascope.capture.frames.headers import Frame
from kafkascope.limits import MAX_CAREFUL_FRAME_BYTES
from kafkascope.schema.names import matches

if TYPE_CHECKING:
    from kafkascope.capture.query.filter_language import Node


@dataclass(frozen=True, slots=True)
class ExchangeFilter:
    """An exchange matches if it meets all criteria that are set. Clients, groups and topics may have `*` and `?`;
    `errors` are codes, and an empty list means any but 0. `slow_us` excludes long polls, which wait by design."""

    apis: tuple[int, ...] = ()
    clients: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    errors: tuple[int, ...] | None = None
    slow_us: int | None = None
    between: tuple[datetime | None, datetime | None] | None = None
    where: "Node | None" = None

    @property
    def needs_names(self) -> bool:
        return bool(self.groups or self.topics)

    @property
    def everything(self) -> bool:
        return self == ExchangeFilter()


def select(criteria: ExchangeFilter, batch: ExchangeBatch, columns: pa.RecordBatch, names: list[Names] | None) -> Mask:
    """Which rows match. `names` are needed to filter by group or topic."""
    mask = np.ones(len(batch), dtype=bool)
    if criteria.apis:
        keys = batch.rows[batch.request, Frame.API_KEY]
        mask &= (batch.request >= 0) & (np.isin(keys, criteria.apis) | _inside_envelopes(criteria.apis, batch, keys))
    if criteria.clients:
        mask &= _glob(columns, "client_id", criteria.clients) | _address(columns, criteria.clients)
    if criteria.errors is not None:
        codes = columns.column("error_code")
        mask &= codes.is_valid().to_numpy(zero_copy_only=False)  # without a response the error isn't known
        known = codes.fill_null(0).to_numpy()
        mask &= np.isin(known, criteria.errors) if criteria.errors else known != 0
    if criteria.slow_us is not None:
        latency = columns.column("latency_us").fill_null(-1).to_numpy()
        mask &= (latency >= criteria.slow_us) & ~columns.column("long_poll").to_numpy(zero_copy_only=False)
    if criteria.between is not None:
        mask &= _between(columns, *criteria.between)
    if criteria.where is not None:
        from kafkascope.capture.query.filter_language import pick

        mask &= pick(criteria.where, columns)
    for patterns, pull in ((criteria.groups, _groups), (criteria.topics, _topics)):
        if patterns:
            assert names is not None
            # Fetches of one session share one tuple of topics.
            matching: dict[int, bool] = {}
            for index in np.flatnonzero(mask).tolist():
                own_names = pull(names[index])
                if id(own_names) not in matching:
                    matching[id(own_names)] = any(matches(name, p) for name in own_names for p in patterns)
                mask[index] = matching[id(own_names)]
    return mask


def _groups(names: Names) -> tuple[str, ...]:
    return names.groups


def _topics(names: Names) -> tuple[str, ...]:
    return names.topics


def _inside_envelopes(apis: tuple[int, ...], batch: ExchangeBatch, keys: npt.NDArray[np.int64]) -> Mask:
    from kafkascope.capture.exchanges.exchange import inner_frames

    mask = np.zeros(len(batch), dtype=bool)
    for index in np.flatnonzero((batch.request >= 0) & (keys == ENVELOPE)).tolist():
        inner = next(inner_frames(batch.request_frame(index, MAX_CAREFUL_FRAME_BYTES), None), None)
        mask[index] = inner is not None and inner[0].api_key in apis
    return mask


def _each(column: pa.Array, test: Callable[[str], bool]) -> Mask:
    """Applies the test once per distinct text."""
    encoded = column.dictionary_encode()
    good = np.array([test(text) for text in encoded.dictionary.to_pylist()] + [False], dtype=bool)
    return np.asarray(good[encoded.indices.fill_null(len(good) - 1).to_numpy()])


def _glob(columns: pa.RecordBatch, name: str, patterns: tuple[str, ...]) -> Mask:
    return _each(columns.column(name), lambda text: any(matches(text, pattern) for pattern in patterns))


def _address(columns: pa.RecordBatch, patterns: tuple[str, ...]) -> Mask:
    """Matches with or without the port."""

    def fits(text: str) -> bool:
        host = text.rpartition(":")[0]
        return any(matches(form, pattern) for form in (text, host, host.strip("[]")) for pattern in patterns)

    return _each(columns.column("client_address"), fits)


def _between(columns: pa.RecordBatch, first: datetime | None, last: datetime | None) -> Mask:
    import pyarrow.compute as pc  # slow to import, and only needed here

    at = pc.coalesce(columns.column("request_at"), columns.column("response_at"))
    mask = np.ones(columns.num_rows, dtype=bool)
    if first is not None:
        mask &= pc.greater_equal(at, pa.scalar(first, TIME)).fill_null(False).to_numpy(zero_copy_only=False)
    if last is not None:
        mask &= pc.less(at, pa.scalar(last, TIME)).fill_null(False).to_numpy(zero_copy_only=False)
    return mask
