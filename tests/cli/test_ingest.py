"""`ingest`: an account in text and JSON, one line for what goes wrong, Ctrl-C that leaves nothing behind."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import gettempdir

import pytest

from kafkascope.cli.spark.ingest_account import account_json, account_lines, findings_text
from kafkascope.cli.spark.session import bar_line, progress_text, timings
from kafkascope.lake.home import SIGN
from kafkascope.pipeline.ingestion.file_accounts import FileAccount
from kafkascope.pipeline.ingestion.ingest import Ingested
from kafkascope.pipeline.ingestion.progress import IngestProgress
from tests.support.cli import COMMAND, Cli, hear_interrupts, is_one_line_error, process, without_progress

CAPTURES = Path(__file__).parents[1] / "captures"
SHARE = str(CAPTURES / "share" / "capture.pcap.xz")
# Ends a run that hangs, and is never reached by one that works.
HANGS_SECONDS = 300


def ingest(*arguments: str, temporary: str = gettempdir()) -> "subprocess.CompletedProcess[bytes]":
    """In a process of its own: a session in this one is other tests'."""
    return process("ingest", *arguments, timeout=HANGS_SECONDS, TMPDIR=temporary)


@pytest.mark.heavy
def test_an_account_of_what_was_read(tmp_path: Path) -> None:
    lake = str(tmp_path / "traffic")
    (tmp_path / "empty.pcap").touch()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = ingest(SHARE, str(tmp_path / "empty.pcap"), "--lake", lake, "--cores", "1", temporary=str(temporary))
    assert done.returncode == 3
    lines_printed = done.stdout.decode().splitlines()
    assert lines_printed[0].startswith(
        "1 file (32.5 kB) read: 1,518 packets, 404 exchanges, 2026-11-15 12:07:19 – 12:07:38 UTC"
    )
    assert f"not read: {tmp_path / 'empty.pcap'} is empty: nothing was recorded" in lines_printed
    assert any(line.startswith("marts: ") and "warnings" in line for line in lines_printed)
    assert lines_printed[-1] == f"next: kafkascope report {lake}"
    # Nothing of Spark's is to be seen.
    assert without_progress(done.stderr.decode()) == ["starting Spark", "reading", "building the marts"]
    assert os.listdir(temporary) == []


@pytest.mark.parametrize("heard", ["starting Spark", "reading", "building the marts"])
@pytest.mark.heavy
def test_ctrl_c_is_one_line_and_leaves_nothing_behind(tmp_path: Path, heard: str) -> None:
    lake, temporary = tmp_path / "traffic", tmp_path / "tmp"
    temporary.mkdir()
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [COMMAND, "ingest", SHARE, "--lake", str(lake), "--cores", "1"],
        stdout=pipe, stderr=pipe, env={**os.environ, "TMPDIR": str(temporary)}, start_new_session=True,
        preexec_fn=hear_interrupts,
    ) as child:  # fmt: skip
        guard = threading.Timer(HANGS_SECONDS, child.kill)
        guard.start()
        assert child.stderr is not None and child.stdout is not None
        while child.stderr.readline().decode().strip() != heard:
            assert child.poll() is None
        # As a terminal does: to all of them.
        os.killpg(child.pid, signal.SIGINT)
        # Both end only when the JVM, which has them too, is gone.
        errors, out = child.stderr.read().decode(), child.stdout.read()
        code = child.wait()
        guard.cancel()
    assert (code, out) == (130, b"")
    landed = heard == "building the marts"
    rest = f"the recordings are in the lake, run kafkascope marts {lake}" if landed else "run the same command again"
    assert errors == f"interrupted; {rest} for the rest\n"
    assert os.listdir(temporary) == []
    signs = lake / "_ingests"
    assert not signs.exists() or os.listdir(signs) == []


# Ctrl-C reaches the JVM too, which can end while the session waits for it to stop. Frozen, it takes the call and dies.
JVM_DIES_IN_STOP = """
import os, signal, subprocess, sys, threading
from kafkascope.cli.spark.session import ProgressLine, spark_session
with spark_session(1, ProgressLine()):
    jvm = int(subprocess.check_output(["pgrep", "-P", str(os.getpid()), "java"]))
    os.kill(jvm, signal.SIGSTOP)
    threading.Timer(1, os.kill, (jvm, signal.SIGKILL)).start()
print("left", file=sys.stderr)
"""


@pytest.mark.heavy
def test_a_jvm_that_dies_while_its_session_stops_is_left_without_a_warning() -> None:
    done = subprocess.run([sys.executable, "-c", JVM_DIES_IN_STOP], capture_output=True, timeout=HANGS_SECONDS)
    assert done.stderr.decode().splitlines() == ["starting Spark", "left"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["none.pcap", "--lake", "new"], 1, "none.pcap: no such file or directory"),
        (["empty", "--lake", "new"], 1, "this folder holds no files"),
        (["nothing-*.pcap", "--lake", "new"], 1, "no files match"),
        ([SHARE], 2, "--lake is missing"),
        (["--lake", "new"], 2, "URI… is missing"),
        (["", "--lake", "new"], 2, "an empty path"),
        ([SHARE, "--lake", ""], 2, "an empty path"),
        ([SHARE, "--lake", "a%20b"], 2, "the name of a lake can't contain '%20'"),
        ([SHARE, "--lake", "full"], 2, "isn't empty and isn't a lake"),
        ([SHARE, "--lake", "full/file"], 2, "a file; a lake is a folder"),
        ([SHARE, "--lake", "newer"], 3, "a lake of format 99"),
        ([SHARE, "--lake", "new", "--port", "70000"], 2, "70000 isn't a port"),
        ([SHARE, "--lake", "new", "--cores", "0"], 2, "--cores: 0 is less than 1"),
        (
            [SHARE, "--lake", "new", "--threshold", "records"],
            2,
            "isn't NAME=NUMBER; write it as share_lock_expired.records=5",
        ),
        ([SHARE, "--lake", "new", "--threshold", "share.x=1"], 2, "unknown threshold share.x"),
        ([SHARE, "--lake", "new", "--no-marts", "--threshold", "client_throttled.ms=1"], 2, "--no-marts makes none"),
        ([SHARE, "--lake", "new", "--vacuum-after", "soon"], 2, "--vacuum-after: 'soon' "),
        ([SHARE, "--lake", "new", "--marts-every", "9"], 2, "--marts-every needs --follow"),
        ([".", "--lake", "new", "--follow", "--no-marts", "--marts-every", "9"], 2, "doesn't work with --no-marts"),
        ([SHARE, "--lake", "new", "--follow"], 2, "is a file; give --follow the folder"),
        (["empty", "full", "--lake", "new", "--follow"], 2, "--follow takes one folder"),
        (["nowhere", "--lake", "new", "--follow"], 1, "no such directory"),
    ],
)
def test_wrong_use_and_bad_input_are_one_line_before_spark_starts(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "full", "newer"):
        Path(name).mkdir()
    Path("full", "file").touch()
    Path("newer", SIGN).write_text('{"format": 99, "id": "x"}')
    answer = cli("ingest", *arguments)
    assert answer.code == code, answer
    assert is_one_line_error(answer.err) and words in answer.err
    assert not Path("new").exists()


@pytest.mark.parametrize("command", [["ingest", SHARE, "--lake", "new"], ["marts", "new"]], ids=["ingest", "marts"])
def test_without_java_it_is_one_line_and_nothing_is_made(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    answer = cli(*command)
    assert answer.code == 2
    assert is_one_line_error(answer.err) and "Java 17 or newer" in answer.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["ingest", SHARE, "--lake", "new"], ["marts", "new"]], ids=["ingest", "marts"])
def test_without_the_extra_it_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    answer = cli(*command)
    assert answer.code == 2
    assert answer.err == f"kafkascope: {command[0]} needs pyspark: pip install 'kafkascope[spark]'\n"


def lines(done: Ingested) -> list[str]:
    return account_lines(done, "my lake", {"findings": 0}, {"critical": 0}, {"reading": 2.0})


def test_the_account_names_files_that_came_too_late() -> None:
    done = Ingested("5d1f", new=["a.pcap"], apart=["a.pcap"], rows={"exchanges": 7})
    notice = "a.pcap begins before files that were ingested earlier, so it's read on its own"
    assert [line.startswith(notice) for line in lines(done)].count(True) == 1
    assert account_json(done, "my lake", None, None, {})["apart"] == ["a.pcap"]


def test_the_account_tells_losses_and_what_was_left_alone() -> None:
    done = Ingested(
        "5d1f",
        new=["a.pcap"],
        known=["b.pcap", "c.pcap"],
        bad={f"{number}.pcap": f"{number}.pcap is empty" for number in range(12)},
        rows={"exchanges": 7},
        exchanges=7,
        quarantined=2,
        bytes=1_000,
        accounts={"a.pcap": FileAccount(packets=90, lost_bytes=512, lost_places=2)},
        statuses={"unanswered": 3},
        problems={"cut": 1},
        protocols={"kafka": (1, 100), "tls": (4, 900)},
    )
    printed = lines(done)
    assert printed[:5] == [
        "1 file (1.0 kB) read: 90 packets, 7 exchanges",
        "  3 without a response",
        "  lost: 512 B in 2 places of Kafka streams",
        "  problems in the files: cut (1)",
        "  2 rows in the table quarantine: frames that could not be read, and why",
    ]
    assert printed[5] == "  not Kafka: 4 connections TLS (900 B)"
    assert "kafkascope ingest kafka-request.log" in printed[6]
    assert "2 files already in the lake: nothing added from them" in printed
    assert "not read: 2 more; --json names them all" in printed
    assert printed[-3:] == ["marts: no findings", "took 2 s: reading 2 s", "next: kafkascope report 'my lake'"]


def test_plain_frames_are_told_as_such() -> None:
    done = Ingested("5d1f", new=["seeds.txt"], rows={"x": 4}, bytes=80, accounts={"seeds.txt": FileAccount(frames=4)})
    assert lines(done)[0] == "1 file (80 B) read: 4 plain frames, 0 exchanges"


def test_findings_are_told_by_severity() -> None:
    assert findings_text({"critical": 2, "warning": 1, "info": 0}) == "3 findings: 2 critical, 1 warning"
    assert findings_text({"critical": 0, "warning": 0, "info": 2}) == "2 findings: 2 notes"


def test_the_bar_has_bytes_files_rate_time_left_and_frames() -> None:
    half = IngestProgress(
        files=3, total_bytes=2_000_000_000, read_bytes=500_000_000, frames=1_234_567, exchanges=617_000
    )
    assert progress_text(half, 5) == "25% of 2.0 GB in 3 files, 100 MB/s, 15 s left, 1,234,567 frames"
    assert progress_text(half._replace(frames=0), 5).endswith("15 s left, 617,000 exchanges")
    assert bar_line(half, 5, 119) == f"[#####...............] {progress_text(half, 5)}"


def test_lines_of_progress_are_told_from_the_others() -> None:
    text = progress_text(IngestProgress(3, 1_200_000_000, 240_000_000, 7), 31)
    assert without_progress(f"starting Spark\nreading\nreading: {text}\nbuilding the marts\n") == [
        "starting Spark",
        "reading",
        "building the marts",
    ]


def test_the_bar_gives_way_in_a_narrow_window() -> None:
    half = IngestProgress(files=3, total_bytes=2_000_000_000, read_bytes=500_000_000, exchanges=1_234_567)
    for room in range(len(progress_text(half, 5)), 120):
        assert len(bar_line(half, 5, room)) <= room
    assert bar_line(half, 5, 70) == progress_text(half, 5)


def test_the_bar_knows_no_rest_before_the_first_byte_and_none_after_the_last() -> None:
    start = IngestProgress(files=1, total_bytes=1_000)
    assert progress_text(start, 7) == "0% of 1.0 kB in 1 file, 7 s"
    assert progress_text(start._replace(read_bytes=1_000), 10).endswith("100 B/s, 0 exchanges, writing")
    assert progress_text(IngestProgress(files=1, total_bytes=0), 3) == "0% of 0 B in 1 file, 3 s"


def test_steps_are_told_with_their_time() -> None:
    assert timings({"starting Spark": 4.23, "reading": 130}) == "2 min 14 s: starting Spark 4.2 s, reading 2 min 10 s"
