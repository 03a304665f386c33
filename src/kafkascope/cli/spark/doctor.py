"""Checks what the pipeline needs, for `doctor`: Java, writable folders, and on request a session that runs."""

import os
import re

Check = dict[str, object]
# Folders for data that doesn't fit into memory, and for other files of a session.
ROOM_BYTES = 1 << 30


def java() -> Check:
    from kafkascope.errors import UsageError
    from kafkascope.pipeline.session import OLDEST_JAVA, find_java, java_version

    fix = f"install Java {OLDEST_JAVA} or newer, or set JAVA_HOME to one"
    try:
        path = find_java()
    except UsageError as error:
        return {"what": "Java", "ok": False, "found": re.split("[;:] ", str(error))[0], "fix": fix}
    return {"what": "Java", "ok": True, "found": f"{java_version(path)}, {path}, for the pipeline", "fix": ""}


def places() -> list[Check]:
    """Folders that an ingest on this machine writes to, besides the lake."""
    import tempfile

    temporary = tempfile.gettempdir()
    spark = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    checks = [_place("temporary files", temporary, "set TMPDIR to a writable folder with free space")]
    if spark and spark != temporary:
        fix = "set SPARK_LOCAL_DIRS to a writable folder with free space"
        checks.append(_place("Spark's files", spark, fix))
    return checks


def session() -> Check:
    """A session and a Python worker that responds, which every ingest needs."""
    import time

    from kafkascope.cli.spark.session import ProgressLine, spark_session
    from kafkascope.errors import KafkascopeError

    progress = ProgressLine()
    try:
        with spark_session(1, progress) as spark:
            began = time.monotonic()
            with progress.step("starting a worker"):
                answer = spark.range(3).mapInArrow(lambda batches: batches, "id long").count()
            assert answer == 3
            worked = time.monotonic() - began
    except KafkascopeError as error:
        return {"what": "Spark", "ok": False, "found": str(error), "fix": "see its log"}
    started = progress.seconds["starting Spark"]
    timing = f"starts in {started:.1f} s, a Python worker responds in {worked:.1f} s"
    return {"what": "Spark", "ok": True, "found": timing, "fix": ""}


def _place(what: str, folder: str, fix: str) -> Check:
    import shutil

    from kafkascope.formatting import size

    if not _writable(folder):
        return {"what": what, "ok": False, "found": f"{folder} cannot be written to", "fix": fix}
    free = shutil.disk_usage(folder).free
    return {"what": what, "ok": free >= ROOM_BYTES, "found": f"{folder}, {size(free)} free", "fix": fix}


def _writable(folder: str) -> bool:
    import tempfile

    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
