"""Jobs of Spark side by side, of which one fails: the others are cut off, and leave nothing running."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from kafkascope.pipeline.spark_jobs import parallel_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = 300


def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(LONG)
        yield batch


@pytest.mark.parametrize("wait", [0.0, 3.0], ids=["planned", "running"])
def test_what_runs_is_cut_off(spark: "SparkSession", wait: float) -> None:
    began = time.monotonic()

    def interrupted() -> None:
        with ThreadPoolExecutor(2) as pool, parallel_jobs(spark, f"cut-{wait}", pool) as begun:
            for _ in range(3):
                begun.submit(lambda: spark.range(4).mapInArrow(slow, "id long").collect())
            time.sleep(wait)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - began < LONG
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    assert spark.range(4).count() == 4
