"""Log directories: `kafkascope log --json`, and columns, beside Kafka's own DumpLogSegments in the same run.

Each program reads the same segment and a segment of one batch; the difference is what its data takes, without the start
of a JVM or of Python. CPU seconds are compared, of all threads: so a busy machine changes little."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from mmap import mmap
from pathlib import Path
from time import perf_counter, process_time

from bench.log_ingest import lines as ingest_lines
from bench.log_segments import MB, MIXED_MEGABYTES, Segment, mixed
from lab.jars import joined, kafka_path

_TOOL = "org.apache.kafka.tools.DumpLogSegments"
_ROUNDS = 3
_READ_BYTES = 4 << 20


def lines() -> Iterator[str]:
    yield (
        f"  {'':<36}{'MB':>6}{'records':>11} |{'Dump…, s':>10} |{'--json, s':>10}{'times':>7} |"
        f"{'columns, s':>11}{'times':>7}"
    )
    totals = [0.0, 0.0, 0.0]
    with tempfile.TemporaryDirectory(prefix="kafkascope-bench-") as place:
        tiny = {segment.kind.topic: segment for segment in mixed(Path(place, "tiny"), 0)}
        for segment in mixed(Path(place, "whole"), MIXED_MEGABYTES):
            taken = [*_programs(segment, tiny[segment.kind.topic]), _columns(segment)]
            totals = [total + own for total, own in zip(totals, taken, strict=True)]
            yield _line(segment.kind.title, segment.size, segment.records, taken)
            if segment.kind.topic == "orders":
                yield from _headers(segment)
        yield _line("all of them", MIXED_MEGABYTES * MB, None, totals) + "   (floor 10, aim 30)"
    yield from ingest_lines(totals[0])


def _line(title: str, size: int, records: int | None, taken: list[float]) -> str:
    java, ours, columns = taken
    return (
        f"  {title:<36}{size / MB:>6.0f}{'' if records is None else f'{records:,}':>11} |{java:>10.2f} |"
        f"{ours:>10.2f}{java / ours:>7.1f} |{columns:>11.2f}{java / columns:>7.1f}"
    )


def _programs(segment: Segment, tiny: Segment) -> Iterator[float]:
    """CPU seconds of DumpLogSegments and of `log --json`."""
    java = ["java", "-cp", joined(kafka_path()), _TOOL, *segment.kind.decoder, "--files"]
    ours = [str(Path(sys.executable).with_name("kafkascope")), "log", "--json"]
    for command, rounds in ((java, 1), (ours, _ROUNDS)):
        start = min(_cpu([*command, str(tiny.path)]) for _ in range(_ROUNDS))
        yield max(min(_cpu([*command, str(segment.path)]) for _ in range(rounds)) - start, 0.001)


def _cpu(command: list[str]) -> float:
    """Of a process that must end well."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    error_text = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command[0]} ended with {status}: {error_text[-500:].decode()}")
    return usage.ru_utime + usage.ru_stime


def _columns(segment: Segment) -> float:
    """CPU seconds on one core: records of Kafka's own topics, batches of others."""
    return _best(lambda: _read_columns(segment), process_time)


def _read_columns(segment: Segment) -> None:
    from kafkascope.logs.batch_columns import read_batch_columns
    from kafkascope.logs.record_columns import read_record_columns
    from kafkascope.logs.window import Window

    with Window(str(segment.path)) as window:
        tables = read_record_columns(window, segment.kind.topic) if segment.kind.decoder else read_batch_columns(window)
        for _ in tables:
            pass


def _headers(segment: Segment) -> Iterator[str]:
    columns, read = _columns(segment), _best(lambda: _read(segment.path), process_time)
    cold, disk = _best(lambda: _cold(segment)), _best(lambda: _read_disk(segment.path))
    speed = {name: f"{segment.size / MB / taken:,.0f} MB/s" for name, taken in
             (("columns", columns), ("read", read), ("cold", cold), ("disk", disk))}  # fmt: skip
    yield (
        f"  {'  its batches: headers only':<36}{speed['cold']} from the disk, which gives {speed['disk']}:"
        f" {disk / cold:.0%} (aim 50%)"
    )
    yield f"  {'':<36}{speed['columns']} from the system's cache, which gives {speed['read']}: {read / columns:.0%}"


def _cold(segment: Segment) -> None:
    """None of the file is in the system's cache."""
    descriptor = os.open(segment.path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    _read_columns(segment)


def _read_disk(path: Path) -> None:
    """Past the system's cache."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap(-1, _READ_BYTES)
    while os.readv(descriptor, [buffer]):
        pass
    os.close(descriptor)


def _read(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(_READ_BYTES):
            pass


def _best(call: Callable[[], None], clock: Callable[[], float] = perf_counter) -> float:
    """The best of some rounds, after one that loads what is loaded once."""
    call()
    least = float("inf")
    for _ in range(_ROUNDS):
        start = clock()
        call()
        least = min(least, clock() - start)
    return least
