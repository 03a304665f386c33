"""Which exchanges are wanted: what was asked for in, a mask over the rows of a batch out."""

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
from kafkascope.capture.frames.headers import (
    Frame,
)
from kafkascope.limits import MAX_CAREFUL_FRAME_BYTES
from kafkascope.schema.names import matches

if TYPE_CHECKING:
    from kafkascope.capture.query.filter_language import Node


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that is set must hold. Clients, groups and topics may have `*` and `?`; `errors` are codes, and an empty list
    means any but 0. `slow_us` leaves long polls out: they wait by design."""

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
        return self == Wanted()


def select(wanted: Wanted, batch: ExchangeBatch, columns: pa.RecordBatch, names: list[Names] | None) -> Mask:
    """`names` are needed where groups or topics are wanted."""
    mask = np.ones(len(batch), dtype=bool)
    if wanted.apis:
        keys = batch.rows[batch.request, Frame.API_KEY]
        mask &= (batch.request >= 0) & (np.isin(keys, wanted.apis) | _inside_envelopes(wanted.apis, batch, keys))
    if wanted.clients:
        mask &= _glob(columns, "client_id", wanted.clients) | _address(columns, wanted.clients)
    if wanted.errors is not None:
        codes = columns.column("error_code")
        mask &= codes.is_valid().to_numpy(zero_copy_only=False)  # no answer is no error, and not none either
        known = codes.fill_null(0).to_numpy()
        mask &= np.isin(known, wanted.errors) if wanted.errors else known != 0
    if wanted.slow_us is not None:
        latency = columns.column("latency_us").fill_null(-1).to_numpy()
        mask &= (latency >= wanted.slow_us) & ~columns.column("long_poll").to_numpy(zero_copy_only=False)
    if wanted.between is not None:
        mask &= _between(columns, *wanted.between)
    if wanted.where is not None:
        from kafkascope.capture.query.filter_language import pick

        mask &= pick(wanted.where, columns)
    for patterns, pull in ((wanted.groups, _groups), (wanted.topics, _topics)):
        if patterns:
            assert names is not None
            # Fetches of one session share its topics.
            matching: dict[int, bool] = {}
            for index in np.flatnonzero(mask).tolist():
                found = pull(names[index])
                if id(found) not in matching:
                    matching[id(found)] = any(matches(name, p) for name in found for p in patterns)
                mask[index] = matching[id(found)]
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
    """A test of each distinct text, spread over the rows."""
    encoded = column.dictionary_encode()
    good = np.array([test(text) for text in encoded.dictionary.to_pylist()] + [False], dtype=bool)
    return np.asarray(good[encoded.indices.fill_null(len(good) - 1).to_numpy()])


def _glob(columns: pa.RecordBatch, name: str, patterns: tuple[str, ...]) -> Mask:
    return _each(columns.column(name), lambda text: any(matches(text, pattern) for pattern in patterns))


def _address(columns: pa.RecordBatch, patterns: tuple[str, ...]) -> Mask:
    """With or without the port."""

    def fits(text: str) -> bool:
        host = text.rpartition(":")[0]
        return any(matches(form, pattern) for form in (text, host, host.strip("[]")) for pattern in patterns)

    return _each(columns.column("client_address"), fits)


def _between(columns: pa.RecordBatch, first: datetime | None, last: datetime | None) -> Mask:
    import pyarrow.compute as pc  # nothing else here needs it, and it takes its time

    at = pc.coalesce(columns.column("request_at"), columns.column("response_at"))
    mask = np.ones(columns.num_rows, dtype=bool)
    if first is not None:
        mask &= pc.greater_equal(at, pa.scalar(first, TIME)).fill_null(False).to_numpy(zero_copy_only=False)
    if last is not None:
        mask &= pc.less(at, pa.scalar(last, TIME)).fill_null(False).to_numpy(zero_copy_only=False)
    return mask
