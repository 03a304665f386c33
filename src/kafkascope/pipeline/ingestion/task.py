"""Runs one task of an ingest: reads recordings, writes new files of the lake and accounts for what was read. It doesn't
depend on Spark; nothing is in the lake until the driver commits."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import fs

from kafkascope.capture.base.flow import Endpoints, Problem
from kafkascope.capture.exchanges.account import Account
from kafkascope.capture.exchanges.exchanges import Recordings
from kafkascope.capture.exchanges.identity import connection_hash, connection_name
from kafkascope.capture.reader import Reading
from kafkascope.capture.resume.choose import Choice, flow_hash
from kafkascope.capture.resume.reread import ReopenTracker
from kafkascope.capture.resume.run import Part
from kafkascope.capture.resume.state import Carried
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
from kafkascope.pipeline.ingestion.connections import EndedConnections, connection_rows
from kafkascope.pipeline.ingestion.earlier_pending import EarlierPending
from kafkascope.pipeline.ingestion.exchange_writer import ExchangeWriter
from kafkascope.pipeline.ingestion.inputs import open_input
from kafkascope.pipeline.ingestion.log_writer import LogWriter
from kafkascope.pipeline.ingestion.plain_frame_rows import read_plain_frames
from kafkascope.pipeline.ingestion.plain_frames import FRAMES
from kafkascope.pipeline.ingestion.progress import reporting_compiles, write_progress
from kafkascope.pipeline.ingestion.pseudonyms import Pseudonyms
from kafkascope.pipeline.ingestion.shuffle import SegmentsReading, chunk_bytes
from kafkascope.pipeline.ingestion.worker import tune_process

# How often a task reports its progress.
PROGRESS_SECONDS = 1.0
CAPTURES = "captures"
# Splits of log directories.
LOGS = "log directories"
_UNFINISHED_KIND = "unfinished"
# In the lake, per task: the file that it is reading.
READING_MARK = ".reading"
# Problems that end once a file is whole.
_NOT_WHOLE = frozenset({"cut", "compression"})


@dataclass(frozen=True, slots=True)
class Task:
    """`kind` is CAPTURES, for all captures of the ingest, or the kind of the one file. Connections of `bucket`, one of
    `buckets`, are this task's, by hash or as `placed` assigns them; the first bucket also accounts for the files.
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

    def choice(self) -> Choice | None:
        if self.buckets == 1:
            return None
        return lambda ends: self.bucket_of(ends) == self.bucket

    def bucket_of(self, ends: Endpoints) -> int:
        bucket = self.placed.get(ends)
        return flow_hash(ends) % self.buckets if bucket is None else bucket


@dataclass(slots=True)
class FileAccount:
    """What one task found in one file. `pending` counts what is final only because the recording ends here: an ingest
    that continues from there counts it itself. `gone` counts parts that the file didn't have any more."""

    packets: int = 0
    log_lines: int = 0
    frames: int = 0
    exchanges: int = 0
    quarantined: int = 0
    lost_bytes: int = 0
    lost_places: int = 0
    pending_frames: int = 0
    pending_bytes: int = 0
    pending_places: int = 0
    pending_tls_bytes: int = 0
    pending_tcp_bytes: int = 0
    tls_bytes: int = 0
    tcp_bytes: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    gone: int = 0
    error: str | None = None


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
    """`segments` are the rows of this task's bucket, if other tasks have read the captures."""
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
        from kafkascope.pipeline.ingestion.failing_files import why_of

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

    reopen = ReopenTracker(_reopened)
    part = Part(
        carried=[Carried.from_json(state) for state in task.carried],
        last=task.kind != CAPTURES,
        skip=task.skip,
        choose=task.choice(),
        reopen=reopen,
        chunk_bytes=chunk_bytes(task.buckets),
        tells_files=task.bucket == 0,
    )
    ended = EndedConnections(lambda rows: _add_connections(files, rows, pseudonyms))
    part = replace(part, on_gone=ended.add)
    reading: Reading | SegmentsReading
    if segments is None:
        paths = [open_input(uri) for uri in task.uris]
        reading = Reading(paths, kafka_ports=task.kafka_ports, on_bad=on_bad, on_file=current_file, part=part)
    else:
        reading = SegmentsReading(segments, task.uris, task.kafka_ports, part, current_file)
        bad = reading.bad
    if task.bucket == 0:
        reading.account.add_problems(Problem(_UNFINISHED_KIND, why, -1, -1, 0) for why in task.unread)
    report = _progress_writer(task, lake)
    earlier_pending = EarlierPending(lake, task.follows)
    for batch in reading.batches():
        earlier_pending.add(writer.add(batch))
        report(reading.file_bytes, reading.account.frames, writer.exchanges)
    writer.finish()
    _unfinished(files, reading.carried, pseudonyms)
    settled = {
        uri: {count: getattr(tally, count) for count in PENDING_COLUMNS} for uri, tally in reading.by_file().items()
    }
    pending_writer = ExchangeWriter(pending_files, contents=task.contents, pseudonyms=pseudonyms)
    for batch in reading.pending():
        earlier_pending.add(pending_writer.add(batch))
    pending_writer.finish()
    resumed = _resumed_connections(part)
    remaining = earlier_pending.remaining(reopen, _dropped(task, part), resumed if task.bucket == 0 else None)
    read_on = set(task.skip) if task.bucket == 0 else None
    ended.flush()
    _connections(files, pending_files, reading, pseudonyms)
    account = reading.account
    # A capture that ends too early may continue in the next ingest.
    _problems(writer, account, reading.recordings, pending_writer if task.kind == CAPTURES else None)
    exchanges = writer.by_uri + pending_writer.by_uri - earlier_pending.repeated(reopen)
    quarantined = writer.quarantined_by_uri + pending_writer.quarantined_by_uri
    return TaskResult(
        files=[
            *files.close(),
            *pending_files.close(),
            *earlier_pending.keep(remaining, task.ingest_id, read_on, resumed),
        ],
        exchanges=writer.exchanges + pending_writer.exchanges,
        quarantined=writer.quarantined + pending_writer.quarantined,
        statuses=dict(account.statuses),
        problems=dict(account.problems),
        protocols=account.protocols(),
        accounts=_accounts(task, reading, exchanges, quarantined, settled, bad),
        broken=reading.broken if isinstance(reading, SegmentsReading) else {},
        seconds=time.process_time() - began,
    )


def _dropped(task: Task, part: Part) -> set[tuple[str, str]]:
    """Dropped states of this task's connections. Those that no task resumes belong to the first task."""
    mine = {carried.connection_id for carried in part.mine()}
    connections = {carried.connection_id for carried in part.carried}
    return {
        (ingest, connection)
        for ingest, connection in task.dropped
        if connection in mine or (task.bucket == 0 and connection not in connections)
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


def _problems(
    writer: ExchangeWriter, account: Account, recordings: Recordings, cut: ExchangeWriter | None = None
) -> None:
    """The first few problems of each kind, and one row for the rest. Files are read one after another, so that row
    begins in the file of the last one kept. Problems at cut ends go to `cut`, if given."""
    rows: list[tuple[str, Problem]] = []
    for kind, count in account.problems.items():
        kept = [_placed(recordings, uri, problem) for uri, problem in account.kept.get(kind, [])]
        rows += [(uri, _with_offset(problem)) for uri, problem in kept]
        more = count - len(kept)
        if more:
            uri = kept[-1][0] if kept else account.file
            lost = account.problem_bytes[kind] - sum(problem.lost_bytes for _, problem in kept)
            where = "" if uri == account.file else ", in this file and those read after it"
            rows.append((uri, Problem(kind, f"{more} more of this kind{where}", -1, -1, lost)))
    if cut is not None:
        cut.problems(row for row in rows if row[1].kind in _NOT_WHOLE)
        rows = [row for row in rows if row[1].kind not in _NOT_WHOLE]
    writer.problems(rows)


def _placed(recordings: Recordings, uri: str, problem: Problem) -> tuple[str, Problem]:
    """Packets are numbered across all files, and a problem may show only in a later file than its packet's. What can't
    be read again keeps the number that it had in its file."""
    if problem.place < 0 or problem.kind == _UNFINISHED_KIND:
        return uri, problem
    files, packets = recordings.place(np.array([problem.place]))
    return recordings.uris[int(files[0])], replace(problem, place=int(packets[0]))


def _with_offset(problem: Problem) -> Problem:
    return replace(problem, detail=f"{problem.detail} (offset {problem.offset})") if problem.offset >= 0 else problem


def _accounts(
    task: Task,
    reading: Reading | SegmentsReading,
    exchanges: Mapping[str, int],
    quarantined: Mapping[str, int],
    settled: Mapping[str, Mapping[str, int]],
    bad: dict[str, str],
) -> dict[str, FileAccount]:
    """What a task found in each of its files. The first task reports their packets and times, for all tasks."""
    accounts = {uri: FileAccount() for uri in task.uris}
    for uri, count in exchanges.items():
        # What began in a file of an earlier ingest without making a row counts in the first file of this one.
        accounts[uri if uri in accounts else task.uris[0]].exchanges += count
    for uri in quarantined.keys() & accounts.keys():
        accounts[uri].quarantined = quarantined[uri]
    for uri, tally in reading.by_file().items():
        if uri not in accounts:
            continue
        account = accounts[uri]
        for name in ("frames", "lost_bytes", "lost_places", "tls_bytes", "tcp_bytes"):
            setattr(account, name, getattr(tally, name))
        for name, waiting in PENDING_COLUMNS.items():
            setattr(account, waiting, getattr(tally, name) - settled.get(uri, {}).get(name, 0))
        if task.bucket == 0:
            # All lines of a log are read again, because they identify the clients.
            skipped = task.skip.get(uri, 0) if task.kind == CAPTURES else 0
            account.packets, account.log_lines = tally.packets + skipped, tally.log_lines
            account.first_ns, account.last_ns = tally.first_ns, tally.last_ns
    for uri, error in bad.items():
        accounts[uri].error = error
    return accounts
