"""kill -9 at any moment: readers see the lake as before or as after, the same ingest again completes it, and nothing is
there twice.

A worker and a driver die in a local session, an executor in Spark's local cluster, where it is a process of its own.
One of each here; in `make soak` twenty moments each, at random, executors then of a standalone cluster."""

import json
import lzma
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.lake.active import active_files
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.upkeep.retention import half_done, vacuum
from kafkascope.lake.write import commit as commits
from kafkascope.lake.write.commit import find_table
from kafkascope.lake.write.heartbeat import INGESTS, SILENCE, _write, running_ingests
from kafkascope.pipeline.ingestion import ingest as module
from kafkascope.pipeline.ingestion.ingest import ingest
from tests.pipeline.kill_moment import DRIVER_STEPS, NAMED, TASK_STEPS, Moment, set_moment
from tests.pipeline.rows import Rows, lake_rows, read_rows
from tests.pipeline.test_ingest import HERE as CAPTURES
from tests.pipeline.test_ingest import capture, pieces
from tests.support.other_tools import all_of_them, arrow_rows, everywhere

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).resolve().parents[2]
SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
SEED = int(os.environ.get("KAFKASCOPE_SEED", 0)) or random.randrange(1 << 32)
MOMENTS = 20
# So many files and commits the ingest has at the least.
FILES = 30
LOCAL = "local[2]"
# One worker with one executor of two cores and 512 MB.
LOCAL_CLUSTER = "local-cluster[1,2,512]"
# A cluster of its own, made when it is first asked for.
STANDALONE = "standalone"


@dataclass(frozen=True, slots=True)
class Story:
    """A lake with the first part of a recording, the parts that are to follow, and what readers see before and after.
    `lake` is to be copied."""

    lake: Path
    rest: list[Path]
    before: Rows
    after: Rows


@pytest.fixture(scope="module")
def story(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("story")
    path = capture("share", folder)
    first, *rest = pieces(path, 4, seed=9)
    lake = folder / "lake"
    ingest(spark, [first], str(lake))
    before, after = lake_rows(str(lake)), read_rows(path)
    assert before != after
    return Story(lake, rest, before, after)


class Driver:
    """`kill_driver` in a process of its own."""

    def __init__(self, master: str, folder: Path) -> None:
        self.moment = folder / "moment.json"
        self.log = folder / "driver.log"
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.pipeline.kill_driver", master, str(folder)],
                cwd=ROOT,
                env={**os.environ, NAMED: str(self.moment), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._hear(), self.log.read_text()

    def ingest(
        self, lake: Path, files: list[Path], moment: Moment | None = None, options: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """None where it died."""
        if moment is not None:
            set_moment(self.moment, moment)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(lake), *map(str, files), *([options] if options else [])]) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        report: dict[str, Any] | None = json.loads(line) if line else None
        return report

    def lives(self) -> bool:
        return self._process.poll() is None

    def end(self) -> int:
        self._process.communicate(timeout=60)
        return self._process.returncode


@contextmanager
def driver(master: str, folder: Path) -> Iterator[Driver]:
    folder.mkdir()
    run = Driver(master, folder)
    try:
        yield run
    finally:
        run.end()


def moments(victim: str, steps: tuple[str, ...]) -> list[Moment]:
    """One step of each kind and then any."""
    source = random.Random(f"{SEED} {victim}")
    chosen = [*steps, *(source.choice(steps) for _ in range(MOMENTS))][:MOMENTS]
    many = {"begin", "write", "finish", "commit", "committed"}
    return [Moment(victim, step, source.randrange(FILES) if step in many else 0) for step in chosen]


def check(spark: "SparkSession", story: Story, lake: Path, moment: Moment) -> None:
    """After the kill; then after the same ingest again; then after a vacuum."""
    context = f"{moment}, KAFKASCOPE_SEED={SEED}"
    assert lake_rows(str(lake)) in (story.before, story.after), context
    ingest(spark, story.rest, str(lake))
    assert lake_rows(str(lake)) == story.after, context
    again = ingest(spark, story.rest, str(lake))
    assert (again.new, len(again.known)) == ([], len(story.rest)), context
    swept(lake)
    assert lake_rows(str(lake)) == story.after, context


def swept(lake: Path) -> None:
    """A vacuum, once the dead have been silent for long enough, leaves no file that no log names."""
    home = open_lake(str(lake))
    silent = datetime.now(UTC) - SILENCE
    for run in running_ingests(home):
        _write(home, replace(run, beat=silent))
    for path in (lake / INGESTS).iterdir():
        os.utime(path, (silent.timestamp(), silent.timestamp()))
    vacuum(home, age=timedelta(0))
    assert not half_done(home)
    assert not list((lake / INGESTS).iterdir())
    for name in home.tables():
        table = find_table(home, name)
        named = {file.path for file in active_files(table)} if table is not None else set()
        folder = lake / name
        assert {str(path.relative_to(folder)) for path in folder.rglob("ingest-*.parquet")} <= named


def request_log(name: str, number: int, folder: Path) -> Path:
    path = folder / f"{name}-{number}.log"
    path.write_bytes(lzma.decompress((CAPTURES / name / f"request-{number}.log.xz").read_bytes()))
    return path


def copied(story: Story, folder: Path) -> Path:
    lake = folder / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    shutil.copytree(story.lake, lake)
    return lake


def left_behind(lake: Path) -> set[str]:
    """Files of tables that no log names."""
    home = open_lake(str(lake))
    leftovers = set()
    for name in home.tables():
        table = find_table(home, name)
        named = {file.path for file in active_files(table)} if table is not None else set()
        folder = lake / name
        leftovers |= {str(path.relative_to(folder)) for path in folder.rglob("ingest-*.parquet")} - named
    return leftovers


Drivers = Callable[[str], Driver]


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """A driver of each master: the last one, as long as it lives."""
    running: list[Driver] = []
    newest: dict[str, Driver] = {}
    with ExitStack() as stack:

        @cache
        def cluster() -> str:
            from tests.pipeline.cluster import standalone

            return stack.enter_context(standalone(tmp_path_factory.mktemp("cluster")))

        def give(master: str) -> Driver:
            if master not in newest or not newest[master].lives():
                where = cluster() if master == STANDALONE else master
                newest[master] = Driver(where, tmp_path_factory.mktemp("driver"))
                running.append(newest[master])
            return newest[master]

        yield give
        for process in running:
            process.end()


def test_worker_killed_in_the_middle_of_its_files(
    spark: "SparkSession", story: Story, tmp_path: Path, drivers: Drivers
) -> None:
    moment = Moment("worker", "begin", 5)
    lake = copied(story, tmp_path)
    run = drivers(LOCAL)
    report = run.ingest(lake, story.rest, moment)
    # A local session tries a task once; the driver tries again, one task at a time, and no file is to blame.
    assert report == {"new": len(story.rest), "known": 0} and not run.moment.exists()
    assert left_behind(lake)
    assert lake_rows(str(lake)) == story.after
    check(spark, story, lake, moment)


def test_driver_killed_between_the_commits_of_two_tables(
    spark: "SparkSession", story: Story, tmp_path: Path, drivers: Drivers
) -> None:
    """The same ingest again completes it; where a vacuum comes first, nothing of it is left, and it begins anew. So it
    is where another tool has merged its rows with others."""
    moment = Moment("driver", "committed", 7)
    lake = copied(story, tmp_path)
    assert drivers(LOCAL).ingest(lake, story.rest, moment) is None
    assert lake_rows(str(lake)) == story.before
    other = tmp_path / "other"
    shutil.copytree(lake, other)
    check(spark, story, lake, moment)

    merged = tmp_path / "merged"
    shutil.copytree(other, merged)
    everywhere(open_lake(str(merged)), all_of_them)
    again = tmp_path / "again"
    shutil.copytree(merged, again)
    check(spark, story, merged, moment)
    assert plain_ids(merged) == [row["exchange_id"] for row in story.after["exchanges"]]
    swept(again)
    assert lake_rows(str(again)) == story.before
    assert plain_ids(again) == [row["exchange_id"] for row in story.before["exchanges"]]
    check(spark, story, again, moment)

    (dead,) = running_ingests(open_lake(str(other)))
    (other / INGESTS / f"{dead.ingest_id}-0.progress").write_text("7")
    swept(other)
    assert lake_rows(str(other)) == story.before
    check(spark, story, other, moment)


def test_driver_interrupted_once_it_has_landed(
    spark: "SparkSession", story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it supersedes is out of the tables after the same ingest again, or a vacuum."""
    lake, other = copied(story, tmp_path), tmp_path / "other"
    expected = [row["exchange_id"] for row in story.after["exchanges"]]

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as here:
        here.setattr(module, "compact", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ingest(spark, story.rest, str(lake))
    assert lake_rows(str(lake)) == story.after
    assert len(plain_ids(lake)) > len(expected)
    shutil.copytree(lake, other)
    assert not ingest(spark, story.rest, str(lake)).new
    assert plain_ids(lake) == expected
    swept(other)
    assert plain_ids(other) == expected


def plain_ids(lake: Path) -> list[str]:
    """Of all exchanges, as a reader has them that isn't ours."""
    return sorted(arrow_rows(str(lake / "exchanges")).column("exchange_id").to_pylist())


def test_executor_killed_in_the_middle_of_its_files(spark: "SparkSession", story: Story, tmp_path: Path) -> None:
    moment = Moment("executor", "finish", 5)
    lake = copied(story, tmp_path)
    with driver(LOCAL_CLUSTER, tmp_path / "driver") as run:
        report = run.ingest(lake, story.rest, moment)
    # A cluster has another executor do it again.
    assert report == {"new": len(story.rest), "known": 0} and not run.moment.exists()
    assert left_behind(lake)
    assert lake_rows(str(lake)) == story.after
    check(spark, story, lake, moment)


def together(*works: Any) -> None:
    """All begin at once; the first error is raised."""
    barrier, wrong = Barrier(len(works)), []

    def go(work: Any) -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            wrong.append(error)

    threads = [Thread(target=go, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


def late(monkeypatch: pytest.MonkeyPatch, count: int, *, at_seal: bool = False) -> None:
    """So many ingests have all looked at the lake for the last time before one of them commits its first table. With
    `at_seal` they have looked whose turn it is too, and all write their commit of `captures` now."""
    barrier, waited = Barrier(count), count
    at: Any = commits if at_seal else module
    name = "transaction_properties" if at_seal else "_commit"
    inner = getattr(at, name)

    def held(*arguments: Any, **named: Any) -> Any:
        nonlocal waited
        if waited and (not at_seal or any(argument[0] == commits.LANDING for argument in arguments)):
            barrier.wait(60)
            waited = 0
        return inner(*arguments, **named)

    monkeypatch.setattr(at, name, held)


def merged(*all_rows: Rows) -> Rows:
    merged_rows: Rows = {}
    for rows in all_rows:
        for name, some in rows.items():
            merged_rows[name] = sorted(
                [*merged_rows.get(name, []), *some], key=lambda row: (row["exchange_id"], repr(row))
            )
    return merged_rows


@pytest.mark.parametrize("at_seal", [False, True])
def test_two_ingests_at_once_both_land_though_they_go_on_from_the_same_ends(
    spark: "SparkSession", story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_seal: bool
) -> None:
    lake = copied(story, tmp_path)
    other = capture("quorum", tmp_path)
    late(monkeypatch, 2, at_seal=at_seal)
    together(lambda: ingest(spark, story.rest, str(lake)), lambda: ingest(spark, [other], str(lake)))
    assert lake_rows(str(lake)) == merged(story.after, read_rows(other))
    # Of two that follow the same ingest the later one began again: one line of descent.
    rows = dataset(open_lake(str(lake)), "captures").to_table(columns=["ingest_id", "follows"]).to_pylist()
    followed = [name for row in {row["ingest_id"]: row for row in rows}.values() for name in row["follows"]]
    assert len(followed) == len(set(followed)) == 2


def test_the_same_files_twice_at_once_land_once(
    spark: "SparkSession", story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = copied(story, tmp_path)
    late(monkeypatch, 2)
    together(*[lambda: ingest(spark, story.rest, str(lake))] * 2)
    assert lake_rows(str(lake)) == story.after
    swept(lake)
    assert lake_rows(str(lake)) == story.after


def test_logs_that_two_ingests_have_in_common_land_once(
    spark: "SparkSession", lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, two, three = (request_log("quorum", number, tmp_path) for number in (1, 2, 4))
    late(monkeypatch, 2)
    together(lambda: ingest(spark, [first, two], lake), lambda: ingest(spark, [two, three], lake))
    captures = dataset(open_lake(lake), "captures").to_table().column("capture_uri").to_pylist()
    assert sorted(captures) == sorted(map(str, (first, two, three)))
    assert lake_rows(lake) == merged(*map(read_rows, (first, two, three)))


soak = pytest.mark.skipif(not SOAK, reason="make soak")


each_moment = pytest.mark.parametrize("number", range(MOMENTS))


def survived(spark: "SparkSession", story: Story, folder: Path, run: Driver, moment: Moment) -> None:
    """Of a task's process: the driver goes on, whether the ingest does or not."""
    print(f"KAFKASCOPE_SEED={SEED}")
    lake = copied(story, folder)
    assert run.ingest(lake, story.rest, moment) is not None
    assert not run.moment.exists(), moment
    check(spark, story, lake, moment)


@soak
@each_moment
@pytest.mark.parametrize("master", [LOCAL, "local[2,4]"])
def test_worker_killed_at_any_moment(
    spark: "SparkSession", story: Story, tmp_path: Path, drivers: Drivers, master: str, number: int
) -> None:
    """Without a second try in the same session, and with."""
    survived(spark, story, tmp_path, drivers(master), moments("worker", TASK_STEPS)[number])


@soak
@each_moment
def test_executor_killed_at_any_moment(
    spark: "SparkSession", story: Story, tmp_path: Path, drivers: Drivers, number: int
) -> None:
    survived(spark, story, tmp_path, drivers(STANDALONE), moments("executor", TASK_STEPS)[number])


@soak
@each_moment
def test_driver_killed_at_any_moment(
    spark: "SparkSession", story: Story, tmp_path: Path, drivers: Drivers, number: int
) -> None:
    """Every other time a vacuum comes before the same ingest again."""
    print(f"KAFKASCOPE_SEED={SEED}")
    moment = moments("driver", DRIVER_STEPS)[number]
    lake = copied(story, tmp_path)
    assert drivers(LOCAL).ingest(lake, story.rest, moment) is None, moment
    if number % 2:
        assert lake_rows(str(lake)) in (story.before, story.after)
        swept(lake)
    check(spark, story, lake, moment)
