"""Gives the marts a Spark session of their own: with the settings of the caller, and with others for little data, where
planning and compiling cost more than the work. The session of the caller stays as it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kafkascope.pipeline.mart.base.sources import LITTLE_BYTES
from kafkascope.pipeline.mart.increments.once import computing_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SMALL_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_COMPILING = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
# Compiling is worth it from here on.
_MANY_ROWS = 50_000
_PARTITIONS = "spark.sql.shuffle.partitions"
_SMALL_PARTITIONS = 2
# A session on one machine shuffles into as many parts as it has cores; some partitions of a share group are larger than
# others, and a few more tasks even that out.
_LEAST_WALKS = 16


@contextmanager
def session_of_its_own(spark: "SparkSession", size: int) -> Iterator["SparkSession"]:
    """`size` is that of what is read."""
    own = _sibling(spark)
    if size < LITTLE_BYTES:
        for name, value in _SMALL_SETTINGS.items():
            own.conf.set(name, value)
        if _partitions(own) > _SMALL_PARTITIONS:
            own.conf.set(_PARTITIONS, str(_SMALL_PARTITIONS))
    try:
        with computing_once(own):
            yield own
    finally:
        if _is_connect(spark):
            own.stop()


def compile_for(own: "SparkSession", rows: int) -> None:
    """Before a job over this number of rows: little data may have many, since a message holds hundreds of ranges. Jobs
    that are planned meanwhile are compiled as well, which does them no harm."""
    if rows >= _MANY_ROWS:
        for name in _COMPILING:
            own.conf.unset(name)


def walks_at_once(spark: "SparkSession", size: int) -> int | None:
    """Tasks for partitions of share groups; None is what Spark makes of its own setting."""
    return _LEAST_WALKS if size >= LITTLE_BYTES and _partitions(spark) < _LEAST_WALKS else None


def _partitions(spark: "SparkSession") -> int:
    return int(spark.conf.get(_PARTITIONS) or _SMALL_PARTITIONS)


def _is_connect(spark: "SparkSession") -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _sibling(spark: Any) -> "SparkSession":
    """On the same cluster. A new session of Connect would lack the caller's settings, a clone has them; a session that
    has a JVM can't be cloned, so they are copied."""
    from pyspark.errors import PySparkException

    if _is_connect(spark):
        clone: SparkSession = spark.cloneSession()
        return clone
    own: SparkSession = spark.newSession()
    for name, value in spark.conf.getAll.items():
        if own.conf.get(name, None) != value:
            try:
                own.conf.set(name, value)
            except PySparkException:
                # One that is of the whole application.
                continue
    return own
