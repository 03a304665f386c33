"""Writes what splits of log directories hold to the lake's tables, and what can't be read to quarantine."""

import pyarrow as pa

from kafkascope.lake.tables import QUARANTINE, table_named
from kafkascope.lake.write.files import Files
from kafkascope.pipeline.disks.split_rows import Rows, Trouble
from kafkascope.pipeline.ingestion.pseudonyms import Pseudonyms

# Rows of quarantine that wait to be a table.
_MOST_ROWS = 4_096


class LogWriter:
    """`pseudonyms` replaces names."""

    def __init__(self, files: Files, pseudonyms: Pseudonyms | None = None) -> None:
        self._files = files
        self._pseudonyms = pseudonyms
        self._waiting: list[dict[str, object]] = []
        self.quarantined = 0

    def add(self, uri: str, item: Rows | Trouble) -> None:
        if isinstance(item, Rows):
            rows = self._pseudonyms.table(item.rows, item.table.name) if self._pseudonyms else item.rows
            self._files.add(item.table, rows)
            return
        self.quarantined += 1
        self._waiting.append(
            {
                "capture_uri": uri,
                "packet": item.position,
                "kind": item.kind,
                "message": item.message,
                "api_version": item.version,
                "detail": item.detail,
                "bytes": item.size,
            }
        )
        if len(self._waiting) >= _MOST_ROWS:
            self.flush()

    def flush(self) -> None:
        self._files.add(table_named("quarantine"), pa.Table.from_pylist(self._waiting, schema=QUARANTINE))
        self._waiting = []
