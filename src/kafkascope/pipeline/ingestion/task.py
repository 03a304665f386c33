"""One task of an ingest: recordings in, new files of the lake and an account of what was read out. It knows nothing of
Spark; nothing is in the lake until the driver commits."""

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
from kafkascope.capture.resume.reread import Reopening
from kafkascope.capture.resume.run import Part
from kafkascope.capture.resume.state import Carried
from kafkascope.capture.resume.tcp import connection_of
from kafkascope.errors import InputError, KafkascopeError, KernelError
from kafkascope.lake.file_names import pending
from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.inside import inside
from kafkascope.lake.place import place_of
from kafkascope.lake.tables import UNFINISHED, table_named
from kafkascope.lake.upkeep.settle import PENDING_COLUMNS
from kafkascope.lake.write.files import Files, NewFile
from kafkascope.lake.write.heartbeat import INGESTS
from kafkascope.pipeline.ingestion.connections import GoneConnections, connection_rows
from kafkascope.pipeline.ingestion.frames_input import FRAMES
from kafkascope.pipeline.ingestion.frames_intake import read_plain_frames
from kafkascope.pipeline.ingestion.inputs import opened
from kafkascope.pipeline.ingestion.intake import Intake
from kafkascope.pipeline.ingestion.left_pending import LeftPending
from kafkascope.pipeline.ingestion.progress import tell
from kafkascope.pipeline.ingestion.pseudonyms import Pseudonyms
from kafkascope.pipeline.ingestion.shuffle import SegmentsReading, chunk_bytes
from kafkascope.pipeline.ingestion.worker import settle

# How often a task says how far it is.
PROGRESS_SECONDS = 1.0
CAPTURES = "captures"
UNFINISHED_KIND = "unfinished"
# Of a task, in the lake: the file that it reads.
MARK = ".reading"
# What a file has no more once it is whole.
_NOT_WHOLE = frozenset({"cut", "compression"})


@dataclass(frozen=True, slots=True)
class Task:
    """`kind` is CAPTURES, for all captures of the ingest, or the kind of the one file. `bucket` of `buckets` are the
    connections that are this task's, by hash or as `placed` says; the first also accounts for the files. `carried` is
    what the ingests left unfinished that it `follows`, but for (ingest, connection) that were `dropped` for one that
    got further or could not be `unread` again; `skip` is how many packets of a file were read then. With `marks` it
    leaves a mark of the file that it reads, for the driver to find should it die."""

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

    def choice(self) -> Choice | None:
        if self.buckets == 1:
            return None
        return lambda ends: self.bucket_of(ends) == self.bucket

    def bucket_of(self, ends: Endpoints) -> int:
        found = self.placed.get(ends)
        return flow_hash(ends) % self.buckets if found is None else found


@dataclass(slots=True)
class FileAccount:
    """What one task found in one file. `pending` is what counts only because the recording ends here: an ingest that
    goes on from there counts it itself."""

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
    error: str | None = None


@dataclass(slots=True)
class Done:
    """What a task leaves: its files, and the account of every recording by its URI; or no more than the file that broke
    it, and why."""

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


def done_from(text: str) -> Done:
    said = json.loads(text)
    said["files"] = [NewFile(**file) for file in said["files"]]
    said["accounts"] = {uri: FileAccount(**one) for uri, one in said["accounts"].items()}
    said["protocols"] = {name: (count, size) for name, (count, size) in said["protocols"].items()}
    return Done(**said)


def run(task: Task, segments: Iterator[pa.RecordBatch] | None = None) -> Done:
    """`segments` are the rows of this task's bucket, where others have read the captures."""
    settle()
    lake = open_lake(task.lake)
    files, later = Files(lake, task.ingest_id), Files(lake, pending(task.ingest_id))
    at = _At(task, lake)
    try:
        if task.kind == FRAMES:
            return _plain(task, lake, files, at)
        return _recorded(task, lake, files, later, segments, at)
    except BaseException as error:
        files.abort()
        later.abort()
        expected = isinstance(error, KafkascopeError) and not isinstance(error, KernelError)
        if expected or not isinstance(error, Exception):
            raise
        from kafkascope.pipeline.ingestion.failing_files import why_of

        return Done(broken={at.uri: why_of(error)})


class _At:
    """The file that a task is at: none yet while it takes up what earlier ingests left."""

    def __init__(self, task: Task, lake: Lake) -> None:
        self.uri = ""
        self._mark = inside(lake.place, f"{INGESTS}/{task.ingest_id}-{task.number}{MARK}") if task.marks else None

    def __call__(self, uri: str) -> None:
        if uri != self.uri:
            self.uri = uri
            if self._mark is not None:
                self._mark.write(uri.encode())


def _recorded(
    task: Task, lake: Lake, files: Files, pending_files: Files, segments: Iterator[pa.RecordBatch] | None, at: _At
) -> Done:
    began = time.process_time()
    pseudonyms = Pseudonyms(task.secret) if task.secret else None
    intake = Intake(files, contents=task.contents, pseudonyms=pseudonyms)
    bad: dict[str, str] = {}

    def on_bad(error: InputError) -> None:
        if isinstance(error, KernelError):
            # What was read of it before is not to land: the file is a broken one.
            raise error
        said = str(error)
        bad[next((uri for uri in task.uris if said.startswith(uri)), task.uris[0])] = said

    reopen = Reopening(_reopened)
    part = Part(
        carried=[Carried.from_json(one) for one in task.carried],
        last=task.kind != CAPTURES,
        skip=task.skip,
        choose=task.choice(),
        reopen=reopen,
        chunk_bytes=chunk_bytes(task.buckets),
        tells_files=task.bucket == 0,
    )
    gone = GoneConnections(lambda rows: _add_connections(files, rows, pseudonyms))
    part = replace(part, on_gone=gone.add)
    reading: Reading | SegmentsReading
    if segments is None:
        paths = [opened(uri) for uri in task.uris]
        reading = Reading(paths, kafka_ports=task.kafka_ports, on_bad=on_bad, on_file=at, part=part)
    else:
        reading = SegmentsReading(segments, task.uris, task.kafka_ports, part, at)
        bad = reading.bad
    if task.bucket == 0:
        reading.account.add_problems(Problem(UNFINISHED_KIND, why, -1, -1, 0) for why in task.unread)
    hear = _teller(task, lake)
    left = LeftPending(lake, task.follows)
    for batch in reading.batches():
        left.said(intake.add(batch))
        hear(reading.file_bytes, reading.account.frames, intake.exchanges)
    intake.finish()
    _unfinished(files, reading.carried, pseudonyms)
    settled = {
        uri: {count: getattr(tally, count) for count in PENDING_COLUMNS} for uri, tally in reading.by_file().items()
    }
    later = Intake(pending_files, contents=task.contents, pseudonyms=pseudonyms)
    for batch in reading.pending():
        left.said(later.add(batch))
    later.finish()
    gone_on = _gone_on(part)
    staying = left.staying(reopen, _dropped(task, part), gone_on if task.bucket == 0 else None)
    read_on = set(task.skip) if task.bucket == 0 else None
    gone.flush()
    _connections(files, pending_files, reading, pseudonyms)
    account = reading.account
    # A capture that ends too early may go on in the next ingest.
    _problems(intake, account, reading.recordings, later if task.kind == CAPTURES else None)
    exchanges = intake.by_uri + later.by_uri - left.again(reopen)
    quarantined = intake.quarantined_by_uri + later.quarantined_by_uri
    return Done(
        files=[*files.close(), *pending_files.close(), *left.keep(staying, task.ingest_id, read_on, gone_on)],
        exchanges=intake.exchanges + later.exchanges,
        quarantined=intake.quarantined + later.quarantined,
        statuses=dict(account.statuses),
        problems=dict(account.problems),
        protocols=account.protocols(),
        accounts=_accounts(task, reading, exchanges, quarantined, settled, bad),
        broken=reading.broken if isinstance(reading, SegmentsReading) else {},
        seconds=time.process_time() - began,
    )


def _dropped(task: Task, part: Part) -> set[tuple[str, str]]:
    """Those whose connection is this task's. One that nobody goes on with is the first task's."""
    mine = {one.connection_id for one in part.mine()}
    known = {one.connection_id for one in part.carried}
    return {
        (ingest, connection)
        for ingest, connection in task.dropped
        if connection in mine or (task.bucket == 0 and connection not in known)
    }


def _gone_on(part: Part) -> set[str]:
    """Names of the connections that this ingest goes on with, be it in another task, as their rows had them: one
    without a frame of Kafka so far has no name in its state."""
    names = {connection_name(connection_hash(connection_of(one))) for one in part.carried}
    return names | {one.connection_id for one in part.carried if one.connection_id is not None}


def _reopened(uri: str) -> Any:
    """None for what is no file any more, or never was: the name comes out of the lake."""
    try:
        return opened(uri) if place_of(uri).info().type == fs.FileType.File else None
    except KafkascopeError:
        return None


def _teller(task: Task, lake: Lake) -> Callable[[int, int, int], None]:
    """Says how far the task is, in bytes, frames and exchanges, but not all the time."""
    said = 0.0

    def hear(size: int, frames: int, exchanges: int) -> None:
        nonlocal said
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            with suppress(InputError):
                tell(lake, task.ingest_id, task.number, size, frames, exchanges)

    return hear


def _plain(task: Task, lake: Lake, files: Files, at: _At) -> Done:
    began = time.process_time()
    hear = _teller(task, lake)
    pseudonyms = Pseudonyms(task.secret) if task.secret else None
    accounts = {}
    quarantined = 0
    for uri in task.uris:
        at(uri)
        account = accounts[uri] = FileAccount()
        try:
            account.frames, account.quarantined = read_plain_frames(
                place_of(uri), files, task.contents, pseudonyms, hear, task.skip.get(uri, 0)
            )
            quarantined += account.quarantined
        except InputError as error:
            account.error = str(error)
    return Done(files=files.close(), accounts=accounts, quarantined=quarantined, seconds=time.process_time() - began)


def _unfinished(files: Files, carried: list[Carried], pseudonyms: Pseudonyms | None) -> None:
    rows = [
        {
            "connection_id": one.connection_id,
            "last_at": one.last_ns // 1000,
            "state": pseudonyms.seal(one.to_json()) if pseudonyms else one.to_json(),
        }
        for one in carried
    ]
    plain = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in UNFINISHED])
    files.add(table_named("unfinished"), pa.Table.from_pylist(rows, schema=plain).cast(UNFINISHED))


def _connections(
    files: Files, pending_files: Files, reading: Reading | SegmentsReading, pseudonyms: Pseudonyms | None
) -> None:
    """Those of earlier ingests too: the rows count from their beginning. One that a later ingest may go on with is
    pending, so that it has one row whoever reads."""
    ends = reading.ends
    going_on = {one.number for one in reading.carried}
    for into, wanted in ((files, False), (pending_files, True)):
        found = [
            (one, ends[one.number] if one.number < len(ends) else None)
            for one in reading.account.connections
            if (one.number in going_on) is wanted
        ]
        if found:
            _add_connections(into, connection_rows(found), pseudonyms)


def _add_connections(files: Files, rows: pa.Table, pseudonyms: Pseudonyms | None) -> None:
    files.add(table_named("connections"), pseudonyms.table(rows, "connections") if pseudonyms else rows)


def _problems(intake: Intake, account: Account, recordings: Recordings, cut: Intake | None = None) -> None:
    """The first few of each kind, and a row for the rest. Files are read one after the other: it begins in the file
    of the last that was kept. Those that were cut off go to `cut`, where it is given."""
    rows: list[tuple[str, Problem]] = []
    for kind, count in account.problems.items():
        kept = [_placed(recordings, uri, problem) for uri, problem in account.kept.get(kind, [])]
        rows += [(uri, _with_offset(problem)) for uri, problem in kept]
        more = count - len(kept)
        if more:
            uri = kept[-1][0] if kept else account.file
            lost = account.problem_bytes[kind] - sum(problem.lost_bytes for _, problem in kept)
            where = "" if uri == account.file else ", in this file and those that were read after it"
            rows.append((uri, Problem(kind, f"{more} more of this kind{where}", -1, -1, lost)))
    if cut is not None:
        cut.problems(one for one in rows if one[1].kind in _NOT_WHOLE)
        rows = [one for one in rows if one[1].kind not in _NOT_WHOLE]
    intake.problems(rows)


def _placed(recordings: Recordings, uri: str, problem: Problem) -> tuple[str, Problem]:
    """Packets are numbered over all files, and a problem may show only in a later one than its packet's. What cannot be
    read again has the number that it had in its file."""
    if problem.place < 0 or problem.kind == UNFINISHED_KIND:
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
    """What a task found in each of its files. Their packets and times the first task tells, for all."""
    found = {uri: FileAccount() for uri in task.uris}
    for uri, count in exchanges.items():
        # What began in a file of an earlier ingest, and was no row then, counts in the first of this one.
        found[uri if uri in found else task.uris[0]].exchanges += count
    for uri in quarantined.keys() & found.keys():
        found[uri].quarantined = quarantined[uri]
    for uri, tally in reading.by_file().items():
        if uri not in found:
            continue
        account = found[uri]
        for name in ("frames", "lost_bytes", "lost_places", "tls_bytes", "tcp_bytes"):
            setattr(account, name, getattr(tally, name))
        for name, waiting in PENDING_COLUMNS.items():
            setattr(account, waiting, getattr(tally, name) - settled.get(uri, {}).get(name, 0))
        if task.bucket == 0:
            # The lines of a log are all read again, for what they tell of the clients.
            known = task.skip.get(uri, 0) if task.kind == CAPTURES else 0
            account.packets, account.log_lines = tally.packets + known, tally.log_lines
            account.first_ns, account.last_ns = tally.first_ns, tally.last_ns
    for uri, error in bad.items():
        found[uri].error = error
    return found
