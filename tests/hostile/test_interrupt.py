"""Ctrl-C ends a command in the middle of heavy work: exit code 130 and no traceback."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.test_bounds_files import GOOD, zstd_of
from tests.support.hostile_recordings import one_way, tiny_requests

# Only a command that doesn't hear takes so long, on any machine.
DEADLINE_S = 60.0
# What a command takes to start, and some more.
BUSY_CPU_S = 1.0
# Who starts the tests in the background has made Ctrl-C something to be ignored.
START = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    " from kafkascope.cli.main import run; run()"
)
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def capture(folder: Path) -> list[str]:
    return ["read", "--stats", str(one_way(folder / "x.pcap", tiny_requests(4_000_000)))]


def lines(folder: Path) -> list[str]:
    return ["read", str(one_way(folder / "x.pcap", tiny_requests(1_000_000)))]


def log(folder: Path) -> list[str]:
    """A line of eight gigabytes out of 260 KB."""
    path = folder / "log.zst"
    path.write_bytes(zstd_of(GOOD + b"\n", b"x", 8 * 8_192))
    return ["read", str(path)]


def interrupt(command: list[str], is_ready: Callable[[subprocess.Popen[bytes]], bool]) -> tuple[int, bytes, float]:
    """(exit code, standard error, seconds until the end)"""
    child = subprocess.Popen([sys.executable, "-c", START, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + DEADLINE_S
        while not is_ready(child):
            assert child.poll() is None, "it ended before it could be interrupted"
            assert time.monotonic() < end
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, output = child.communicate(timeout=DEADLINE_S)
        return child.returncode, output, time.monotonic() - began
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("work", [capture, lines, log])
def test_heavy_work_ends(
    work: Callable[[Path], list[str]], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    code, output, seconds = interrupt(work(tmp_path), lambda child: cpu_seconds(child.pid) > BUSY_CPU_S)
    measured = f"{work.__name__}: {seconds:.2f} s after Ctrl-C"
    print(measured)
    record_property("measured", measured)
    assert code == 130, output[-500:]
    # `read` also reports what it has read so far.
    assert b"Traceback" not in output and len(output.splitlines()) <= 3


@pytest.mark.parametrize("command", ["groups", "probe", "check quorum", "describe quorum"])
def test_waiting_for_a_silent_broker_ends(command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        broker.settimeout(DEADLINE_S)
        met: list[socket.socket] = []

        def has_called(_: subprocess.Popen[bytes]) -> bool:
            met.append(broker.accept()[0])
            return bool(met[-1].recv(4))

        bootstrap = f"127.0.0.1:{broker.getsockname()[1]}"
        code, output, _ = interrupt([*command.split(), bootstrap, "--timeout", "50"], has_called)
        for connection in met:
            connection.close()
    assert code == 130, output[-500:]
    assert b"Traceback" not in output and len(output.splitlines()) <= 1
