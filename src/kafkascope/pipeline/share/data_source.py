"""The source `kafkascope-share` of Spark: the records of a share group, each batch of them the same after a restart.

spark.readStream.format("kafkascope-share").option("bootstrap", "localhost:9092").option("group", "orders")
    .option("topics", "orders").load()
"""

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kafkascope.errors import UsageError
from kafkascope.pipeline.share.options import SOURCE, parse_options
from kafkascope.pipeline.share.rows import SHARE_SCHEMA
from kafkascope.pipeline.share.stream_reader import ShareReader


class ShareSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return SOURCE

    def schema(self) -> StructType:
        parse_options(self.options)
        return from_arrow_schema(SHARE_SCHEMA)

    def streamReader(self, schema: StructType) -> ShareReader:  # noqa: N802
        options = parse_options(self.options)
        if schema.names != SHARE_SCHEMA.names:
            raise UsageError(f"{SOURCE} has the columns {', '.join(SHARE_SCHEMA.names)}; leave the schema out")
        return ShareReader(options)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        raise UsageError(f"a share group is a stream: spark.readStream.format('{SOURCE}')")
