"""Runs queries on share groups and kills their driver, an executor or the broker at steps of a batch, starting each
again, until the groups are done. What the Delta tables have then is the result."""

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from deltalake import DeltaTable

from kafkascope.client.describe.share_group import ShareGroupView, describe_share_group
from kafkascope.errors import KafkascopeError
from lab.cluster import Cluster
from lab.process import Process
from tests.client.consumer_stage import stage
from tests.pipeline.share.kill_query import HELD_STEPS, SHARE

ROOT = Path(__file__).resolve().parents[3]
# A batch stops at any of these but the last, which is seen from outside: it's in Spark's commit log.
STEPS = (*HELD_STEPS, "committed")
VICTIMS = ("driver", "executor", "broker")
PARTITIONS = 2
_EXECUTOR = b"CoarseGrainedExecutorBackend"
# Before a kill, so many batches are left of the records that it may wait for.
_BATCHES_LEFT = 5
# For one kill, and for the end. An idle machine takes a thirtieth of it.
_SECONDS = 900.0
_LOOK, _LOOK_AT_GROUP = 0.005, 2.0


@dataclass(frozen=True, slots=True)
class Kill:
    victim: str
    step: str

    def __str__(self) -> str:
        return f"{self.victim} at {self.step}"


@dataclass(frozen=True, slots=True)
class Result:
    """`lost` and `doubled` are records of the topic, by what the table has when the group is done; `redelivered` are
    rows that came with a later delivery than the first."""

    records: int
    batches: int
    lost: int
    doubled: int
    redelivered: int


@dataclass(frozen=True, slots=True)
class Played:
    """`starts` are of drivers."""

    results: dict[str, Result]
    kills: tuple[Kill, ...]
    starts: int
    seconds: float

    def __str__(self) -> str:
        victims = Counter(kill.victim for kill in self.kills)
        kills = ", ".join(f"{victims[victim]} of {victim}" for victim in VICTIMS)
        tables = "; ".join(f"{source} {result}" for source, result in self.results.items())
        return f"{len(self.kills)} kills ({kills}), {self.starts} starts, {self.seconds:.0f} s: {tables}"


def kills(count: int, seed: int) -> list[Kill]:
    """Each victim at each step, then any, in any order."""
    source = random.Random(seed)
    chosen = [Kill(victim, step) for step in STEPS for victim in VICTIMS]
    chosen += [Kill(source.choice(VICTIMS), source.choice(STEPS)) for _ in range(count)]
    chosen = chosen[:count]
    source.shuffle(chosen)
    return chosen


class _Query:
    """What can be seen of one query from outside."""

    def __init__(self, source: str, folder: Path, name: str, records: int) -> None:
        self.folder = folder / source
        self.folder.mkdir()
        self.name, self.records = f"{name}-{source}", records
        self.held = self.folder / "held"
        self.done = False
        # Rows of the table.
        self.landed = 0
        self._last_batch: int | None = None

    @property
    def planned(self) -> int:
        return _last(self.folder / "checkpoint" / "offsets")

    @property
    def committed(self) -> int:
        return _last(self.folder / "checkpoint" / "commits")

    def look(self, bootstrap: str) -> None:
        """Done: the group has no record left, and the batches that were planned by then are committed."""
        self.landed = self.rows()
        if self._last_batch is None:
            try:
                partitions = asyncio.run(_view(bootstrap, self.name)).partitions
            except KafkascopeError:
                return
            end = self.records // PARTITIONS
            if len(partitions) < PARTITIONS or any(part.lag != 0 or part.end_offset != end for part in partitions):
                return
            self._last_batch = self.planned
        self.done = self.committed >= self._last_batch

    def rows(self) -> int:
        lake = str(self.folder / "lake")
        return int(DeltaTable(lake).count()) if DeltaTable.is_deltatable(lake) else 0

    def result(self) -> Result:
        table = DeltaTable(str(self.folder / "lake")).to_pyarrow_table()
        columns = [table[name].to_pylist() for name in ("partition", "offset", "value", "_delivery_count")]
        assert all(value == _value(number, offset) for number, offset, value, _ in zip(*columns, strict=True))
        places = Counter(zip(columns[0], columns[1], strict=True))
        wanted = {(number, offset) for number in range(PARTITIONS) for offset in range(self.records // PARTITIONS)}
        assert places.keys() <= wanted
        return Result(
            records=self.records,
            batches=_last(self.folder / "lake" / "_delta_log") + 1,
            lost=len(wanted) - len(places),
            doubled=places.total() - len(places),
            redelivered=sum(count > 1 for count in columns[3]),
        )


class KilledQueries:
    """`records` is how many each source's topic has. `say` gets a line for each kill."""

    def __init__(
        self,
        lab: Cluster,
        folder: Path,
        master: str,
        records: Mapping[str, int],
        limit: int,
        say: Callable[[str], None],
    ) -> None:
        self.lab, self.folder, self.master, self.limit, self.say = lab, folder, master, limit, say
        self.name = f"killed-{uuid4().hex[:8]}"
        self.queries = {source: _Query(source, folder, self.name, count) for source, count in records.items()}
        self._main = self.queries[SHARE]
        self._hold = folder / "hold"
        self._process: Process | None = None
        self._kills: list[Kill] = []
        self._starts = 0
        self._begun = time.monotonic()
        self._looked_at = 0.0

    def play(self, planned: list[Kill]) -> Played:
        for query in self.queries.values():
            asyncio.run(_prepare(self.lab.bootstrap, query.name, query.records))
        try:
            for number, kill in enumerate(planned):
                self._read_on(number / len(planned))
                if not self._reached(kill):
                    self._release()
                    break
                self._kill(kill)
                self._report(str(kill))
            self._wait_until(lambda: all(query.done for query in self.queries.values()))
            self._report("done")
        finally:
            self._stop()
        results = {source: query.result() for source, query in self.queries.items()}
        return Played(results, tuple(self._kills), self._starts, time.monotonic() - self._begun)

    def _read_on(self, part: float) -> None:
        """Kills are spread over the records, and find some left."""
        wanted = part * self._main.records - _BATCHES_LEFT * self.limit
        self._wait_until(lambda: self._main.done or self._main.landed >= wanted)

    def _reached(self, kill: Kill) -> bool:
        """Waits until a batch of each query is at this step; False if the group is done before."""
        if kill.step == "committed":
            before = self._main.committed
            self._wait_until(lambda: self._main.done or self._main.committed > before)
        else:
            new = self._hold.with_name("hold.new")
            new.write_text(f"{kill.step} {len(self._kills)}")
            new.rename(self._hold)
            self._wait_until(lambda: all(query.done or query.held.exists() for query in self.queries.values()))
        return not self._main.done

    def _kill(self, kill: Kill) -> None:
        if kill.victim == "broker":
            self.lab.kill(1)
            self._release()
            self.lab.start(1)
            self.lab.wait_until_ready()
        elif kill.victim == "executor":
            self._wait_until(lambda: bool(_executors()))
            os.kill(random.choice(_executors()), signal.SIGKILL)
        else:
            self._stop()
        self._release()
        self._kills.append(kill)

    def _release(self) -> None:
        self._hold.unlink(missing_ok=True)
        self._forget_held()

    def _forget_held(self) -> None:
        for query in self.queries.values():
            query.held.unlink(missing_ok=True)

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        """With a driver running: for the first time, after a kill, and after it ended with an error."""
        deadline = time.monotonic() + _SECONDS
        while not condition():
            self._keep_running()
            now = time.monotonic()
            assert now < deadline, self._report("too late") + (self.folder / "driver.log").read_text()[-3_000:]
            if now > self._looked_at + _LOOK_AT_GROUP:
                for query in self.queries.values():
                    query.look(self.lab.bootstrap)
                self._looked_at = time.monotonic()
            time.sleep(_LOOK)

    def _keep_running(self) -> None:
        if self._process is not None and self._process.status is None:
            return
        self._stop()
        self._forget_held()
        arguments = [self.master, str(self.folder), self.lab.bootstrap, self.name, str(self.limit), *self.queries]
        environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
        command = [sys.executable, "-m", "tests.pipeline.share.kill_query", *arguments]
        self._process = Process(command, self.folder / "driver.log", environment=environment)
        self._starts += 1

    def _stop(self) -> None:
        """The driver: its Python and its JVM at once. What they started notices."""
        if self._process is None:
            return
        processes = [pid for pid in _descendants(self._process.pid) if _EXECUTOR not in _command(pid)]
        for pid in (self._process.pid, *processes):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.kill()
        self._process = None

    def _report(self, what: str) -> str:
        rows = ", ".join(f"{source} {query.rows():,} of {query.records:,}" for source, query in self.queries.items())
        line = f"{time.monotonic() - self._begun:5.0f} s  {len(self._kills)} kills  {what}: {rows}"
        self.say(line)
        return line


async def _prepare(bootstrap: str, name: str, records: int) -> None:
    async with stage(bootstrap) as on:
        await on.topic(name, PARTITIONS)
        # Each kill delivers some records again: none is to reach the limit.
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


def _executors() -> list[int]:
    return [pid for pid in _descendants(os.getpid()) if _EXECUTOR in _command(pid)]


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
