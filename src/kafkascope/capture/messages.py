"""Exchanges in, their bodies out as Arrow tables: one message a table, keyed by `exchange_id`, all versions alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.arrow_arrays import numbers
from kafkascope.capture.exchange_columns import to_arrow
from kafkascope.capture.exchanges import ExchangeBatch
from kafkascope.capture.facts import ENVELOPE, UNSUPPORTED_VERSION, Facts
from kafkascope.capture.flow import FRAME
from kafkascope.capture.headers import ADDRESS, API_KEY, API_VERSIONS, BODY_AT, KIND, SIZE, VERSION, Rows
from kafkascope.capture.record_sizes import Sizes, with_sizes
from kafkascope.capture.scan_program import ERROR
from kafkascope.capture.waiting import Group, Part, copied
from kafkascope.columnar.decode import decode_columns
from kafkascope.columnar.few import Few, decode_few
from kafkascope.schema.catalog import apis, message

# The kernel wants many frames at once; memory wants them not to pile up.
ENOUGH_ROWS = 5_000
ENOUGH_BYTES = 8 << 20
MOST_BYTES = 16 << 20
# Keys and small bodies that wait share memory with others; what they hold of these is no more than this.
MOST_SHARED_BYTES = 8 << 20

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


class Messages:
    """`keys` are columns of `exchanges` that every body is to carry; `contents` asks for the records too."""

    def __init__(self, keys: Sequence[str] = (KEY,), *, contents: bool = False) -> None:
        self._keys = list(keys)
        self._contents = contents
        self._groups: dict[_Key, Group] = {}
        self._size = 0
        self._shared_bytes = 0

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
        if self._shared_bytes >= MOST_SHARED_BYTES:
            for group in self._groups.values():
                group.own()
            self._shared_bytes = 0

    def finish(self) -> Iterator[MessageTable]:
        yield from self._give_few()
        for key in list(self._groups):
            yield self._give(key)

    def _give_few(self) -> Iterator[MessageTable]:
        """Those that a small recording has of each message are decoded together."""
        found = {key: group.small() for key, group in self._groups.items() if not (key[2] or self._contents)}
        chosen = {key: part for key, part in found.items() if part is not None}
        parts = list(chosen.values())
        count = [part.end - part.start for part in parts]
        places = np.array([(part.bodies.base, part.bodies.ends_at + 4 * part.start) for part in parts], np.int64)
        base, ends_at = places.reshape(-1, 2).T
        few = Few([key[:2] for key in chosen], base, ends_at, np.array(count, np.int64))
        versions = numbers(np.repeat(np.array([key[1] for key in chosen], np.int16), few.count), pa.int16())
        start = 0
        for (key, part), rows, batch in zip(chosen.items(), count, decode_few(few), strict=True):
            if batch is not None:
                self._size -= self._groups.pop(key).size
                batch = batch.add_column(0, VERSION_COLUMN, versions.slice(start, rows))
                keys = part.keys()
                for name in reversed(self._keys):
                    batch = batch.add_column(0, name, keys.column(name))
                yield MessageTable(key[0], pa.Table.from_batches([batch]))
            start += rows

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
        keys = group.keys()
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
        starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
        messages = [(_name(code >> 16, code & 0xFFFF, kind), code & 0xFFFF) for code in codes[starts].tolist()]
        for (name, _), (start, end) in zip(messages, pairwise([*starts, len(codes)]), strict=True):
            if name is None:
                sizes[start:end] = 0
        taken = keys.take(numbers(chosen, pa.int64()))
        parts, shared = copied(taken, starts, rows[at, ADDRESS] + body_at[chosen], sizes)
        self._shared_bytes += shared
        for (name, version), part in zip(messages, parts, strict=True):
            if name is not None:
                group = self._put((name, version, bool(record_sizes)), part)
                if record_sizes:
                    group.record_sizes += [record_sizes[row] for row in at[part.start : part.end].tolist()]

    def _take_inner(self, keys: pa.RecordBatch, batch: ExchangeBatch, envelopes: npt.NDArray[np.int64]) -> None:
        """Of those that the kernel left."""
        from kafkascope.capture.exchange import inner_frames

        for index in envelopes.tolist():
            for frame, content in inner_frames(batch.request_frame(index), batch.response_frame(index)):
                if frame.name is not None and frame.body is not None:
                    body = np.frombuffer(content[frame.body_at :], np.uint8)
                    where, size = (np.array([one], np.int64) for one in (body.ctypes.data, len(body)))
                    (part,), shared = copied(keys.slice(index, 1), [0], where, size)
                    self._shared_bytes += shared
                    self._put((frame.name, frame.version, False), part)

    def _put(self, key: _Key, part: Part) -> Group:
        self._size += len(part.content)
        group = self._groups.setdefault(key, Group())
        group.put(part)
        return group


@cache
def _name(key: int, version: int, kind: str) -> str | None:
    api = apis().get(key)
    if api is None or not message(f"{api}{kind}").releases_of(version):
        return None
    return f"{api}{kind}"
