"""Asks the classes of Kafka's jars for error codes, and for the version ranges of releases without definition files."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from tools.catalog.jars import CACHE, HERE, Release, fetch

_SLF4J = ("org.slf4j", "slf4j-api", "1.7.36")
# 0.8.2's client jar lists a JoinGroup and a Heartbeat that no 0.8.2 broker served and whose layout 0.9 replaced.
_NEVER_SERVED = {"0.8.2": {11, 12}}


@dataclass(frozen=True, slots=True)
class ErrorFact:
    name: str
    code: int
    retriable: bool
    exception: str


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    errors: tuple[ErrorFact, ...]
    versions: dict[int, frozenset[int]]  # by API key; empty where definition files tell


def ask(releases: list[Release]) -> dict[str, ReleaseFacts]:
    """By release. The class that asks is compiled once for all of them."""
    fetch([_SLF4J])
    with TemporaryDirectory() as classes, ThreadPoolExecutor(2) as pool:
        subprocess.run(["javac", "-d", classes, str(HERE / "ReleaseFacts.java")], check=True)
        answers = pool.map(lambda release: _ask(release, classes), releases)
        return dict(zip((release.name for release in releases), answers, strict=True))


def _ask(release: Release, classes: str) -> ReleaseFacts:
    path = [str(release.jar("kafka-clients")), str(CACHE / f"{_SLF4J[1]}-{_SLF4J[2]}.jar"), classes]
    command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", ":".join(path), "ReleaseFacts"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in printed.splitlines()]
    errors = tuple(ErrorFact(n, int(c), r == "true", e) for _, n, c, r, e in (x for x in rows if x[0] == "error"))
    skipped = _NEVER_SERVED.get(release.name, set())
    # A client jar's own oldest version says what that client sends; brokers served every version from 0 on.
    versions = {
        int(key): frozenset(range(int(latest) + 1))
        for _, key, _, _, latest in (x for x in rows if x[0] == "api")
        if int(key) not in skipped
    }
    return ReleaseFacts(errors, versions)
