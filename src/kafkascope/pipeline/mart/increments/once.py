"""Has Spark compute a frame once, where several statements read it, until the build that made it ends. Planning and
running it again in each of them costs most of what an increment costs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FRAMES: "WeakKeyDictionary[SparkSession, list[DataFrame]]" = WeakKeyDictionary()


@contextmanager
def computing_once(spark: "SparkSession") -> Iterator[None]:
    """What `once` got with this session is released in the end."""
    frames = _FRAMES[spark] = []
    try:
        yield
    finally:
        del _FRAMES[spark]
        for frame in frames:
            frame.unpersist()


def once(spark: "SparkSession", frame: "DataFrame") -> "DataFrame":
    """Small, or it goes to disk. Unchanged if nobody releases it."""
    frames = _FRAMES.get(spark)
    if frames is None:
        return frame
    frames.append(frame)
    return frame.persist()
