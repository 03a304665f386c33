"""Jars in, error codes and the version ranges of releases without definition files out, asked of the classes themselves."""

import subprocess
from dataclasses import dataclass

from tools.catalog.jars import HERE, Release, fetch

SLF4J = ("org.slf4j", "slf4j-api", "1.7.36")
# 0.8.2's client jar lists a JoinGroup and a Heartbeat that no 0.8.2 broker served and whose layout 0.9 replaced.
NEVER_SERVED = {"0.8.2": {11, 12}}


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


def ask(release: Release) -> ReleaseFacts:
    fetch([SLF4J])
    jars = [release.jar("kafka-clients"), release.jar("kafka-clients").parent / f"{SLF4J[1]}-{SLF4J[2]}.jar"]
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars)), str(HERE / "ReleaseFacts.java")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in printed.splitlines()]
    errors = tuple(ErrorFact(n, int(c), r == "true", e) for _, n, c, r, e in (x for x in rows if x[0] == "error"))
    skipped = NEVER_SERVED.get(release.name, set())
    # A client jar's own oldest version says what that client sends; brokers served every version from 0 on.
    versions = {
        int(key): frozenset(range(int(latest) + 1))
        for _, key, _, _, latest in (x for x in rows if x[0] == "api")
        if int(key) not in skipped
    }
    return ReleaseFacts(errors, versions)
