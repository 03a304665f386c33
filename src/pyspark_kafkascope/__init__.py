"""Spark finds data sources in modules named `pyspark_…`: with this one `spark.read.format("kafkascope")` works."""

from kafkascope.pipeline.source.data_source import RecordingSource as DefaultSource

__all__ = ["DefaultSource"]
