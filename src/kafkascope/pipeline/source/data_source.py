"""The source `kafkascope` of Spark: recordings and log directories without a lake, or the visible rows of a
lake's table.

    spark.read.format("kafkascope").load(["night/a.pcap", "night/b.pcap"])
    spark.read.format("kafkascope").option("table", "share_fetch_request").load("night/*.pcap")
    spark.read.format("kafkascope").option("table", "api_latency").load("traffic")
    spark.read.format("kafkascope").option("table", "log_batches").load("/var/kafka")
    spark.readStream.format("kafkascope").load("/var/captures")

Spark doesn't report to a Python source which columns a query uses. So `columns`, or a schema, chooses them here."""

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kafkascope.errors import UsageError
from kafkascope.pipeline.source.lake_table import LakeReader, lake_at, lake_schema
from kafkascope.pipeline.source.logs import LogReader, is_log_table, log_schema
from kafkascope.pipeline.source.options import SourceOptions, parse_options
from kafkascope.pipeline.source.recordings import RecordingReader, chosen_columns, schema_of
from kafkascope.pipeline.source.stream import FolderReader


class RecordingSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kafkascope"

    def schema(self) -> StructType:
        options = parse_options(self.options)
        return from_arrow_schema(chosen_columns(self._whole(options), options.columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse_options(self.options)
        lake = lake_at(options.paths)
        chosen = self._chosen(options, schema)
        if lake is not None:
            return LakeReader(lake, options, chosen)
        return LogReader(options, chosen) if is_log_table(options.table) else RecordingReader(options, chosen)

    def streamReader(self, schema: StructType) -> FolderReader:  # noqa: N802
        options = parse_options(self.options)
        if lake_at(options.paths) is not None:
            raise UsageError(f"{options.paths[0]}: a lake; readStream goes with a folder of recordings")
        return FolderReader(options, self._chosen(options, schema))

    def _whole(self, options: SourceOptions) -> pa.Schema:
        lake = lake_at(options.paths)
        if lake is not None:
            return lake_schema(lake, options.table)
        if is_log_table(options.table):
            return log_schema(options.table, contents=options.contents)
        return schema_of(options.table, contents=options.contents)

    def _chosen(self, options: SourceOptions, schema: StructType) -> pa.Schema:
        """A schema that a user gives is a choice of columns: their types are what they are."""
        chosen = chosen_columns(self._whole(options), schema.names)
        own = from_arrow_schema(chosen)
        for field, right in zip(schema.fields, own.fields, strict=True):
            if field.dataType != right.dataType:
                raise UsageError(
                    f"the column {field.name} is {right.dataType.simpleString()}, not {field.dataType.simpleString()}"
                )
        return chosen
