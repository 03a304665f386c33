"""Tunes a Spark session for little data while a block runs: planning and compiling would cost more than the work, and
Spark's defaults are for large data."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Below this size, everything is read in a few tasks of about a second.
_SMALL_BYTES = 64 << 20
_SMALL_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_PARTITIONS = "spark.sql.shuffle.partitions"
_SMALL_PARTITIONS = 2


@contextmanager
def tuned_for(spark: "SparkSession", size: int) -> Iterator[None]:
    """`size` is the number of bytes to read. The session's settings are restored afterwards."""
    if size >= _SMALL_BYTES:
        yield
        return
    settings = dict(_SMALL_SETTINGS)
    if int(spark.conf.get(_PARTITIONS) or _SMALL_PARTITIONS) > _SMALL_PARTITIONS:
        settings[_PARTITIONS] = str(_SMALL_PARTITIONS)
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, previous in before.items():
            if previous is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, previous)
