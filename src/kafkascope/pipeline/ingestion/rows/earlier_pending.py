"""Keeps pending rows of earlier ingests that the new ingest doesn't write again."""

from collections import Counter
from collections.abc import Set as AbstractSet

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.capture.resume.reread import ReopenTracker
from kafkascope.lake.file_names import pending
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import pending_rows, table_in
from kafkascope.lake.tables import EXCHANGE_ID, INGEST_ID, message_of
from kafkascope.lake.write.files import Files, NewFile

_CONNECTION_ID, _CAPTURE_URI = "connection_id", "capture_uri"
_CONNECTIONS, _QUARANTINE = "connections", "quarantine"


class EarlierPending:
    """`add` takes all exchanges of the new ingest; then `remaining` has those of earlier ingests that it didn't write,
    and `repeated` how many of a file were counted before."""

    def __init__(self, lake: Lake, ingests: tuple[str, ...]) -> None:
        self._lake, self._ingests = lake, frozenset(ingests)
        self._rows: list[dict[str, str]] = []
        if ingests:
            columns = [EXCHANGE_ID, _CONNECTION_ID, _CAPTURE_URI, INGEST_ID]
            self._rows = pending_rows(lake, "exchanges", self._ingests, columns).to_pylist()
        self._ids = pa.array([row[EXCHANGE_ID] for row in self._rows], pa.string())
        self._written: set[str] = set()

    @property
    def is_waiting(self) -> bool:
        """Whether it needs the exchanges that other tasks write."""
        return bool(self._rows)

    def add(self, exchanges: pa.RecordBatch) -> None:
        if self._rows:
            ids = exchanges.column(EXCHANGE_ID)
            self._written.update(ids.filter(pc.is_in(ids, value_set=self._ids)).to_pylist())

    def repeated(self, reopened: ReopenTracker) -> Counter[str]:
        """File to the number of its exchanges that were rows before, even under the name of one half of them."""
        written = self._written | reopened.restored
        return Counter(row[_CAPTURE_URI] for row in self._rows if row[EXCHANGE_ID] in written)

    def remaining(
        self, reopened: ReopenTracker, dropped: AbstractSet[tuple[str, str]], resumed: AbstractSet[str] | None
    ) -> set[str]:
        """Pending rows of connections that lost something, that another ingest got further with, or that no task
        `resumed` (None if another task decides that). A frame that was read again is in the new rows, perhaps under its
        partner's name."""
        dropped_pending = {(pending(ingest), connection) for ingest, connection in dropped}
        remaining = {
            row[EXCHANGE_ID]
            for row in self._rows
            if row[_CONNECTION_ID] in reopened.lost
            or (row[INGEST_ID], row[_CONNECTION_ID]) in dropped_pending
            or (resumed is not None and row[_CONNECTION_ID] not in resumed)
        }
        return remaining - self._written - reopened.restored

    def keep(
        self, remaining: AbstractSet[str], ingest_id: str, read_on: AbstractSet[str] | None, resumed: AbstractSet[str]
    ) -> list[NewFile]:
        """Returns their rows as rows of the new ingest, which hides the pending ones; problems at the ends of files,
        except files that were `read_on`; and connections that aren't resumed. If `read_on` is None, another task
        reports the files and the connections."""
        if not self._ingests:
            return []
        # This ingest's own schema: tables may be wider here than it writes them.
        files = Files(self._lake, ingest_id)
        try:
            for name in self._lake.tables():
                if name == _CONNECTIONS and read_on is not None:
                    rows = self._unknown(resumed)
                elif name == _QUARANTINE or (remaining and (name == "exchanges" or message_of(name))):
                    rows = self._kept(name, pa.array(sorted(remaining), pa.string()), read_on)
                else:
                    continue
                if len(rows):
                    files.add(table_in(self._lake, name), rows.drop_columns([INGEST_ID]))
            return files.close()
        except BaseException:
            files.abort()
            raise

    def _unknown(self, resumed: AbstractSet[str]) -> pa.Table:
        """Connections whose state can't be used: their rows are all that they will ever have."""
        rows = pending_rows(self._lake, _CONNECTIONS, self._ingests)
        is_resumed = pc.is_in(rows.column(_CONNECTION_ID), value_set=pa.array(sorted(resumed), pa.string()))
        return rows.filter(pc.invert(is_resumed))

    def _kept(self, name: str, remaining: pa.Array, read_on: AbstractSet[str] | None) -> pa.Table:
        rows = pending_rows(self._lake, name, self._ingests)
        ids = rows.column(EXCHANGE_ID)
        kept = pc.is_in(ids, value_set=remaining)
        if name == _QUARANTINE and read_on is not None:
            is_read_on = pc.is_in(rows.column(_CAPTURE_URI), value_set=pa.array(sorted(read_on), pa.string()))
            kept = pc.or_(kept, pc.and_(pc.is_null(ids), pc.invert(is_read_on)))
        return rows.filter(kept)
