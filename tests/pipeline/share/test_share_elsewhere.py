"""The source `kafkascope-share` over Spark Connect, whose client has no JVM, and on a standalone cluster."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from tests.pipeline.cluster import (
    CORES,
    HOME,
    JOB_SECONDS,
    as_options,
    connect_server,
    environment,
    job_settings,
    standalone,
)
from tests.pipeline.share import elsewhere_job
from tests.pipeline.share.queries import NO_PROCESS, prepared, view

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

COUNT, PARTITIONS, STARTS = 300, 2, 5

pytestmark = pytest.mark.heavy


def test_over_connect(cluster: "Lab", tmp_path: Path) -> None:
    with connect_server(tmp_path, 2) as remote:
        assert read(cluster, tmp_path, [sys.executable], {"SPARK_REMOTE": remote}) == "pyspark.sql.connect.session"


def test_on_a_cluster(cluster: "Lab", tmp_path: Path) -> None:
    with standalone(tmp_path) as master:
        submit = [str(HOME / "bin" / "spark-submit"), "--master", master, *as_options(job_settings(sum(CORES)))]
        assert read(cluster, tmp_path, submit, {}) == "pyspark.sql.session"


def read(cluster: "Lab", folder: Path, command: list[str], more: dict[str, str]) -> str:
    """The kind of the session; each record is in the files once."""
    topic, group = prepared(cluster.bootstrap, [b"%d" % number for number in range(COUNT)], PARTITIONS)
    command = [*command, str(elsewhere_job.__file__), cluster.bootstrap, topic, group, str(folder)]
    for _ in range(STARTS):
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=JOB_SECONDS, env={**os.environ, **environment(), **more}
        )
        if NO_PROCESS not in done.stderr + done.stdout:
            break
    assert done.returncode == 0, done.stderr[-2_000:] + done.stdout[-2_000:]
    written = ds.dataset(folder / "rows", ignore_prefixes=["_", "."])
    rows = written.to_table(["partition", "offset", "value"]).to_pylist()
    assert sorted((row["partition"], row["offset"]) for row in rows) == [
        (partition, offset) for partition in range(PARTITIONS) for offset in range(COUNT)
    ]
    assert all(row["value"] == b"%d" % row["offset"] for row in rows)
    assert view(cluster.bootstrap, group).lag == 0
    return done.stdout.splitlines()[-1]
