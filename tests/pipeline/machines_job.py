"""A driver on a machine of its own, whose executors are on others, and recordings and lakes in a bucket. Obeys lines of
JSON on standard input, a word and its arguments each, and prints what came of it.

    python -m tests.pipeline.machines_job MASTER ADDRESS FOLDER BUCKET

`running` is printed as soon as tasks run on all executors, so that a test can end one of them then."""

import json
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import Any

from pyspark.sql import SparkSession

from kafkascope.lake.active import active_files
from kafkascope.lake.home import open_lake
from kafkascope.lake.place import place_of
from kafkascope.lake.upkeep.retention import vacuum
from kafkascope.lake.write.commit import find_table
from kafkascope.lake.write.heartbeat import running_ingests
from kafkascope.pipeline import Options, ingest, marts
from kafkascope.pipeline.ingestion import plan
from kafkascope.pipeline.ingestion.ingest import cores_of
from tests.pipeline.cluster import JAVA_OPTIONS
from tests.pipeline.rows import lake_rows, read_rows
from tests.pipeline.test_ingest import capture, pieces
from tests.pipeline.test_object_store import mart_rows, put

RESULT, RUNNING = "result ", "running"
RECORDING, PIECES, SEED = "share", 4, 5
_SECONDS = 120.0


class Driver:
    def __init__(self, master: str, address: str, folder: Path, bucket: str) -> None:
        self.bucket = bucket
        self.path = capture(RECORDING, folder)
        builder = SparkSession.builder.master(master)
        options = f"{JAVA_OPTIONS} -Djava.io.tmpdir={folder}"
        for name, value in {
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.driver.host": address,
            "spark.driver.bindAddress": address,
            "spark.driver.extraJavaOptions": options,
            "spark.executor.extraJavaOptions": options,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.local.dir": f"{folder}/local",
            # A machine that went silent counts as lost after this long, not after two minutes.
            "spark.network.timeout": "60s",
            "spark.network.timeoutInterval": "5s",
            "spark.executor.heartbeatInterval": "5s",
        }.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        # However small the recording of a test is, its connections are shared out.
        plan.SMALL_INPUT_BYTES = 0

    def put(self) -> Any:
        put(self.bucket, pieces(self.path, PIECES, SEED))
        return True

    def cores(self, wanted: int) -> Any:
        deadline = time.monotonic() + _SECONDS
        while (cores := cores_of(self.spark, None)) != wanted and time.monotonic() < deadline:
            time.sleep(0.2)
        return cores

    def ingest(self, lake: str, how: str, announce: bool) -> Any:
        options = Options(plan=how, tasks=4)
        done = self._announced(
            lambda: ingest(self.spark, [f"{self.bucket}/night/"], self._lake(lake), options), announce
        )
        rows, wanted = lake_rows(self._lake(lake)), read_rows(self.path)
        return {"new": len(done.new), "bad": done.bad, "tables": len(rows), "same": rows == wanted}

    def marts(self, lake: str, announce: bool) -> Any:
        self._announced(lambda: marts(self.spark, self._lake(lake)), announce)
        return digests(self._lake(lake), f"{self.bucket}/night")

    def left_over(self, lake: str) -> Any:
        """Ingests that seem to run, and what a vacuum leaves of files that no log names."""
        home = open_lake(self._lake(lake))
        running = len(running_ingests(home))
        vacuum(home)
        unknown = []
        for name in home.tables():
            table = find_table(home, name)
            named = {file.path for file in active_files(table)} if table is not None else set()
            root = place_of(f"{self._lake(lake)}/{name}")
            files = [info.path.removeprefix(f"{root.path}/") for info in root.inside(deep=True) if info.is_file]
            unknown += [file for file in files if file.endswith(".parquet") and file not in named]
        return [running, unknown]

    def _lake(self, name: str) -> str:
        return f"{self.bucket}/{name}"

    def _announced(self, work: Callable[[], Any], announce: bool) -> Any:
        done = Event()
        if announce:
            Thread(target=self._announce, args=(done,), daemon=True).start()
        try:
            return work()
        finally:
            done.set()

    def _announce(self, done: Event) -> None:
        tracker = self.spark.sparkContext.statusTracker()
        while not done.wait(0.01):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                # Not of the survey, which has a task for each file and is over at once.
                if info is not None and info.numActiveTasks >= 2 and info.name.startswith("collect"):
                    print(RUNNING, flush=True)
                    return


def digests(lake: str, folder: str) -> dict[str, list[Any]]:
    """Of each mart, how many rows it has and which."""
    return {
        name: [len(rows), sha256("\n".join(rows).encode()).hexdigest()]
        for name, rows in mart_rows(lake, folder).items()
    }


def main(master: str, address: str, folder: str, bucket: str) -> None:
    driver = Driver(master, address, Path(folder), bucket)
    print("ready", flush=True)
    for line in sys.stdin:
        word, *arguments = json.loads(line)
        print(RESULT + json.dumps(getattr(driver, word)(*arguments)), flush=True)
    driver.spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
