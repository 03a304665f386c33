"""Spark finds data sources in modules named `pyspark_…`, one in each: this one is `format("kafkascope-share")`.

A Spark older than 4.2 finds none here. An error would hide the sources of all other modules too.
"""

from importlib.util import find_spec

if find_spec("pyspark.sql.streaming.datasource") is not None:
    from kafkascope.pipeline.share.data_source import ShareSource as DefaultSource

    __all__ = ["DefaultSource"]
