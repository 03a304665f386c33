"""`--follow`: a folder that fills gives the rows of one ingest over all of it, however often it was stopped."""

import lzma
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafkascope.cli.spark.marts_state import are_old
from kafkascope.lake.home import make_lake, open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.write.heartbeat import INGESTS
from kafkascope.pipeline.ingestion.follow import complete_files, start
from kafkascope.pipeline.ingestion.ingest import Ingested, Options, ingest
from tests.pipeline.rows import lake_rows, read_rows
from tests.pipeline.test_ingest import HERE, capture, pieces
from tests.support.cli import COMMAND, hear_interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SECONDS = 300.0
# No file of a test is as old.
NEVER = 3600.0


class Following:
    """A folder, and a query over it that can be stopped and started again."""

    def __init__(self, spark: "SparkSession", folder: Path, lake: str) -> None:
        self.folder = folder
        self.batches: list[Ingested] = []
        self._spark, self._lake = spark, make_lake(lake)
        self.query: StreamingQuery | None = None

    def start(self, quiet: float = NEVER) -> None:
        self.query = start(self._spark, (str(self.folder),), self._lake, Options(), self.batches.append, quiet=quiet)

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()

    def new(self) -> list[str]:
        return [Path(uri).name for batch in self.batches for uri in batch.new]

    def until(self, holds: Callable[[], object]) -> None:
        def alive() -> object:
            assert self.query is not None
            assert self.query.isActive, self.query.exception()
            return holds()

        until(alive)

    def reading(self) -> bool:
        """An ingest has begun."""
        return any(info.base_name.endswith(".json") for info in self._lake.place.child(INGESTS).inside())


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"not within {SECONDS:g} s"
        time.sleep(0.05)


@pytest.fixture
def following(spark: "SparkSession", lake: str, tmp_path: Path) -> Iterator[Following]:
    folder = tmp_path / "filled"
    folder.mkdir()
    made = Following(spark, folder, lake)
    yield made
    made.stop()


def test_files_that_arrive_while_it_runs_and_while_it_is_stopped_are_one_recording(
    following: Following, lake: str, tmp_path: Path
) -> None:
    path = capture("share", tmp_path)
    cut = pieces(path, 5, seed=11)

    def arrive(piece: Path) -> None:
        piece.rename(following.folder / piece.name)

    following.start()
    arrive(cut[0])
    arrive(cut[1])
    following.until(lambda: following.new() == ["share-000.pcap"])
    arrive(cut[2])
    following.until(lambda: following.new() == ["share-000.pcap", "share-001.pcap"])
    following.stop()
    arrive(cut[3])
    arrive(cut[4])
    following.start(quiet=0)
    following.until(lambda: len(following.new()) == 5)
    assert sorted(following.new()) == [piece.name for piece in cut]
    assert not any(batch.bad for batch in following.batches)
    assert lake_rows(lake) == read_rows(path)


def test_stopped_within_a_file_it_begins_that_file_again(following: Following, lake: str, tmp_path: Path) -> None:
    path = capture("streams", tmp_path)
    for piece in pieces(path, 3, seed=2):
        piece.rename(following.folder / piece.name)
    following.start(quiet=0)
    following.until(following.reading)
    following.stop()
    following.start(quiet=0)
    following.until(lambda: lake_rows(lake) == read_rows(path))


def test_a_log_is_taken_when_it_is_rotated_and_its_new_names_add_nothing(
    spark: "SparkSession", following: Following, lake: str, tmp_path: Path
) -> None:
    lines = lzma.decompress((HERE / "share" / "request-1.log.xz").read_bytes()).splitlines(keepends=True)
    third = len(lines) // 3
    parts = [lines[:third], lines[third : 2 * third], lines[2 * third :]]
    whole = tmp_path / "whole"
    whole.mkdir()
    for number, part in enumerate(parts):
        (whole / f"{number}.log").write_bytes(b"".join(part))
    log = following.folder / "kafka-request.log"

    def rotate() -> None:
        for number in (2, 1):
            older = log.with_name(f"{log.name}.{number}")
            if older.exists():
                older.rename(log.with_name(f"{log.name}.{number + 1}"))
        log.rename(log.with_name(f"{log.name}.1"))

    following.start()
    for part in parts:
        if log.exists():
            rotate()
        log.write_bytes(b"".join(part))
    following.until(lambda: len(following.new()) == 2)
    following.stop()
    following.start(quiet=0)
    following.until(lambda: len(following.new()) == 3)
    assert lake_rows(lake) == read_rows(*sorted(whole.iterdir()))
    ingest(spark, [whole], other := f"{lake}-batch")
    assert lake_rows(other) == lake_rows(lake)


def test_a_log_that_was_quiet_in_mid_line_goes_on_under_its_next_name(
    following: Following, lake: str, tmp_path: Path
) -> None:
    content = lzma.decompress((HERE / "share" / "request-1.log.xz").read_bytes())
    whole = tmp_path / "whole.log"
    whole.write_bytes(content)
    half = len(content) // 2
    assert b"\n" not in content[half - 1 : half + 1]
    log = following.folder / "kafka-request.log"
    log.write_bytes(content[:half])
    following.start(quiet=0)
    following.until(lambda: len(following.new()) == 1)
    following.stop()
    with log.open("ab") as file:
        file.write(content[half:])
    log.rename(log.with_name(f"{log.name}.1"))
    following.start(quiet=0)
    following.until(lambda: len(following.new()) == 2)
    assert lake_rows(lake) == read_rows(whole)


def test_the_newest_file_is_not_complete_until_it_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "b.pcap").write_bytes(b"whole")
    assert complete_files(str(tmp_path), NEVER) == []
    until(lambda: newer(tmp_path / "a.pcap", tmp_path / "b.pcap"))
    assert [Path(name).name for _, name in complete_files(str(tmp_path), NEVER)] == ["b.pcap"]
    assert [Path(name).name for _, name in complete_files(str(tmp_path), 0)] == ["b.pcap", "a.pcap"]


def test_an_old_file_that_is_moved_in_is_the_newest(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "now.pcap").write_bytes(b"whole")
    old = tmp_path / "old.pcap"
    until(lambda: newer(old, folder / "now.pcap"))
    os.utime(old, (0, 0))
    old.rename(folder / "old.pcap")
    assert [Path(name).name for _, name in complete_files(str(folder), 0)] == ["now.pcap", "old.pcap"]


def newer(path: Path, than: Path) -> bool:
    """Written again until the clock of the filesystem has gone on."""
    path.write_bytes(b"half")
    return path.stat().st_ctime_ns > than.stat().st_ctime_ns


def test_hidden_files_and_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".writing").write_bytes(b"")
    (tmp_path / "_temporary").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    assert complete_files(str(tmp_path), 0) == []


def test_a_name_that_is_no_text_is_told_and_the_others_are_read(
    following: Following, lake: str, tmp_path: Path
) -> None:
    path = capture("share", tmp_path)
    try:
        (following.folder / "\udcff.pcap").write_bytes(path.read_bytes())
    except OSError:
        pytest.skip("this file system takes no such name")
    following.start(quiet=0)
    following.until(lambda: following.batches)
    path.rename(following.folder / path.name)
    following.until(following.new)
    (problem,) = following.batches[0].bad.values()
    assert problem == f"{following.folder}/\\xff.pcap: the name isn't UTF-8; rename the file"
    assert lake_rows(lake) == read_rows(following.folder / path.name)


def test_a_link_to_itself_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "loop.pcap").symlink_to("loop.pcap")
    (tmp_path / "a.pcap").write_bytes(b"whole")
    assert [Path(name).name for _, name in complete_files(str(tmp_path), 0)] == ["a.pcap"]


@pytest.mark.heavy
def test_the_command_says_what_it_read_and_brings_the_marts_up_to_date_at_its_end(lake: str, tmp_path: Path) -> None:
    """It ends with Ctrl-C. The first batch has its marts at once, the second within the hour, or at the end."""
    path = capture("share", tmp_path)
    folder = tmp_path / "filled"
    folder.mkdir()
    first, second, third = pieces(path, 3, seed=5)
    first.rename(folder / first.name)
    second.rename(folder / second.name)
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        command = subprocess.Popen(
            [COMMAND, "ingest", str(folder), "--lake", lake, "--follow", "--marts-every", "3600"],
            stdout=stdout,
            stderr=stderr,
            preexec_fn=hear_interrupts,
            start_new_session=True,
        )

    def printed(word: str, times: int) -> bool:
        return command.poll() is not None or out.read_text().count(word) >= times

    try:
        until(lambda: printed("marts: ", 1))
        read = out.read_text().count(" read: ")
        third.rename(folder / third.name)
        until(lambda: printed(" read: ", read + 1))
        assert out.read_text().count("marts: ") == 1
        # As a terminal does it: all that the command has started hear it too.
        os.killpg(command.pid, signal.SIGINT)
        assert command.wait(SECONDS) == 130, err.read_text()
    finally:
        command.kill()
    assert "Traceback" not in err.read_text() and "Exception" not in err.read_text()
    assert "WARN" not in err.read_text() and "ERROR" not in err.read_text()
    assert out.read_text().count("marts: ") == 2 and "next:" not in out.read_text()
    assert not are_old(open_lake(lake))
    # On a slow machine the newest file may have become quiet meanwhile.
    read_files = dataset(open_lake(lake), "captures").to_table(columns=["capture_uri"]).column(0).to_pylist()
    assert len(read_files) >= 2
    assert lake_rows(lake) == read_rows(*map(Path, sorted(read_files)))
