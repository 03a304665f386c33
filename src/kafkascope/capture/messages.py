"""Exchanges in, their bodies out as Arrow tables: one message a table, keyed by `exchange_id`, all versions alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.exchange_columns import to_arrow
from kafkascope.capture.exchanges import ExchangeBatch
from kafkascope.capture.facts import ENVELOPE, UNSUPPORTED_VERSION
from kafkascope.capture.flow import FRAME
from kafkascope.capture.headers import ADDRESS, API_KEY, API_VERSIONS, BODY_AT, KIND, SIZE, VERSION
from kafkascope.capture.memory_view import binary_at
from kafkascope.capture.scan_program import ERROR
from kafkascope.columnar.decode import decode_columns
from kafkascope.schema.catalog import apis, message

# The kernel wants many frames at once; memory wants them not to pile up.
ENOUGH_ROWS = 5_000
ENOUGH_BYTES = 16 << 20
MOST_BYTES = 64 << 20

KEY = "exchange_id"
VERSION_COLUMN = "api_version"


@dataclass(frozen=True, slots=True)
class MessageTable:
    """`table` has the keys that were asked for, `exchange_id` if none were, `api_version`, then the columns of the
    message's own table, `_error` among them."""

    name: str
    table: pa.Table


@dataclass(slots=True)
class _Group:
    keys: list[pa.RecordBatch] = field(default_factory=list)
    bodies: list[pa.Array] = field(default_factory=list)
    rows: int = 0
    size: int = 0


class Messages:
    """`keys` are columns of `exchanges` that every body is to carry; `contents` asks for the records too."""

    def __init__(self, keys: Sequence[str] = (KEY,), *, contents: bool = False) -> None:
        self._keys = list(keys)
        self._contents = contents
        self._groups: dict[tuple[str, int], _Group] = {}
        self._size = 0

    def add(self, batch: ExchangeBatch, exchanges: pa.RecordBatch | None = None) -> Iterator[MessageTable]:
        """What there is enough of now. `exchanges` are the batch's columns, where the caller has them already."""
        keys = (to_arrow(batch) if exchanges is None else exchanges).select(self._keys)
        rows = batch.rows
        asked = (batch.request >= 0) & (rows[batch.request, KIND] == FRAME) & (rows[batch.request, BODY_AT] >= 0)
        apis_, versions = rows[batch.request, API_KEY], rows[batch.request, VERSION]
        self._take(keys, "Request", asked, apis_, versions, batch.request, rows[batch.request, BODY_AT], rows)
        answered = asked & (batch.response >= 0) & (batch.facts.body_at >= 0)
        fallback = (apis_ == API_VERSIONS) & (batch.facts.values[:, ERROR] == UNSUPPORTED_VERSION)
        versions = np.where(fallback, 0, versions)
        self._take(keys, "Response", answered, apis_, versions, batch.response, batch.facts.body_at, rows)
        self._take_inner(keys, batch, np.flatnonzero(asked & (apis_ == ENVELOPE)))
        for key in list(self._groups):
            group = self._groups[key]
            if group.rows >= ENOUGH_ROWS or group.size >= ENOUGH_BYTES or self._size >= MOST_BYTES:
                yield self._give(key)

    def finish(self) -> Iterator[MessageTable]:
        for key in list(self._groups):
            yield self._give(key)

    def _give(self, key: tuple[str, int]) -> MessageTable:
        group = self._groups.pop(key)
        self._size -= group.size
        name, version = key
        bodies = group.bodies[0] if len(group.bodies) == 1 else pa.concat_arrays(group.bodies)
        table = decode_columns(name, version, bodies, contents=self._contents)
        keys = pa.Table.from_batches(group.keys)
        versions = pa.array(np.full(group.rows, version, dtype=np.int16))
        names = [*self._keys, VERSION_COLUMN, *table.column_names]
        return MessageTable(name, pa.table([*keys.columns, versions, *table.columns], names=names))

    def _take(
        self,
        keys: pa.RecordBatch,
        kind: str,
        there: npt.NDArray[np.bool_],
        apis_: npt.NDArray[np.int64],
        versions: npt.NDArray[np.int64],
        which: npt.NDArray[np.int64],
        body_at: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
    ) -> None:
        """All bodies of one direction are copied once, those of one message and version side by side."""
        chosen = np.flatnonzero(there)
        codes = apis_[chosen] << 16 | versions[chosen] & 0xFFFF
        order = np.argsort(codes, kind="stable")
        chosen, codes = chosen[order], codes[order]
        at = which[chosen]
        sizes = rows[at, SIZE] - body_at[chosen]
        bodies = binary_at(rows[at, ADDRESS] + body_at[chosen], sizes)
        taken = keys.take(pa.array(chosen))
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=False):
            code = int(codes[start])
            name = _name(code >> 16, code & 0xFFFF, kind)
            if name is not None:
                one = slice(start, end)
                self._put(name, code & 0xFFFF, taken[one], bodies[one], int(sizes[one].sum()))

    def _take_inner(self, keys: pa.RecordBatch, batch: ExchangeBatch, envelopes: npt.NDArray[np.int64]) -> None:
        """The request within an Envelope, under the same exchange (GOTCHAS 9a)."""
        from kafkascope.capture.exchange import inner_frames

        for index in envelopes.tolist():
            for frame, content in inner_frames(batch.request_frame(index), batch.response_frame(index)):
                if frame.name is not None and frame.body is not None:
                    body = pa.array([content[frame.body_at :]], pa.large_binary())
                    self._put(frame.name, frame.version, keys.slice(index, 1), body, len(content))

    def _put(self, name: str, version: int, keys: pa.RecordBatch, bodies: pa.Array, size: int) -> None:
        group = self._groups.setdefault((name, version), _Group())
        group.keys.append(keys)
        group.bodies.append(bodies)
        group.rows += len(keys)
        group.size += size
        self._size += size


@cache
def _name(key: int, version: int, kind: str) -> str | None:
    api = apis().get(key)
    if api is None or not message(f"{api}{kind}").releases_of(version):
        return None
    return f"{api}{kind}"
