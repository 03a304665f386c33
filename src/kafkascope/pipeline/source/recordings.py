"""Reads recordings for Spark: as many partitions as an ingest has tasks, each with connections of its own."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from kafkascope.capture.base.flow import Endpoints
from kafkascope.capture.exchanges.exchange_columns import SCHEMA, to_arrow
from kafkascope.capture.exchanges.messages import Messages, MessageTable
from kafkascope.capture.formats import CAPTURE
from kafkascope.capture.reader import Reading
from kafkascope.capture.resume.choose import flow_hash
from kafkascope.capture.resume.run import Part
from kafkascope.capture.resume.stretch import ALL_PACKETS, Stretch
from kafkascope.columnar.decode import ERROR
from kafkascope.errors import InputError, NotFoundError, UsageError
from kafkascope.lake.shape import to_lake
from kafkascope.lake.tables import DATE, INGEST_ID, KEYS, body_table, message_of
from kafkascope.pipeline.ingestion.division import divided
from kafkascope.pipeline.ingestion.inputs import InputFile, find_places, open_input
from kafkascope.pipeline.ingestion.plain_frames import FRAMES
from kafkascope.pipeline.ingestion.plan import SMALL_INPUT_BYTES
from kafkascope.pipeline.ingestion.shuffle import chunk_bytes
from kafkascope.pipeline.ingestion.survey import (
    BAD_FILE,
    LEAST_SAMPLE,
    SAMPLE_BATCHES,
    FileSurvey,
    survey_here,
)
from kafkascope.pipeline.source.filters import Pushdown, mask
from kafkascope.pipeline.source.options import EXCHANGES, SourceOptions

# Rows that Spark gets at once.
_ROWS = 16_384
# Where the body's version may differ from its exchange's, and where rows are filtered before bodies are decoded.
_KEYS = [name for name in KEYS.names if name != "api_version"]


@dataclass(frozen=True, slots=True)
class Share:
    """Files that a partition reads, and of their connections those of its bucket, by hash or as `placed` says; of their
    exchanges those of its stretch."""

    uris: tuple[str, ...]
    bucket: int = 0
    buckets: int = 1
    placed: Mapping[Endpoints, int] = field(default_factory=dict)
    stretch: Stretch = ALL_PACKETS

    def part(self) -> Part:
        choose = None if self.buckets == 1 else lambda ends: self._bucket_of(ends) == self.bucket
        return Part(
            choose=choose,
            chunk_bytes=chunk_bytes(self.buckets),
            tells_files=self.bucket == 0,
            stretch=self.stretch,
        )

    def _bucket_of(self, ends: Endpoints) -> int:
        bucket = self.placed.get(ends)
        return flow_hash(ends) % self.buckets if bucket is None else bucket


class SharePartition(InputPartition):
    def __init__(self, share: Share) -> None:
        super().__init__(share.bucket)
        self.share = share


def schema_of(table: str, *, contents: bool = False) -> pa.Schema:
    """Of `exchanges`, or of the request or response that `table` names."""
    if table == EXCHANGES:
        return SCHEMA
    message = message_of(table)
    if message is None:
        raise NotFoundError(f"a recording has no table {table}: exchanges, or a message such as share_fetch_request")
    columns = body_table(message, contents=contents).schema
    return pa.schema([column for column in columns if column.name not in (INGEST_ID, DATE)])


def chosen_columns(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """In the order that is asked for."""
    if columns is None:
        return schema
    missing = [name for name in columns if name not in schema.names]
    if missing or not columns:
        raise UsageError(f"columns: no column {', '.join(missing)}; there are {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in columns])


class RecordingReader(DataSourceReader):
    """`schema` has the columns that Spark gets."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options, self._schema = options, schema
        self._filters: list[Filter] = []

    @property
    def pushFilters(self) -> Pushdown:  # noqa: N802
        columns = SCHEMA if self._options.table == EXCHANGES else pa.schema([SCHEMA.field(name) for name in _KEYS])
        return Pushdown(columns, self._filters)

    def partitions(self) -> list[InputPartition]:
        uris = [place.uri for place in find_places(self._options.paths)]
        return [SharePartition(share) for share in plan(uris, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SharePartition)
        return read_share(partition.share, self._options, self._schema, self._filters)


def plan(uris: Sequence[str], options: SourceOptions) -> list[Share]:
    """Captures in buckets of connections, each request log by itself, as in an ingest."""
    files = [InputFile(place.uri, place.info().size, "") for place in find_places(uris)]
    size = sum(file.size for file in files)
    tasks = options.tasks or (1 if size < SMALL_INPUT_BYTES else os.cpu_count() or 1)
    sample = 0 if tasks == 1 else max(LEAST_SAMPLE, SAMPLE_BATCHES // max(len(files), 1))
    surveys = [survey for survey in survey_here(files, sample) if _can_be_read(survey, options)]
    captures = sorted(
        (survey for survey in surveys if survey.kind == CAPTURE), key=lambda survey: (survey.first_ns, survey.file.uri)
    )
    shares = [Share((survey.file.uri,)) for survey in surveys if survey.kind != CAPTURE]
    if captures:
        division = divided(captures, tasks)
        whole = Share(tuple(survey.file.uri for survey in captures), 0, len(division.stretches), division.placed)
        each = [(bucket, stretch) for bucket, stretches in enumerate(division.stretches) for stretch in stretches]
        shares = [*(replace(whole, bucket=bucket, stretch=stretch) for bucket, stretch in each), *shares]
    return shares or [Share(())]


def _can_be_read(survey: FileSurvey, options: SourceOptions) -> bool:
    why = survey.error
    if survey.broken is not None:
        why = f"{survey.file.uri}: {survey.broken}"
    elif survey.kind == FRAMES:
        why = f"{survey.file.uri}: plain frames; read them with kafkascope.pipeline.decode, or ingest them"
    if why is None and survey.kind != BAD_FILE:
        return True
    if options.skips_bad_files:
        return False
    raise InputError(f"{why}; the option ignoreCorruptFiles leaves such files out")


def read_share(
    share: Share, options: SourceOptions, schema: pa.Schema, filters: Sequence[Filter]
) -> Iterator[pa.RecordBatch]:
    if not share.uris:
        return
    on_bad = (lambda _: None) if options.skips_bad_files else None
    reading = Reading(
        [open_input(uri) for uri in share.uris], kafka_ports=options.ports, on_bad=on_bad, part=share.part()
    )
    tables = _exchanges(reading, filters) if options.table == EXCHANGES else _bodies(reading, options, filters)
    for table in tables:
        yield from table.select(schema.names).cast(schema).combine_chunks().to_batches(_ROWS)


def _exchanges(reading: Reading, filters: Sequence[Filter]) -> Iterator[pa.Table]:
    for batch in reading.batches():
        columns = to_arrow(batch)
        passed = mask(filters, columns)
        yield pa.Table.from_batches([columns if passed is None else columns.filter(passed)])


def _bodies(reading: Reading, options: SourceOptions, filters: Sequence[Filter]) -> Iterator[pa.Table]:
    """Only those of this message, and of exchanges that pass the filters, are decoded."""
    messages = Messages(_KEYS, contents=options.contents, only=message_of(options.table))
    for batch in reading.batches():
        columns = to_arrow(batch)
        passed = mask(filters, columns)
        chosen = None if passed is None else passed.to_numpy(zero_copy_only=False)
        for message_table in messages.add(batch, columns, chosen):
            yield _decoded(message_table)
    for message_table in messages.finish():
        yield _decoded(message_table)


def _decoded(message_table: MessageTable) -> pa.Table:
    """Rows that did decode, as the tables of a lake have them."""
    table = message_table.table
    whole = table.filter(pc.is_null(table.column(ERROR)))
    return to_lake(whole.drop_columns([ERROR]))
