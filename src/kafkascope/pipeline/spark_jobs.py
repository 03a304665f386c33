"""Runs Spark jobs in parallel and cancels the others when one fails or on Ctrl-C: a thread pool would wait for every
job that it has begun, which takes minutes on a big lake."""

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
        # A Connect session has no context; on a session that has one, `addTag` doesn't reach the jobs.
        self._spark: Any = spark
        self._connect = type(spark).__module__.startswith("pyspark.sql.connect")
        self._tag, self._pool = tag, pool
        self._futures: list[Future[Any]] = []

    def submit(self, job: Callable[[], T]) -> "Future[T]":
        future = self._pool.submit(self._tagged, job)
        self._futures.append(future)
        return future

    def _tagged(self, job: Callable[[], T]) -> T:
        """Tags belong to the thread."""
        if self._connect:
            self._spark.addTag(self._tag)
        else:
            self._spark.sparkContext.addJobTag(self._tag)
        return job()

    def cancel(self) -> None:
        """Cancels more than once: a job that is still being planned ignores it."""
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
