"""What a recipe works with: the cluster, the programs it starts, and the notes it adds to the truth."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from lab.cluster import Cluster
from lab.jars import KAFKA
from lab.program import Program, java, python


class Stage:
    """A context manager: programs still running at its end are killed."""

    def __init__(self, cluster: Cluster, folder: Path, say: Callable[[str], None]) -> None:
        self.cluster = cluster
        self.folder = folder
        self._say = say
        self._programs: list[Program] = []
        self._notes = folder / "recipe.jsonl"
        self._notes.touch()
        self._ends = ExitStack()

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def note(self, event: str, **fields: object) -> int:
        """What the recipe itself did, as a line of truth; returns its time."""
        at = time.time_ns() // 1000
        line = {"at": at, "who": "recipe", "event": event, **fields}
        with self._notes.open("a") as lines:
            lines.write(json.dumps(line) + "\n")
        self._say(f"{event} {' '.join(str(value) for value in fields.values())}")
        return at

    def java(self, name: str, who: str, options: Mapping[str, str], release: str = KAFKA) -> Program:
        """On the plain listener unless the options name another."""
        return self._start(java(name, who, self.folder, {**self._plain(), **options}, release))

    def python(self, name: str, who: str, options: Mapping[str, str], client: str) -> Program:
        return self._start(python(name, who, self.folder, {**self._plain(), **options}, client))

    def set_up(self, topics: str, groups: str = "") -> None:
        program = self.java("Setup", "setup", {"topics": topics, "groups": groups})
        program.finish()
        self.note("set_up", topics=topics, groups=groups)

    def truth(self, more: Iterable[str] = ()) -> list[str]:
        """Every line of every program, of the recipe and those given, by time."""
        files = [self._notes, *(program.truth for program in self._programs if program.truth.exists())]
        lines = [*more, *(line for file in files for line in file.read_text().splitlines())]
        return sorted(lines, key=lambda line: int(json.loads(line)["at"]))

    def _start(self, program: Program) -> Program:
        self._programs.append(program)
        self._ends.callback(lambda: program.process.kill() if program.process.status is None else None)
        return program

    def _plain(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.cluster.bootstrap}
