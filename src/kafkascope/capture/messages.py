"""Exchanges in, their bodies out as Arrow tables: one message a table, keyed by `exchange_id`, all versions alike."""

from collections.abc import Iterator
from dataclasses import dataclass, field

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
    """`table` has `exchange_id`, `api_version`, then the columns of the message's own table, `_error` among them."""

    name: str
    table: pa.Table


@dataclass(slots=True)
class _Group:
    ids: list[pa.Array] = field(default_factory=list)
    bodies: list[pa.Array] = field(default_factory=list)
    rows: int = 0
    size: int = 0


class Messages:
    def __init__(self) -> None:
        self._groups: dict[tuple[str, int], _Group] = {}
        self._size = 0

    def add(self, batch: ExchangeBatch) -> Iterator[MessageTable]:
        """What there is enough of now."""
        ids = to_arrow(batch).column(KEY)
        rows = batch.rows
        asked = (batch.request >= 0) & (rows[batch.request, KIND] == FRAME) & (rows[batch.request, BODY_AT] >= 0)
        keys, versions = rows[batch.request, API_KEY], rows[batch.request, VERSION]
        self._take(ids, "Request", asked, keys, versions, batch.request, rows[batch.request, BODY_AT], rows)
        answered = asked & (batch.response >= 0) & (batch.facts.body_at >= 0)
        fallback = (keys == API_VERSIONS) & (batch.facts.values[:, ERROR] == UNSUPPORTED_VERSION)
        versions = np.where(fallback, 0, versions)
        self._take(ids, "Response", answered, keys, versions, batch.response, batch.facts.body_at, rows)
        self._take_inner(ids, batch, np.flatnonzero(asked & (keys == ENVELOPE)))
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
        table = decode_columns(name, version, pa.chunked_array(group.bodies).combine_chunks())
        table = table.add_column(0, VERSION_COLUMN, pa.array(np.full(group.rows, version, dtype=np.int16)))
        return MessageTable(name, table.add_column(0, KEY, pa.chunked_array(group.ids)))

    def _take(
        self,
        ids: pa.Array,
        kind: str,
        there: npt.NDArray[np.bool_],
        keys: npt.NDArray[np.int64],
        versions: npt.NDArray[np.int64],
        which: npt.NDArray[np.int64],
        body_at: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
    ) -> None:
        codes = np.where(there, keys << 16 | versions & 0xFFFF, -1)
        for code in np.unique(codes[there]):
            name = _name(int(code) >> 16, int(code) & 0xFFFF, kind)
            if name is None:
                continue
            chosen = np.flatnonzero(codes == code)
            at = which[chosen]
            sizes = rows[at, SIZE] - body_at[chosen]
            bodies = binary_at(rows[at, ADDRESS] + body_at[chosen], sizes)
            self._put(name, int(code) & 0xFFFF, ids.take(pa.array(chosen)), bodies, int(sizes.sum()))

    def _take_inner(self, ids: pa.Array, batch: ExchangeBatch, envelopes: npt.NDArray[np.int64]) -> None:
        """The request within an Envelope, under the same exchange (GOTCHAS 9a)."""
        from kafkascope.capture.exchange import inner_frames

        for index in envelopes.tolist():
            for frame, content in inner_frames(batch.request_frame(index), batch.response_frame(index)):
                if frame.name is not None and frame.body is not None:
                    body = pa.array([content[frame.body_at :]], pa.large_binary())
                    self._put(frame.name, frame.version, ids.slice(index, 1), body, len(content))

    def _put(self, name: str, version: int, ids: pa.Array, bodies: pa.Array, size: int) -> None:
        group = self._groups.setdefault((name, version), _Group())
        group.ids.append(ids)
        group.bodies.append(bodies)
        group.rows += len(ids)
        group.size += size
        self._size += size


def _name(key: int, version: int, kind: str) -> str | None:
    api = apis().get(key)
    if api is None or not message(f"{api}{kind}").releases_of(version):
        return None
    return f"{api}{kind}"
