"""A Spark cluster whose driver and two workers are machines of their own, without a shared disk. Recordings and lake
are in S3. Machines lose their power or their network in the middle of the work: rows and marts are those of one
machine, and nothing is left over. Runs in `make soak`."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.columnar.compiling.kernel_folder import base_folder
from kafkascope.lake.home import open_lake
from kafkascope.pipeline.ingestion.ingest import ingest
from kafkascope.pipeline.mart.build import build_marts
from lab.process import Process
from lab.wire import until
from tests.pipeline.cluster import HOME, JAVA_OPTIONS, ROOT, heard
from tests.pipeline.machines import Machine, Machines, machines, why_not
from tests.pipeline.machines_job import PIECES, RECORDING, RESULT, RUNNING, SEED, digests
from tests.pipeline.test_ingest import capture, pieces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS = (2, 3)
SECONDS = 600.0

pytestmark = [
    pytest.mark.soak,
    pytest.mark.heavy,
    pytest.mark.skipif("KAFKASCOPE_SOAK" not in os.environ, reason="starts three machines: make soak"),
]


@dataclass(slots=True)
class Site:
    """`master` and `bucket` are URIs, `store` the settings that lead to it."""

    machines: Machines
    store: dict[str, str]
    bucket: str = ""
    master: str = ""
    driver: Process | None = None

    def environment(self, machine: Machine) -> dict[str, str]:
        folder = str(machine.folder)
        java = f"{JAVA_OPTIONS} -Djava.io.tmpdir={folder} -Dspark.master.rest.enabled=false -Dspark.worker.timeout=60"
        return {
            **self.store,
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": machine.address,
            "SPARK_LOCAL_DIRS": f"{folder}/local",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": java,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": folder,
            "NUMBA_CACHE_DIR": f"{folder}/kernels",
        }

    def add_worker(self, number: int) -> None:
        machine = self.machines.add(number)
        give_kernels(machine)
        listen = ["--host", machine.address, "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
        command = [str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy.worker.Worker", *listen]
        worker = machine.start(
            "worker", [*command, "--work-dir", f"{machine.folder}/work", self.master], self.environment(machine)
        )
        heard(worker, r"(Successfully registered with master)")

    def ask(self, *words: object, middle: Callable[[], None] | None = None) -> Any:
        """What the driver makes of a line; `middle` is called as soon as tasks run on both workers."""
        assert self.driver is not None
        announced, results = self._count(RUNNING), self._count(RESULT)
        self.driver.tell(json.dumps(words))
        if middle is not None:
            until("tasks on both workers", lambda: self._count(RUNNING) > announced, SECONDS)
            assert self._count(RESULT) == results, "it was over before anything could happen"
            middle()
        until(f"{words[0]}", lambda: self._count(RESULT) > results, SECONDS)
        return json.loads(self._lines(RESULT)[-1].removeprefix(RESULT))

    def _count(self, start: str) -> int:
        return len(self._lines(start))

    def _lines(self, start: str) -> list[str]:
        assert self.driver is not None
        if self.driver.status is not None:
            raise AssertionError(f"the driver ended with {self.driver.status}: {self.driver.tail()}")
        lines = self.driver.output.read_text(errors="replace").splitlines(keepends=True)
        return [line for line in lines if line.startswith(start) and line.endswith("\n")]


def give_kernels(machine: Machine) -> None:
    """As `kafkascope warm-up` leaves them on each machine."""
    folder = f"{machine.folder}/kernels/kafkascope-{os.geteuid()}"
    machine.run("sh", "-c", f"umask 077; mkdir -p {folder} && cp -r {base_folder()}/. {folder}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("site")
    with machines(folder / "disk", folder / "logs") as all_machines:
        hub = all_machines.hub
        give_kernels(hub)
        site = Site(all_machines, {})
        python = [sys.executable, "-m"]
        store = hub.start("store", [*python, "tests.pipeline.object_store", hub.address], site.environment(hub))
        site.bucket, site.store = json.loads(heard(store, r"(?m)^(\[.*\])$"))
        listen = ["--host", hub.address, "--port", "0", "--webui-port", "0"]
        command = [str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master", *listen]
        master = hub.start("master", command, site.environment(hub))
        site.master = heard(master, r"Starting Spark master at (spark://\S+)")
        for number in WORKERS:
            site.add_worker(number)
        job = [*python, "tests.pipeline.machines_job", site.master, hub.address, str(hub.folder), site.bucket]
        site.driver = hub.start("driver", job, site.environment(hub))
        heard(site.driver, "(ready)")
        assert site.ask("cores", len(WORKERS)) == len(WORKERS)
        site.ask("put")
        yield site


@pytest.fixture(scope="module")
def marts(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Of the same recordings on this machine."""
    folder = tmp_path_factory.mktemp("here")
    ingest(spark, pieces(capture(RECORDING, folder), PIECES, SEED), str(folder / "lake"))
    build_marts(spark, open_lake(str(folder / "lake")))
    return digests(str(folder / "lake"), str(folder))


def is_whole(report: dict[str, Any]) -> bool:
    return bool(report["new"] == PIECES and not report["bad"] and report["tables"] > 20 and report["same"])


def test_nobody_sees_the_disk_of_another(site: Site) -> None:
    for machine in site.machines.by_number.values():
        machine.run("touch", f"{machine.folder}/{machine.name}")
    seen = {machine.name: machine.run("ls", str(machine.folder)) for machine in site.machines.by_number.values()}
    assert all(other == name for name, files in seen.items() for other in re.findall(r"machine-\d", files))
    with pytest.raises(RuntimeError, match="Read-only file system"):
        site.machines.by_number[2].run("touch", str(ROOT / "file"))


@pytest.mark.parametrize("plan", ["buckets", "shuffle"])
def test_machines_without_a_shared_disk_read_what_the_reader_reads(site: Site, plan: str) -> None:
    assert is_whole(site.ask("ingest", plan, plan, False))
    assert site.ask("left_over", plan) == [0, []]


def test_workers_fetch_shuffled_segments_from_each_other(site: Site) -> None:
    first, second = (site.machines.by_number[number] for number in WORKERS)
    assert "lladdr" in first.run("ip", "neighbour", "show", second.address)


def test_marts_are_those_of_one_machine(site: Site, marts: dict[str, list[Any]]) -> None:
    assert site.ask("marts", "shuffle", False) == marts


@pytest.mark.parametrize("plan", ["buckets", "shuffle"])
def test_a_worker_loses_its_power_in_the_middle_of_an_ingest(site: Site, plan: str) -> None:
    assert is_whole(site.ask("ingest", f"power-{plan}", plan, True, middle=site.machines.by_number[3].cut_power))
    site.add_worker(3)
    assert site.ask("cores", len(WORKERS)) == len(WORKERS)
    assert site.ask("left_over", f"power-{plan}") == [0, []]


def test_a_worker_loses_its_power_in_the_middle_of_the_marts(site: Site, marts: dict[str, list[Any]]) -> None:
    assert site.ask("marts", "power-shuffle", True, middle=site.machines.by_number[3].cut_power) == marts
    site.add_worker(3)
    assert site.ask("cores", len(WORKERS)) == len(WORKERS)


def test_a_worker_loses_its_network_and_comes_back(site: Site) -> None:
    """Other machines do not notice, so they wait until its heartbeats are overdue; its tasks are done twice."""
    assert is_whole(site.ask("ingest", "cable", "shuffle", True, middle=lambda: site.machines.set_cable(2, "down")))
    site.machines.set_cable(2, "up")
    assert site.ask("cores", len(WORKERS)) == len(WORKERS)
    assert is_whole(site.ask("ingest", "after", "shuffle", False))
    assert site.ask("left_over", "cable") == [0, []]
