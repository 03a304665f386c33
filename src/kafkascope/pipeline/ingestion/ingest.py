"""Recordings in, rows of the lake out, exactly once: plan, tasks on Spark, one commit a table, `captures` last."""

import json
import os
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from kafkascope.errors import InputError
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import GROWN_FROM
from kafkascope.lake.tables import CAPTURES, message_of, table_named
from kafkascope.lake.upkeep.compact import MOST_SMALL, compact
from kafkascope.lake.upkeep.settle import settled
from kafkascope.lake.upkeep.superseded import take_out_superseded
from kafkascope.lake.upkeep.upgrade import lake_to_write
from kafkascope.lake.write.catalog_tables import write_catalog
from kafkascope.lake.write.commit import Change, Overtaken, commit
from kafkascope.lake.write.files import Files, NewFile, discard
from kafkascope.lake.write.heartbeat import Running, beat, begin, end, seal, turn_of
from kafkascope.limits import MAX_BROKEN_FILES
from kafkascope.pipeline.ingestion.earlier_ingests import Known, Times, times_of
from kafkascope.pipeline.ingestion.failing_files import (
    Broke,
    quarantined,
    run_unless_broken,
    survey_unless_broken,
    times_unless_broken,
)
from kafkascope.pipeline.ingestion.inputs import Found, find
from kafkascope.pipeline.ingestion.plan import AUTO, make_plan, shuffles
from kafkascope.pipeline.ingestion.progress import Step, watched
from kafkascope.pipeline.ingestion.shuffle import ORDER, SCHEMA, by_bucket, note_row, segment_rows
from kafkascope.pipeline.ingestion.state import State, state_of
from kafkascope.pipeline.ingestion.survey import Surveyed, survey
from kafkascope.pipeline.ingestion.task import CAPTURES as CAPTURES_KIND
from kafkascope.pipeline.ingestion.task import Done, FileAccount, Task, done_from, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

# A sign of life of the driver, for `lake vacuum`.
BEAT_SECONDS = 30.0
_ATTEMPTS, _LANDINGS = 5, 50
# Commits to different tables that are under way at once.
_COMMITS = 8
# More cores than any session has.
_MOST_CORES = 100_000


@dataclass(slots=True)
class Ingested:
    """What an ingest did. `known` are files that were in the lake already, `bad` those that could not be read, `apart`
    those that begin before what was ingested earlier and were read on their own; `grown_from` are digests of what files
    were when they were read before."""

    ingest_id: str
    new: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    bad: dict[str, str] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    exchanges: int = 0
    quarantined: int = 0
    bytes: int = 0
    accounts: dict[str, FileAccount] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)
    protocols: dict[str, tuple[int, int]] = field(default_factory=dict)
    apart: list[str] = field(default_factory=list)
    grown_from: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Options:
    """`contents` stores keys, values and headers of records; `tasks` is how many run side by side, `plan` how they
    share the work: auto, buckets or shuffle."""

    contents: bool = False
    pseudonymise: bool = False
    plan: str = AUTO
    kafka_ports: tuple[int, ...] = ()
    tasks: int | None = None


def ingest(
    spark: "SparkSession",
    uris: Iterable[str | os.PathLike[str]],
    lake: str | os.PathLike[str] | Lake,
    options: Options = Options(),  # noqa: B008
    progress: Callable[[Step], None] = lambda _: None,
) -> Ingested:
    """`progress` hears how far it is now and then, in a thread of its own."""
    home = lake if isinstance(lake, Lake) else lake_to_write(lake)
    found = find(uris)
    readable = [one for one in found if one.error is None]
    broken: dict[str, str] = {}
    attempts = 0
    while attempts < _ATTEMPTS:
        try:
            done = _ingest(spark, readable, home, options, progress, broken)
        except Overtaken:
            # Another ingest went on from the same unfinished ends, and was first: begin again from what it left.
            attempts += 1
            continue
        except Broke as error:
            # Its rows are in those of the others, by connections that run from file to file: they are read anew.
            known = error.files.keys() <= broken.keys()
            broken |= error.files
            if known or len(broken) > MAX_BROKEN_FILES:
                uri, why = next(iter(error.files.items()))
                raise InputError(
                    f"{uri or home.uri}: {why}, and {len(broken) - 1} more; ingest the others without them"
                ) from None
            continue
        done.bad |= {one.uri: one.error for one in found if one.error is not None}
        done.bad |= {uri or home.uri: f"{uri or home.uri}: {why}" for uri, why in broken.items()}
        return done
    raise InputError(f"{home.uri}: other ingests were first {_ATTEMPTS} times; run this one again")


def _ingest(
    spark: "SparkSession", asked: list[Found], lake: Lake, options: Options, progress: Callable[[Step], None],
    broken: dict[str, str],
) -> Ingested:  # fmt: skip
    turn = turn_of(lake)
    before = state_of(lake)
    if "" in broken:
        before = replace(before, distrusted=True)
    found = [one for one in asked if one.uri not in broken]
    new = [*{one.digest: before.grown(one) for one in found[::-1] if one.digest not in before.digests}.values()][::-1]
    ingest_id = _identity(new, before, options)
    result = Ingested(ingest_id, known=[one.uri for one in found if one.digest in before.digests])
    if not new:
        # An ingest that was killed once it had landed is completed too.
        take_out_superseded(lake)
        return result
    result.grown_from = {one.uri: known for one in new if (known := before.grown_from(one)) is not None}
    sign = begin(lake, ingest_id)
    try:
        with beating(lake, sign) as current:
            cores = cores_of(spark, options.tasks)

            def look(some: list[Found], sample: int) -> list[Surveyed]:
                work = partial(survey, sample=sample)
                return survey_unless_broken(some, lambda part: on_workers(spark, cores, part, work))

            def look_at_times(some: list[Surveyed], known: Known) -> list[Times]:
                work = partial(times_of, known=known)
                return times_unless_broken(some, lambda part: on_workers(spark, cores, part, work))

            tasks, surveyed = make_plan(lake, ingest_id, new, before, options, cores, look, look_at_times)
            refused = {one.found.uri: one.broken for one in surveyed if one.broken is not None}
            if refused:
                raise Broke(refused)
            shuffle = shuffles(new, options.plan)
            start = Step(len(new), sum(one.size for one in new))
            # Without a shuffle every task of captures reads all of them.
            shares = [1 if shuffle else task.buckets for task in tasks]
            with watched(lake, ingest_id, shares, start, progress):
                done = run_unless_broken(
                    lake, tasks, lambda together: run_on_spark(spark, together, shuffle=shuffle),
                    lambda alone: run_on_spark(spark, alone),
                )  # fmt: skip
            if broken:
                rows = quarantined(lake, ingest_id, broken, {file.uri: file.size for file in asked})
                done.append(Done(files=rows, quarantined=len(broken)))
            result.apart = [one.found.uri for one in surveyed if one.apart]
            for one in surveyed:
                if one.error:
                    result.bad[one.found.uri] = one.error
            goes_on = any(task.kind == CAPTURES_KIND for task in tasks)
            digests = {one.digest for one in new}

            def unchanged() -> bool:
                now = state_of(lake)
                return not digests & now.digests and (now.heads == before.heads or not goes_on)

            if turn_of(lake) != turn and not unchanged():
                discard(lake, [file for one in done for file in one.files])
                raise Overtaken
            read = [one.found for one in surveyed]
            captures = next((task for task in tasks if task.kind == CAPTURES_KIND), None)
            follows = captures.follows if captures is not None else ()
            before_it = set(lake.tables())
            with ThreadPoolExecutor(1) as beside:
                catalog = beside.submit(write_catalog, lake)
                last = _commit(lake, current(), read, done, result, options, follows)
                _land(lake, current(), last, turn, unchanged, lambda table: settled(lake, table, _gone_on(captures)))
                catalog.result()
            # A table that began with this ingest has its files alone.
            began = Counter(file.table for one in done for file in one.files if file.table not in before_it)
            few = {name for name, count in began.items() if count <= MOST_SMALL}
            compact(lake, [name for name in lake.tables() if name not in few])
    finally:
        end(lake, sign)
    return result


def _identity(found: list[Found], before: State, options: Options) -> str:
    """The same for the same bytes, options and beginnings: what a killed run left is completed, not doubled."""
    wanted = [options.contents, options.pseudonymise, sorted(options.kafka_ports), *([True] * before.distrusted)]
    said = json.dumps([sorted(one.digest for one in found), sorted(before.heads), wanted])
    return blake2b(said.encode(), digest_size=10).hexdigest()


def cores_of(spark: "SparkSession", wanted: int | None) -> int:
    """How many tasks run side by side, where the session tells."""
    if wanted:
        return wanted
    master = spark.conf.get("spark.master", "") or ""
    local = re.fullmatch(r"local\[(\d+|\*)\]", master)
    if local:
        return os.cpu_count() or 1 if local[1] == "*" else int(local[1])
    told = spark.conf.get("spark.cores.max", "")
    if told:
        return int(told)
    executors = spark.conf.get("spark.executor.instances", "")
    if executors:
        return int(executors) * int(spark.conf.get("spark.executor.cores", "") or 1)
    # Rows that nobody cuts otherwise come in as many parts as there are cores. The first answer may be from before the
    # executors came; it took one to give it.
    parts = spark.range(0, _MOST_CORES).selectExpr("spark_partition_id() AS part").selectExpr("max(part) + 1 AS parts")
    return max(int(parts.collect()[0].parts) for _ in range(2))


def on_workers(spark: "SparkSession", cores: int, items: list[T], work: Callable[[T], R]) -> list[R]:
    """What `work` makes of each, in their order."""
    parts = min(len(items), 2 * cores)

    def run_some(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                said = pickle.dumps((number, work(items[number])))
                yield pa.record_batch([pa.array([said], pa.binary())], names=["result"])

    numbers: Any = spark.range(0, len(items), 1, parts)
    # Our own workers have written it.
    rows = [pickle.loads(bytes(row.result)) for row in numbers.mapInArrow(run_some, "result binary").collect()]  # noqa: S301
    return [result for _, result in sorted(rows, key=lambda row: int(row[0]))]


def run_on_spark(spark: "SparkSession", tasks: list[Task], *, shuffle: bool = False) -> list[Done]:
    """With `shuffle` each capture is read once, and its segments go to the tasks of their connections."""
    if shuffle:
        captures = [task for task in tasks if task.kind == CAPTURES_KIND]
        rest = [task for task in tasks if task.kind != CAPTURES_KIND]
        return [*_shuffled(spark, captures), *(run_on_spark(spark, rest) if rest else ())]

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.record_batch([pa.array([run(tasks[number]).to_json()])], names=["done"])

    numbers: Any = spark.range(0, len(tasks), 1, len(tasks))
    return [done_from(row.done) for row in numbers.mapInArrow(work, "done string").collect()]


def _shuffled(spark: "SparkSession", tasks: list[Task]) -> list[Done]:
    if not tasks:
        return []
    whole = tasks[0]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                if row["uri"] is None:
                    yield note_row(row["file"], -1, "")
                else:
                    skip = whole.skip.get(row["uri"], 0)
                    yield from segment_rows(row["uri"], row["file"], skip, whole.buckets, whole.bucket_of)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket, rows in by_bucket(batches):
            done = run(tasks[bucket], rows).to_json()
            yield pa.record_batch([pa.array([done])], names=["done"])

    # A row a bucket too: what an earlier ingest left of it may have no new segment.
    given = [*((uri, file) for file, uri in enumerate(whole.uris)), *((None, one.bucket) for one in tasks)]
    files: Any = spark.createDataFrame(given, "uri string, file int").repartition(len(given))
    rows = files.mapInArrow(read, SCHEMA).repartitionById(len(tasks), "bucket").sortWithinPartitions(*ORDER)
    return [done_from(row.done) for row in rows.mapInArrow(work, "done string").collect()]


def _commit(
    lake: Lake, sign: Running, found: list[Found], done: list[Done], result: Ingested, options: Options,
    follows: Iterable[str],
) -> list[NewFile]:  # fmt: skip
    """All tables but `captures`, whose new files these are."""
    by_table: dict[str, list[NewFile]] = {}
    for one in done:
        for file in one.files:
            by_table.setdefault(file.table, []).append(file)
        _merge(result, one)

    def put(name: str) -> None:
        contents = options.contents and message_of(name) is not None
        commit(lake, table_named(name, contents=contents), by_table[name], sign.ingest_id)

    # A commit waits for its store most of the time.
    with ThreadPoolExecutor(_COMMITS) as pool:
        list(pool.map(put, sorted(by_table)))
    result.rows = {name: sum(file.rows for file in files) for name, files in sorted(by_table.items())}
    rows = _captures(sign.ingest_id, [one for one in found if one.uri not in result.bad], result, options, follows)
    files_of = Files(lake, sign.ingest_id)
    files_of.add(table_named("captures"), rows)
    result.new = [one.uri for one in found if one.uri not in result.bad]
    result.bytes = sum(one.size for one in found)
    return files_of.close()


def _gone_on(task: Task | None) -> set[str]:
    """Ingests whose unfinished frames this one has read on, all of them. What it has not stays lost where it was."""
    if task is None or task.unread:
        return set()
    return set(task.follows) - {ingest for ingest, _ in task.dropped}


def _land(
    lake: Lake, sign: Running, last: list[NewFile], turn: int, unchanged: Callable[[], bool], change: Change
) -> None:
    """Others may land at the same time, as long as what this ingest began with is `unchanged`."""
    for _ in range(_LANDINGS):
        try:
            seal(lake, sign, last, turn, change)
        except Overtaken:
            turn = turn_of(lake)
            if not unchanged():
                break
        else:
            return
    discard(lake, last)
    raise Overtaken


def _merge(result: Ingested, done: Done) -> None:
    result.exchanges += done.exchanges
    result.quarantined += done.quarantined
    for uri, account in done.accounts.items():
        _add(result.accounts.setdefault(uri, FileAccount()), account)
        if account.error:
            result.bad[uri] = account.error
    for name in ("statuses", "problems"):
        counts = getattr(result, name)
        for kind, count in getattr(done, name).items():
            counts[kind] = counts.get(kind, 0) + count
    for name, (count, size) in done.protocols.items():
        before = result.protocols.get(name, (0, 0))
        result.protocols[name] = (before[0] + count, before[1] + size)


def _add(total: FileAccount, more: FileAccount) -> None:
    for name, value in asdict(more).items():
        if isinstance(value, int) and not name.endswith("_ns"):
            setattr(total, name, getattr(total, name) + value)
    if more.first_ns is not None and more.last_ns is not None:
        total.first_ns = min(more.first_ns, total.first_ns or more.first_ns)
        total.last_ns = max(more.last_ns, total.last_ns or more.last_ns)
    total.error = total.error or more.error


def _captures(
    ingest_id: str, found: list[Found], result: Ingested, options: Options, follows: Iterable[str]
) -> pa.Table:
    now = int(datetime.now(UTC).timestamp() * 1e6)
    rows = []
    for one in found:
        account = result.accounts.get(one.uri, FileAccount())
        rows.append(
            {
                "ingest_id": ingest_id,
                "capture_uri": one.uri,
                "kind": one.kind,
                "digest": one.digest,
                "bytes": one.size,
                "packets": account.packets,
                "log_lines": account.log_lines,
                "first_at": account.first_ns and account.first_ns // 1000,
                "last_at": account.last_ns and account.last_ns // 1000,
                "frames": account.frames,
                "exchanges": account.exchanges,
                "lost_bytes": account.lost_bytes,
                "lost_places": account.lost_places,
                "pending_frames": account.pending_frames,
                "pending_bytes": account.pending_bytes,
                "pending_places": account.pending_places,
                "pending_tls_bytes": account.pending_tls_bytes,
                "pending_tcp_bytes": account.pending_tcp_bytes,
                "tls_bytes": account.tls_bytes,
                "tcp_bytes": account.tcp_bytes,
                "quarantined": account.quarantined,
                "ingested_at": now,
                "options": json.dumps(asdict(options) | _grown(result, one.uri)),
                "follows": sorted(follows),
            }
        )
    plain = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in CAPTURES])
    return pa.Table.from_pylist(rows, schema=plain).cast(CAPTURES)


def _grown(result: Ingested, uri: str) -> dict[str, str]:
    """Of a file that has grown its row tells all packets and what is new of the rest: readers must know which row is of
    the same file."""
    return {GROWN_FROM: result.grown_from[uri]} if uri in result.grown_from else {}


@contextmanager
def beating(lake: Lake, sign: Running) -> Iterator[Callable[[], Running]]:
    """Signs of life while the work goes on; the newest one when asked."""
    newest = [sign]
    stop = Event()

    def go_on() -> None:
        while not stop.wait(BEAT_SECONDS):
            newest[0] = beat(lake, newest[0])

    thread = Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield lambda: newest[0]
    finally:
        stop.set()
        thread.join()
