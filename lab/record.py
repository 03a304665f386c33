"""Records a recipe, `python -m lab.record NAME OUT`: capture, request logs, truth and a description."""

import argparse
import datetime
import json
import lzma
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lab.cluster import Cluster
from lab.jars import JAVA_CLIENTS, KAFKA, PYTHON_CLIENTS
from lab.recipes import RECIPES, Recipe
from lab.server_log import raft_roles
from lab.stage import Stage
from lab.tcpdump import Recording

# what a recording may hold: the repository carries it for ever
MAX_FILE_BYTES = 2_000_000


def record(name: str, out: Path) -> dict[str, Any]:
    """The description that is also written to OUT/recording.json."""
    recipe = RECIPES[name]
    with tempfile.TemporaryDirectory(prefix="kafkascope-record-") as place:
        session = _Session(name, recipe, Path(place))
        try:
            with session.cluster:
                session.play()
                return session.save(out)
        finally:
            session.stop()


class _Session:
    """One run of one recipe."""

    def __init__(self, name: str, recipe: Recipe, folder: Path) -> None:
        self.name = name
        self.recipe = recipe
        self.folder = folder
        self.cluster = Cluster(**recipe.cluster, before_start=self._begin if recipe.whole else None)
        self.recording: Recording | None = None
        self.log_starts: dict[int, int] = {}
        self.began_at = 0
        self.ended_at = 0
        self.truth: list[str] = []

    def play(self) -> None:
        if self.recording is None:
            self._begin(self.cluster)
        with Stage(self.cluster, self.folder, lambda line: print(f"{self.name}: {line}", flush=True)) as stage:
            self.recipe.play(stage)
            # tcpdump outlives the nodes, so that nothing is in a request log that it did not see
            self._end(stage)
            self.stop()
            roles = [
                line
                for number, node in self.cluster.nodes.items()
                for line in raft_roles(number, node.server_log, self.began_at)
            ]
            self.truth = stage.truth(roles)
        self.ended_at = time.time_ns() // 1000

    def _end(self, stage: Stage) -> None:
        """Nodes in order, observers first. The last of several controllers cannot: it would ask for a majority."""
        last = self.cluster.leader()
        for number in sorted(self.cluster.nodes, reverse=True):
            if number != last or len(self.cluster.nodes) == 1:
                self.cluster.stop(number)
                stage.note("stopped", node=number)
        if self.cluster.nodes[last].process is not None:
            self.cluster.kill(last)
            stage.note("cut", node=last)

    def stop(self) -> None:
        if self.recording is not None:
            self.recording.stop()

    def save(self, out: Path) -> dict[str, Any]:
        if self.recording is None:
            raise RuntimeError("nothing was recorded")
        self.recording.check()
        out.mkdir(parents=True, exist_ok=True)
        for stale in out.glob("request-*.log.xz"):
            stale.unlink()
        _pack((self.folder / "capture.pcap").read_bytes(), out / "capture.pcap.xz")
        for number, node in self.cluster.nodes.items():
            log = node.request_log.read_bytes()[self.log_starts[number] :]
            # a line that a killed node was writing just then is not one
            _pack(log[: log.rfind(b"\n") + 1], out / f"request-{number}.log.xz")
        (out / "truth.jsonl").write_text("".join(f"{line}\n" for line in self.truth))
        facts = self._description()
        (out / "recording.json").write_text(json.dumps(facts, indent=2) + "\n")
        (out / "README.md").write_text(readme(facts))
        return facts

    def _begin(self, cluster: Cluster) -> None:
        ports = [port for node in cluster.ports.values() for port in node.values()]
        recording = Recording(ports, self.folder / "capture.pcap", nanoseconds=self.recipe.nanoseconds)
        recording.start()
        self.recording = recording
        self.log_starts = self._log_sizes()
        self.began_at = time.time_ns() // 1000

    def _log_sizes(self) -> dict[int, int]:
        logs = {number: node.request_log for number, node in self.cluster.nodes.items()}
        return {number: log.stat().st_size if log.exists() else 0 for number, log in logs.items()}

    def _description(self) -> dict[str, Any]:
        return {
            "recipe": self.name,
            "tells": self.recipe.tells,
            "command": f"python -m lab.record {self.name} tests/captures/{self.name}",
            "recorded": datetime.datetime.fromtimestamp(self.began_at / 1e6, datetime.UTC).isoformat(
                sep=" ", timespec="seconds"
            ),
            "from": self.began_at,
            "to": self.ended_at,
            "packets": self.recording.packets if self.recording else 0,
            "captureBytes": (self.folder / "capture.pcap").stat().st_size,
            "ports": {str(number): ports for number, ports in self.cluster.ports.items()},
            "versions": {
                "kafka": KAFKA,
                "java": _first_line(["java", "--version"]),
                "tcpdump": _first_line(["tcpdump", "--version"]),
                "javaClients": list(JAVA_CLIENTS) if self.name == "clients" else [KAFKA],
                "pythonClients": list(PYTHON_CLIENTS) if self.name == "clients" else [],
            },
        }


def readme(facts: dict[str, Any]) -> str:
    """The description as a page."""
    versions, packets = facts["versions"], facts["packets"]
    seconds = (facts["to"] - facts["from"]) / 1e6
    clients = [f"Java {release}" for release in versions["javaClients"]] + versions["pythonClients"]
    ports = [
        f"| {node} | {listener} | {port} |"
        for node, names in facts["ports"].items()
        for listener, port in names.items()
    ]
    return "\n".join(
        [
            f"# {facts['recipe']}",
            "",
            f"{facts['tells'][0].upper()}{facts['tells'][1:]}.",
            "",
            f"- Made by `{facts['command']}`, recorded {facts['recorded']}, {seconds:.1f} s.",
            f"- `capture.pcap.xz`: {packets} packets, {facts['captureBytes']} bytes unpacked, lo, full length.",
            "- `request-N.log.xz`: the request log of node N over the same time.",
            "- `truth.jsonl`: what each program and the recipe did, by time; `at` is microseconds since 1970.",
            "- `recording.json`: this page for programs.",
            f"- Apache Kafka {versions['kafka']}, {versions['java']}, {versions['tcpdump']}.",
            f"- Clients: {', '.join(clients)}.",
            "",
            "| node | listener | port |",
            "|---|---|---|",
            *ports,
            "",
        ]
    )


def _pack(data: bytes, target: Path) -> None:
    packed = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
    if len(packed) > MAX_FILE_BYTES:
        raise RuntimeError(f"{target.name} would take {len(packed)} bytes; {MAX_FILE_BYTES} are allowed")
    target.write_bytes(packed)


def _first_line(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.record", description=__doc__)
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    try:
        facts = record(options.name, options.out)
    except KeyboardInterrupt:
        return 130
    except (RuntimeError, TimeoutError) as error:
        print(f"lab.record: {error}", file=sys.stderr)
        return 1
    seconds = (facts["to"] - facts["from"]) / 1e6
    print(
        f"{options.name}: {seconds:.1f} s, {facts['packets']} packets, {facts['captureBytes']} bytes, in {options.out}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
