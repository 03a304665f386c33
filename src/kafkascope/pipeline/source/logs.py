"""Reads log directories for Spark without a lake: the tables that an ingest makes of them. A filter on topic,
partition or offset chooses files, one on offset or time batches by the segment's indexes, before records are
decoded."""

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from kafkascope.errors import InputError, KafkascopeError, NotFoundError, UsageError
from kafkascope.lake.log_tables import (
    LOG_RECORDS,
    LOG_SEGMENTS,
    LOG_TABLES,
    PRODUCER_SNAPSHOTS,
    WRITTEN_AT,
    record_types,
)
from kafkascope.lake.tables import DATE, INGEST_ID, table_named
from kafkascope.logs.files import PRODUCER_SNAPSHOT
from kafkascope.logs.typed_records import topic_of_type
from kafkascope.pipeline.disks.bounds import Bounds
from kafkascope.pipeline.disks.log_inputs import LogInput
from kafkascope.pipeline.disks.split_rows import Rows, SplitReader
from kafkascope.pipeline.disks.splits import LogSplit, shared
from kafkascope.pipeline.ingestion.inputs import find_log_inputs
from kafkascope.pipeline.source.filters import Pushdown, column_of, mask
from kafkascope.pipeline.source.options import SourceOptions

_ROWS = 16_384
# What a file's name and folders say, by the columns of that name.
_OF_FILE = ("broker", "topic", "partition")
# Columns whose lower, or upper, limit is one of the offsets in a batch.
_OFFSETS = ("offset", "base_offset", "last_offset")


class SplitPartition(InputPartition):
    def __init__(self, number: int, splits: tuple[LogSplit, ...]) -> None:
        super().__init__(number)
        self.splits = splits


def is_log_table(table: str) -> bool:
    return table in LOG_TABLES or table in record_types()


def log_schema(table: str, *, contents: bool) -> pa.Schema:
    """As a lake has it, but for the ingest."""
    if table == LOG_RECORDS and not contents:
        raise UsageError(f"{LOG_RECORDS}: keys and values of users' records; set the option keepPayloads to read them")
    columns = table_named(table).schema
    return pa.schema([column for column in columns if column.name not in (INGEST_ID, DATE)])


class LogReader(DataSourceReader):
    """`schema` has the columns that Spark gets."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options, self._schema = options, schema
        self._whole = log_schema(options.table, contents=options.contents)
        self._filters: list[Filter] = []

    @property
    def pushFilters(self) -> Pushdown:  # noqa: N802
        return Pushdown(self._whole, self._filters)

    def partitions(self) -> list[InputPartition]:
        bounds = bounds_of(self._filters, self._options.table)
        logs = [log for log in find_log_inputs(self._options.paths) if bounds.may_have(log) and self._may_have(log)]
        parts = shared(logs, {}, self._options.tasks or os.cpu_count() or 1)
        return [SplitPartition(number, splits) for number, splits in enumerate(parts)] or [SplitPartition(0, ())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SplitPartition)
        table, bounds = self._options.table, bounds_of(self._filters, self._options.table)
        for split in partition.splits:
            reader = SplitReader(bounds.narrowed(split), self._options.contents, {table}, bounds.takes)
            try:
                for item in reader.items():
                    if isinstance(item, Rows):
                        yield from self._passed(item.rows)
            except NotFoundError:
                # A broker has removed the segment meanwhile.
                continue
            except KafkascopeError as error:
                if not self._options.skips_bad_files:
                    raise InputError(f"{error}; the option ignoreCorruptFiles leaves such files out") from None

    def _may_have(self, log: LogInput) -> bool:
        """By the names of a file and its folders."""
        if (log.kind == PRODUCER_SNAPSHOT) != (self._options.table == PRODUCER_SNAPSHOTS):
            return False
        topic = topic_of_type(record_types().get(self._options.table))
        if topic is not None and log.topic != topic:
            return False
        own = pa.RecordBatch.from_pydict(
            {name: pa.array([getattr(log, name)], self._whole.field(name).type) for name in _OF_FILE}
        )
        passed = mask([condition for condition in self._filters if column_of(condition) in _OF_FILE], own)
        return passed is None or bool(passed[0].as_py())

    def _passed(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        passed = mask(self._filters, rows)
        rows = rows if passed is None else rows.filter(passed)
        yield from rows.select(self._schema.names).cast(self._schema).combine_chunks().to_batches(_ROWS)


def bounds_of(filters: Sequence[Filter], table: str) -> Bounds:
    """What all rows that pass have in common. Segments are wholes: their rows are about all batches."""
    if table == LOG_SEGMENTS:
        return Bounds()
    low: list[int] = []
    high: list[int] = []
    since: list[int] = []
    for condition in filters:
        name, least, most = column_of(condition), *_limits(condition)
        if name in _OFFSETS:
            low += [least] if isinstance(least, int) else []
            high += [most] if isinstance(most, int) else []
        elif name == WRITTEN_AT and isinstance(least, datetime):
            since.append(int(least.timestamp() * 1000))
    return Bounds(max(low, default=None), min(high, default=None), max(since, default=None))


def _limits(condition: Filter) -> tuple[Any, Any]:
    """The least and the most that passes, or more than that."""
    value: Any = getattr(condition, "value", None)
    if isinstance(condition, EqualTo):
        return value, value
    if isinstance(condition, In):
        known = [item for item in value if item is not None]
        return (min(known), max(known)) if known else (None, None)
    if isinstance(condition, GreaterThan | GreaterThanOrEqual):
        return value, None
    return (None, value) if isinstance(condition, LessThan | LessThanOrEqual) else (None, None)
