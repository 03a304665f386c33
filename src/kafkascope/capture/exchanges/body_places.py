"""Finds where the bodies in a batch of exchanges are, sorted by message and version."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import FrameKind, Int64s
from kafkascope.capture.base.memory_view import Content
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.facts import UNSUPPORTED_VERSION, Facts
from kafkascope.capture.frames.headers import API_VERSIONS, Frame, FrameRows
from kafkascope.capture.frames.scan_program import Fact
from kafkascope.columnar.compiling.jit import jit
from kafkascope.schema.catalog import apis, message

# (name, version); the name is None for a message that the catalog doesn't know, whose bodies are empty here.
Kind = tuple[str | None, int]
# Whether an exchange of a batch is chosen.
Bools = npt.NDArray[np.bool_]


class BodyColumn(IntEnum):
    """The columns of a body. Its code is that of the message: key, direction, version."""

    CODE = 0
    EXCHANGE = 1
    ROW = 2
    PLACE = 3
    LENGTH = 4


@dataclass(frozen=True, slots=True, eq=False)
class BodyPlaces:
    """Bodies sorted by message and version: those of `kinds[i]` are from `starts[i]` to `starts[i + 1]`. Each has its
    exchange, its row in the batch and its place in `content`; body i has `ends[i + 1] - ends[i]` bytes."""

    kinds: list[Kind]
    starts: list[int]
    exchanges: Int64s
    rows: Int64s
    places: Int64s
    ends: Int64s
    content: Content


def places_of(batch: ExchangeBatch) -> BodyPlaces:
    """Includes requests within Envelopes, under the same exchange (protocol note 11)."""
    inner = batch.facts.inner
    room = 2 * (len(batch) + (len(inner[0].request) if inner is not None else 0))
    bodies = np.empty((len(BodyColumn), room), np.int64)
    count = _add_pairs(bodies, 0, batch.rows, batch.request, batch.response, batch.facts, _SAME)
    if inner is not None:
        inside, facts = inner
        count = _add_pairs(bodies, count, inside.rows, inside.request, inside.response, facts, inside.outer)
    order = np.argsort(bodies[BodyColumn.CODE, :count], kind="stable")
    kept = np.empty((len(BodyColumn), count), np.int64)
    starts, ends = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
    starts = starts[: sort_bodies(bodies, order, kept, starts, ends)]
    codes = kept[BodyColumn.CODE, starts].tolist()
    kinds = [_kind(code) for code in codes]
    bounds = [*starts.tolist(), count]
    if (None, 0) in kinds:
        for (name, _), start, end in zip(kinds, bounds, bounds[1:], strict=False):
            if name is None:
                kept[BodyColumn.LENGTH, start:end] = 0
        np.cumsum(kept[BodyColumn.LENGTH], out=ends[1:])
    return BodyPlaces(
        kinds, bounds, kept[BodyColumn.EXCHANGE], kept[BodyColumn.ROW], kept[BodyColumn.PLACE], ends, batch.content
    )


def narrowed(places: BodyPlaces, only: str | None, chosen: Bools | None) -> BodyPlaces:
    """Without bodies of other messages than `only`, and without those of exchanges that aren't `chosen`."""
    if only is None and chosen is None:
        return places
    count = len(places.exchanges)
    kept = np.ones(count, bool) if chosen is None else chosen[places.exchanges]
    if only is not None:
        for (name, _), start, end in zip(places.kinds, places.starts, places.starts[1:], strict=False):
            if name != only:
                kept[start:end] = False
    before = np.concatenate([[0], np.cumsum(kept)])
    ends = np.concatenate([[0], np.cumsum(np.diff(places.ends)[kept])])
    starts = before[places.starts].tolist()
    filled = [index for index, (start, end) in enumerate(pairwise(starts)) if end > start]
    return BodyPlaces(
        [places.kinds[index] for index in filled], [*(starts[index] for index in filled), starts[-1]],
        places.exchanges[kept], places.rows[kept], places.places[kept], ends, places.content,
    )  # fmt: skip


_SAME = np.empty(0, np.int64)


def _add_pairs(
    bodies: Int64s, count: int, rows: FrameRows, request: Int64s, response: Int64s, facts: Facts, outer: Int64s
) -> int:
    return int(add_pairs(bodies, count, rows, request, response, facts.body_at, facts.values, outer))


@jit
def add_pairs(
    bodies: Any, count: Number, rows: Any, request: Any, response: Any, response_at: Any, values: Any, outer: Any
) -> Number:
    """Adds the bodies of pairs to `bodies`. `outer` has the exchange of each, and is empty for the batch itself."""
    for i in range(len(request)):
        row = request[i]
        if row < 0 or rows[row, Frame.KIND] != FrameKind.FRAME or rows[row, Frame.BODY_AT] < 0:
            continue
        exchange = outer[i] if len(outer) else i
        key, version = rows[row, Frame.API_KEY], rows[row, Frame.VERSION]
        add_body(bodies, count, rows, row, exchange, key << 17 | version & 0xFFFF, rows[row, Frame.BODY_AT])
        count += 1
        if response[i] >= 0 and response_at[i] >= 0:
            if key == API_VERSIONS and values[i, Fact.ERROR] == UNSUPPORTED_VERSION:
                version = np.int64(0)
            add_body(bodies, count, rows, response[i], exchange, key << 17 | 1 << 16 | version & 0xFFFF, response_at[i])
            count += 1
    return count


@jit
def add_body(bodies: Any, at: Number, rows: Any, row: Number, exchange: Number, code: Number, body_at: Number) -> None:
    bodies[BodyColumn.CODE, at] = code
    bodies[BodyColumn.EXCHANGE, at] = exchange
    bodies[BodyColumn.ROW, at] = row
    bodies[BodyColumn.PLACE, at] = rows[row, Frame.FRAME_AT] + body_at
    bodies[BodyColumn.LENGTH, at] = rows[row, Frame.SIZE] - body_at


@jit
def sort_bodies(bodies: Any, order: Any, kept: Any, starts: Any, ends: Any) -> Number:
    """Fills `kept`, `starts` and `ends` in the given order; returns the number of codes."""
    count = np.int64(0)
    ends[0] = 0
    for i in range(len(order)):
        for column in range(kept.shape[0]):
            kept[column, i] = bodies[column, order[i]]
        ends[i + 1] = ends[i] + kept[BodyColumn.LENGTH, i]
        if i == 0 or kept[BodyColumn.CODE, i] != kept[BodyColumn.CODE, i - 1]:
            starts[count] = i
            count += 1
    return count


@cache
def _kind(code: int) -> Kind:
    key, version = code >> 17, code & 0xFFFF
    api, direction = apis().get(key), "Response" if code >> 16 & 1 else "Request"
    if api is None or not message(f"{api}{direction}").releases_of(version):
        return None, 0
    return f"{api}{direction}", version
