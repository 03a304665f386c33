"""The commands as people run them: every view as text and JSON, `--watch` in a pipe and on a terminal."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from kafkascope.cli.commands.live.describe import run as describe
from kafkascope.cli.main import main
from lab.cluster import Cluster
from lab.stage import Stage
from tests.client.describe.live import create_topics
from tests.support.cli import COMMAND, hear_interrupts

SECONDS = 60.0
TOPIC = "crates"


@pytest.fixture(scope="module")
def where(stage: Stage) -> str:
    create_topics(stage.cluster.bootstrap, (TOPIC, 3, 3))
    return stage.cluster.bootstrap


@pytest.mark.parametrize("view", sorted([*describe.commands, "groups"]))
def test_every_view_is_shown_and_printed_as_json(view: str, where: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["groups", where] if view == "groups" else ["describe", view, where]
    command += [TOPIC] if view == "topic" else []
    assert main(command) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() and shown.err == ""
    assert main([*command, "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert seen.pop("observed_at").endswith("Z") and seen


def test_cluster_names_the_true_controller(quorum_cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "cluster", quorum_cluster.bootstrap, "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert seen["controller_id"] == quorum_cluster.leader()
    assert [(node["node_id"], node["roles"]) for node in seen["nodes"]] == [
        *((number, ["broker", "controller"]) for number in (1, 2, 3)),
        (4, ["broker"]),
    ]
    assert seen["metadata_version"] == "4.3-IV0" and seen["gaps"] == []


def test_apis_look_like_the_release_that_runs(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "apis", where, "--client", "java 0.10.2", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert {tuple(node["releases"]) for node in seen["nodes"]} == {("4.3",)}
    assert seen["oldest_client"] == "2.1"
    assert "Produce" in {unserved["api"] for unserved in seen["clients"][0]["unserved"]}


def test_topic_that_is_not_there_leaves_the_others_and_code_1(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "topic", where, TOPIC, "nowhere"]) == 1
    captured = capsys.readouterr()
    assert f"Topic {TOPIC}" in captured.out
    assert "UNKNOWN_TOPIC_OR_PARTITION (3)" in captured.err and len(captured.err.splitlines()) == 1


class Watch:
    """A command with `--watch` in a process of its own, on a pipe or on a terminal."""

    def __init__(self, command: list[str], terminal: bool) -> None:
        self._mine, theirs = pty.openpty() if terminal else os.pipe()
        environment = {**os.environ, "COLUMNS": "100", "LINES": "20", "TERM": "xterm"}
        environment.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            [COMMAND, *command],
            stdout=theirs,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env=environment,
            preexec_fn=hear_interrupts,
        )
        os.close(theirs)
        self.output = b""

    def until(self, complete: Callable[[bytes], bool]) -> bytes:
        deadline = time.monotonic() + SECONDS
        while not complete(self.output):
            assert time.monotonic() < deadline, self.output
            if not self._read():
                raise AssertionError(f"it ended: {self.output!r}")
        return self.output

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        while self._read():
            pass
        code = self.process.wait(SECONDS)
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read()
        self.process.stderr.close()
        os.close(self._mine)
        return code

    def _read(self) -> bool:
        ready, _, _ = select.select([self._mine], [], [], SECONDS)
        try:
            piece = os.read(self._mine, 65536) if ready else b""
        except OSError:  # a terminal whose other side is closed
            piece = b""
        self.output += piece
        return bool(piece)


def test_watch_prints_block_after_block_into_a_pipe(where: str) -> None:
    watch = Watch(["describe", "quorum", where, "--watch", "0.2"], terminal=False)
    output = watch.until(lambda text: text.count(b"Quorum, led by node") >= 3)
    assert watch.interrupt() == 130 and watch.errors == b""
    assert b"\033[" not in output and output.count(b", every 0.2 s\n") >= 3


def test_watch_prints_a_line_of_json_for_each_look(where: str) -> None:
    watch = Watch(["groups", where, "--json", "--watch", "0.2"], terminal=False)
    output = watch.until(lambda text: text.count(b"\n") >= 2)
    assert watch.interrupt() == 130
    times = [json.loads(line)["observed_at"] for line in output.splitlines()[:2]]
    assert times[0] < times[1]


def test_watch_redraws_in_place_on_a_terminal(where: str) -> None:
    watch = Watch(["describe", "quorum", where, "--watch", "0.2"], terminal=True)
    watch.until(lambda text: text.count(b"\033[H") >= 3)
    assert watch.interrupt() == 130
    output = watch.output
    # once hidden and cleared, then drawn over; the cursor comes back
    assert output.startswith(b"\033[?25l\033[2J\033[H") and output.count(b"\033[2J") == 1
    assert output.rstrip().endswith(b"\033[?25h")
    # no look is taller than the window, or the next would not cover it
    assert max(look.count(b"\n") for look in output.split(b"\033[H")) < 20


def test_watch_outlives_a_broker_that_is_away(cluster: Cluster) -> None:
    watch = Watch(
        ["describe", "features", cluster.bootstrap, "--json", "--watch", "0.2", "--timeout", "1"], terminal=False
    )
    watch.until(lambda text: text.count(b"\n") >= 1)
    cluster.freeze(1)
    try:
        assert watch.process.stderr is not None
        assert b"retrying" in watch.process.stderr.readline()
    finally:
        cluster.thaw(1)
    before = watch.output.count(b"\n")
    watch.until(lambda text: text.count(b"\n") > before)
    assert watch.interrupt() == 130
