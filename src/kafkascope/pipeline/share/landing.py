"""Lands topics of plain frames in a lake exactly once: each batch of the source `kafkascope-share` is an ingest. Its id
is the same when the batch runs again, and `captures` is committed last."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from time import time_ns
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkascope.errors import InputError, KafkascopeError, UsageError
from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.inside import inside
from kafkascope.lake.tables import CAPTURES_SCHEMA, message_of, table_named
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.write.catalog_tables import write_catalog
from kafkascope.lake.write.commit import Overtaken, commit
from kafkascope.lake.write.files import Files, NewFile, discard
from kafkascope.lake.write.heartbeat import Running, begin, end, seal, turn_of
from kafkascope.pipeline.ingestion.plain_frames import Frame, frame_of, rows_of_text
from kafkascope.pipeline.ingestion.pseudonyms import Pseudonyms
from kafkascope.pipeline.ingestion.rows.plain_frames import decode_frames, quarantine_frames
from kafkascope.pipeline.session import OLDEST_STREAMS, check_version
from kafkascope.pipeline.share.options import SOURCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_STREAMS = "_streams"
_KIND = "share"
_MAX_SEALS = 50
# Between the query's first batch and the moment when its id is known here.
_START_SECONDS = 60.0
# Commits after which small files are merged.
_COMPACT_AFTER = 30
# Headers that name what a record's value is; the names of the columns of plain frames.
_HEADERS = ("message", "api", "direction", "version")


@dataclass(slots=True)
class Landed:
    """One batch: `rows` by table, `frames` read, and how many of them are in quarantine."""

    ingest_id: str
    frames: int = 0
    quarantined: int = 0
    bytes: int = 0
    rows: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Landing:
    """What all batches of a query have in common; it travels to the workers."""

    lake: str
    group: str
    topics: tuple[str, ...]
    contents: bool
    secret: bytes | None

    @property
    def uri(self) -> str:
        return f"share://{self.group}/{','.join(self.topics)}"

    def ingest_id(self, query_id: str, batch_id: int) -> str:
        """A new checkpoint is another query, and its batches are others."""
        return blake2b(f"{self.uri}/{query_id}/{batch_id}".encode(), digest_size=10).hexdigest()


def start_landing(
    spark: "SparkSession", lake: Lake, landing: Landing, options: dict[str, str], on_landed: Callable[[Landed], None],
    **trigger: Any,
) -> "StreamingQuery":  # fmt: skip
    """`options` are those of the source. The checkpoint is in the lake, by group and topics."""

    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UsageError("the driver writes to the lake, which it can't over Spark Connect: use spark-submit")
    check_version(spark, OLDEST_STREAMS)
    started: Future[str] = Future()

    def land(rows: "DataFrame", batch_id: int) -> None:
        ingest_id = landing.ingest_id(started.result(_START_SECONDS), batch_id)
        on_landed(_land(lake, landing, rows, batch_id, ingest_id))

    reader = spark.readStream.format(SOURCE)
    for name, value in options.items():
        reader = reader.option(name, value)
    name = blake2b(landing.uri.encode(), digest_size=6).hexdigest()
    checkpoint = inside(lake.place, f"{_STREAMS}/{name}").uri.replace("s3://", "s3a://")
    writer: Any = reader.load().writeStream.foreachBatch(land).trigger(**trigger)
    query: StreamingQuery = writer.option("checkpointLocation", checkpoint).start()
    # Kept in the checkpoint.
    started.set_result(str(query.id))
    return query


def _land(lake: Lake, landing: Landing, rows: "DataFrame", batch_id: int, ingest_id: str) -> Landed:
    landed = Landed(ingest_id)
    heartbeat = begin(lake, ingest_id)
    try:
        columns = rows.select("topic", "topic_id", "partition", "offset", "value", "headers")
        done = columns.mapInArrow(_writer(landing, ingest_id), "done string").collect()
        by_table: dict[str, list[NewFile]] = {}
        for result in (json.loads(row.done) for row in done):
            landed.frames += result["frames"]
            landed.quarantined += result["quarantined"]
            landed.bytes += result["bytes"]
            for file in result["files"]:
                by_table.setdefault(file["table"], []).append(NewFile(**file))
        for name, files in sorted(by_table.items()):
            contents = landing.contents and message_of(name) is not None
            if not commit(lake, table_named(name, contents=contents), files, ingest_id):
                # An earlier run of this batch was killed after this commit.
                discard(lake, files)
            landed.rows[name] = sum(file.rows for file in files)
        write_catalog(lake)
        captures = Files(lake, ingest_id)
        captures.add(table_named("captures"), _capture(landing, landed, batch_id))
        _seal(lake, heartbeat, captures.close())
    finally:
        end(lake, heartbeat)
    if batch_id % _COMPACT_AFTER == _COMPACT_AFTER - 1:
        compact(lake)
    return landed


def _seal(lake: Lake, heartbeat: Running, files: list[NewFile]) -> None:
    for _ in range(_MAX_SEALS):
        with suppress(Overtaken):
            if not seal(lake, heartbeat, files, turn_of(lake)):
                discard(lake, files)
            return
    discard(lake, files)
    raise InputError(f"{lake.uri}: other ingests committed first {_MAX_SEALS} times; run this one again")


def _writer(landing: Landing, ingest_id: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row: the task's new files, and what it has read."""
        files = Files(open_lake(landing.lake), ingest_id)
        pseudonyms = Pseudonyms(landing.secret) if landing.secret else None
        frames = quarantined = size = 0
        try:
            for batch in batches:
                frames += len(batch)
                size += sum(len(value) for value in batch.column("value").to_pylist() if value)
                quarantined += _write_rows(files, landing, batch.to_pylist(), pseudonyms)
            written = [asdict(file) for file in files.close()]
        except BaseException:
            files.abort()
            raise
        done = {"files": written, "frames": frames, "quarantined": quarantined, "bytes": size}
        yield pa.record_batch([pa.array([json.dumps(done)])], names=["done"])

    return write


def _write_rows(
    files: Files, landing: Landing, rows: Sequence[dict[str, Any]], pseudonyms: Pseudonyms | None
) -> int:  # fmt: skip
    """Returns how many went to quarantine."""
    groups: dict[tuple[str, str, int], list[Frame]] = {}
    bad = 0
    for row in rows:
        uri = f"share://{landing.group}/{row['topic']}/{row['topic_id']}/{row['partition']}"
        try:
            name, version, body = frame_of_record(row["value"], row["headers"])
        except KafkascopeError as error:
            bad += quarantine_frames(files, uri, [(row["offset"], None, None, str(error))])
            continue
        groups.setdefault((uri, name, version), []).append((row["offset"], name, version, body))
    for (uri, name, version), frames in groups.items():
        bad += decode_frames(files, uri, name, version, frames, landing.contents, pseudonyms)
    return bad


def frame_of_record(value: bytes | None, headers: Sequence[dict[str, Any]]) -> tuple[str, int, bytes]:
    """Headers name the message of a body; without them the value is a hex line or a line of JSON. `InputError` or
    `DecodeError` for anything else."""
    if value is None:
        raise InputError("the record has no value")
    named = {
        header["key"].lower(): (header["value"] or b"").decode("utf-8", "replace")
        for header in headers or ()
        if header["key"].lower() in _HEADERS
    }
    if "version" in named:
        return frame_of({**named, "bytes": value})
    rows = rows_of_text(value.decode("utf-8", "replace"))
    if len(rows) != 1 or not rows[0]:
        raise InputError("neither headers message and version, nor a hex line or a line of JSON")
    return frame_of(rows[0])


def _capture(landing: Landing, landed: Landed, batch_id: int) -> pa.Table:
    counts = dict.fromkeys(
        (name for name in CAPTURES_SCHEMA.names if pa.types.is_integer(CAPTURES_SCHEMA.field(name).type)), 0
    )
    row: dict[str, Any] = {
        **counts,
        "ingest_id": landed.ingest_id,
        "capture_uri": landing.uri,
        "kind": _KIND,
        "digest": blake2b(landed.ingest_id.encode(), digest_size=16).hexdigest(),
        "bytes": landed.bytes,
        "frames": landed.frames,
        "quarantined": landed.quarantined,
        "first_at": None,
        "last_at": None,
        "ingested_at": time_ns() // 1000,
        "options": json.dumps({"contents": landing.contents, "batch": batch_id}),
        "follows": [],
    }
    plain = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in CAPTURES_SCHEMA])
    return pa.Table.from_pylist([row], schema=plain).cast(CAPTURES_SCHEMA)
