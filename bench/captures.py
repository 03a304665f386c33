"""Whole captures: into columns and into statistics against tshark, memory, the first line, the kernels' compilation.

By processor time of whole processes pinned to one core, start and all. tshark reads the first 250 MB, or with `--whole`
all: on captures with losses it is the slower the longer they are."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.child import Run, one_core, run
from bench.recorded import lengthened
from bench.start import COMMAND
from bench.traffic import Made, busy, first_part, short_lived
from tests.captures import NAMES, capture, recording

MEGABYTES, PART_MEGABYTES, LARGE_MEGABYTES = 1_000, 150, 3_000
# Of the gigabyte, what tshark is given: all of it would take it hours, and it is the slower the more it is.
TSHARK_MEGABYTES = 250
# What recorded captures are lengthened to.
_LONG_MEGABYTES = 100
_AIMS = {"ek": (100, 60), "fields": (20, 8)}
_MOST_GROWTH = 1.2
_FIRST_LINE_RUNS = 7
# What tshark has of an exchange; its -T ek has everything.
FIELDS = (
    "frame.time_epoch tcp.stream kafka.api_key kafka.api_version kafka.correlation_id kafka.client_id kafka.topic_name"
    " kafka.partition_id kafka.offset kafka.error"
).split()
HEAD = f"{'':<48}{'MB':>9}{'wall s':>9}{'proc. s':>9}{'MB/s':>9}{'peak MB':>9}"


def lines(*, whole: bool = False) -> Iterable[str]:
    traffic = busy(MEGABYTES)
    yield traffic.line()
    part = Path(traffic.path) if whole else first_part(traffic, TSHARK_MEGABYTES)
    yield from _against_tshark(Path(traffic.path), part)
    yield from _steps(traffic)
    yield from _recorded()
    yield from _short()
    yield from _memory()
    yield from _first_line(Path(traffic.path))
    yield from _compile()


def _columns_command(path: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "bench.capture_columns", str(path), *more]


def _again_command(path: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "bench.capture_stats", str(path), *more]


def _stats_command(path: Path) -> list[str]:
    return [COMMAND, "read", "--stats", str(path)]


def tshark_command(path: Path, form: str, ports: Iterable[int] = (9_092,)) -> list[str]:
    """-n: it looks up no names."""
    ports_as_kafka = [part for port in ports for part in ("-d", f"tcp.port=={port},kafka")]
    fields = [part for name in FIELDS for part in ("-e", name)] if form == "fields" else []
    return ["tshark", "-n", "-r", str(path), *ports_as_kafka, "-T", form, *fields]


def _line(label: str, size: int, took: Run) -> str:
    return (
        f"{label:<48}{size / 1e6:9,.0f}{took.wall:9.2f}{took.processor:9.2f}{size / took.processor / 1e6:9,.1f}"
        f"{took.peak_bytes / 1e6:9,.0f}"
    )


def _against_tshark(whole: Path, part: Path) -> Iterator[str]:
    """The kernels are on disk before anything is timed."""
    run(_columns_command(part))
    yield f"\n{HEAD}"
    ours: dict[str, float] = {}
    for label, command in (("capture to columns", _columns_command), ("read --stats", _stats_command)):
        for path in dict.fromkeys((part, whole)):
            size, took = path.stat().st_size, run(command(path))
            # The last is the whole: tshark has it no better than the part, and pays its start once too.
            ours[label] = size / took.processor
            ours[f"{label}, same file"] = ours.get(f"{label}, same file", size / took.processor)
            yield _line(label, size, took)
    if shutil.which("tshark") is None:
        yield "tshark is not here: nothing to compare with"
        return
    clean = Path(busy(PART_MEGABYTES, clean=True).path)
    theirs: dict[str, float] = {}
    for form in _AIMS:
        for note, path in (("", part), (", no packet lost or late", clean)):
            size, took = path.stat().st_size, run(tshark_command(path, form))
            theirs[f"{form}{note}"] = size / took.processor
            yield _line(f"tshark -T {form}{note}", size, took)
    for label in ("capture to columns", "read --stats"):
        for form, speed in theirs.items():
            aim, floor = _AIMS[form.split(",")[0]]
            times, same = ours[label] / speed, ours[f"{label}, same file"] / speed
            yield f"{label}: {times:,.0f} times tshark -T {form} ({same:,.0f} at its size); aim {aim}, floor {floor}"


def _steps(traffic: Made) -> Iterator[str]:
    steps = json.loads(run(_columns_command(Path(traffic.path), "--steps"), keep=True).output)
    seconds = steps["seconds"]
    speed = traffic.file_bytes / seconds / 1e6
    yield f"\ncapture to columns without its start, {speed:,.0f} MB/s: processor seconds by step"
    for step, taken in steps["steps"].items():
        yield f"  {step:<46}{taken:9.2f}{taken / seconds:9.0%}"
    yield (
        f"  {steps['exchanges']:,} exchanges of {traffic.exchanges:,}, {steps['messages']:,} messages of"
        f" {traffic.frames:,}, {steps['undecoded']} undecoded"
    )


def _recorded() -> Iterator[str]:
    """Without the start of either process. Most of what a capture of a megabyte takes is done once for each message in
    it; the same traffic at length says what it takes after that."""
    yield "\nrecorded captures, without the start of a process"
    yield f"{'':<40}{'MB':>8}{'MB/s':>9}{'x -T ek':>9}{'x fields':>9}"
    with TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.pcap"
        empty.write_bytes(capture(NAMES[0])[:24])
        has_tshark = shutil.which("tshark") is not None
        start = {form: _least(tshark_command(empty, form), 5) for form in _AIMS} if has_tshark else {}
        for name in NAMES:
            path = Path(folder) / f"{name}.pcap"
            path.write_bytes(capture(name))
            long = lengthened(name, _LONG_MEGABYTES * 1_000_000, Path(folder))
            # What takes milliseconds is done more often: the best of few would be chance.
            for label, file, rounds, often in (
                (f"{name}, as recorded", path, 5, 50),
                (f"{name}, at length", long, 1, 5),
            ):
                size = file.stat().st_size
                theirs = [
                    _least(tshark_command(file, form, _ports(name)), rounds) - before for form, before in start.items()
                ]
                for task, command in (("columns", _columns_command), ("read --stats", _again_command)):
                    took = json.loads(run(command(file, "--rounds", str(often)), keep=True).output)["seconds"]
                    ratios = "".join(f"{seconds / took:8.1f}x" for seconds in theirs) or "  tshark is not here"
                    yield f"{f'{label}: {task}':<40}{size / 1e6:8.2f}{size / took / 1e6:9.1f}{ratios}"
                file.unlink()
        for form, (aim, floor) in _AIMS.items():
            yield f"-T {form}: aim {aim}, floor {floor}"


def _least(command: list[str], rounds: int) -> float:
    return min(run(command).processor for _ in range(rounds))


def _ports(name: str) -> list[int]:
    """Those that speak Kafka in the clear."""
    nodes = recording(name)["ports"].values()
    return sorted({port for node in nodes for kind, port in node.items() if kind != "TLS"})


def _short() -> Iterator[str]:
    traffic = short_lived()
    yield f"\nmany short connections: {traffic.line()}"
    path = Path(traffic.path)
    for label, command in (("capture to columns", _columns_command), ("read --stats", _stats_command)):
        yield _line(label, traffic.file_bytes, run(command(path)))


def _memory() -> Iterator[str]:
    yield "\npeak memory"
    small, large = busy(PART_MEGABYTES), busy(LARGE_MEGABYTES)
    for label, command in (("capture to columns", _columns_command), ("read --stats", _stats_command)):
        peaks = []
        for traffic in (small, large):
            took = run(command(Path(traffic.path)))
            peaks.append(took.peak_bytes)
            yield _line(label, traffic.file_bytes, took)
        yield f"{label}: {peaks[1] / peaks[0]:.2f} times as much; at most {_MOST_GROWTH}"


def _first_line(path: Path) -> Iterator[str]:
    yield "\nms to the first line of read, kernels on disk"
    with TemporaryDirectory() as folder:
        recorded = Path(folder) / "clients.pcap"
        recorded.write_bytes(capture("clients"))
        for label, file in ((f"{path.stat().st_size / 1e6:,.0f} MB", path), ("clients, recorded", recorded)):
            wall, processor = zip(*(_until_first(file) for _ in range(_FIRST_LINE_RUNS)), strict=True)
            yield (
                f"{label:<48}{1e3 * min(wall):6,.0f} at best, {1e3 * median(wall):6,.0f} in the middle,"
                f" {1e3 * min(processor):6,.0f} of processor time; at most 1,000"
            )


def _until_first(path: Path) -> tuple[float, float]:
    """Wall and processor seconds."""
    start = perf_counter()
    command = [COMMAND, "read", str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=one_core
    ) as child:
        assert child.stdout is not None
        # The first is the day.
        child.stdout.readline()
        line = child.stdout.readline()
        taken = perf_counter() - start
        child.kill()
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
    assert line
    return taken, usage.ru_utime + usage.ru_stime


def _compile() -> Iterator[str]:
    yield "\nkernels: wall and processor seconds of a process that reads a small capture into columns"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "share.pcap"
        path.write_bytes(capture("share"))
        kernels = {"NUMBA_CACHE_DIR": f"{folder}/kernels"}
        for label in ("compiled, the first time on a machine", "loaded from disk"):
            took = run(_columns_command(path), environment=kernels)
            yield f"{label:<48}{took.wall:9.2f}{took.processor:9.2f}"


if __name__ == "__main__":
    for line in lines(whole="--whole" in sys.argv[1:]):
        print(line, flush=True)
