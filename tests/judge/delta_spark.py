"""Runs SQL statements on Spark with Delta's own jar; needs Maven and a JDK. The jars are 220 MB, fetched once."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.judge.java import CACHE, MAVEN, _digest, _locked, _run

HERE = Path(__file__).resolve().parent
POM, SOURCE = HERE / "delta_spark.xml", HERE / "Statements.java"
# What Spark's own start scripts open to it (JavaModuleOptions).
_OPENED = (
    "java.base/java.lang java.base/java.lang.invoke java.base/java.lang.reflect java.base/java.io java.base/java.net"
    " java.base/java.nio java.base/java.util java.base/java.util.concurrent java.base/java.util.concurrent.atomic"
    " java.base/jdk.internal.ref java.base/sun.nio.ch java.base/sun.nio.cs java.base/sun.security.action"
    " java.base/sun.util.calendar"
).split()
JVM = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xmx1g",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
)


def run_statements(*statements: str) -> list[list[dict[str, Any]]]:
    """The rows of each, in order."""
    with tempfile.TemporaryDirectory() as folder:
        statements_file, answers_file = Path(folder, "asked.sql"), Path(folder, "answered.json")
        statements_file.write_text("".join(f"{statement}\n" for statement in statements), encoding="utf-8")
        options = (*JVM, f"-Djava.io.tmpdir={folder}", f"-Dderby.system.home={folder}", "-Dfile.encoding=UTF-8")
        classpath = os.pathsep.join(map(str, _jars()))
        _run(["java", *options, "-cp", classpath, str(SOURCE), str(statements_file), str(answers_file), folder])
        return [json.loads(line) for line in answers_file.read_text(encoding="utf-8").splitlines()]


def _jars() -> list[Path]:
    folder = CACHE / "delta-spark"
    stamp = folder / "stamp"
    with _locked():
        if not stamp.is_file() or stamp.read_text() != _digest(POM):
            for stale in folder.glob("*.jar"):
                stale.unlink()
            _run([*MAVEN, "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"])
            stamp.write_text(_digest(POM))
    return sorted(folder.glob("*.jar"))
