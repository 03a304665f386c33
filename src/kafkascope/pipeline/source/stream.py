"""Reads the files of a folder as they become complete, for `spark.readStream`. A batch has the rows of its files; the
checkpoint says which they were, so each file is in one batch, also after a restart."""

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kafkascope.errors import UsageError
from kafkascope.lake.place import place_of
from kafkascope.pipeline.ingestion.follow import complete_files, first_position, latest_position
from kafkascope.pipeline.source.options import SourceOptions
from kafkascope.pipeline.source.recordings import SharePartition, plan, read_share


class FolderReader(DataSourceStreamReader):
    """An offset is the place of the last file in the order in which they came."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options, self._schema = options, schema
        place = place_of(options.paths[0])
        if len(options.paths) > 1 or not place.local or not os.path.isdir(place.path):
            raise UsageError(f"{options.paths[0]}: readStream goes with one folder on the driver's and workers' disks")
        self._folder = place.path

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return first_position()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: ARG002, N802
        return latest_position(self._folder, self._options.quiet, start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        low, high = (start["changed"], start["name"]), (end["changed"], end["name"])
        files = [name for changed, name in complete_files(self._folder, 0) if low < (changed, name) <= high]
        return [SharePartition(share) for share in plan(files, self._options)] if files else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SharePartition)
        return read_share(partition.share, self._options, self._schema, [])
