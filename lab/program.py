"""Runs a client program that logs what it did as JSON lines: a recording's truth."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lab.jars import JVM, KAFKA, archive, joined, program_path, python_path
from lab.process import Process
from lab.wire import until

_HERE = Path(__file__).resolve().parent
# a JVM takes 3 s to its first request on an idle machine
_EVENT_SECONDS = 90.0
# errors of a client go to its output, which is shown when it fails
_QUIET = "-Dlog4j2.level=ERROR"

Event = dict[str, Any]


class Program:
    """A client process. `who` is its client id, unless the options name another."""

    def __init__(self, who: str, command: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
        self.who = who
        self.truth = folder / f"{who}.jsonl"
        self.process = Process(
            [*command, f"who={who}", f"truth={self.truth}"],
            folder / f"{who}.out",
            stdin=True,
            environment=environment,
        )

    def events(self) -> list[Event]:
        """What it logged so far; a line that is not finished yet is left for later."""
        if not self.truth.exists():
            return []
        return [json.loads(line) for line in self.truth.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def wait_for(self, label: str, fits: Callable[[Event], bool], seconds: float | None = None) -> Event:
        """The first event that fits. RuntimeError when the program failed first."""

        def look() -> Event | None:
            status = self.process.status
            for event in self.events():
                if fits(event):
                    return event
            if status is not None:
                raise RuntimeError(f"{self.who} exited with {status} before {label}: {self.process.tail()}")
            return None

        return until(f"{self.who}: {label}", look, seconds or _EVENT_SECONDS)

    def wait_for_event(self, name: str) -> Event:
        return self.wait_for(name, lambda event: event["event"] == name)

    def close(self) -> None:
        """In order, by its own means."""
        if self.process.status is None:
            self.process.tell("close")
        self.finish()

    def finish(self, status: int = 0) -> None:
        """Waits for its end, which must be the one expected."""
        ended = self.process.wait(_EVENT_SECONDS)
        if ended != status:
            raise RuntimeError(f"{self.who} exited with {ended}: {self.process.tail()}")


def java(
    name: str, who: str, folder: Path, options: Mapping[str, str], release: str = KAFKA, heap: str = "128m"
) -> Program:
    """A program of `lab/java` on the client of a release."""
    shared = (f"-XX:SharedArchiveFile={archive()}",) if release == KAFKA else ()
    command = ["java", *JVM, f"-Xmx{heap}", *shared, _QUIET, "-cp", joined(program_path(release)), name]
    return Program(who, [*command, *_arguments(options)], folder)


def python(name: str, who: str, folder: Path, options: Mapping[str, str], client: str) -> Program:
    """A program of `lab/python` with a pinned client library."""
    command = [sys.executable, str(_HERE / "python" / f"{name}.py"), *_arguments(options)]
    return Program(who, command, folder, {"PYTHONPATH": str(python_path(client))})


def _arguments(options: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in options.items()]
