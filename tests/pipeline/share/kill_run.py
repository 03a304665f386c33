"""Runs a query on a share group and kills its driver, an executor or the broker at moments of a batch's life, starting
each again, until the group is done. What the Delta table has then is the result."""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from deltalake import DeltaTable

from kafkascope.client.describe.share_group import ShareGroupView, describe_share_group
from kafkascope.errors import KafkascopeError
from lab.cluster import Cluster
from lab.process import Process
from tests.client.consumer_stage import stage

ROOT = Path(__file__).resolve().parents[3]
# A batch is in Spark's offset log; tasks have read it; the table has it; Spark's commit log has it.
STEPS = ("planned", "read", "landed", "committed")
VICTIMS = ("driver", "executor", "broker")
PARTITIONS = 4
_EXECUTOR = b"CoarseGrainedExecutorBackend"
# An idle machine takes a tenth of it.
_SECONDS = 1_800.0
_LOOK = 0.005


@dataclass(frozen=True, slots=True)
class Kill:
    victim: str
    step: str


@dataclass(slots=True)
class Result:
    """`lost` and `doubled` are records of the topic, by what the table has when the group is done. `starts` are of
    drivers, `redelivered` rows that came with a later delivery than the first."""

    kills: list[Kill] = field(default_factory=list)
    starts: int = 0
    batches: int = 0
    lost: int = 0
    doubled: int = 0
    redelivered: int = 0
    seconds: float = 0.0


def kills(count: int, seed: int) -> list[Kill]:
    """Each victim at each step, then any, in any order."""
    source = random.Random(seed)
    chosen = [Kill(victim, step) for victim in VICTIMS for step in STEPS]
    chosen += [Kill(source.choice(VICTIMS), source.choice(STEPS)) for _ in range(count)]
    chosen = chosen[:count]
    source.shuffle(chosen)
    return chosen


class KilledQuery:
    def __init__(self, lab: Cluster, folder: Path, source: str, master: str) -> None:
        self.lab, self.folder, self.source, self.master = lab, folder, source, master
        self.name = f"killed-{uuid4().hex[:8]}"
        self.result = Result()
        self._query: Process | None = None
        self._counts: dict[str, Callable[[], int]] = {
            "planned": lambda: _last(folder / "checkpoint" / "offsets"),
            "read": lambda: _last(folder / "steps"),
            "landed": lambda: _last(folder / "lake" / "_delta_log"),
            "committed": lambda: _last(folder / "checkpoint" / "commits"),
        }

    def play(self, records: int, planned: list[Kill]) -> Result:
        begun = time.monotonic()
        asyncio.run(_prepare(self.lab.bootstrap, self.name, records))
        try:
            for kill in planned:
                if self._reached(kill.step, records):
                    break
                self._kill(kill)
            self._until_done(records)
        finally:
            self._stop()
        self._count(records)
        self.result.seconds = time.monotonic() - begun
        return self.result

    def _reached(self, step: str, records: int) -> bool:
        """Waits for the next time; whether the group is done before."""
        count, before = self._counts[step], self._counts[step]()
        deadline = time.monotonic() + _SECONDS
        looks = 0
        while count() <= before:
            self._keep_running()
            assert time.monotonic() < deadline, self._log()
            time.sleep(_LOOK)
            looks += 1
            if looks % 400 == 0 and self._is_done(records):
                return True
        return False

    def _kill(self, kill: Kill) -> None:
        if kill.victim == "broker":
            self.lab.kill(1)
            self.lab.start(1)
            self.lab.wait_until_ready()
        elif kill.victim == "executor":
            executors = [pid for pid in _descendants(os.getpid()) if _EXECUTOR in _command(pid)]
            if not executors:
                return
            os.kill(random.choice(executors), signal.SIGKILL)
        else:
            self._stop()
        self.result.kills.append(kill)

    def _keep_running(self) -> None:
        """Starts it for the first time, after a kill, and after it ended with an error."""
        if self._query is not None and self._query.status is None:
            return
        self._stop()
        arguments = [self.master, str(self.folder), self.source, self.lab.bootstrap, self.name]
        environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
        command = [sys.executable, "-m", "tests.pipeline.share.kill_query", *arguments]
        self._query = Process(command, self.folder / "query.log", environment=environment)
        self.result.starts += 1

    def _stop(self) -> None:
        """The driver: its Python and its JVM at once. What they started notices."""
        if self._query is None:
            return
        processes = [pid for pid in _descendants(self._query.pid) if _EXECUTOR not in _command(pid)]
        for pid in (self._query.pid, *processes):
            _end(pid)
        self._query.kill()
        self._query = None

    def _until_done(self, records: int) -> None:
        deadline = time.monotonic() + _SECONDS
        while not self._is_done(records):
            self._keep_running()
            assert time.monotonic() < deadline, self._log()
            time.sleep(0.5)

    def _is_done(self, records: int) -> bool:
        """The group has no record left, and no batch is under way."""
        if self._counts["planned"]() > self._counts["committed"]():
            return False
        try:
            view = asyncio.run(_view(self.lab.bootstrap, self.name))
        except KafkascopeError:
            return False
        partitions = view.partitions
        return (
            len(partitions) == PARTITIONS
            and all(part.lag == 0 and part.end_offset == records // PARTITIONS for part in partitions)
            and self._counts["planned"]() <= self._counts["committed"]()
        )

    def _count(self, records: int) -> None:
        table = DeltaTable(str(self.folder / "lake")).to_pyarrow_table()
        places = Counter(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
        wanted = {(number, offset) for number in range(PARTITIONS) for offset in range(records // PARTITIONS)}
        assert places.keys() <= wanted
        self.result.batches = _last(self.folder / "lake" / "_delta_log") + 1
        self.result.lost = len(wanted) - len(places)
        self.result.doubled = places.total() - len(places)
        self.result.redelivered = sum(count > 1 for count in table["_delivery_count"].to_pylist())
        columns = [table[name].to_pylist() for name in ("value", "partition", "offset")]
        assert all(value == _value(number, offset) for value, number, offset in zip(*columns, strict=True))

    def _log(self) -> str:
        return json.dumps([str(kill) for kill in self.result.kills]) + (self.folder / "query.log").read_text()[-3_000:]


async def _prepare(bootstrap: str, name: str, records: int) -> None:
    async with stage(bootstrap) as on:
        await on.topic(name, PARTITIONS)
        await on.group(name, share_delivery_count_limit="10")
        for number in range(PARTITIONS):
            await on.produce(name, (_value(number, offset) for offset in range(records // PARTITIONS)), number)


async def _view(bootstrap: str, name: str) -> ShareGroupView:
    async with stage(bootstrap) as on:
        return await describe_share_group(on.cluster, name)


def _value(number: int, offset: int) -> bytes:
    return b"%d-%d" % (number, offset)


def _last(folder: Path) -> int:
    """The highest number that a file is named by; -1 without one."""
    names = os.listdir(folder) if folder.is_dir() else ()
    return max((int(stem) for stem in (name.removesuffix(".json") for name in names) if stem.isdigit()), default=-1)


def _descendants(parent: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        with suppress(OSError):
            if entry.isdigit():
                after_name = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(after_name[1]), []).append(int(entry))
    waiting = list(children.get(parent, ()))
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children.get(pid, ())


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
