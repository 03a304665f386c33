"""Spark's Python daemon, whose workers die where `tests.pipeline.kill_moment` says (`spark.python.daemon.module`)."""

import os

from pyspark.daemon import manager

from tests.pipeline import kill_moment

if __name__ == "__main__":
    kill_moment.arm({"worker": os.getpid, "executor": os.getppid})
    manager()
