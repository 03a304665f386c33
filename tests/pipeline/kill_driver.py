"""A driver of its own, to be killed: recordings and a lake in, ingested, a line of JSON out for every line of stdin.

    python -m tests.pipeline.kill_driver MASTER FOLDER

`MASTER` is Spark's. A line on stdin is a JSON list: the lake, then the recordings, then maybe an object: `plan`, and
`follow` for a folder that is followed until its first batch has landed. With it an ingest has two buckets.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from tests.pipeline import break_reader, kill_moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(master: str, folder: str, more: Mapping[str, str]) -> "SparkSession":
    """With executors of 512 MB, on loopback."""
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # A local cluster keeps its executors' logs somewhere.
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["SPARK_WORKER_DIR"] = f"{folder}/work"
    java = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
    builder = SparkSession.builder.master(master)
    for name, value in {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.local.dir": f"{folder}/local",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        **more,
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(master: str, folder: str) -> None:
    from kafkascope.errors import KafkascopeError
    from kafkascope.lake.home import make_lake

    where = {
        "spark.python.daemon.module": "tests.pipeline.kill_daemon",
        f"spark.executorEnv.{kill_moment.NAMED}": os.environ[kill_moment.NAMED],
    }
    spark = session(master, folder, where)
    # The driver reads no recording, so that none can break it.
    break_reader.arm()
    kill_moment.arm({"driver": os.getpid})
    from kafkascope.pipeline.ingestion import plan
    from kafkascope.pipeline.ingestion.follow import follow
    from kafkascope.pipeline.ingestion.ingest import Ingested, Options, ingest

    small = plan.SMALL_INPUT_BYTES

    def ingested(lake: str, uris: list[str], thresholds: dict[str, str]) -> Ingested:
        plan.SMALL_INPUT_BYTES = 0 if thresholds else small
        options = Options(tasks=2, plan=thresholds.get("plan", "auto"))
        if "follow" not in thresholds:
            return ingest(spark, uris, lake, options)
        batches: list[Ingested] = []
        end = Event()

        def hear(done: Ingested) -> None:
            batches.append(done)
            end.set()

        follow(spark, (thresholds["follow"],), make_lake(lake), options, hear, end=end, quiet=0)
        return batches[0]

    print(json.dumps({"ready": os.getpid()}), flush=True)
    for line in sys.stdin:
        lake, *uris = json.loads(line)
        thresholds = uris.pop() if isinstance(uris[-1], dict) else {}
        try:
            done = ingested(lake, uris, thresholds)
            report: dict[str, object] = {"new": len(done.new), "known": len(done.known)}
            if done.bad:
                report["bad"] = done.bad
        except KafkascopeError as error:
            report = {"error": str(error)}
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark", "py4j")):
                raise
            report = {"error": type(error).__name__}
        print(json.dumps(report), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
