"""Where something is wrong `ingest` and `marts` say so in one line, exit with a code that fits, leave the lake be."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkascope import encode
from kafkascope.lake.home import make_lake, open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline.ingestion.ingest import ingest
from tests.pipeline.rows import lake_rows, read_rows
from tests.pipeline.test_ingest import capture, pieces
from tests.support.cli import Cli, is_one_line_error, process, without_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.heavy

SECONDS = 240
DONE, NO, WRONG_USE, BAD = range(4)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    return capture("share", folder)


Refused = Callable[..., None]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Refused:
    """One line, nothing on stdout; before there is a Spark to stop."""
    cli = Cli(capsys, monkeypatch)

    def check(code: int, says: str, *arguments: str | Path, **environment: str) -> None:
        answer = cli(*map(str, arguments), stdin=b"", **environment)
        assert is_one_line_error(answer.err) and says in answer.err, answer.err
        assert (answer.code, answer.out) == (code, "")

    return check


def test_a_path_that_is_not_there_makes_no_lake(refused: Refused, lake: str, tmp_path: Path, recording: Path) -> None:
    missing = tmp_path / "missing.pcap"
    refused(NO, f"{missing}: no such file or directory", "ingest", recording, missing, "--lake", lake)
    assert not Path(lake).exists()


def test_a_folder_without_files_makes_no_lake(refused: Refused, lake: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(NO, "this folder holds no files", "ingest", tmp_path / "empty", "--lake", lake)
    assert not Path(lake).exists()


def test_a_pattern_that_matches_nothing_makes_no_lake(refused: Refused, lake: str, recording: Path) -> None:
    refused(NO, "no files match", "ingest", recording.parent / "*.pcapng", "--lake", lake)
    assert not Path(lake).exists()


def test_a_folder_of_others_is_left_as_it_is(refused: Refused, recording: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    refused(WRONG_USE, "isn't empty and isn't a lake", "ingest", recording, "--lake", tmp_path / "home")
    refused(BAD, "isn't a kafkascope lake", "marts", tmp_path / "home")
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["letter.txt"]


def test_a_lake_that_is_a_file_is_refused(refused: Refused, recording: Path) -> None:
    refused(WRONG_USE, "a lake is a folder", "ingest", recording, "--lake", recording)


def test_marts_of_no_lake_make_none(refused: Refused, lake: str) -> None:
    refused(NO, "there is no lake here", "marts", lake)
    assert not Path(lake).exists()


def test_a_lake_of_a_newer_format_is_left_as_it_is(refused: Refused, recording: Path, lake: str) -> None:
    make_lake(lake)
    sign = Path(lake) / "_kafkascope.json"
    sign.write_text(json.dumps(json.loads(sign.read_text()) | {"format": 99}))
    before = sign.read_bytes()
    for command in (("ingest", recording, "--lake", lake), ("marts", lake)):
        refused(BAD, "a lake of format 99", *command)
    assert [(path.name, path.read_bytes()) for path in Path(lake).iterdir()] == [(sign.name, before)]


def test_following_needs_one_folder(refused: Refused, recording: Path, lake: str, tmp_path: Path) -> None:
    refused(WRONG_USE, "is a file; give --follow the folder", "ingest", recording, "--lake", lake, "--follow")
    refused(WRONG_USE, "one folder", "ingest", tmp_path, recording.parent, "--lake", lake, "--follow")
    refused(NO, "no such directory", "ingest", tmp_path / "missing", "--lake", lake, "--follow")
    assert not Path(lake).exists()


@pytest.mark.parametrize("threshold", ["share_lock_expired.recrods=5", "nothing", "share_lock_expired.records=many"])
def test_a_threshold_that_no_rule_has_is_refused(refused: Refused, recording: Path, lake: str, threshold: str) -> None:
    refused(WRONG_USE, threshold.partition("=")[0], "ingest", recording, "--lake", lake, "--threshold", threshold)
    assert not Path(lake).exists()


def test_without_java_it_says_how_to_get_one(refused: Refused, recording: Path, lake: str) -> None:
    says = "Spark needs Java 17 or newer and found none"
    refused(WRONG_USE, says, "ingest", recording, "--lake", lake, PATH="/nowhere", JAVA_HOME="")
    assert not Path(lake).exists()


def test_a_java_home_without_java_is_named(refused: Refused, recording: Path, lake: str, tmp_path: Path) -> None:
    refused(WRONG_USE, f"JAVA_HOME is {tmp_path}", "ingest", recording, "--lake", lake, JAVA_HOME=str(tmp_path))


@pytest.mark.parametrize(
    ("message", "version"),
    [
        ('openjdk version "11.0.22" 2024-01-16', "11"),
        ('java version "1.8.0_402"', "8"),
        ("no Java at all", "of unknown version"),
    ],
)
def test_too_old_a_java_is_named_with_its_version(
    refused: Refused, recording: Path, lake: str, tmp_path: Path, message: str, version: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{message}' >&2\n")
    java.chmod(0o755)
    says = f"{java} is Java {version}; Spark needs 17 or newer"
    refused(WRONG_USE, says, "ingest", recording, "--lake", lake, PATH=str(java.parent), JAVA_HOME="")
    assert not Path(lake).exists()


def test_good_files_land_and_bad_ones_are_named(lake: str, recording: Path) -> None:
    folder = recording.parent
    good = pieces(recording, 3, seed=1)
    corrupt = folder / "share-001-corrupt.pcap"
    corrupt.write_bytes(b"\0" * 1000)
    frames = pa.table({"message": ["ShareFetchRequest"], "version": [2], "bytes": [encode("ShareFetchRequest", 2, {})]})
    pq.write_table(frames, folder / "frames.parquet")
    half = folder / "half.parquet"
    half.write_bytes((folder / "frames.parquet").read_bytes()[:-20])
    whole = read_rows(recording)
    recording.unlink()

    done = process("ingest", str(folder), "--lake", lake, "--no-marts", timeout=SECONDS)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == BAD, err
    assert len([line for line in out.splitlines() if line.startswith("not read: ")]) == 2
    assert f"not read: {corrupt} isn't a recording" in out
    assert f"not read: {half}: " in out
    assert without_progress(err) == ["starting Spark", "reading"]
    by_table = lake_rows(lake)
    plain = [row for row in by_table["share_fetch_request"] if row["request_at"] is None]
    assert len(plain) == 1
    by_table["share_fetch_request"].remove(plain[0])
    assert by_table == whole
    landed = dataset(open_lake(lake), "captures").to_table().column("capture_uri").to_pylist()
    assert sorted(landed) == sorted(map(str, [*good, folder / "frames.parquet"]))


def test_bad_files_alone_leave_the_lake_empty(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    corrupt = tmp_path / "corrupt.pcap"
    corrupt.write_bytes(b"\0" * 1000)
    done = ingest(spark, [corrupt], lake)
    assert list(done.bad) == [str(corrupt)] and not done.new
    assert lake_rows(lake) == {}
    assert ingest(spark, [corrupt], lake).bad == done.bad


Disk = Callable[[str], Path]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small disk, mounted as the options say; root alone can."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = False

    def mount(options: str) -> Path:
        nonlocal mounted
        again = "remount," if mounted else ""
        command = ["mount", "-t", "tmpfs", "-o", f"{again}{options}", "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"a disk cannot be mounted here: {done.stderr.strip()}")
        mounted = True
        return place

    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("only root can mount a small disk")
    yield mount
    if mounted:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_leaves_the_lake_as_before_and_the_next_run_completes_it(
    spark: "SparkSession", disk: Disk, recording: Path
) -> None:
    lake = disk("size=256k") / "lake"
    done = process("ingest", str(recording), "--lake", str(lake), timeout=SECONDS)
    *before, last = without_progress(done.stderr.decode())
    assert before == ["starting Spark", "reading"]
    assert is_one_line_error(f"{last}\n") and str(lake) in last and "no space left on device" in last
    assert (done.returncode, done.stdout) == (BAD, b"")
    assert lake_rows(str(lake)) == {}
    assert not list(lake.rglob("*.parquet")) and not list((lake / "_ingests").iterdir())
    disk("size=64m")
    ingest(spark, [recording], lake)
    assert lake_rows(str(lake)) == read_rows(recording)


def test_a_disk_that_cannot_be_written_to_is_named(refused: Refused, disk: Disk, recording: Path) -> None:
    lake = disk("size=1m") / "lake"
    disk("ro")
    refused(BAD, f"{lake}/_kafkascope.json: read-only file system", "ingest", recording, "--lake", lake)
    assert not lake.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(refused: Refused, recording: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    refused(BAD, "no permission", "ingest", recording, "--lake", closed / "lake")
