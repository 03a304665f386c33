"""Runs one task of an ingest: reads recordings, writes new files of the lake and accounts for what was read. It doesn't
depend on Spark; nothing is in the lake until the driver commits."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import fs

from kafkascope.capture.base.flow import Endpoints, Problem
from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.exchanges.identity import connection_hash, connection_name
from kafkascope.capture.reader import Reading
from kafkascope.capture.resume.choose import Choice, flow_hash
from kafkascope.capture.resume.parse import parse_carried
from kafkascope.capture.resume.reread import ReopenTracker
from kafkascope.capture.resume.run import Part
from kafkascope.capture.resume.state import Carried
from kafkascope.capture.resume.stretch import ALL_PACKETS, Stretch
from kafkascope.capture.resume.tcp import connection_of
from kafkascope.errors import InputError, KafkascopeError, KernelError, NotFoundError
from kafkascope.lake.file_names import pending
from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.inside import inside
from kafkascope.lake.place import place_of
from kafkascope.lake.tables import UNFINISHED_SCHEMA, table_named
from kafkascope.lake.upkeep.settle import PENDING_COLUMNS
from kafkascope.lake.write.files import Files, NewFile
from kafkascope.lake.write.heartbeat import INGESTS
from kafkascope.pipeline.disks.split_rows import SplitReader
from kafkascope.pipeline.disks.splits import LogSplit
from kafkascope.pipeline.ingestion.file_accounts import FileAccount, add_file_facts, add_tallies, row_accounts
from kafkascope.pipeline.ingestion.inputs import open_input
from kafkascope.pipeline.ingestion.plain_frames import FRAMES
from kafkascope.pipeline.ingestion.progress import reporting_compiles, write_progress
from kafkascope.pipeline.ingestion.pseudonyms import Pseudonyms
from kafkascope.pipeline.ingestion.rows.connections import EndedConnections, connection_rows
from kafkascope.pipeline.ingestion.rows.earlier_pending import EarlierPending
from kafkascope.pipeline.ingestion.rows.exchange_writer import ExchangeWriter
from kafkascope.pipeline.ingestion.rows.log_writer import LogWriter
from kafkascope.pipeline.ingestion.rows.plain_frames import read_plain_frames
from kafkascope.pipeline.ingestion.rows.problems import UNFINISHED_KIND, write_problems
from kafkascope.pipeline.ingestion.shuffle import Routes, SegmentsReading, chunk_bytes
from kafkascope.pipeline.ingestion.why_broken import why_of
from kafkascope.pipeline.ingestion.worker import tune_process

# How often a task reports its progress.
PROGRESS_SECONDS = 1.0
CAPTURES = "captures"
# Splits of log directories.
LOGS = "log directories"
# In the lake, per task: the file that it is reading.
READING_MARK = ".reading"


@dataclass(frozen=True, slots=True)
class Task:
    """`kind` is CAPTURES, for all captures of the ingest, or the kind of the one file. Connections of `bucket`, one of
    `buckets`, are this task's, by hash or as `placed` assigns them. A bucket may have several tasks, with a `stretch`
    each: the last one also accounts for the connections, and that of the first bucket for the files.
    `carried` is the unfinished state of the ingests that it `follows`, except (ingest, connection) in `dropped`, which
    another one got further with, or in `unread`; `skip` is how many packets of a file were read then. `splits` are
    those of log directories. With `marks` it marks the file that it reads, for the driver to find if it dies."""

    lake: str
    ingest_id: str
    number: int
    kind: str
    uris: tuple[str, ...]
    bucket: int = 0
    buckets: int = 1
    placed: Mapping[Endpoints, int] = field(default_factory=dict)
    carried: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    dropped: frozenset[tuple[str, str]] = frozenset()
    skip: Mapping[str, int] = field(default_factory=dict)
    contents: bool = False
    secret: bytes | None = None
    kafka_ports: tuple[int, ...] = ()
    unread: tuple[str, ...] = ()
    marks: bool = False
    splits: tuple[LogSplit, ...] = ()
    stretch: Stretch = ALL_PACKETS

    @property
    def accounts_for_files(self) -> bool:
        return self.bucket == 0 and self.stretch.is_last

    def choice(self) -> Choice | None:
        if self.buckets == 1:
            return None
        return lambda ends: self.bucket_of(ends) == self.bucket

    def bucket_of(self, ends: Endpoints) -> int:
        bucket = self.placed.get(ends)
        return flow_hash(ends) % self.buckets if bucket is None else bucket


def routes_of(tasks: Sequence[Task]) -> Routes:
    """For a shuffle: `tasks` are all captures tasks of an ingest."""
    by_bucket: list[list[tuple[int, Stretch]]] = [[] for _ in range(tasks[0].buckets)]
    for number, task in enumerate(tasks):
        by_bucket[task.bucket].append((number, task.stretch))
    accounts = next(number for number, task in enumerate(tasks) if task.accounts_for_files)
    return Routes(tasks[0].bucket_of, by_bucket, accounts)


@dataclass(slots=True)
class TaskResult:
    """What a task leaves: its files, and the account of every recording by its URI; or only the file that broke it, and
    why."""

    files: list[NewFile] = field(default_factory=list)
    accounts: dict[str, FileAccount] = field(default_factory=dict)
    exchanges: int = 0
    quarantined: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)
    protocols: dict[str, tuple[int, int]] = field(default_factory=dict)
    seconds: float = 0.0
    broken: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def task_result_from_json(text: str) -> TaskResult:
    values = json.loads(text)
    values["files"] = [NewFile(**file) for file in values["files"]]
    values["accounts"] = {uri: FileAccount(**account) for uri, account in values["accounts"].items()}
    values["protocols"] = {name: (count, size) for name, (count, size) in values["protocols"].items()}
    return TaskResult(**values)


def run(task: Task, segments: Iterator[pa.RecordBatch] | None = None) -> TaskResult:
    """`segments` are the rows for this task, if other tasks have read the captures."""
    tune_process()
    lake = open_lake(task.lake)
    files, pending_files = Files(lake, task.ingest_id), Files(lake, pending(task.ingest_id))
    current_file = _CurrentFile(task, lake)
    try:
        with reporting_compiles(task.lake, task.ingest_id, task.number):
            if task.kind == FRAMES:
                return _plain(task, lake, files, current_file)
            if task.kind == LOGS:
                return _log_directories(task, lake, files, current_file)
            return _recorded(task, lake, files, pending_files, segments, current_file)
    except BaseException as error:
        files.abort()
        pending_files.abort()
        expected = isinstance(error, KafkascopeError) and not isinstance(error, KernelError)
        if expected or not isinstance(error, Exception):
            raise
        return TaskResult(broken={current_file.uri: why_of(error)})


class _CurrentFile:
    """The file that a task is reading; none while it resumes what earlier ingests left."""

    def __init__(self, task: Task, lake: Lake) -> None:
        self.uri = ""
        self._mark = (
            inside(lake.place, f"{INGESTS}/{task.ingest_id}-{task.number}{READING_MARK}") if task.marks else None
        )

    def __call__(self, uri: str) -> None:
        if uri != self.uri:
            self.uri = uri
            if self._mark is not None:
                self._mark.write(uri.encode())


def _recorded(
    task: Task,
    lake: Lake,
    files: Files,
    pending_files: Files,
    segments: Iterator[pa.RecordBatch] | None,
    current_file: _CurrentFile,
) -> TaskResult:
    began = time.process_time()
    pseudonyms = Pseudonyms(task.secret) if task.secret else None
    writer = ExchangeWriter(files, contents=task.contents, pseudonyms=pseudonyms)
    bad: dict[str, str] = {}

    def on_bad(error: InputError) -> None:
        if isinstance(error, KernelError):
            # Discard what was read of it before: the file is broken.
            raise error
        message = str(error)
        bad[next((uri for uri in task.uris if message.startswith(uri)), task.uris[0])] = message

    # Of the runs of a bucket, the last one reads everything: it alone reports what isn't rows of exchanges.
    is_last = task.stretch.is_last
    reopen = ReopenTracker(_reopened)
    ended = EndedConnections(lambda rows: _add_connections(files, rows, pseudonyms))
    earlier_pending = EarlierPending(lake, task.follows if is_last else ())
    part = Part(
        carried=[parse_carried(state) for state in task.carried],
        last=task.kind != CAPTURES,
        skip=task.skip,
        choose=task.choice(),
        reopen=reopen,
        chunk_bytes=chunk_bytes(task.buckets),
        tells_files=task.accounts_for_files,
        on_gone=ended.add,
        stretch=task.stretch,
        on_elsewhere=(lambda batch: earlier_pending.add(to_arrow(batch))) if earlier_pending.is_waiting else None,
    )
    reading: Reading | SegmentsReading
    if segments is None:
        paths = [open_input(uri) for uri in task.uris]
        reading = Reading(paths, kafka_ports=task.kafka_ports, on_bad=on_bad, on_file=current_file, part=part)
    else:
        reading = SegmentsReading(segments, task.uris, task.kafka_ports, part, current_file)
        bad = reading.bad
    if task.accounts_for_files:
        reading.account.add_problems(Problem(UNFINISHED_KIND, why, -1, -1, 0) for why in task.unread)
    report = _progress_writer(task, lake)
    for batch in reading.batches():
        earlier_pending.add(writer.add(batch))
        report(*((reading.file_bytes, reading.account.frames) if is_last else (0, 0)), writer.exchanges)
    writer.finish()
    result = TaskResult(
        exchanges=writer.exchanges,
        quarantined=writer.quarantined,
        statuses=dict(reading.account.statuses),
        broken=reading.broken if isinstance(reading, SegmentsReading) else {},
    )
    if not is_last:
        result.files = files.close()
        result.accounts = row_accounts(task.uris, writer.by_uri, writer.quarantined_by_uri, bad)
        result.seconds = time.process_time() - began
        return result
    _unfinished(files, reading.carried, pseudonyms)
    settled = {
        uri: {count: getattr(tally, count) for count in PENDING_COLUMNS} for uri, tally in reading.by_file().items()
    }
    pending_writer = ExchangeWriter(pending_files, contents=task.contents, pseudonyms=pseudonyms)
    for batch in reading.pending():
        earlier_pending.add(pending_writer.add(batch))
    pending_writer.finish()
    resumed = _resumed_connections(part)
    remaining = earlier_pending.remaining(reopen, _dropped(task, part), resumed if task.accounts_for_files else None)
    read_on = set(task.skip) if task.accounts_for_files else None
    ended.flush()
    _connections(files, pending_files, reading, pseudonyms)
    account = reading.account
    # A capture that ends too early may continue in the next ingest.
    write_problems(writer, account, reading.recordings, pending_writer if task.kind == CAPTURES else None)
    exchanges = writer.by_uri + pending_writer.by_uri
    # Below 0 if another task of the bucket writes them.
    exchanges.subtract(earlier_pending.repeated(reopen))
    quarantined = writer.quarantined_by_uri + pending_writer.quarantined_by_uri
    result.files = [
        *files.close(),
        *pending_files.close(),
        *earlier_pending.keep(remaining, task.ingest_id, read_on, resumed),
    ]
    result.exchanges += pending_writer.exchanges
    result.quarantined = writer.quarantined + pending_writer.quarantined
    result.statuses, result.problems = dict(account.statuses), dict(account.problems)
    result.protocols = account.protocols()
    result.accounts = row_accounts(task.uris, exchanges, quarantined, bad)
    add_tallies(result.accounts, reading.by_file(), settled)
    if task.accounts_for_files:
        # All lines of a log are read again, because they identify the clients.
        add_file_facts(result.accounts, reading.by_file(), task.skip if task.kind == CAPTURES else {})
    result.seconds = time.process_time() - began
    return result


def _dropped(task: Task, part: Part) -> set[tuple[str, str]]:
    """Dropped states of this task's connections. Those that no task resumes belong to the first task."""
    mine = {carried.connection_id for carried in part.mine()}
    connections = {carried.connection_id for carried in part.carried}
    return {
        (ingest, connection)
        for ingest, connection in task.dropped
        if connection in mine or (task.accounts_for_files and connection not in connections)
    }


def _resumed_connections(part: Part) -> set[str]:
    """Names of the connections that this ingest resumes, even in another task, as their rows have them: one without a
    Kafka frame so far has no name in its state."""
    names = {connection_name(connection_hash(connection_of(carried))) for carried in part.carried}
    return names | {carried.connection_id for carried in part.carried if carried.connection_id is not None}


def _reopened(uri: str) -> Any:
    """None if it isn't a file, or is gone: the name comes from the lake."""
    try:
        return open_input(uri) if place_of(uri).info().type == fs.FileType.File else None
    except KafkascopeError:
        return None


def _progress_writer(task: Task, lake: Lake) -> Callable[[int, int, int], None]:
    """Reports the task's progress in bytes, frames and exchanges, at most every few seconds."""
    written_at = 0.0

    def report(size: int, frames: int, exchanges: int) -> None:
        nonlocal written_at
        if time.monotonic() - written_at > PROGRESS_SECONDS:
            written_at = time.monotonic()
            with suppress(InputError):
                write_progress(lake, task.ingest_id, task.number, size, frames, exchanges)

    return report


def _plain(task: Task, lake: Lake, files: Files, current_file: _CurrentFile) -> TaskResult:
    began = time.process_time()
    report = _progress_writer(task, lake)
    pseudonyms = Pseudonyms(task.secret) if task.secret else None
    accounts = {}
    quarantined = 0
    for uri in task.uris:
        current_file(uri)
        account = accounts[uri] = FileAccount()
        try:
            account.frames, account.quarantined = read_plain_frames(
                place_of(uri), files, task.contents, pseudonyms, report, task.skip.get(uri, 0)
            )
            quarantined += account.quarantined
        except InputError as error:
            account.error = str(error)
    return TaskResult(
        files=files.close(), accounts=accounts, quarantined=quarantined, seconds=time.process_time() - began
    )


def _log_directories(task: Task, lake: Lake, files: Files, current_file: _CurrentFile) -> TaskResult:
    began = time.process_time()
    report = _progress_writer(task, lake)
    writer = LogWriter(files, Pseudonyms(task.secret) if task.secret else None)
    accounts: dict[str, FileAccount] = {}
    read = 0
    for split in task.splits:
        uri = split.input.uri
        current_file(uri)
        account = accounts.setdefault(uri, FileAccount())
        reader, quarantined = SplitReader(split, contents=task.contents), writer.quarantined
        try:
            for item in reader.items():
                writer.add(uri, item)
                report(read + reader.tally.end_position - split.start, 0, 0)
        except NotFoundError:
            # A broker removes segments at any time, or moves them: then the next ingest reads them.
            account.gone += 1
        except InputError as error:
            # Without a part of its rows, it would count as read.
            files.abort()
            return TaskResult(broken={uri: str(error).removeprefix(f"{uri}: ")})
        read += split.size
        tally = reader.tally
        account.lost_bytes += tally.damaged_bytes
        account.lost_places += tally.damaged_places
        account.quarantined += writer.quarantined - quarantined
        _widen(account, tally.first_ms, tally.last_ms)
    writer.flush()
    return TaskResult(
        files=files.close(),
        accounts=accounts,
        quarantined=writer.quarantined,
        seconds=time.process_time() - began,
    )


def _widen(account: FileAccount, first_ms: int | None, last_ms: int | None) -> None:
    if first_ms is None or last_ms is None:
        return
    first, last = first_ms * 1_000_000, last_ms * 1_000_000
    account.first_ns = first if account.first_ns is None else min(first, account.first_ns)
    account.last_ns = last if account.last_ns is None else max(last, account.last_ns)


def _unfinished(files: Files, carried: list[Carried], pseudonyms: Pseudonyms | None) -> None:
    rows = [
        {
            "connection_id": connection.connection_id,
            "last_at": connection.last_ns // 1000,
            "state": pseudonyms.seal(connection.to_json()) if pseudonyms else connection.to_json(),
        }
        for connection in carried
    ]
    plain = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in UNFINISHED_SCHEMA])
    files.add(table_named("unfinished"), pa.Table.from_pylist(rows, schema=plain).cast(UNFINISHED_SCHEMA))


def _connections(
    files: Files, pending_files: Files, reading: Reading | SegmentsReading, pseudonyms: Pseudonyms | None
) -> None:
    """Rows of connections, including those of earlier ingests: they count from their beginning. One that a later ingest
    may resume is pending, so that it has one row for every reader."""
    ends = reading.ends
    unfinished = {connection.number for connection in reading.carried}
    for target, is_pending in ((files, False), (pending_files, True)):
        connections = [
            (connection, ends[connection.number] if connection.number < len(ends) else None)
            for connection in reading.account.connections
            if (connection.number in unfinished) is is_pending
        ]
        if connections:
            _add_connections(target, connection_rows(connections), pseudonyms)


def _add_connections(files: Files, rows: pa.Table, pseudonyms: Pseudonyms | None) -> None:
    files.add(table_named("connections"), pseudonyms.table(rows, "connections") if pseudonyms else rows)
