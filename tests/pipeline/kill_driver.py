"""A driver of its own, to be killed: recordings and a lake in, ingested, a line of JSON out for every line of stdin.

    python -m tests.pipeline.kill_driver MASTER FOLDER

`MASTER` is Spark's. A line on stdin is a JSON list: the lake, then the recordings."""

import json
import os
import sys
from pathlib import Path

from tests.pipeline import kill_moment


def main(master: str, folder: str) -> None:
    import pyspark
    from pyspark.sql import SparkSession

    from kafkascope.errors import KafkascopeError

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
        "spark.python.daemon.module": "tests.pipeline.kill_daemon",
        f"spark.executorEnv.{kill_moment.NAMED}": os.environ[kill_moment.NAMED],
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    kill_moment.arm({"driver": os.getpid})
    from kafkascope.pipeline.ingesting import Options, ingest

    print(json.dumps({"ready": os.getpid()}), flush=True)
    for line in sys.stdin:
        lake, *uris = json.loads(line)
        try:
            done = ingest(spark, uris, lake, Options(tasks=2))
            said: dict[str, int | str] = {"new": len(done.new), "known": len(done.known)}
        except KafkascopeError as error:
            said = {"error": str(error)}
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark", "py4j")):
                raise
            said = {"error": type(error).__name__}
        print(json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
