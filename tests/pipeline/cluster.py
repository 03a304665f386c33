"""Spark as others run it, on loopback: a standalone cluster of two workers, a Connect server. Each ends with us, by its
pid. A driver's program runs as a process of its own: one process has one Spark."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from kafkascope import encode
from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline.mart.build import build_marts
from lab.process import Process
from tests.pipeline import job
from tests.pipeline.rows import _rows as table_rows
from tests.pipeline.rows import read_rows
from tests.pipeline.test_ingest import capture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOME = Path(pyspark.__file__).parent
JOB = Path(__file__).with_name("job.py")
ROOT = JOB.parent.parent.parent
# A session of Spark's may be slow to start where others work too.
SECONDS, JOB_SECONDS = 120.0, 600.0
# C1 alone and one collector thread, as in our own sessions.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.net.preferIPv4Stack=true"
# Spark takes two cores for granted where it does not know: three are found only by one who asks.
CORES = (1, 2)


def environment() -> dict[str, str]:
    return {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        # Of a Connect server too, which is a driver.
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_DAEMON_JAVA_OPTS": f"{JAVA_OPTIONS} -Dspark.master.rest.enabled=false",
    }


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A master and two workers with 1 GB each; its `spark://…`."""
    with ExitStack() as running:

        def start(name: str, kind: str, message: str, *more: str) -> str:
            listen = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
            command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *listen, *more]
            process = Process(command, folder / f"{name}.log", environment=environment())
            running.callback(process.stop)
            return heard(process, message)

        uri = start("master", "master.Master", r"Starting Spark master at (spark://\S+)")
        for number, cores in enumerate(CORES):
            place = ["--cores", str(cores), "--memory", "1g", "--work-dir", str(folder / f"work-{number}")]
            start(f"worker-{number}", "worker.Worker", r"Successfully registered with master (\S+)", *place, uri)
        yield uri


@contextmanager
def connect_server(folder: Path, cores: int) -> Iterator[str]:
    """What `sbin/start-connect-server.sh` starts, in the foreground; its `sc://…`."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        **job_settings(cores),
    }
    command = [
        *(str(HOME / "bin" / "spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", f"local[{cores}]", *as_options(settings), "spark-internal"),
    ]
    with Process(command, folder / "connect.log", environment=environment()) as process:
        port = heard(process, r"Spark Connect server started at: 127\.0\.0\.1:(\d+)")
        yield f"sc://127.0.0.1:{port}"


def job_settings(cores: int) -> dict[str, str]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(cores),
    }


def as_options(settings: dict[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]


def heard(process: Process, pattern: str) -> str:
    """What the process has said of itself, as soon as it does."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        match = re.search(pattern, process.output.read_text(errors="replace"))
        if match:
            return match[1]
        if process.status is not None:
            raise AssertionError(f"ended with {process.status}: {process.tail()}")
        time.sleep(0.1)
    raise AssertionError(f"no {pattern} within {SECONDS:g} s: {process.tail()}")


@dataclass(frozen=True, slots=True)
class Ran:
    """What the program said and left in its folder."""

    folder: Path
    recording: Path
    report: dict[str, Any]

    @property
    def buckets(self) -> Path:
        return self.folder / job.BUCKETS

    @property
    def shuffled(self) -> Path:
        return self.folder / job.SHUFFLED

    def marts_are_those_of(self, spark: "SparkSession") -> None:
        """Of a session on this machine, on the same lake."""
        lake = open_lake(self.buckets)
        elsewhere = mart_rows(lake)
        assert self.report["marts"] == {name: len(rows) for name, rows in elsewhere.items()}
        assert elsewhere["share_deliveries"] and elsewhere["api_latency"] and elsewhere["findings"]
        build_marts(spark, lake)
        assert mart_rows(lake) == elsewhere

    def source_is_that_of_the_reader(self) -> None:
        assert table_rows(pq.read_table(self.folder / job.SOURCE)) == read_rows(self.recording)["exchanges"]

    def views_and_tables_are_those_of_the_lake(self) -> None:
        rows = read_rows(self.recording)
        count, commented, columns = self.report["views"]
        assert (count, commented) == (len(rows["exchanges"]), columns) and columns > 20
        requests = len(rows["share_fetch_request"])
        assert self.report["source"] == [requests, requests, ["exchange_id"]]

    def decoded_is_that_of_the_codec(self) -> None:
        decoded = sorted(pq.read_table(self.folder / job.DECODED).to_pylist(), key=lambda row: row["number"])
        assert [(row["number"], row["member_id"], row["max_records"]) for row in decoded] == [
            (0, "member-0", None),
            (1, "member-1", 7),
            (2, None, None),
        ]
        assert [row["_error"] is None for row in decoded] == [True, True, False]


def submit(master: str, folder: Path) -> Ran:
    """The program under `spark-submit`."""
    options = as_options(job_settings(sum(CORES)))
    return _run([str(HOME / "bin" / "spark-submit"), "--master", master, *options], folder, sum(CORES), {})


def connected(remote: str, folder: Path, cores: int) -> Ran:
    """The same program, with no JVM of its own."""
    return _run([sys.executable], folder, cores, {"SPARK_REMOTE": remote})


def _run(command: list[str], folder: Path, cores: int, more: dict[str, str]) -> Ran:
    recording = capture("share", folder)
    pq.write_table(_bodies(), folder / job.BODIES)
    done = subprocess.run(
        [*command, str(JOB), str(folder), str(recording), "--cores", str(cores)],
        capture_output=True,
        text=True,
        timeout=JOB_SECONDS,
        env={**os.environ, **environment(), **more},
    )
    # Under spark-submit what Python says of an error is on stdout.
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return Ran(folder, recording, json.loads(done.stdout.splitlines()[-1]))


def _bodies() -> pa.Table:
    """Two versions of a message, one body of a field more, and bytes that are neither."""
    bodies = [
        encode("ShareFetchRequest", 0, {"groupId": "g", "memberId": "member-0"}),
        encode("ShareFetchRequest", 1, {"groupId": "g", "memberId": "member-1", "maxRecords": 7}),
        b"\x01",
    ]
    return pa.table({"number": range(3), "version": [0, 1, 1], "bytes": pa.array(bodies, pa.binary())})


def mart_rows(lake: Lake) -> dict[str, list[dict[str, Any]]]:
    """Every mart's rows, in an order of their own."""
    return {name: sorted(dataset(lake, name).to_table().to_pylist(), key=repr) for name in MARTS}
