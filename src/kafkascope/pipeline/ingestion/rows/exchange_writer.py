"""Writes the exchanges of one task to the lake's tables: exchanges, bodies, and what could not be read."""

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.capture.base.flow import Problem
from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.messages import Messages, MessageTable
from kafkascope.columnar.decode import ERROR
from kafkascope.lake.shape import to_lake
from kafkascope.lake.tables import KEYS, QUARANTINE, LakeTable, body_table, table_named
from kafkascope.lake.write.files import Files
from kafkascope.pipeline.ingestion.pseudonyms import Pseudonyms

# The body's version may differ from its exchange's: the fallback of ApiVersions, a request in an Envelope.
_KEYS = [name for name in KEYS.names if name != "api_version"]
# Columns of quarantine that locate a body.
_PLACE = ["capture_uri", "packet"]


class ExchangeWriter:
    """`contents` stores keys, values and headers of records; `pseudonyms` replaces names."""

    def __init__(self, files: Files, *, contents: bool = False, pseudonyms: Pseudonyms | None = None) -> None:
        self._files = files
        self._pseudonyms = pseudonyms
        self._contents = contents
        self._messages = Messages([*_KEYS, *_PLACE], contents=contents)
        self.exchanges = 0
        self.quarantined = 0
        self.by_uri: Counter[str] = Counter()
        self.quarantined_by_uri: Counter[str] = Counter()

    def add(self, batch: ExchangeBatch) -> pa.RecordBatch:
        """Returns the columns of its exchanges, as they were before names are replaced."""
        columns = to_arrow(batch)
        self.exchanges += len(columns)
        _count(self.by_uri, columns.column("capture_uri"))
        self._add(table_named("exchanges"), pa.Table.from_batches([columns]))
        for message_table in self._messages.add(batch, columns):
            self._body(message_table)
        return columns

    def finish(self) -> None:
        for message_table in self._messages.finish():
            self._body(message_table)

    def problems(self, problems: Iterable[tuple[str, Problem]]) -> None:
        """Adds what the recordings contain besides exchanges, each problem with its file."""
        rows = [
            {
                "capture_uri": uri or None,
                "packet": problem.place if problem.place >= 0 else None,
                "kind": problem.kind,
                "detail": problem.detail,
                "bytes": problem.lost_bytes,
            }
            for uri, problem in problems
        ]
        self._quarantine(pa.Table.from_pylist(rows, schema=QUARANTINE))

    def _body(self, message_table: MessageTable) -> None:
        table = message_table.table
        bad = pc.is_valid(table.column(ERROR))
        if pc.any(bad).as_py():
            self._undecoded(message_table.name, table.filter(bad))
            table = table.filter(pc.invert(bad))
        body = body_table(message_table.name, contents=self._contents)
        self._add(body, to_lake(table.drop_columns([ERROR, *_PLACE])))

    def _add(self, table: LakeTable, rows: pa.Table) -> None:
        self._files.add(table, self._pseudonyms.table(rows, table.name) if self._pseudonyms else rows)

    def _undecoded(self, name: str, rows: pa.Table) -> None:
        count = len(rows)
        columns_by_name = {
            "recorded_at": rows.column("request_at"),
            "kind": pa.repeat("undecoded", count),
            "message": pa.repeat(name, count),
            "detail": rows.column(ERROR),
        }
        same = {"capture_uri", "packet", "connection_id", "exchange_id", "api_version"}
        columns = [
            columns_by_name[field.name]
            if field.name in columns_by_name
            else rows.column(field.name)
            if field.name in same
            else pa.nulls(count, field.type)
            for field in QUARANTINE
        ]
        self._quarantine(pa.table(columns, schema=QUARANTINE))

    def _quarantine(self, rows: pa.Table) -> None:
        self.quarantined += len(rows)
        _count(self.quarantined_by_uri, rows.column("capture_uri"))
        self._files.add(table_named("quarantine"), rows)


def _count(counts: Counter[str], uris: pa.Array | pa.ChunkedArray) -> None:
    for entry in pc.value_counts(uris).to_pylist():
        counts[entry["values"]] += entry["counts"]
