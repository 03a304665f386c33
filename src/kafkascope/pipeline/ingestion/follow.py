"""Ingests the files of a folder as they become complete, with Structured Streaming, while tcpdump or a log fills it.
A restarted query resumes where it stopped, and the lake has the same rows as after one ingest of all files."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from hashlib import blake2b
from threading import Event
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from kafkascope.errors import UsageError
from kafkascope.lake.home import Lake
from kafkascope.lake.inside import inside
from kafkascope.lake.place import place_of
from kafkascope.pipeline.mart_rebuilder import MartRebuilder
from kafkascope.pipeline.session import OLDEST_STREAMS, check_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from kafkascope.pipeline.ingestion.ingest import Ingested, Options

_SOURCE = "kafkascope_files"
_STREAMS = "_streams"
# A file that hasn't changed for this long is complete, even if no other follows it.
_QUIET_SECONDS = 60
_TRIGGER = "2 seconds"
# How often to check whether marts are due.
_POLL_SECONDS = 1


class _CompleteFiles(DataSource):
    """A stream of the paths of complete files in a folder: all but the newest, and that one once it is quiet."""

    @classmethod
    def name(cls) -> str:
        return _SOURCE

    def schema(self) -> str:
        return "path binary"

    def streamReader(self, schema: "StructType") -> "_CompleteFilesReader":  # noqa: ARG002, N802
        quiet = float(self.options.get("quiet", _QUIET_SECONDS))
        return _CompleteFilesReader(str(self.options["path"]), quiet)


class _File(InputPartition):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class _CompleteFilesReader(DataSourceStreamReader):
    """An offset is (changed, name) of the last file that was returned."""

    def __init__(self, folder: str, quiet: float) -> None:
        self._folder = folder
        self._quiet = quiet

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return first_position()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: ARG002, N802
        return latest_position(self._folder, self._quiet, start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        low, high = (start["changed"], start["name"]), (end["changed"], end["name"])
        return [_File(name) for changed, name in complete_files(self._folder, 0) if low < (changed, name) <= high]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _File)
        # Names may be any bytes: to the system a name isn't text.
        yield pa.record_batch([pa.array([os.fsencode(partition.path)])], names=["path"])


def first_position() -> dict[str, Any]:
    return {"changed": 0, "name": ""}


def latest_position(folder: str, quiet: float, start: dict[str, Any]) -> dict[str, Any]:
    """Of the newest complete file."""
    files = complete_files(folder, quiet)
    # If the newest were deleted meanwhile, all that remain are old.
    if not files or files[-1] <= (start["changed"], start["name"]):
        return start
    return {"changed": files[-1][0], "name": files[-1][1]}


def complete_files(folder: str, quiet: float) -> list[tuple[int, str]]:
    """Returns (changed in ns, path), the oldest first. `changed` is the inode's change time, not when the file was
    written: a file that is moved here is new here, however old."""
    files = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if entry.name[0] not in "._" and entry.is_file():
                    files.append((entry.stat().st_ctime_ns, entry.path))
            except OSError:
                # Renamed or deleted since the folder was opened, or a dangling link.
                continue
    files.sort()
    if files and time.time_ns() - files[-1][0] < quiet * 1e9:
        files.pop()
    return files


def follow(
    spark: "SparkSession",
    uris: tuple[str, ...],
    lake: Lake,
    options: "Options",
    on_ingested: Callable[["Ingested"], None],
    *,
    end: Event,
    rebuilder: MartRebuilder | None = None,
    quiet: float = _QUIET_SECONDS,
) -> None:
    """Runs until `end` is set. With `rebuilder` the marts follow, at the end too."""
    position = _FolderPosition(_folder_of(uris), quiet)
    query = start(spark, uris, lake, options, on_ingested, position=position, rebuilder=rebuilder, quiet=quiet)
    try:
        while not end.is_set() and not query.awaitTermination(_POLL_SECONDS):
            if rebuilder is not None:
                rebuilder.rebuild_if_due(position.has_more)
    finally:
        query.stop()
    if rebuilder is not None:
        rebuilder.finish()


class _FolderPosition:
    """The position in the folder that the batches have reached."""

    def __init__(self, folder: str, quiet: float) -> None:
        self._folder, self._quiet = folder, quiet
        self._position = (0, "")

    def advance(self, files: list[str]) -> None:
        for name in files:
            with suppress(FileNotFoundError):
                self._position = max(self._position, (os.stat(name).st_ctime_ns, name))

    def has_more(self) -> bool:
        files = complete_files(self._folder, self._quiet)
        return bool(files) and files[-1] > self._position


def _folder_of(uris: tuple[str, ...]) -> str:
    if len(uris) != 1 or not place_of(uris[0]).local or not os.path.isdir(place_of(uris[0]).path):
        raise UsageError("--follow goes with one folder on this machine")
    return place_of(uris[0]).path


def start(
    spark: "SparkSession",
    uris: tuple[str, ...],
    lake: Lake,
    options: "Options",
    on_ingested: Callable[["Ingested"], None],
    *,
    position: _FolderPosition | None = None,
    rebuilder: MartRebuilder | None = None,
    quiet: float = _QUIET_SECONDS,
) -> "StreamingQuery":
    from kafkascope.pipeline.ingestion.ingest import ingest

    check_version(spark, OLDEST_STREAMS)
    folder = _folder_of(uris)
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UsageError(
            "the driver must see the folder that it follows, which it can't over Spark Connect: use spark-submit"
        )

    def ingest_batch(batch: "DataFrame", _: int) -> None:
        paths = sorted(os.fsdecode(bytes(row.path)) for row in batch.collect())
        with rebuilder.busy if rebuilder is not None else nullcontext():
            ingested = ingest(spark, _existing(paths), lake, options)
            if rebuilder is not None and ingested.new:
                rebuilder.landed()
        ingested.bad |= {name: f"{name}: the name isn't UTF-8; rename the file" for name in _non_utf8_names(paths)}
        if position is not None:
            position.advance(paths)
        if ingested.new or ingested.known or ingested.bad:
            on_ingested(ingested)

    spark.dataSource.register(_CompleteFiles)
    name = blake2b(folder.encode(), digest_size=6).hexdigest()
    # The JVM calls the object store of `s3://` s3a.
    checkpoint = inside(lake.place, f"{_STREAMS}/{name}").uri.replace("s3://", "s3a://")
    rows = spark.readStream.format(_SOURCE).option("path", folder).option("quiet", str(quiet)).load()
    writer: Any = rows.writeStream.foreachBatch(ingest_batch).trigger(processingTime=_TRIGGER)
    query: StreamingQuery = writer.option("checkpointLocation", checkpoint).start()
    return query


def _existing(paths: list[str]) -> list[str]:
    """Drops files that a ring has overwritten or deleted since."""
    return [path for path in paths if os.path.isfile(path) and _shown(path) == path]


def _non_utf8_names(paths: list[str]) -> list[str]:
    return [shown for path in paths if (shown := _shown(path)) != path]


def _shown(path: str) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")
