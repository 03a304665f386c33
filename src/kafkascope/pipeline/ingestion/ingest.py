"""Ingests recordings exactly once: plan, tasks on Spark, one commit per table, `captures` last."""

import json
import os
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import blake2b
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from kafkascope.errors import InputError
from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import GROWN_FROM
from kafkascope.lake.tables import CAPTURES_SCHEMA, message_of, table_named
from kafkascope.lake.upkeep.compact import MOST_SMALL, compact
from kafkascope.lake.upkeep.retention import SAFE_AGE
from kafkascope.lake.upkeep.settle import settled
from kafkascope.lake.upkeep.superseded import remove_superseded
from kafkascope.lake.upkeep.tidy import Tidied, tidy_if_due
from kafkascope.lake.upkeep.upgrade import lake_to_write
from kafkascope.lake.write.catalog_tables import catalog_rows, has_catalog, write_catalog
from kafkascope.lake.write.commit import Change, Overtaken, commit
from kafkascope.lake.write.files import Files, NewFile, discard
from kafkascope.lake.write.heartbeat import Running, beat, begin, end, seal, turn_of
from kafkascope.limits import MAX_BROKEN_FILES
from kafkascope.pipeline.ingestion.earlier_ingests import FileTimes, LakeCoverage, times_of
from kafkascope.pipeline.ingestion.failing_files import (
    BrokenFiles,
    quarantined,
    run_unless_broken,
    survey_unless_broken,
    times_unless_broken,
)
from kafkascope.pipeline.ingestion.file_accounts import FileAccount
from kafkascope.pipeline.ingestion.inputs import InputFile, find_inputs
from kafkascope.pipeline.ingestion.plan import AUTO, make_plan, shuffles
from kafkascope.pipeline.ingestion.progress import IngestProgress, reporting_compiles, watch_progress
from kafkascope.pipeline.ingestion.shuffle import ORDER, SEGMENT_COLUMNS, by_task, note_row, segment_rows
from kafkascope.pipeline.ingestion.state import LakeState, state_of
from kafkascope.pipeline.ingestion.survey import FileSurvey, survey_file
from kafkascope.pipeline.ingestion.task import CAPTURES as CAPTURES_KIND
from kafkascope.pipeline.ingestion.task import Task, TaskResult, routes_of, run, task_result_from_json
from kafkascope.pipeline.session import check_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

# How often the driver shows `lake vacuum` that it is alive.
_HEARTBEAT_SECONDS = 30.0
_MAX_ATTEMPTS, _MAX_SEALS = 5, 50
# Commits to different tables that run at the same time.
_PARALLEL_COMMITS = 8
# More cores than any session has.
_MOST_CORES = 100_000


@dataclass(slots=True)
class Ingested:
    """The result of an ingest. `known` are files that the lake had already, `bad` files that couldn't be read, `apart`
    files that begin before what was ingested earlier and were read on their own; `grown_from` are digests of files as
    they were when they were read before."""

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
    tidied: Tidied | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """`contents` stores keys, values and headers of records; `tasks` is how many run in parallel, `plan` how they
    share the work: auto, buckets or shuffle. `vacuum_hours` is how long files stay that no table needs any more; with
    None they stay until `vacuum`."""

    contents: bool = False
    pseudonymise: bool = False
    plan: str = AUTO
    kafka_ports: tuple[int, ...] = ()
    tasks: int | None = None
    vacuum_hours: float | None = SAFE_AGE / timedelta(hours=1)


def ingest(
    spark: "SparkSession",
    uris: Iterable[str | os.PathLike[str]],
    lake: str | os.PathLike[str] | Lake,
    options: Options = Options(),  # noqa: B008
    progress: Callable[[IngestProgress], None] = lambda _: None,
) -> Ingested:
    """Calls `progress` now and then, from a thread of its own."""
    check_version(spark)
    target = lake if isinstance(lake, Lake) else lake_to_write(lake)
    files = find_inputs(uris)
    readable = [file for file in files if file.error is None]
    broken: dict[str, str] = {}
    attempts = 0
    while attempts < _MAX_ATTEMPTS:
        try:
            result = _ingest(spark, readable, target, options, progress, broken)
        except Overtaken:
            # Another ingest resumed the same unfinished ends first: start over from what it left.
            attempts += 1
            continue
        except BrokenFiles as error:
            # Connections span files, so its rows are part of those of the others: read them all again.
            repeated = error.files.keys() <= broken.keys()
            broken |= error.files
            if repeated or len(broken) > MAX_BROKEN_FILES:
                uri, why = next(iter(error.files.items()))
                raise InputError(
                    f"{uri or target.uri}: {why}, and {len(broken) - 1} more; ingest the others without them"
                ) from None
            continue
        result.bad |= {file.uri: file.error for file in files if file.error is not None}
        result.bad |= {uri or target.uri: f"{uri or target.uri}: {why}" for uri, why in broken.items()}
        if result.new and options.vacuum_hours is not None:
            result.tidied = tidy_if_due(target, timedelta(hours=options.vacuum_hours))
        return result
    raise InputError(f"{target.uri}: other ingests committed first {_MAX_ATTEMPTS} times; run this one again")


def _ingest(
    spark: "SparkSession", files: list[InputFile], lake: Lake, options: Options,
    progress: Callable[[IngestProgress], None], broken: dict[str, str],
) -> Ingested:  # fmt: skip
    turn = turn_of(lake)
    state = state_of(lake)
    if "" in broken:
        state = replace(state, distrusted=True)
    candidates = [file for file in files if file.uri not in broken]
    # Of two files with the same bytes, take the first.
    by_digest = {file.digest: state.grown(file) for file in candidates[::-1] if file.digest not in state.digests}
    new = [*by_digest.values()][::-1]
    ingest_id = _ingest_id(new, state, options)
    result = Ingested(ingest_id, known=[file.uri for file in candidates if file.digest in state.digests])
    if not new:
        # Also completes an ingest that was killed after its commit.
        remove_superseded(lake)
        return result
    result.grown_from = {file.uri: digest for file in new if (digest := state.grown_from(file)) is not None}
    heartbeat = begin(lake, ingest_id)
    try:
        with _heartbeats(lake, heartbeat) as current:
            cores = cores_of(spark, options.tasks)

            def survey_files(part: list[InputFile], sample: int) -> list[FileSurvey]:
                work = partial(_survey, lake.uri, ingest_id, sample)
                return survey_unless_broken(part, lambda half: on_workers(spark, cores, half, work))

            def read_times(part: list[FileSurvey], coverage: LakeCoverage) -> list[FileTimes]:
                work = partial(times_of, coverage=coverage)
                return times_unless_broken(part, lambda half: on_workers(spark, cores, half, work))

            start = IngestProgress(len(new), sum(file.size for file in new))
            # Before there are tasks, there may be kernels to wait for.
            with watch_progress(lake, ingest_id, [1], start, progress):
                tasks, surveys = make_plan(lake, ingest_id, new, state, options, cores, survey_files, read_times)
            refused = {survey.file.uri: survey.broken for survey in surveys if survey.broken is not None}
            if refused:
                raise BrokenFiles(refused)
            shuffle = shuffles(new, options.plan)
            # Without a shuffle, every capture task reads all captures.
            shares = [1 if shuffle else task.buckets for task in tasks]
            if not has_catalog(lake):
                # It takes as long as all commits, and the driver waits for the tasks meanwhile.
                Thread(target=catalog_rows, daemon=True).start()
            with watch_progress(lake, ingest_id, shares, start, progress):
                task_results = run_unless_broken(
                    lake, tasks, lambda together: run_on_spark(spark, together, shuffle=shuffle),
                    lambda alone: run_on_spark(spark, alone),
                )  # fmt: skip
            if broken:
                rows = quarantined(lake, ingest_id, broken, {file.uri: file.size for file in files})
                task_results.append(TaskResult(files=rows, quarantined=len(broken)))
            result.apart = [survey.file.uri for survey in surveys if survey.apart]
            for survey in surveys:
                if survey.error:
                    result.bad[survey.file.uri] = survey.error
            goes_on = any(task.kind == CAPTURES_KIND for task in tasks)
            digests = {file.digest for file in new}

            logs = {file.log.key for file in new if file.log is not None}

            def unchanged() -> bool:
                latest = state_of(lake)
                if any(latest.known_logs.get(key) != state.known_logs.get(key) for key in logs):
                    return False
                return not digests & latest.digests and (latest.heads == state.heads or not goes_on)

            if turn_of(lake) != turn and not unchanged():
                discard(lake, [file for task_result in task_results for file in task_result.files])
                raise Overtaken
            sources = [survey.file for survey in surveys]
            captures_task = next((task for task in tasks if task.kind == CAPTURES_KIND), None)
            follows = captures_task.follows if captures_task is not None else ()
            earlier_tables = set(lake.tables())
            with ThreadPoolExecutor(1) as pool:
                catalog = pool.submit(write_catalog, lake)
                capture_files = _commit(lake, current(), sources, task_results, result, options, follows)
                resumed = _resumed_ingests(captures_task)
                _land(lake, current(), capture_files, turn, unchanged, lambda table: settled(lake, table, resumed))
                catalog.result()
            # A table that this ingest created has only its files.
            began = Counter(
                file.table
                for task_result in task_results
                for file in task_result.files
                if file.table not in earlier_tables
            )
            small = {name for name, count in began.items() if count <= MOST_SMALL}
            compact(lake, [name for name in lake.tables() if name not in small])
    finally:
        end(lake, heartbeat)
    return result


def _survey(lake: str, ingest_id: str, sample: int, file: InputFile) -> FileSurvey:
    with reporting_compiles(lake, ingest_id, 0):
        return survey_file(file, sample=sample)


def _ingest_id(files: list[InputFile], state: LakeState, options: Options) -> str:
    """Equal for equal bytes, options and starting state: what a killed run left is completed, not duplicated."""
    option_values = [options.contents, options.pseudonymise, sorted(options.kafka_ports), *([True] * state.distrusted)]
    values = [sorted(file.digest for file in files), sorted(state.heads), option_values]
    keys = {file.log.key for file in files if file.log is not None}
    if keys:
        values.append([[key, repr(state.known_logs.get(key))] for key in sorted(keys)])
    text = json.dumps(values)
    return blake2b(text.encode(), digest_size=10).hexdigest()


def cores_of(spark: "SparkSession", requested: int | None) -> int:
    """The number of tasks that run in parallel, if the session reports it."""
    if requested:
        return requested
    master = spark.conf.get("spark.master", "") or ""
    local = re.fullmatch(r"local\[(\d+|\*)\]", master)
    if local:
        return os.cpu_count() or 1 if local[1] == "*" else int(local[1])
    max_cores = spark.conf.get("spark.cores.max", "")
    if max_cores:
        return int(max_cores)
    executors = spark.conf.get("spark.executor.instances", "")
    if executors:
        return int(executors) * int(spark.conf.get("spark.executor.cores", "") or 1)
    # By default, rows are split into as many partitions as there are cores. The first result may be from before the
    # executors started; starting them is what produced it.
    parts = spark.range(0, _MOST_CORES).selectExpr("spark_partition_id() AS part").selectExpr("max(part) + 1 AS parts")
    return max(int(parts.collect()[0].parts) for _ in range(2))


def on_workers(spark: "SparkSession", cores: int, items: list[T], work: Callable[[T], R]) -> list[R]:
    """The result of `work` for each item, in their order."""
    parts = min(len(items), 2 * cores)

    def run_some(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                pickled = pickle.dumps((number, work(items[number])))
                yield pa.record_batch([pa.array([pickled], pa.binary())], names=["result"])

    numbers: Any = spark.range(0, len(items), 1, parts)
    # Written by our own workers.
    rows = [pickle.loads(bytes(row.result)) for row in numbers.mapInArrow(run_some, "result binary").collect()]  # noqa: S301
    return [result for _, result in sorted(rows, key=lambda row: int(row[0]))]


def run_on_spark(spark: "SparkSession", tasks: list[Task], *, shuffle: bool = False) -> list[TaskResult]:
    """With `shuffle` each capture is read once, and its segments go to the tasks of their connections."""
    if shuffle:
        captures = [task for task in tasks if task.kind == CAPTURES_KIND]
        other_tasks = [task for task in tasks if task.kind != CAPTURES_KIND]
        return [*_shuffled(spark, captures), *(run_on_spark(spark, other_tasks) if other_tasks else ())]

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.record_batch([pa.array([run(tasks[number]).to_json()])], names=["done"])

    numbers: Any = spark.range(0, len(tasks), 1, len(tasks))
    return [task_result_from_json(row.done) for row in numbers.mapInArrow(work, "done string").collect()]


def _shuffled(spark: "SparkSession", tasks: list[Task]) -> list[TaskResult]:
    if not tasks:
        return []
    first_task, routes = tasks[0], routes_of(tasks)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                if row["uri"] is None:
                    yield note_row(row["file"], -1, "")
                else:
                    yield from segment_rows(row["uri"], row["file"], first_task.skip.get(row["uri"], 0), routes)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, rows in by_task(batches):
            done = run(tasks[number], rows).to_json()
            yield pa.record_batch([pa.array([done])], names=["done"])

    # One row per task as well: it may have state of an earlier ingest and no new segment.
    inputs = [*((uri, file) for file, uri in enumerate(first_task.uris)), *((None, n) for n in range(len(tasks)))]
    files: Any = spark.createDataFrame(inputs, "uri string, file int").repartition(len(inputs))
    rows = files.mapInArrow(read, SEGMENT_COLUMNS).repartitionById(len(tasks), "task").sortWithinPartitions(*ORDER)
    return [task_result_from_json(row.done) for row in rows.mapInArrow(work, "done string").collect()]


def _commit(
    lake: Lake, heartbeat: Running, sources: list[InputFile], task_results: list[TaskResult], result: Ingested,
    options: Options, follows: Iterable[str],
) -> list[NewFile]:  # fmt: skip
    """Commits all tables except `captures`, whose new files are returned."""
    by_table: dict[str, list[NewFile]] = {}
    for task_result in task_results:
        for file in task_result.files:
            by_table.setdefault(file.table, []).append(file)
        _merge(result, task_result)

    def put(name: str) -> None:
        contents = options.contents and message_of(name) is not None
        commit(lake, table_named(name, contents=contents), by_table[name], heartbeat.ingest_id)

    # A commit spends most of its time waiting for the store.
    with ThreadPoolExecutor(_PARALLEL_COMMITS) as pool:
        list(pool.map(put, sorted(by_table)))
    result.rows = {name: sum(file.rows for file in files) for name, files in sorted(by_table.items())}
    gone = {uri for uri, account in result.accounts.items() if account.gone}
    good = [source for source in sources if source.uri not in result.bad and source.uri not in gone]
    capture_files = Files(lake, heartbeat.ingest_id)
    capture_files.add(table_named("captures"), _captures(heartbeat.ingest_id, good, result, options, follows))
    result.new = [source.uri for source in good]
    result.bytes = sum(source.size for source in sources)
    return capture_files.close()


def _resumed_ingests(task: Task | None) -> set[str]:
    """Ingests whose unfinished frames this one has continued, all of them. The others stay lost where they were."""
    if task is None or task.unread:
        return set()
    return set(task.follows) - {ingest for ingest, _ in task.dropped}


def _land(
    lake: Lake,
    heartbeat: Running,
    capture_files: list[NewFile],
    turn: int,
    unchanged: Callable[[], bool],
    change: Change,
) -> None:
    """Others may commit at the same time, as long as what this ingest began with is `unchanged`."""
    for _ in range(_MAX_SEALS):
        try:
            seal(lake, heartbeat, capture_files, turn, change)
        except Overtaken:
            turn = turn_of(lake)
            if not unchanged():
                break
        else:
            return
    discard(lake, capture_files)
    raise Overtaken


def _merge(result: Ingested, done: TaskResult) -> None:
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
    ingest_id: str, sources: list[InputFile], result: Ingested, options: Options, follows: Iterable[str]
) -> pa.Table:
    now = int(datetime.now(UTC).timestamp() * 1e6)
    # How long other files stay has nothing to do with these rows.
    options_of_rows = {name: value for name, value in asdict(options).items() if name != "vacuum_hours"}
    rows = []
    for source in sources:
        account = result.accounts.get(source.uri, FileAccount())
        rows.append(
            {
                "ingest_id": ingest_id,
                "capture_uri": source.uri,
                "kind": source.kind,
                "digest": source.digest,
                "bytes": source.size,
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
                "options": json.dumps(options_of_rows | _grown_option(result, source.uri)),
                "follows": sorted(follows),
            }
        )
    plain = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in CAPTURES_SCHEMA])
    return pa.Table.from_pylist(rows, schema=plain).cast(CAPTURES_SCHEMA)


def _grown_option(result: Ingested, uri: str) -> dict[str, str]:
    """The row of a file that has grown counts all packets, and otherwise only what is new: readers must know which rows
    are about the same file."""
    return {GROWN_FROM: result.grown_from[uri]} if uri in result.grown_from else {}


@contextmanager
def _heartbeats(lake: Lake, heartbeat: Running) -> Iterator[Callable[[], Running]]:
    """Shows signs of life while the work runs; returns the newest one when called."""
    newest = [heartbeat]
    stop = Event()

    def renew() -> None:
        while not stop.wait(_HEARTBEAT_SECONDS):
            newest[0] = beat(lake, newest[0])

    thread = Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield lambda: newest[0]
    finally:
        stop.set()
        thread.join()
