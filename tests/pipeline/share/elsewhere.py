"""Reads a share group with a Spark that isn't this process's: over Connect, or on a cluster."""

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds

from tests.pipeline.cluster import JOB_SECONDS, environment
from tests.pipeline.share import elsewhere_job
from tests.pipeline.share.queries import NO_PROCESS, prepared, view

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

COUNT, PARTITIONS, STARTS = 300, 2, 5


def read_share_group(cluster: "Lab", folder: Path, command: list[str], more: dict[str, str]) -> str:
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
