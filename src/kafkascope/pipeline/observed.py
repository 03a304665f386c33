"""Writes an observer's calls to the lake, one commit per batch: to the same tables as `ingest`, `captures` last. It
doesn't need Spark."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from time import time_ns

import pyarrow as pa

from kafkascope.capture.exchanges.client_calls import CallConnection, CallReader, ClientCall, ConnectionKey
from kafkascope.capture.exchanges.messages import Messages
from kafkascope.codec.frame import encode_frame
from kafkascope.errors import InputError
from kafkascope.lake.file_names import pending
from kafkascope.lake.home import Lake
from kafkascope.lake.tables import CAPTURES_SCHEMA, CONNECTIONS, QUARANTINE, table_named
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.upkeep.retention import SAFE_AGE, vacuum
from kafkascope.lake.upkeep.superseded import without
from kafkascope.lake.write.commit import Overtaken, commit
from kafkascope.lake.write.files import Files, NewFile, discard
from kafkascope.lake.write.heartbeat import Running, begin, end, seal, turn_of
from kafkascope.pipeline.ingestion.rows.exchange_writer import ExchangeWriter

_KIND = "observe"
_CONNECTIONS_TABLE = "connections"
# Any API that has a request and a response.
_SAMPLE_CALL = ClientCall(
    "", "", 0, encode_frame("ApiVersionsRequest", 0, {}, {"correlationId": 0}, length=False),
    encode_frame("ApiVersionsResponse", 0, {}, {"correlationId": 0}, length=False), 0, 0,
)  # fmt: skip
# The quarantine kind for a poll, or a part of one, that got no response.
_UNREACHABLE = "unreachable"
# Frames that become rows together: on the way up to ten copies exist.
_BATCH_BYTES = 8 << 20
# How many ingests may land during one commit.
_MAX_SEALS = 50
# With one commit per minute, a table collects this many small files before they are merged.
COMPACT_AFTER = 30
# Files that were merged are deleted once readers that began before are done; checked this often.
_VACUUM_AFTER = 8 * COMPACT_AFTER


@dataclass(frozen=True, slots=True)
class FailedPolls:
    """Failed polls of one kind: since when, how many in a row, and the client's error."""

    at_ns: int
    polls: int
    detail: str


@dataclass(frozen=True, slots=True)
class Portion:
    """The contents of one commit: the calls, the failed polls, and the number of polls. `still_open` are the
    connections that later calls may use; None if unknown."""

    calls: Sequence[ClientCall]
    failed: Sequence[FailedPolls] = ()
    polls: int = 0
    still_open: Collection[ConnectionKey] | None = None


@dataclass(slots=True)
class WrittenTotals:
    """What has been written to the lake so far; replaced `rows` don't count."""

    commits: int = 0
    exchanges: int = 0
    unanswered_polls: int = 0
    quarantined: int = 0
    rows: dict[str, int] = field(default_factory=dict)


class ObservationWriter:
    """One run of an observer, a recording that grows with each commit. `source` is where it polls, `run` a word unique
    to the run, `options` what it was asked to do, for the column of that name."""

    def __init__(self, lake: Lake, source: str, run: str, options: dict[str, object] | None = None) -> None:
        self._lake = lake
        self._uri = f"observe://{source}/{run}"
        self._options = options or {}
        self._reader = CallReader()
        # The commit whose connections may continue, and their number.
        self._left: tuple[str, int] | None = None
        self.totals = WrittenTotals()

    def load(self) -> None:
        """Loads the kernels that `land` calls, which takes ten times as long as the rest of it, or compiles them."""
        batch, _ = CallReader().batch([_SAMPLE_CALL], self._uri)
        messages = Messages()
        for _ in (*messages.add(batch), *messages.finish()):
            pass

    def commit_portion(self, portion: Portion) -> None:
        """A portion without calls and failed polls writes nothing."""
        if not portion.calls and not portion.failed:
            return
        ingest_id = blake2b(f"{self._uri}/{self.totals.commits}".encode(), digest_size=10).hexdigest()
        sign = begin(self._lake, ingest_id)
        try:
            written, lasting, quarantined = self._written(portion, ingest_id)
            by_table: dict[str, list[NewFile]] = {}
            for file in [*written, *lasting]:
                by_table.setdefault(file.table, []).append(file)
            for name, some in sorted(by_table.items()):
                commit(self._lake, table_named(name), some, ingest_id)
            last = Files(self._lake, ingest_id)
            last.add(table_named("captures"), self._capture(portion, ingest_id, quarantined))
            self._land(sign, last.close())
        finally:
            end(self._lake, sign)
        self._count(portion, by_table, quarantined)
        if self._left is not None:
            # If the process is killed here, compaction, `vacuum` or an ingest finishes this.
            without(self._lake, _CONNECTIONS_TABLE, frozenset([pending(self._left[0])]))
        self._left = (ingest_id, sum(file.rows for file in lasting)) if lasting else None
        self._tidy()

    def _land(self, sign: Running, files: list[NewFile]) -> None:
        """Takes turns with ingests: a reader that has opened `connections` checks again whether its rows were
        replaced."""
        for _ in range(_MAX_SEALS):
            with suppress(Overtaken):
                seal(self._lake, sign, files, turn_of(self._lake))
                return
        discard(self._lake, files)
        raise InputError(
            f"{self._lake.uri}: ingests committed first {_MAX_SEALS} times; observe again when they are done"
        )

    def _written(self, portion: Portion, ingest_id: str) -> tuple[list[NewFile], list[NewFile], int]:
        """Returns new files, those of connections that may continue, and rows of quarantine; leaves no files if it
        fails. What a later failure leaves is for `vacuum`: a table may have its files by then."""
        files, later = Files(self._lake, ingest_id), Files(self._lake, pending(ingest_id))
        try:
            quarantined = self._write(files, portion)
            ended, lasting = self._reader.connections(portion.still_open)
            # Include connections without calls this time: the rows of the previous commit are replaced.
            files.add(table_named(_CONNECTIONS_TABLE), _connection_rows(ended))
            later.add(table_named(_CONNECTIONS_TABLE), _connection_rows(lasting))
            return files.close(), later.close(), quarantined
        except BaseException:
            files.abort()
            later.abort()
            raise

    def _write(self, files: Files, portion: Portion) -> int:
        intake = ExchangeWriter(files)
        for calls in _batches(portion.calls):
            batch, _ = self._reader.batch(calls, self._uri)
            intake.add(batch)
        intake.finish()
        rows = [
            {
                "capture_uri": self._uri,
                "packet": -1,
                "recorded_at": polls.at_ns // 1000,
                "kind": _UNREACHABLE,
                "detail": f"{polls.detail} ({polls.polls} in a row)" if polls.polls > 1 else polls.detail,
                "bytes": 0,
            }
            for polls in portion.failed
        ]
        files.add(table_named("quarantine"), _table(rows, QUARANTINE))
        return intake.quarantined + len(rows)

    def _capture(self, portion: Portion, ingest_id: str, quarantined: int) -> pa.Table:
        frames = [frame for call in portion.calls for frame in (call.request, call.response) if frame is not None]
        times = [at for call in portion.calls for at in (call.sent_ns, call.received_ns) if at is not None]
        times += [polls.at_ns for polls in portion.failed]
        digest = blake2b(ingest_id.encode(), digest_size=16)
        for frame in frames:
            digest.update(frame)
        size = sum(map(len, frames))
        failed = sum(polls.polls for polls in portion.failed)
        row = {
            "ingest_id": ingest_id,
            "capture_uri": self._uri,
            "kind": _KIND,
            "digest": digest.hexdigest(),
            "bytes": size,
            "packets": 0,
            "log_lines": 0,
            "first_at": min(times) // 1000,
            "last_at": max(times) // 1000,
            "frames": len(frames),
            "exchanges": len(portion.calls),
            "lost_bytes": 0,
            "lost_places": failed,
            "pending_frames": 0,
            "pending_bytes": 0,
            "pending_places": 0,
            "pending_tls_bytes": 0,
            "pending_tcp_bytes": 0,
            "tls_bytes": 0,
            "tcp_bytes": size,
            "quarantined": quarantined,
            "ingested_at": time_ns() // 1000,
            "options": json.dumps({**self._options, "polls": portion.polls, "unanswered": failed}),
            "follows": [] if self._left is None else [self._left[0]],
        }
        return _table([row], CAPTURES_SCHEMA)

    def _count(self, portion: Portion, files: dict[str, list[NewFile]], quarantined: int) -> None:
        for name, some in sorted(files.items()):
            self.totals.rows[name] = self.totals.rows.get(name, 0) + sum(file.rows for file in some)
        if self._left is not None:
            self.totals.rows[_CONNECTIONS_TABLE] -= self._left[1]
        self.totals.commits += 1
        self.totals.exchanges += len(portion.calls)
        self.totals.unanswered_polls += sum(polls.polls for polls in portion.failed)
        self.totals.quarantined += quarantined

    def _tidy(self) -> None:
        if self.totals.commits % COMPACT_AFTER == 0:
            compact(self._lake)
        if self.totals.commits % _VACUUM_AFTER == 0:
            vacuum(self._lake, age=SAFE_AGE)


def _batches(calls: Iterable[ClientCall]) -> Iterator[list[ClientCall]]:
    """Batches of calls, in the order in which they were sent."""
    batch: list[ClientCall] = []
    size = 0
    for call in sorted(calls, key=lambda call: call.sent_ns):
        batch.append(call)
        size += len(call.request) + len(call.response or b"")
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _connection_rows(connections: Iterable[CallConnection]) -> pa.Table:
    """Rows cover connections from their beginning."""
    rows: list[dict[str, object]] = [
        {
            "connection_id": connection.connection_id,
            "client_address": connection.ends.client_address,
            "broker_address": connection.ends.broker_address,
            "protocol": "kafka",
            "client_software": connection.ends.software,
            "opened": True,
            "closed": None,
            "first_at": connection.first_ns // 1000,
            "last_at": connection.last_ns // 1000,
            "client_bytes": connection.client_bytes,
            "broker_bytes": connection.broker_bytes,
            **dict.fromkeys(_LOSSES, 0),
        }
        for connection in connections
    ]
    return _table(rows, CONNECTIONS)


_LOSSES = [name for name in CONNECTIONS.names if name.endswith(("gap_bytes", "ted_bytes", "conflict_bytes"))]


def _table(rows: list[dict[str, object]], schema: pa.Schema) -> pa.Table:
    """Times are given in microseconds."""
    plain = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in schema])
    return pa.Table.from_pylist(rows, schema=plain).cast(schema)
