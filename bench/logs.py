"""Log directories: `kafkascope log --json`, and columns of batches, beside Kafka's own DumpLogSegments in the same run.

Each program reads the same segment and a segment of one batch; the difference is what its data takes, without the start
of a JVM or of Python. CPU seconds are compared, of all threads."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from lab.jars import joined, kafka_path

_START_MS = 1_767_268_800_000
_MB = 1_000_000
_TOOL = "org.apache.kafka.tools.DumpLogSegments"


@dataclass(frozen=True, slots=True)
class _Log:
    """`batch` is repeated up to `size` bytes, with rising offsets: they aren't under the checksum."""

    title: str
    folder: str
    decoder: tuple[str, ...]
    batch: bytes
    records: int
    size: int


def lines() -> Iterator[str]:
    yield f"  {'':<34}{'MB':>6}{'records':>10} |{'DumpLogSegments':>17} |{'log --json':>12}{'times':>7}"
    with tempfile.TemporaryDirectory(prefix="kafkascope-bench-") as place:
        for log in _logs():
            path, tiny = _written(Path(place), log, log.size), _written(Path(place), log, 1)
            java = ["java", "-cp", joined(kafka_path()), _TOOL, *log.decoder, "--files"]
            ours = [str(Path(sys.executable).with_name("kafkascope")), "log", "--json"]
            theirs, mine = (_cpu([*command, str(path)]) - _cpu([*command, str(tiny)]) for command in (java, ours))
            count = log.size // len(log.batch) * log.records
            yield (
                f"  {log.title:<34}{log.size / _MB:>6.0f}{count:>10,} |{theirs:>15.2f} s |{mine:>10.2f} s"
                f"{theirs / mine:>7.1f}"
            )
            if not log.decoder:
                columns, read = _columns(path), _read(path)
                yield (
                    f"  {'  columns of batches, one process':<34}{'':>16} |{log.size / _MB / columns:>12.0f} MB/s |"
                    f" reading the file {log.size / _MB / read:.0f} MB/s: {read / columns:.0%}"
                )


def _logs() -> Iterator[_Log]:
    order = [
        Record(at, _START_MS + at, b"key-%05d" % at, b"a value of a hundred bytes or so " * 4) for at in range(100)
    ]
    packed = encode_records([new_batch(order)])
    yield _Log("a user's topic, 16 kB batches", "orders-0", (), packed, 100, 200 * _MB)
    small = encode_records([new_batch(order[:1])])
    yield _Log("a user's topic, one record each", "clicks-0", (), small, 1, 20 * _MB)
    commits = [Record(at, _START_MS, _commit_key(at), _commit_value(at)) for at in range(10)]
    yield _Log(
        "__consumer_offsets", "__consumer_offsets-0", ("--offsets-decoder",), encode_records([new_batch(commits)]), 10,
        10 * _MB,
    )  # fmt: skip
    changes = [Record(at, _START_MS, None, _partition_change(at)) for at in range(20)]
    yield _Log(
        "__cluster_metadata", "__cluster_metadata-0", ("--cluster-metadata-decoder",),
        encode_records([new_batch(changes)]), 20, 10 * _MB,
    )  # fmt: skip


def _commit_key(partition: int) -> bytes:
    return b"\0\1" + encode("OffsetCommitKey", 1, {"group": "checkout", "topic": "orders", "partition": partition})


def _commit_value(offset: int) -> bytes:
    value = {"offset": 10_000 + offset, "leaderEpoch": 3, "metadata": "", "commitTimestamp": _START_MS}
    return b"\0\4" + encode("OffsetCommitValue", 4, value)


def _partition_change(partition: int) -> bytes:
    value = {"partitionId": partition, "isr": [1, 2, 3], "leader": 2}
    return bytes([1, 5, 0]) + encode("PartitionChangeRecord", 0, value)


def _written(place: Path, log: _Log, size: int) -> Path:
    path = place / str(size) / log.folder / f"{0:020}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for number in range(max(1, size // len(log.batch))):
            file.write((number * log.records).to_bytes(8, "big"))
            file.write(log.batch[8:])
    return path


def _cpu(command: list[str]) -> float:
    """Of a process that must end well."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command[0]} ended with {status}: {said[-500:].decode()}")
    return usage.ru_utime + usage.ru_stime


def _columns(path: Path) -> float:
    from kafkascope.logs.batch_columns import read_batch_columns
    from kafkascope.logs.window import Window

    def once() -> None:
        with Window(str(path)) as window:
            for _ in read_batch_columns(window):
                pass

    once()
    return _best(once)


def _read(path: Path) -> float:
    def once() -> None:
        with path.open("rb", buffering=0) as file:
            while file.read(4 * 1024 * 1024):
                pass

    return _best(once)


def _best(call: object) -> float:
    """Seconds of the best of five, from the system's cache of files."""
    assert callable(call)
    least = float("inf")
    for _ in range(5):
        start = perf_counter()
        call()
        least = min(least, perf_counter() - start)
    return least
