"""Loads the state of earlier ingests from a lake: which recordings they read, and what they left unfinished."""

import io
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from kafkascope.capture.base.flow import Endpoints
from kafkascope.capture.files.decompress import Decompressor
from kafkascope.capture.files.source import Source
from kafkascope.capture.formats import CAPTURE, LOG
from kafkascope.capture.resume.parse import parse_carried
from kafkascope.capture.resume.state import Carried
from kafkascope.errors import InputError
from kafkascope.lake.home import Lake
from kafkascope.lake.place import filesystem_errors, place_of, readable
from kafkascope.lake.read.visible_rows import FOLLOWS, captures_rows, dataset, within_calendar
from kafkascope.lake.tables import INGEST_ID
from kafkascope.pipeline.disks.known_offsets import KnownLogs, known_logs
from kafkascope.pipeline.ingestion.inputs import InputFile, file_digest
from kafkascope.pipeline.ingestion.plain_frames import FRAMES
from kafkascope.pipeline.ingestion.pseudonyms import unseal
from kafkascope.times import EPOCH, microseconds_of

# Kinds of files of lines, and the column that counts the lines.
_LINES = {LOG: "log_lines", FRAMES: "frames"}
# Logs of a folder may have grown since: keep this many of those read last.
_MAX_LOGS = 16
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class UnfinishedConnection:
    """The unfinished state of one connection after an ingest. `connection_id` is None until it is named."""

    ingest_id: str
    connection_id: str | None
    last_ns: int
    state: str


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """`follows` are the ingests that a new one resumes, `carried` has one state per connection; `dropped` are (ingest,
    connection) of states that another one got further than, or that can't be read; `unread` is why these can't."""

    follows: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    dropped: frozenset[tuple[str, str]] = frozenset()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LakeState:
    """`digests` are of all recordings; `sizes` are the last (bytes, packets, digest) by URI; `heads` are the ingests
    that no other resumes, `unfinished` what they left. `logs` are (bytes, lines, digest), the newest first: of request
    logs by folder, since rotation renames a log, of frames by URI. `spans` are (first, last) times of all captures, in
    ns; `until` is the last time by URI. State in `distrusted` broke its reader. `known_logs` are of log directories."""

    digests: frozenset[str]
    sizes: dict[str, tuple[int, int, str]]
    heads: tuple[str, ...]
    unfinished: tuple[UnfinishedConnection, ...]
    logs: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict)
    spans: tuple[tuple[int, int], ...] = ()
    until: dict[str, int] = field(default_factory=dict)
    distrusted: bool = False
    known_logs: KnownLogs = field(default_factory=dict)

    def latest(self, ends: AbstractSet[Endpoints] | None = None) -> dict[str, int]:
        """Head to the last packet of the connections that it left, or of those between these endpoints."""
        latest: dict[str, int] = {}
        for connection in self.unfinished:
            carried, _ = self._read(connection) if ends is not None else (None, None)
            if ends is None or (carried is not None and carried.ends in ends):
                latest[connection.ingest_id] = max(connection.last_ns, latest.get(connection.ingest_id, 0))
        return latest

    def ends(self) -> frozenset[Endpoints]:
        """Endpoints of all connections that were left."""
        return frozenset(carried.ends for carried, _ in map(self._read, self.unfinished) if carried is not None)

    def resume_plan(self, heads: Collection[str]) -> ResumePlan:
        """Resumes these heads. If two left the same connection, the one that got further counts. A lake is untrusted
        input: a state that can't be read is left out, and its connection stays as it is."""
        named: dict[str, UnfinishedConnection] = {}
        unnamed = []
        dropped = set()
        unread = []
        for connection in self.unfinished:
            if connection.ingest_id not in heads:
                continue
            _, why = self._read(connection)
            if why is not None:
                unread.append(why)
                if connection.connection_id is not None:
                    dropped.add((connection.ingest_id, connection.connection_id))
                continue
            if connection.connection_id is None or len(heads) == 1:
                unnamed.append(connection.state)
                continue
            other = named.setdefault(connection.connection_id, connection)
            if other is not connection:
                named[connection.connection_id] = later = max(connection, other, key=lambda entry: entry.last_ns)
                dropped.add(((other if later is connection else connection).ingest_id, connection.connection_id))
        carried = sorted([*unnamed, *(connection.state for connection in named.values())])
        return ResumePlan(tuple(sorted(heads)), tuple(carried), frozenset(dropped), tuple(unread))

    def _read(self, connection: UnfinishedConnection) -> tuple[Carried | None, str | None]:
        """The state, or the reason why it can't be used."""
        if self.distrusted:
            return None, "the state of an earlier run broke its reader"
        text = unseal(connection.state)
        try:
            return parse_carried(text), None
        except InputError as error:
            return None, str(error)

    def grown(self, file: InputFile) -> InputFile:
        """For a file that was read before and has grown since: the new part, from its earlier end on. Segments have
        `known_logs` instead."""
        if file.log is not None:
            return file
        earlier = self.sizes.get(file.uri)
        if earlier is not None and _continues(file, earlier):
            return replace(file, read_packets=earlier[1])
        for log in self._possible_logs(file.uri):
            if _continues(file, log):
                return replace(file, read_packets=_whole_lines(file, log))
        return file

    def grown_from(self, file: InputFile) -> str | None:
        """The digest of what a `grown` file was before."""
        if not file.read_packets:
            return None
        earlier = self.sizes.get(file.uri)
        if earlier is not None and earlier[1] == file.read_packets and earlier[0] < file.size:
            return earlier[2]
        # An incomplete line at the end is read again.
        return next(
            (
                log[2]
                for log in self._possible_logs(file.uri)
                if log[1] - file.read_packets in (0, 1) and log[0] < file.size
            ),
            None,
        )

    def _possible_logs(self, uri: str) -> list[tuple[int, int, str]]:
        return [*self.logs.get(uri, ())[:1], *self.logs.get(_folder(uri), ())[:_MAX_LOGS]]


def _continues(file: InputFile, earlier: tuple[int, int, str]) -> bool:
    return earlier[0] < file.size and file_digest(place_of(file.uri), earlier[0]) == earlier[2]


def _folder(uri: str) -> str:
    return uri.rpartition("/")[0]


def _whole_lines(grown: InputFile, earlier: tuple[int, int, str]) -> int:
    """The earlier last line may have been incomplete: then it couldn't be read, and is read now."""
    size, lines, _ = earlier
    place = place_of(grown.uri)
    with filesystem_errors(place.uri), place.filesystem.open_input_file(place.path) as file:
        unpacked = Decompressor(Source(io.BufferedReader(file.get_stream(0, size))))
        buffer = memoryview(bytearray(_PIECE))
        count, last = unpacked.fill(buffer), b""
        if unpacked.form is None:
            file.seek(size - 1)
            last = file.read(2)
        else:
            while count:
                last = bytes(buffer[count - 1 : count])
                count = unpacked.fill(buffer)
    return lines if b"\n" in last else lines - 1


def state_of(lake: Lake) -> LakeState:
    columns = [INGEST_ID, FOLLOWS, "capture_uri", "digest", "bytes", "packets", "kind", "ingested_at"]
    rows = captures_rows(lake, [*columns, "first_at", "last_at", *_LINES.values()])
    # A row without a kind isn't a recording.
    rows = [row for row in rows if row["kind"] is not None]
    _check(lake, rows)
    followed = {ingest_id for row in rows for ingest_id in row[FOLLOWS] or ()}
    # A log or a file of frames leaves no state to resume.
    heads = sorted({row[INGEST_ID] for row in rows if row["kind"] == CAPTURE} - followed)
    sizes: dict[str, tuple[int, int, str]] = {}
    spans: list[tuple[int, int]] = []
    until: dict[str, int] = {}
    rows.sort(key=lambda row: row["ingested_at"])
    for row in rows:
        if row["kind"] != CAPTURE:
            continue
        # In a ring of files a name is reused for other bytes: the last ones may continue.
        sizes[row["capture_uri"]] = (row["bytes"], row["packets"], row["digest"])
        if row["first_at"] is not None and row["last_at"] is not None:
            spans.append((_ns(row["first_at"]), _ns(row["last_at"])))
            until[row["capture_uri"]] = spans[-1][1]
    logs: dict[str, list[tuple[int, int, str]]] = {}
    for row in reversed(rows):
        if row["kind"] in _LINES and row["bytes"]:
            log = row["capture_uri"] if row["kind"] == FRAMES else _folder(row["capture_uri"])
            logs.setdefault(log, []).append((row["bytes"], row[_LINES[row["kind"]]], row["digest"]))
    digests = frozenset(row["digest"] for row in rows)
    return LakeState(
        digests, sizes, tuple(heads), _unfinished(lake, heads), logs, tuple(spans), until, known_logs=known_logs(lake)
    )


# What every row of `captures` has, and what rows about captures have besides.
_REQUIRED = ("capture_uri", "digest", "ingested_at")
_REQUIRED_COUNTS = {CAPTURE: ("bytes", "packets"), **{kind: ("bytes", count) for kind, count in _LINES.items()}}


def _check(lake: Lake, rows: list[dict[str, Any]]) -> None:
    """The lake is untrusted input: checks that the columns used below have values."""
    for row in rows:
        missing = [name for name in _REQUIRED if row[name] is None]
        missing += [name for name in _REQUIRED_COUNTS.get(row["kind"], ()) if row[name] is None or row[name] < 0]
        if missing:
            raise InputError(
                f"{lake.table('captures').uri}: ingest {row[INGEST_ID]} has a captures row without "
                f"{' and '.join(missing)}; ingest into a new lake"
            )


def _unfinished(lake: Lake, heads: list[str]) -> tuple[UnfinishedConnection, ...]:
    if not heads or not lake.has("unfinished"):
        return ()
    with readable(lake.table("unfinished").uri):
        table = dataset(lake, "unfinished").to_table(filter=pc.field(INGEST_ID).isin(heads))
    rows = within_calendar(table).to_pylist()
    return tuple(
        UnfinishedConnection(row[INGEST_ID], row["connection_id"], _ns(row["last_at"] or EPOCH), row["state"] or "")
        for row in rows
    )


def _ns(moment: datetime) -> int:
    return microseconds_of(moment) * 1000
