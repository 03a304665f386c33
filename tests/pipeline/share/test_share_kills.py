"""kill -9 of executor and driver while a share group is read into a Delta table: each record is in it once. A source
that acknowledges when its reader closes loses some under the same kill, so the test can fail."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from tests.pipeline.share.queries import prepared, view

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 600
COUNT, PARTITIONS, BATCH = 1_500, 2, 1_000
LOCAL, LOCAL_CLUSTER = "local[2]", "local-cluster[1,2,512]"

pytestmark = pytest.mark.heavy


@dataclass
class Job:
    """One query, over all its processes."""

    lab: "Lab"
    folder: Path
    format: str = "kafkascope-share"
    options: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = [b"%d" % number for number in range(COUNT)]
        topic, self.group = prepared(self.lab.bootstrap, values, PARTITIONS)
        self.options = {"bootstrap": self.lab.bootstrap, "topics": topic, "group": self.group} | self.options

    def run(self, master: str = LOCAL, kill: dict[str, Any] | None = None) -> int:
        """The exit code of the driver."""
        mark = self.folder / "mark"
        mark.touch()
        config = {
            "master": master, "folder": str(self.folder), "format": self.format, "options": self.options,
            "table": str(self.folder / "table"), "checkpoint": str(self.folder / "checkpoint"),
            "mark": str(mark), "kill": kill,
        }  # fmt: skip
        command = [sys.executable, "-m", "tests.pipeline.share.share_driver", json.dumps(config)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
        with open(self.folder / "driver.log", "ab") as log:
            return subprocess.run(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, timeout=SECONDS, check=False
            ).returncode

    def rows(self) -> Counter[tuple[int, int]]:
        path = str(self.folder / "table")
        rows = DeltaTable(path).to_pyarrow_table().to_pylist() if DeltaTable.is_deltatable(path) else []
        assert all(row["value"] == b"%d" % row["offset"] for row in rows)
        return Counter((row["partition"], row["offset"]) for row in rows)

    def log(self) -> str:
        return (self.folder / "driver.log").read_text(errors="replace")[-3_000:]


ALL = Counter((partition, offset) for partition in range(PARTITIONS) for offset in range(COUNT))


def test_each_record_is_in_the_table_once_after_a_kill_of_an_executor(cluster: "Lab", tmp_path: Path) -> None:
    """In the middle of a task of the first batch; its tasks run again."""
    job = Job(cluster, tmp_path, options={"maxRecordsPerTrigger": str(BATCH), "minPartitions": "4"})
    assert job.run(LOCAL_CLUSTER, {"when": "task", "batch": 0}) == 0, job.log()
    assert not (tmp_path / "mark").exists() and job.rows() == ALL, job.log()


def test_each_record_is_in_the_table_once_after_kills_of_the_driver(cluster: "Lab", tmp_path: Path) -> None:
    """A batch is logged and its sink hasn't committed it; then it has."""
    job = Job(cluster, tmp_path, options={"maxRecordsPerTrigger": str(BATCH), "minPartitions": "4"})
    assert job.run(kill={"when": "before", "batch": 1}) == -signal.SIGKILL, job.log()
    assert 0 < len(job.rows()) < len(ALL)
    # The batch is in the table, and Spark's commit log lacks it.
    assert job.run(kill={"when": "after", "batch": 1}) == -signal.SIGKILL, job.log()
    assert job.run() == 0, job.log()
    assert job.rows() == ALL
    assert view(cluster.bootstrap, job.group).lag == 0


def test_a_source_that_acknowledges_when_its_reader_closes_loses_records(cluster: "Lab", tmp_path: Path) -> None:
    batches = -(-len(ALL) // BATCH)
    job = Job(cluster, tmp_path, "eager", {"records": str(BATCH), "batches": str(batches)})
    assert job.run(kill={"when": "before", "batch": 1}) == -signal.SIGKILL, job.log()
    assert job.run() == 0, job.log()
    rows = job.rows()
    assert rows and set(rows) < set(ALL), "nothing is lost"
