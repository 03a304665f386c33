"""Spark finds data sources in modules named `pyspark_…`, one in each: this one is `format("kafkascope-share")`."""

from kafkascope.pipeline.share.data_source import ShareSource as DefaultSource

__all__ = ["DefaultSource"]
