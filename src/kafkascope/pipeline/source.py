"""Lets Spark read recordings without a lake: `spark.read.format("kafkascope").load("…")`.

    spark.read.format("kafkascope").load("night/*.pcap")
    spark.read.format("kafkascope").option("table", "share_fetch_request").load("night/")

Rows are those of `exchanges`, or of the request or response that the option `table` names. All files are one recording,
read by one task: for more than a first look, use `kafkascope ingest` into a lake."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kafkascope.capture.exchanges.exchange_columns import SCHEMA, to_arrow
from kafkascope.capture.exchanges.messages import Messages
from kafkascope.capture.reader import Reading
from kafkascope.columnar.decode import ERROR
from kafkascope.errors import NotFoundError, UsageError
from kafkascope.lake.place import place_of
from kafkascope.lake.shape import to_lake
from kafkascope.lake.tables import DATE, INGEST_ID, KEYS, body_table, message_of
from kafkascope.pipeline.ingestion.inputs import find_inputs, open_input

_EXCHANGES = "exchanges"
# Rows per batch sent to Spark.
_ROWS = 16_384


class RecordingSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kafkascope"

    def schema(self) -> StructType:
        return from_arrow_schema(_schema(self._table()))

    def reader(self, schema: StructType) -> "_RecordingReader":  # noqa: ARG002
        path = self.options.get("path")
        if not path:
            raise UsageError("name a recording: spark.read.format('kafkascope').load('capture.pcap')")
        # Absolute: another process reads it, in a folder of its own.
        return _RecordingReader([place_of(path).uri], self._table())

    def _table(self) -> str:
        return str(self.options.get("table", _EXCHANGES))


class _RecordingReader(DataSourceReader):
    def __init__(self, uris: list[str], table: str) -> None:
        self._uris = uris
        self._table = table

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        reading = Reading([open_input(file.uri) for file in find_inputs(self._uris)])
        schema = _schema(self._table)
        for table in _tables(reading, self._table):
            yield from table.cast(schema).combine_chunks().to_batches(_ROWS)


def _schema(table: str) -> pa.Schema:
    if table == _EXCHANGES:
        return SCHEMA
    if message_of(table) is None:
        raise NotFoundError(f"unknown table {table}; use exchanges, or a message such as share_fetch_request")
    columns = body_table(str(message_of(table))).schema
    return pa.schema([field for field in columns if field.name not in (INGEST_ID, DATE)])


def _tables(reading: Reading, table: str) -> Iterator[pa.Table]:
    message = message_of(table)
    messages = Messages([name for name in KEYS.names if name != "api_version"])
    for batch in reading.batches():
        columns = to_arrow(batch)
        if message is None:
            yield pa.Table.from_batches([columns])
            continue
        for message_table in messages.add(batch, columns):
            if message_table.name == message:
                yield _body(message_table.table, table)
    for message_table in messages.finish():
        if message_table.name == message:
            yield _body(message_table.table, table)


def _body(rows: pa.Table, table: str) -> pa.Table:
    body: Any = to_lake(rows.drop_columns([ERROR]))
    return body.select(_schema(table).names)
