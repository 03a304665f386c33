"""Runs jobs of Spark side by side and cancels the others when one fails or Ctrl-C comes: a pool waits for all that it
has begun, and on a big lake that is minutes."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

_RETRY_SECONDS = 0.2


class _ParallelJobs:
    def __init__(self, spark: "SparkSession", tag: str, pool: ThreadPoolExecutor) -> None:
        # A session of Connect has no context; of one that has it `addTag` does not reach the jobs.
        self._spark: Any = spark
        self._connect = type(spark).__module__.startswith("pyspark.sql.connect")
        self._tag, self._pool = tag, pool
        self._futures: list[Future[Any]] = []

    def submit(self, job: Callable[[], T]) -> "Future[T]":
        future = self._pool.submit(self._tagged, job)
        self._futures.append(future)
        return future

    def _tagged(self, job: Callable[[], T]) -> T:
        """A tag is the thread's."""
        if self._connect:
            self._spark.addTag(self._tag)
        else:
            self._spark.sparkContext.addJobTag(self._tag)
        return job()

    def cancel(self) -> None:
        """More than once: a job that is being planned does not hear it yet."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        while not all(future.done() for future in self._futures):
            if self._connect:
                self._spark.interruptTag(self._tag)
            else:
                self._spark.sparkContext.cancelJobsWithTag(self._tag)
            time.sleep(_RETRY_SECONDS)


@contextmanager
def parallel_jobs(spark: "SparkSession", tag: str, pool: ThreadPoolExecutor) -> Iterator[_ParallelJobs]:
    jobs = _ParallelJobs(spark, tag, pool)
    try:
        yield jobs
    except BaseException:
        jobs.cancel()
        raise
