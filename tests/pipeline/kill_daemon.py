"""Spark's Python daemon, whose workers die where `tests.pipeline.kill_moment` says, and on files that say so in their
name (`spark.python.daemon.module`)."""

import os

from pyspark.daemon import manager

from tests.pipeline import break_reader, kill_moment

if __name__ == "__main__":
    break_reader.arm()
    kill_moment.arm({"worker": os.getpid, "executor": os.getppid})
    manager()
