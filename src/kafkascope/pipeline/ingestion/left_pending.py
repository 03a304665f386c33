"""What earlier ingests left pending in, the rows of it that a new one cannot say again out: they stay as they are."""

from collections import Counter
from collections.abc import Set as AbstractSet

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.capture.resume.reread import Reopening
from kafkascope.lake.file_names import pending
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import pending_rows, table_in
from kafkascope.lake.tables import EXCHANGE_ID, INGEST_ID, message_of
from kafkascope.lake.write.files import Files, NewFile

CONNECTION_ID, CAPTURE_URI = "connection_id", "capture_uri"
CONNECTIONS, QUARANTINE = "connections", "quarantine"


class LeftPending:
    """`said` hears all exchanges of the new ingest; then `staying` tells which of the others are in no row of it, and
    `again` how many of a file were counted before."""

    def __init__(self, lake: Lake, ingests: tuple[str, ...]) -> None:
        self._lake, self._ingests = lake, frozenset(ingests)
        self._left: list[dict[str, str]] = []
        if ingests:
            columns = [EXCHANGE_ID, CONNECTION_ID, CAPTURE_URI, INGEST_ID]
            self._left = pending_rows(lake, "exchanges", self._ingests, columns).to_pylist()
        self._known = pa.array([row[EXCHANGE_ID] for row in self._left], pa.string())
        self._said: set[str] = set()

    def said(self, exchanges: pa.RecordBatch) -> None:
        if self._left:
            ids = exchanges.column(EXCHANGE_ID)
            self._said.update(ids.filter(pc.is_in(ids, value_set=self._known)).to_pylist())

    def again(self, reopened: Reopening) -> Counter[str]:
        """File to exchanges of it that were rows before, be it under the name of one half of them."""
        gone = self._said | reopened.restored
        return Counter(row[CAPTURE_URI] for row in self._left if row[EXCHANGE_ID] in gone)

    def staying(
        self, reopened: Reopening, dropped: AbstractSet[tuple[str, str]], gone_on: AbstractSet[str] | None
    ) -> set[str]:
        """Of connections that lost something, that another ingest got further with, or that nobody has `gone_on` with,
        unless that is None: then another task knows. A frame that was read again is in the new rows, be it under its
        partner's name."""
        given_up = {(pending(ingest), connection) for ingest, connection in dropped}
        found = {
            row[EXCHANGE_ID]
            for row in self._left
            if row[CONNECTION_ID] in reopened.lost
            or (row[INGEST_ID], row[CONNECTION_ID]) in given_up
            or (gone_on is not None and row[CONNECTION_ID] not in gone_on)
        }
        return found - self._said - reopened.restored

    def keep(
        self, staying: AbstractSet[str], ingest_id: str, read_on: AbstractSet[str] | None, gone_on: AbstractSet[str]
    ) -> list[NewFile]:
        """Their rows as those of the new ingest, which hides the pending ones; what was wrong with the ends of files,
        but for those that were `read_on`; and connections that nobody goes on with. Where `read_on` is None
        another task tells of the files and of these."""
        if not self._ingests:
            return []
        # Of its own: tables may be wider here than this ingest writes them.
        files = Files(self._lake, ingest_id)
        try:
            for name in self._lake.tables():
                if name == CONNECTIONS and read_on is not None:
                    rows = self._unknown(gone_on)
                elif name == QUARANTINE or (staying and (name == "exchanges" or message_of(name))):
                    rows = self._kept(name, pa.array(sorted(staying), pa.string()), read_on)
                else:
                    continue
                if len(rows):
                    files.add(table_in(self._lake, name), rows.drop_columns([INGEST_ID]))
            return files.close()
        except BaseException:
            files.abort()
            raise

    def _unknown(self, known: AbstractSet[str]) -> pa.Table:
        """Connections whose state cannot be used: their rows are all that there will be."""
        rows = pending_rows(self._lake, CONNECTIONS, self._ingests)
        gone_on = pc.is_in(rows.column(CONNECTION_ID), value_set=pa.array(sorted(known), pa.string()))
        return rows.filter(pc.invert(gone_on))

    def _kept(self, name: str, staying: pa.Array, read_on: AbstractSet[str] | None) -> pa.Table:
        rows = pending_rows(self._lake, name, self._ingests)
        ids = rows.column(EXCHANGE_ID)
        kept = pc.is_in(ids, value_set=staying)
        if name == QUARANTINE and read_on is not None:
            known = pc.is_in(rows.column(CAPTURE_URI), value_set=pa.array(sorted(read_on), pa.string()))
            kept = pc.or_(kept, pc.and_(pc.is_null(ids), pc.invert(known)))
        return rows.filter(kept)
