"""Exchanges in, their bodies out as Arrow tables: one message a table, keyed by `exchange_id`, all versions alike."""

from collections.abc import Iterator, Sequence
from ctypes import memmove
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.arrow_arrays import numbers
from kafkascope.capture.exchange_columns import to_arrow
from kafkascope.capture.exchanges import ExchangeBatch
from kafkascope.capture.facts import ENVELOPE, UNSUPPORTED_VERSION, Facts
from kafkascope.capture.flow import FRAME
from kafkascope.capture.headers import ADDRESS, API_KEY, API_VERSIONS, BODY_AT, KIND, SIZE, VERSION, Rows
from kafkascope.capture.memory_view import copy_all
from kafkascope.capture.record_sizes import Sizes, with_sizes
from kafkascope.capture.scan_program import ERROR
from kafkascope.columnar.decode import decode_columns
from kafkascope.schema.catalog import apis, message

# The kernel wants many frames at once; memory wants them not to pile up.
ENOUGH_ROWS = 5_000
ENOUGH_BYTES = 8 << 20
MOST_BYTES = 16 << 20
MOST_KEY_BYTES = 8 << 20
# Keys of others that a table may hold: copying takes longer than reading a few rows.
MOST_OTHER_KEY_BYTES = 32 << 10

KEY = "exchange_id"
VERSION_COLUMN = "api_version"
# Message, version, and whether the recording tells the sizes of record data and no more of it.
_Key = tuple[str, int, bool]


@dataclass(frozen=True, slots=True)
class MessageTable:
    """`table` has the keys that were asked for, `exchange_id` if none were, `api_version`, then the columns of the
    message's own table, `_error` among them."""

    name: str
    table: pa.Table


@dataclass(slots=True)
class _Group:
    """Of one message and version, from one kind of recording. Its pieces are its own: one of a rare message that waits
    for long holds no memory of others."""

    keys: list[pa.RecordBatch] = field(default_factory=list)
    sizes: list[npt.NDArray[np.int64]] = field(default_factory=list)
    pieces: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    record_sizes: list[Sizes] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def put(self, keys: pa.RecordBatch, sizes: npt.NDArray[np.int64], size: int) -> int:
        """The address where the bodies go, side by side; `size` is that of all."""
        piece = np.empty(size, np.uint8)
        self.keys.append(keys)
        self.sizes.append(sizes.copy())
        self.pieces.append(piece)
        self.rows += len(sizes)
        self.size += size
        return int(piece.ctypes.data)

    def bodies(self) -> pa.LargeBinaryArray:
        ends = np.zeros(self.rows + 1, np.int64)
        np.cumsum(np.concatenate(self.sizes), out=ends[1:])
        content = self.pieces[0] if len(self.pieces) == 1 else np.concatenate(self.pieces)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(content)]
        return pa.Array.from_buffers(pa.large_binary(), self.rows, buffers)

    def own_keys(self) -> pa.RecordBatch:
        """Slices hold all the keys of the batches that they are of: copied, they do not."""
        if len(self.keys) > 1:
            self.keys = [pa.concat_batches(self.keys)]
        elif self.keys[0].get_total_buffer_size() > self.keys[0].nbytes + MOST_OTHER_KEY_BYTES:
            self.keys = [self.keys[0].take(numbers(np.arange(self.rows), pa.int64()))]
        return self.keys[0]


class Messages:
    """`keys` are columns of `exchanges` that every body is to carry; `contents` asks for the records too."""

    def __init__(self, keys: Sequence[str] = (KEY,), *, contents: bool = False) -> None:
        self._keys = list(keys)
        self._contents = contents
        self._groups: dict[_Key, _Group] = {}
        self._size = 0
        self._key_bytes = 0

    def add(self, batch: ExchangeBatch, exchanges: pa.RecordBatch | None = None) -> Iterator[MessageTable]:
        """What there is enough of now. `exchanges` are the batch's columns, where the caller has them already."""
        keys = (to_arrow(batch) if exchanges is None else exchanges).select(self._keys)
        facts = batch.facts
        self._take_both(keys, batch.rows, batch.request, batch.response, facts, batch.record_sizes)
        enveloped = (batch.request >= 0) & (batch.rows[batch.request, API_KEY] == ENVELOPE)
        if facts.inner is not None:
            # The request within an Envelope, under the same exchange (GOTCHAS 9a).
            inner, told = facts.inner
            inside = keys.take(numbers(inner.outer, pa.int64()))
            self._take_both(inside, inner.rows, inner.request, inner.response, told, ())
            enveloped[inner.outer] = False
        self._take_inner(keys, batch, np.flatnonzero(enveloped))
        for key in list(self._groups):
            group = self._groups[key]
            if group.rows >= ENOUGH_ROWS or group.size >= ENOUGH_BYTES:
                yield self._give(key)
        while self._size >= MOST_BYTES:
            yield self._give(max(self._groups, key=lambda key: self._groups[key].size))
        if self._key_bytes >= MOST_KEY_BYTES:
            for group in self._groups.values():
                group.own_keys()
            self._key_bytes = 0

    def finish(self) -> Iterator[MessageTable]:
        for key in list(self._groups):
            yield self._give(key)

    def _give(self, key: _Key) -> MessageTable:
        group = self._groups.pop(key)
        self._size -= group.size
        name, version, told = key
        table = decode_columns(name, version, group.bodies(), contents=self._contents)
        if told:
            table = with_sizes(name, table, group.record_sizes)
        versions = numbers(np.full(group.rows, version, dtype=np.int16), pa.int16())
        table = table.add_column(0, VERSION_COLUMN, versions)
        # The table may wait for long, for others of its message.
        keys = group.own_keys()
        for key_name in reversed(self._keys):
            table = table.add_column(0, key_name, keys.column(key_name))
        return MessageTable(name, table)

    def _take_both(
        self,
        keys: pa.RecordBatch,
        rows: Rows,
        request: npt.NDArray[np.int64],
        response: npt.NDArray[np.int64],
        facts: Facts,
        record_sizes: Sequence[Sizes],
    ) -> None:
        asked = (request >= 0) & (rows[request, KIND] == FRAME) & (rows[request, BODY_AT] >= 0)
        apis_, versions = rows[request, API_KEY], rows[request, VERSION]
        body_at = rows[request, BODY_AT]
        self._take(keys, "Request", asked, apis_, versions, request, body_at, rows, record_sizes)
        answered = asked & (response >= 0) & (facts.body_at >= 0)
        fallback = (apis_ == API_VERSIONS) & (facts.values[:, ERROR] == UNSUPPORTED_VERSION)
        versions = np.where(fallback, 0, versions)
        self._take(keys, "Response", answered, apis_, versions, response, facts.body_at, rows, record_sizes)

    def _take(
        self,
        keys: pa.RecordBatch,
        kind: str,
        there: npt.NDArray[np.bool_],
        apis_: npt.NDArray[np.int64],
        versions: npt.NDArray[np.int64],
        which: npt.NDArray[np.int64],
        body_at: npt.NDArray[np.int64],
        rows: Rows,
        record_sizes: Sequence[Sizes],
    ) -> None:
        """All bodies of one direction are copied at once, each to the others of its message and version."""
        chosen = np.flatnonzero(there)
        if not len(chosen):
            return
        codes = apis_[chosen] << 16 | versions[chosen] & 0xFFFF
        order = np.argsort(codes, kind="stable")
        chosen, codes = chosen[order], codes[order]
        at = which[chosen]
        sizes = rows[at, SIZE] - body_at[chosen]
        taken = keys.take(numbers(chosen, pa.int64()))
        self._key_bytes += taken.nbytes
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        ends = np.append(starts[1:], len(codes))
        behind = np.cumsum(sizes) - sizes
        shift = np.zeros(len(starts), np.int64)
        totals = np.add.reduceat(sizes, starts).tolist()
        for index, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            code = int(codes[start])
            name = _name(code >> 16, code & 0xFFFF, kind)
            if name is None:
                sizes[start:end] = 0
            else:
                key = (name, code & 0xFFFF, bool(record_sizes))
                address = self._put(key, taken[start:end], sizes[start:end], totals[index])
                shift[index] = address - behind[start]
                if record_sizes:
                    self._groups[key].record_sizes += [record_sizes[row] for row in at[start:end].tolist()]
        copy_all(rows[at, ADDRESS] + body_at[chosen], sizes, behind + np.repeat(shift, ends - starts))

    def _take_inner(self, keys: pa.RecordBatch, batch: ExchangeBatch, envelopes: npt.NDArray[np.int64]) -> None:
        """Of those that the kernel left."""
        from kafkascope.capture.exchange import inner_frames

        for index in envelopes.tolist():
            for frame, content in inner_frames(batch.request_frame(index), batch.response_frame(index)):
                if frame.name is not None and frame.body is not None:
                    body = content[frame.body_at :]
                    sizes = np.array([len(body)], np.int64)
                    key = (frame.name, frame.version, False)
                    memmove(self._put(key, keys.slice(index, 1), sizes, len(body)), body, len(body))

    def _put(self, key: _Key, keys: pa.RecordBatch, sizes: npt.NDArray[np.int64], size: int) -> int:
        self._size += size
        return self._groups.setdefault(key, _Group()).put(keys, sizes, size)


@cache
def _name(key: int, version: int, kind: str) -> str | None:
    api = apis().get(key)
    if api is None or not message(f"{api}{kind}").releases_of(version):
        return None
    return f"{api}{kind}"
