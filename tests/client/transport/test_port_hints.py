"""Brokers of strangers, met by the commands themselves: each ends in its time, with one line and in little memory."""

import os
import re
import signal
import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from kafkascope.limits import MAX_BROKERS, MAX_LOGIN_FRAME_BYTES
from tests.client.evil_broker import LARGE_API_VERSIONS, MANY, MILLION, evil

# Beyond which only a hang gets; and what a command is given where it does not wait for it.
HANGS = 120.0
SECONDS = "60"
# What a command may take beyond what it takes with a usual broker.
MORE_MEMORY_MB = 200


class Ended:
    """What became of a command. `peak_mb` is that of the process from its start, since it was executed anew."""

    def __init__(self, code: int, out: str, err: str, peak_mb: int) -> None:
        self.code, self.out, self.err, self.peak_mb = code, out, err, peak_mb

    @property
    def lines(self) -> list[str]:
        assert "Traceback" not in self.err, self.err
        return self.err.splitlines()


def started(*arguments: str) -> "Popen[str]":
    command = [sys.executable, "-c", "from kafkascope.cli.main import run; run()", *arguments]
    environment = {**os.environ, "COLUMNS": "100"}
    return Popen(command, stdout=PIPE, stderr=PIPE, text=True, env=environment)


def ended(process: "Popen[str]") -> Ended:
    """Polled while it runs, since a process that is gone tells nothing."""
    until, peak = time.monotonic() + HANGS, 0
    status = Path(f"/proc/{process.pid}/status")
    try:
        while process.poll() is None and time.monotonic() < until:
            match = re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(), re.MULTILINE)
            peak = max(peak, int(match[1]) // 1024) if match else peak
            time.sleep(0.005)
        assert process.returncode is not None, "it hangs"
    finally:
        process.kill()
        out, err = process.communicate()
    return Ended(process.returncode, out, err, peak)


def ran(*arguments: str, seconds: str = SECONDS) -> Ended:
    return ended(started(*arguments, "--timeout", seconds))


@pytest.fixture(scope="module")
def usual_mb() -> int:
    with evil("usual") as host:
        peak = ran("groups", host).peak_mb
    assert peak > 0
    return peak


@pytest.mark.parametrize("command", ["groups", "check all", "describe features", "describe cluster", "probe"])
def test_of_30000_brokers_most_are_left_out_and_counted(command: str, usual_mb: int) -> None:
    with evil("many") as host:
        outcome = ran(*command.split(), host)
    assert f"names {MANY:,} brokers; {MANY - MAX_BROKERS:,} of them are left out" in outcome.lines[0]
    assert "0 isn't a port" in outcome.lines[-1]
    assert (outcome.code, len(outcome.lines)) == (4, 2)
    assert outcome.peak_mb < usual_mb + MORE_MEMORY_MB


def test_brokers_that_are_not_there_are_not_waited_for_one_after_the_other(usual_mb: int) -> None:
    """Each would be tried for two seconds, sixteen at a time: four minutes."""
    with evil("many-dead") as host:
        outcome = ran("groups", host, seconds="2")
    assert "node 0 at" in outcome.lines[-1] or "no answer" in outcome.lines[-1]
    assert (outcome.code, len(outcome.lines) <= 2) == (4, True)
    assert outcome.peak_mb < usual_mb + MORE_MEMORY_MB


def test_a_million_brokers_are_counted_too(usual_mb: int) -> None:
    with evil("million") as host:
        outcome = ran("groups", host)
    assert f"names {MILLION:,} brokers; {MILLION - MAX_BROKERS:,} of them are left out" in outcome.lines[0]
    assert (outcome.code, len(outcome.lines)) == (4, 2)
    assert outcome.peak_mb < usual_mb + MORE_MEMORY_MB


def test_a_response_that_would_take_all_memory_is_refused_by_its_place(usual_mb: int) -> None:
    with evil("topics") as host:
        outcome = ran("call", host, "Metadata")
    (line,) = outcome.lines
    assert re.search(rf"Metadata v12 at {host}: the response of [\d,]+ bytes takes more memory than the limit", line)
    assert outcome.code == 3
    assert outcome.peak_mb < usual_mb + MORE_MEMORY_MB


def test_a_large_answer_before_the_login_is_refused_by_its_size(usual_mb: int) -> None:
    with evil("api-versions") as host:
        outcome = ran("groups", host)
    (line,) = outcome.lines
    assert f"{host}: sent a response of {LARGE_API_VERSIONS:,} bytes before the login finished" in line
    assert f"the limit there is {MAX_LOGIN_FRAME_BYTES:,}" in line
    assert outcome.code == 4
    assert outcome.peak_mb < usual_mb + 20


@pytest.mark.parametrize(
    ("mode", "message"), [("port-99999", "99999 isn't a port"), ("port-negative", "-1 isn't a port")]
)
def test_a_port_that_is_none_is_one_line(mode: str, message: str) -> None:
    with evil(mode) as host:
        listed, coordinated = ran("groups", host), ran("describe", "group", host, "g")
    for outcome in (listed, coordinated):
        (line,) = outcome.lines
        assert "node 1 at 127.0.0.1:" in line and message in line
        assert "tried for" not in line  # it is no better at the next try
        assert outcome.code == 4


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_a_signal_ends_a_command_among_brokers_without_end(number: signal.Signals, code: int) -> None:
    with evil("many-dead") as host:
        process = started("describe", "features", host, "--timeout", "3600")
        # The line tells that it is in the midst of them.
        assert process.stderr is not None and "left out" in process.stderr.readline()
        process.send_signal(number)
        outcome = ended(process)
    assert outcome.code == code
    assert not outcome.lines


STOPPED_TWICE = """
import asyncio, os, signal
from kafkascope.cli.live.observe_run import _stopping

async def main():
    async with _stopping() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.event.wait()  # a commit that does not end
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_second_signal_ends_an_observer_that_does_not_get_its_commit_done() -> None:
    outcome = ended(Popen([sys.executable, "-c", STOPPED_TWICE], stdout=PIPE, stderr=PIPE, text=True))
    assert outcome.code == 130
    assert outcome.lines == ["kafkascope: stopped before the last polls were committed to the lake"]
