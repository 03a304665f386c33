"""Exchanges in, where the bodies of their frames lie out: those of one message and version side by side."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np

from kafkascope.capture.base.flow import (
    FrameKind,
    Int64s,
)
from kafkascope.capture.base.memory_view import Content
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.facts import UNSUPPORTED_VERSION, Facts
from kafkascope.capture.frames.headers import (
    API_VERSIONS,
    Frame,
    FrameRows,
)
from kafkascope.capture.frames.scan_program import (
    Fact,
)
from kafkascope.columnar.compiling.jit import jit
from kafkascope.schema.catalog import apis, message

# (name, version); the name is None for a message that the catalog does not know, whose bodies are empty here.
Kind = tuple[str | None, int]


class BodyColumn(IntEnum):
    """What is noted of a body. The code is that of its message: key, direction, version."""

    CODE = 0
    EXCHANGE = 1
    ROW = 2
    PLACE = 3
    LENGTH = 4


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Bodies sorted by message and version: those of number i of `kinds` begin with number i of `starts`, which has one
    more. Each has its exchange, its row in the batch and its place in `content`; it ends with `ends`, which begin with
    0."""

    kinds: list[Kind]
    starts: list[int]
    exchanges: Int64s
    rows: Int64s
    places: Int64s
    ends: Int64s
    content: Content


def places_of(batch: ExchangeBatch) -> Places:
    """Requests within Envelopes too, under the same exchange (protocol note 11)."""
    inner = batch.facts.inner
    room = 2 * (len(batch) + (len(inner[0].request) if inner is not None else 0))
    found = np.empty((len(BodyColumn), room), np.int64)
    count = _collect(found, 0, batch.rows, batch.request, batch.response, batch.facts, _SAME)
    if inner is not None:
        inside, facts = inner
        count = _collect(found, count, inside.rows, inside.request, inside.response, facts, inside.outer)
    order = np.argsort(found[BodyColumn.CODE, :count], kind="stable")
    kept = np.empty((len(BodyColumn), count), np.int64)
    starts, ends = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
    starts = starts[: put_in_order(found, order, kept, starts, ends)]
    codes = kept[BodyColumn.CODE, starts].tolist()
    kinds = [_kind(code) for code in codes]
    bounds = [*starts.tolist(), count]
    if (None, 0) in kinds:
        for (name, _), start, end in zip(kinds, bounds, bounds[1:], strict=False):
            if name is None:
                kept[BodyColumn.LENGTH, start:end] = 0
        np.cumsum(kept[BodyColumn.LENGTH], out=ends[1:])
    return Places(
        kinds, bounds, kept[BodyColumn.EXCHANGE], kept[BodyColumn.ROW], kept[BodyColumn.PLACE], ends, batch.content
    )


_SAME = np.empty(0, np.int64)


def _collect(
    found: Int64s, count: int, rows: FrameRows, request: Int64s, response: Int64s, facts: Facts, outer: Int64s
) -> int:
    return int(collect(found, count, rows, request, response, facts.body_at, facts.values, outer))


@jit
def collect(
    found: Any, count: Number, rows: Any, request: Any, response: Any, answer_at: Any, values: Any, outer: Any
) -> Number:
    """`outer` says which exchange each is in, and is empty where they are those of the batch."""
    for i in range(len(request)):
        asked = request[i]
        if asked < 0 or rows[asked, Frame.KIND] != FrameKind.FRAME or rows[asked, Frame.BODY_AT] < 0:
            continue
        exchange = outer[i] if len(outer) else i
        key, version = rows[asked, Frame.API_KEY], rows[asked, Frame.VERSION]
        note(found, count, rows, asked, exchange, key << 17 | version & 0xFFFF, rows[asked, Frame.BODY_AT])
        count += 1
        if response[i] >= 0 and answer_at[i] >= 0:
            if key == API_VERSIONS and values[i, Fact.ERROR] == UNSUPPORTED_VERSION:
                version = np.int64(0)
            note(found, count, rows, response[i], exchange, key << 17 | 1 << 16 | version & 0xFFFF, answer_at[i])
            count += 1
    return count


@jit
def note(found: Any, at: Number, rows: Any, row: Number, exchange: Number, code: Number, body_at: Number) -> None:
    found[BodyColumn.CODE, at] = code
    found[BodyColumn.EXCHANGE, at] = exchange
    found[BodyColumn.ROW, at] = row
    found[BodyColumn.PLACE, at] = rows[row, Frame.FRAME_AT] + body_at
    found[BodyColumn.LENGTH, at] = rows[row, Frame.SIZE] - body_at


@jit
def put_in_order(found: Any, order: Any, kept: Any, starts: Any, ends: Any) -> Number:
    """How many codes there are; where each begins goes to `starts`."""
    count = np.int64(0)
    ends[0] = 0
    for i in range(len(order)):
        for column in range(kept.shape[0]):
            kept[column, i] = found[column, order[i]]
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
