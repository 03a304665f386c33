"""Decodes the bodies of exchanges to Arrow tables: one message per table, keyed by `exchange_id`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.capture.base.arrow_arrays import numbers
from kafkascope.capture.exchanges.body_places import Bools, Kind, narrowed, places_of
from kafkascope.capture.exchanges.contents import content_bytes
from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.facts import ENVELOPE
from kafkascope.capture.exchanges.record_sizes import with_sizes
from kafkascope.capture.exchanges.waiting_bodies import LONG_BYTES, Block, Group, copied
from kafkascope.capture.frames.headers import Frame
from kafkascope.columnar.decode import ERROR, decode_columns
from kafkascope.columnar.program import compile_program
from kafkascope.limits import MAX_BODY_BYTES, MAX_CAREFUL_FRAME_BYTES

# The kernel works best on many frames at once; memory limits how many may wait.
ENOUGH_ROWS = 5_000
ENOUGH_BYTES = 8 << 20
_MOST_BYTES = 16 << 20
# Keys that wait share memory with others; they keep at most this much of it alive.
MOST_SHARED_BYTES = 8 << 20

_KEY = "exchange_id"
VERSION_COLUMN = "api_version"
# Message, version, and whether the recording has only the sizes of record data.
_Key = tuple[str, int, bool]


@dataclass(frozen=True, slots=True)
class MessageTable:
    """`table` has the requested keys, by default `exchange_id` and `api_version`, then the columns of the message's own
    table, `_error` among them."""

    name: str
    table: pa.Table


class Messages:
    """`keys` are columns of `exchanges` that every body repeats; `contents` includes the records. With `only`, bodies
    of other messages are left alone."""

    def __init__(self, keys: Sequence[str] = (_KEY,), *, contents: bool = False, only: str | None = None) -> None:
        self._keys = list(keys)
        self._only = only
        self._contents = contents
        self._groups: dict[_Key, Group] = {}
        self._size = 0
        self._shared_bytes = 0

    def add(
        self, batch: ExchangeBatch, exchanges: pa.RecordBatch | None = None, chosen: Bools | None = None
    ) -> Iterator[MessageTable]:
        """Tables of the messages that have enough waiting bodies. `exchanges` are the batch's columns, if the caller
        has them already; bodies of exchanges that aren't `chosen` are left alone."""
        keys = (to_arrow(batch) if exchanges is None else exchanges).select(self._keys)
        places = narrowed(places_of(batch), self._only, chosen)
        for block in (copied(keys, places, batch.record_sizes), *self._inner(keys, batch, chosen)):
            # Waiting bodies aren't copied to the end of a long body, nor is that copied to them.
            for key in self._long(block):
                if key in self._groups:
                    yield self._give(key)
            self._put(block)
        for key in list(self._groups):
            group = self._groups[key]
            if group.rows >= ENOUGH_ROWS or group.size >= ENOUGH_BYTES:
                yield self._give(key)
        while self._size >= _MOST_BYTES:
            yield self._give(max(self._groups, key=lambda key: self._groups[key].size))
        if self._shared_bytes >= MOST_SHARED_BYTES:
            for group in self._groups.values():
                group.own()
            self._shared_bytes = 0

    def finish(self) -> Iterator[MessageTable]:
        for key in sorted(self._groups):
            yield self._give(key)

    def _give(self, key: _Key) -> MessageTable:
        group = self._groups.pop(key)
        self._size -= group.size
        return self._table(key, group)

    def _table(self, key: _Key, group: Group) -> MessageTable:
        name, version, sizes_only = key
        bodies = group.bodies()
        long = _long_bodies(name, version, bodies) if group.size > MAX_BODY_BYTES else None
        if long is not None:
            bodies = pc.if_else(long, pa.scalar(b"", bodies.type), bodies)
        table = decode_columns(name, version, bodies, contents=self._contents)
        if long is not None:
            reason = (
                f"{name}: a body of more than {MAX_BODY_BYTES} bytes, not counting records, isn't decoded to columns"
            )
            at = table.schema.get_field_index(ERROR)
            table = table.set_column(at, table.schema.field(at), pc.if_else(long, reason, table.column(at)))
        if sizes_only:
            table = with_sizes(name, table, group.record_sizes)
        versions = numbers(np.full(group.rows, version, dtype=np.int16), pa.int16())
        return MessageTable(name, _with_keys(table.add_column(0, VERSION_COLUMN, versions), group.keys()))

    def _inner(self, keys: pa.RecordBatch, batch: ExchangeBatch, chosen: Bools | None) -> Iterator[Block]:
        """The contents of the Envelopes that the kernel couldn't read."""
        for block in _careful_inner(keys, batch, chosen):
            if self._only in (None, block.kinds[0][0]):
                yield block

    def _long(self, block: Block) -> list[_Key]:
        if block.size < LONG_BYTES:
            return []
        sizes = [len(content) for content in block.content]
        kinds = zip(block.kinds, sizes, strict=False)
        return [
            (name, version, bool(block.record_sizes)) for (name, version), size in kinds if size >= LONG_BYTES and name
        ]

    def _put(self, block: Block) -> None:
        """Adds the bodies to those of their messages and versions."""
        self._shared_bytes += block.keys.nbytes
        for index, (name, version) in enumerate(block.kinds):
            if name is not None:
                part = block.part(index)
                self._size += len(part.content)
                group = self._groups.setdefault((name, version, bool(block.record_sizes)), Group())
                group.put(part)
                if block.record_sizes:
                    group.record_sizes += block.record_sizes[block.starts[index] : block.starts[index + 1]]


def _careful_inner(keys: pa.RecordBatch, batch: ExchangeBatch, chosen: Bools | None) -> Iterator[Block]:
    enveloped = batch.rows[batch.request, Frame.API_KEY] == ENVELOPE
    if not enveloped.any():
        return
    from kafkascope.capture.exchanges.exchange import inner_frames

    enveloped &= batch.request >= 0
    if chosen is not None:
        enveloped &= chosen
    if batch.facts.inner is not None:
        enveloped[batch.facts.inner[0].outer] = False
    for index in np.flatnonzero(enveloped).tolist():
        request = batch.request_frame(index, MAX_CAREFUL_FRAME_BYTES)
        for frame, content in inner_frames(request, batch.response_frame(index, MAX_CAREFUL_FRAME_BYTES)):
            if frame.name is not None and frame.body is not None:
                body = np.frombuffer(content[frame.body_at :], np.uint8)
                kinds: list[Kind] = [(frame.name, frame.version)]
                ends = np.array([0, len(body)])
                yield Block(kinds, [0, 1], keys, np.array([index]), ends, [body], shared=True)


def _long_bodies(name: str, version: int, bodies: pa.Array) -> pa.Array | None:
    """Marks those too long for columns, not counting records, which stay bytes; None if there are none."""
    long = np.asarray(pc.greater(pc.binary_length(bodies), MAX_BODY_BYTES))
    if compile_program(name, version, None).has_records:
        for index in np.flatnonzero(long).tolist():
            body = np.frombuffer(bodies[index].as_buffer(), np.uint8)
            long[index] = len(body) - content_bytes(name, version, body) > MAX_BODY_BYTES
    return pa.array(long) if long.any() else None


def _with_keys(table: pa.Table, keys: pa.RecordBatch) -> pa.Table:
    for name in reversed(keys.schema.names):
        table = table.add_column(0, name, keys.column(name))
    return table
