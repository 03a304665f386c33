"""A real node starts, answers and is gone afterwards."""

import contextlib
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from lab.cluster import Cluster, free_ports
from lab.process import Process
from lab.settings import HOST
from lab.wire import call, until


@pytest.mark.heavy
def test_a_node_answers_and_an_interrupt_leaves_nothing_behind() -> None:
    with contextlib.suppress(KeyboardInterrupt), Cluster() as cluster:
        pid = cluster.nodes[1].process.pid if cluster.nodes[1].process else 0
        folder, ports = cluster.folder, cluster.ports[1].values()
        answer = call(cluster.bootstrap, "Metadata", 12, {"topics": []})
        assert [broker["nodeId"] for broker in answer["brokers"]] == [1]
        assert cluster.leader() == 1
        assert '"requestApiKeyName":"METADATA"' in cluster.nodes[1].request_log.read_text()
        os.kill(pid, 0)
        raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not folder.exists()
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex((HOST, port)) != 0


def test_a_process_dies_with_the_python_that_started_it(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from lab.process import Process\n"
        "child = Process(['sleep', '600'], Path(sys.argv[1]))\n"
        "Path(sys.argv[2]).write_text(str(child.pid)); time.sleep(600)"
    )
    pid_file = tmp_path / "pid"
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", program, str(tmp_path / "out"), str(pid_file)]
    parent = Process(command, tmp_path / "parent", environment={"PYTHONPATH": str(root)})
    pid = int(until("the child's pid", lambda: pid_file.read_text() if pid_file.exists() else None, 30))
    parent.kill()
    # a zombie that nobody has reaped yet has ended
    until("the child's end", lambda: _state(pid) in ("Z", None), 30)


def test_a_frozen_process_can_still_be_stopped(tmp_path: Path) -> None:
    with Process(["sleep", "600"], tmp_path / "out") as process:
        process.freeze()
        until("it stands still", lambda: _state(process.pid) == "T", 30)
    assert process.status == -signal.SIGTERM


def test_waiting_in_vain_names_what_was_waited_for() -> None:
    with pytest.raises(TimeoutError, match=r"the impossible: not within 0\.01 s"):
        until("the impossible", lambda: None, 0.01)


def test_free_ports_are_different_and_free() -> None:
    ports = free_ports(8)
    assert len(set(ports)) == 8
    for port in ports:
        with socket.socket() as probe:
            probe.bind((HOST, port))


def _state(pid: int) -> str | None:
    """The kernel's letter for it, None when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
