"""Sends TCP segments to the tasks of their connections, for recordings too large for one machine. Packs the segments of
a file into one row per task and chunk; turns such rows, sorted as recorded, into exchanges."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import chain
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa

from kafkascope.capture.base.checked import writable
from kafkascope.capture.base.flow import Endpoints, Flows, Int64s, Packets, Problem, Segments
from kafkascope.capture.base.memory_view import NO_BYTES, Content
from kafkascope.capture.driver import Capture
from kafkascope.capture.exchanges.account import Account
from kafkascope.capture.exchanges.exchanges import Ends, ExchangeBatch, Recordings
from kafkascope.capture.exchanges.file_tally import FileTallies, FileTally
from kafkascope.capture.files.packets import CHUNK_BYTES, read_packets
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.capture.part_run import last_exchanges
from kafkascope.capture.resume.reread import after
from kafkascope.capture.resume.run import Part
from kafkascope.capture.resume.state import Carried
from kafkascope.capture.resume.stretch import Position, Stretch, cut_packets
from kafkascope.errors import InputError
from kafkascope.limits import MAX_UNUSED_FLOWS
from kafkascope.pipeline.ingestion.inputs import open_input
from kafkascope.pipeline.ingestion.why_broken import why_of

# A row has segments, as the bytes of an Arrow stream, or a note: JSON about a file, or nothing, which announces a task.
# Spark's cost is per row, whatever its size, and one row per segment would be a thousand times as many. `offset` is the
# place of its first packet in the decompressed file.
SEGMENT_COLUMNS = "task int, file int, chunk int, offset long, note string, segments binary"
_ARROW = pa.schema(
    [
        ("task", pa.int32()),
        ("file", pa.int32()),
        ("chunk", pa.int32()),
        ("offset", pa.int64()),
        ("note", pa.string()),
        ("segments", pa.binary()),
    ]
)
# The order that a task expects. Notes come before the chunks of their file.
ORDER = ("task", "file", "chunk")
_NOTE = -1
_PACKED = pa.schema(
    [
        ("flow", pa.dictionary(pa.int32(), pa.binary())),
        ("packet", pa.int64()),
        ("direction", pa.int8()),
        ("sequence", pa.int64()),
        ("acknowledgement", pa.int64()),
        ("flags", pa.int8()),
        ("wire_length", pa.int32()),
        ("time_ns", pa.int64()),
        ("payload", pa.large_binary()),
    ]
)
# Both endpoints in 36 bytes, as the name of a flow.
_ENDS = Struct(">16sH16sH")
# Packets are numbered across all files: the file's number is in the high bits.
_FILE_BITS = 40
# At most this many times a batch of `read`.
_MAX_CHUNKS = 4


def chunk_bytes(buckets: int) -> int:
    """The fewer packets go to one bucket, the larger the batch: each row costs milliseconds, whatever its size."""
    return min(buckets, _MAX_CHUNKS) * CHUNK_BYTES


@dataclass(frozen=True, slots=True)
class Routes:
    """Where segments go: to the tasks of their flow's bucket, by the numbers of the tasks, that haven't ended before.
    The task that `accounts` for the files gets what is known of them."""

    bucket_of: Callable[[Endpoints], int]
    tasks: Sequence[Sequence[tuple[int, Stretch]]]
    accounts: int = 0

    @property
    def bounds(self) -> list[Position]:
        return sorted({bound for tasks in self.tasks for _, stretch in tasks for bound in stretch.bounds()})


def segment_rows(uri: str, file: int, skip: int, routes: Routes) -> Iterator[pa.RecordBatch]:
    """The segments of one capture, and its account; `file` is its index among all files, `skip` how many of its packets
    an earlier ingest has read."""
    flows = Flows()
    reader = SegmentReader(flows)
    account = Account()
    names = _FlowNames(flows, routes.bucket_of)
    why = broken = None
    batches = read_packets(open_input(uri), chunk_bytes=chunk_bytes(len(routes.tasks)))
    parts = (part for batch in batches for part in cut_packets(batch, file, routes.bounds))
    try:
        for chunk, (position, packets) in enumerate(parts):
            new: Packets = after(packets, skip)
            account.packets += len(new.start)
            account.add_times(new.time_ns)
            segments = reader.feed(new)
            account.add_problems([*packets.problems, *segments.problems])
            if len(segments.flow):
                yield _rows(segments, names, chunk, position, routes)
            if len(flows.ends) > MAX_UNUSED_FLOWS:
                # Packed rows carry the flows' names: all numbers are free again.
                reader.release(np.arange(len(flows.ends)))
                names.forget()
        account.add_problems(reader.finish().problems)
    except InputError as error:
        # As with buckets: the other files are still read.
        why = str(error)
    except Exception as error:  # noqa: BLE001
        broken = why_of(error)
    yield note_row(routes.accounts, file, _note_text(account, why, broken))


def _note_text(account: Account, why: str | None, broken: str | None) -> str:
    shown = [astuple(problem) for problems in account.kept.values() for _, problem in problems]
    counts = {kind: (count, account.problem_bytes[kind]) for kind, count in account.problems.items()}
    return json.dumps([account.packets, account.first_ns, account.last_ns, counts, shown, why, broken])


def note_row(task: int, file: int, text: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"task": task, "file": file, "chunk": _NOTE, "note": text}], schema=_ARROW)


class _FlowNames:
    """Maps flow numbers to bucket and name, each computed once."""

    def __init__(self, flows: Flows, bucket_of: Callable[[Endpoints], int]) -> None:
        self._flows, self._bucket_of = flows, bucket_of
        self._cache: dict[Endpoints, tuple[int, bytes]] = {}

    def forget(self) -> None:
        self._cache.clear()

    def __call__(self, number: int) -> tuple[int, bytes]:
        ends = self._flows.ends[number]
        if ends not in self._cache:
            self._cache[ends] = (self._bucket_of(ends), _name(ends))
        return self._cache[ends]


def _name(ends: Endpoints) -> bytes:
    return _ENDS.pack(ends.address_a, ends.port_a, ends.address_b, ends.port_b)


def _rows(segments: Segments, names: _FlowNames, chunk: int, position: Position, routes: Routes) -> pa.RecordBatch:
    """One row per task that needs these segments."""
    used, inverse = np.unique(segments.flow, return_inverse=True)
    targets = [names(number) for number in used.tolist()]
    flows = pa.array([name for _, name in targets], pa.binary())
    bucket_of = np.array([bucket for bucket, _ in targets], np.int32)[inverse]
    packed, tasks = [], []
    for bucket in np.unique(bucket_of).tolist():
        of_bucket = _packed(segments, np.flatnonzero(bucket_of == bucket), inverse, flows)
        numbers = [number for number, stretch in routes.tasks[bucket] if not stretch.is_over(position)]
        packed += [of_bucket] * len(numbers)
        tasks += numbers
    ends = np.zeros(len(packed) + 1, np.int32)
    np.cumsum([buffer.size for buffer in packed], out=ends[1:])
    content = pa.py_buffer(b"".join(packed))
    count = len(tasks)
    columns = [
        pa.array(tasks, pa.int32()),
        pa.array(np.full(count, position.file, np.int32)),
        pa.array(np.full(count, chunk, np.int32)),
        pa.array(np.full(count, position.offset, np.int64)),
        pa.nulls(count, pa.string()),
        pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), content]),
    ]
    return pa.record_batch(columns, schema=_ARROW)


def _packed(segments: Segments, rows: Any, inverse: Any, flows: pa.Array) -> pa.Buffer:
    acknowledgement = segments.acknowledgement
    used, local = np.unique(inverse[rows], return_inverse=True)
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(local.astype(np.int32)), flows.take(pa.array(used))),
        pa.array(segments.packet[rows]),
        pa.array(segments.direction[rows].astype(np.int8)),
        pa.array(segments.sequence[rows]),
        pa.array(acknowledgement[rows] if acknowledgement is not None else np.full(len(rows), -1)),
        pa.array(segments.flags[rows].astype(np.int8)),
        pa.array(segments.wire_length[rows]),
        pa.array(segments.time_ns[rows]),
        _payloads(segments, rows),
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _PACKED) as stream:
        stream.write_batch(pa.record_batch(columns, schema=_PACKED))
    return sink.getvalue()


def _payloads(segments: Segments, rows: Any) -> pa.LargeBinaryArray:
    sizes = np.maximum(segments.length[rows], 0).astype(np.int64)
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    data = Content(writable(segments.data), NO_BYTES).gathered(segments.start[rows], sizes)
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), [None, pa.py_buffer(ends), pa.py_buffer(data)])


def by_task(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Splits sorted rows into one stream of batches per task. Read each to its end before the next."""
    pieces = (piece for batch in batches for piece in _split(batch))
    piece_ahead = next(pieces, None)
    while piece_ahead is not None:
        number = piece_ahead[0]
        following: list[tuple[int, pa.RecordBatch]] = []

        def same(
            first: pa.RecordBatch, task: int, following: list[tuple[int, pa.RecordBatch]]
        ) -> Iterator[pa.RecordBatch]:
            yield first
            for piece in pieces:
                if piece[0] != task:
                    following.append(piece)
                    return
                yield piece[1]

        yield number, same(piece_ahead[1], number, following)
        piece_ahead = following[0] if following else None


def _split(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    tasks = batch.column("task").to_numpy()
    starts = np.flatnonzero(np.diff(tasks, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(batch)], strict=False):
        yield int(tasks[start]), batch.slice(start, end - start)


class SegmentsReading:
    """The counterpart of `Reading`, for the rows of one task."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], uris: Sequence[str], kafka_ports: Sequence[int], part: Part,
        on_file: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._batches, self._uris, self._on_file = batches, uris, on_file
        self._ports, self._part = kafka_ports, part
        self._capture: Capture | None = None
        self._numbers: dict[bytes, int] = {}
        self._free: list[int] = []
        self.recordings = Recordings()
        self._tallies = FileTallies(self.recordings)
        self.account = Account()
        self.carried: list[Carried] = []
        # File to the reason why it couldn't be read.
        self.bad: dict[str, str] = {}
        # The same for errors that no part of the reader expected.
        self.broken: dict[str, str] = {}
        self.file_bytes = 0

    @property
    def ends(self) -> list[Ends]:
        return self._capture.ends if self._capture is not None else []

    def by_file(self) -> dict[str, FileTally]:
        return self._tallies.by_uri()

    def batches(self) -> Iterator[ExchangeBatch]:
        recordings = self.recordings
        capture = Capture(
            recordings,
            self.account,
            names=False,
            kafka_ports=self._ports,
            part=self._part,
            tallies=self._tallies,
        )
        self._capture = capture
        base = capture.numbers_before
        for number, uri in enumerate(self._uris):
            recordings.uris.append(uri)
            recordings.first_packets.append(base + (number << _FILE_BITS))
        fed = chain.from_iterable(self._fed(capture, batch, base) for batch in self._batches)
        for exchanges in chain(fed, last_exchanges(capture, self._part)):
            if len(exchanges):
                self.account.add_batch(exchanges)
                yield exchanges
        self.carried = capture.carried

    def pending(self) -> Iterator[ExchangeBatch]:
        if self._capture is not None:
            for exchanges in self._capture.finish():
                if len(exchanges):
                    self.account.add_batch(exchanges)
                    yield exchanges

    def _fed(self, capture: Capture, batch: pa.RecordBatch, base: int) -> Iterator[ExchangeBatch]:
        notes, files, packed = batch.column("note"), batch.column("file").to_pylist(), batch.column("segments")
        offsets = batch.column("offset").to_pylist()
        for row, file in enumerate(files):
            if file < 0:
                continue
            self._on_file(self._uris[file])
            self.account.file = self._uris[file]
            if not packed[row].is_valid:
                self._add_note(file, notes[row].as_py())
                continue
            content = packed[row].as_buffer()
            self.file_bytes += content.size
            with pa.ipc.open_stream(content) as stream:
                for rows in stream:
                    yield from capture.enter(own=self._part.stretch.has(Position(file, offsets[row])))
                    segments = self._segments(rows, capture.flows, base + (file << _FILE_BITS))
                    yield from capture.feed_segments(segments, int(segments.packet[0]))
                    self._release(capture.take_released_flows(), capture.flows)

    def _add_note(self, file: int, text: str) -> None:
        packets, first, last, counts, shown, why, broken = json.loads(text)
        if broken is not None:
            self.broken[self._uris[file]] = broken
        if why is not None:
            self.bad[self._uris[file]] = why
        times = np.array([time for time in (first, last) if time is not None], np.int64)
        number = self._tallies.earlier + file
        tally = self._tallies.of(number)
        tally.packets += packets
        tally.add_times(times)
        self.account.packets += packets
        self.account.add_times(times)
        before = self.recordings.first_packets[number]
        problems = [
            Problem(kind, detail, place + before if place >= 0 else place, *more)
            for kind, detail, place, *more in shown
        ]
        self.account.add_problems(problems)
        for kind, (count, lost) in counts.items():
            of_kind = [problem for problem in problems if problem.kind == kind]
            self.account.problems[kind] += count - sum(1 + problem.more for problem in of_kind)
            self.account.problem_bytes[kind] += lost - sum(problem.lost_bytes for problem in of_kind)

    def _segments(self, rows: pa.RecordBatch, flows: Flows, base: int) -> Segments:
        names = rows.column("flow")
        numbers = np.array([self._number(name, flows) for name in names.dictionary.to_pylist()], np.int32)
        payload = rows.column("payload")
        ends = np.frombuffer(payload.buffers()[1], np.int64)[: len(rows) + 1]
        content = payload.buffers()[2]
        return Segments(
            data=np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8),
            flow=numbers[_column(names.indices)],
            direction=_column(rows.column("direction")).astype(np.uint8),
            sequence=_column(rows.column("sequence")),
            flags=_column(rows.column("flags")).astype(np.uint8),
            start=ends[:-1].copy(),
            length=np.diff(ends).astype(np.int32),
            wire_length=_column(rows.column("wire_length")),
            time_ns=_column(rows.column("time_ns")),
            packet=_column(rows.column("packet")) + base,
            acknowledgement=_column(rows.column("acknowledgement")),
        )

    def _release(self, numbers: Int64s, flows: Flows) -> None:
        """Frees flow numbers that no connection uses any more."""
        if len(numbers):
            self._free = numbers.tolist()
            for number in self._free:
                name = _name(flows.ends[number])
                if self._numbers.get(name) == number:
                    del self._numbers[name]

    def _number(self, name: bytes, flows: Flows) -> int:
        if not self._numbers and not self._free:
            # Flows that an earlier ingest left have numbers already.
            self._numbers = {_name(ends): number for number, ends in enumerate(flows.ends)}
        number = self._numbers.get(name)
        if number is None:
            ends = Endpoints(*_ENDS.unpack(name))
            if self._free:
                number = self._free.pop()
                flows.ends[number] = ends
            else:
                number = len(flows.ends)
                flows.ends.append(ends)
            self._numbers[name] = number
        return number


def _column(column: pa.Array) -> Any:
    """Copies the numbers: within the bytes of a stream they may be unaligned, and the kernels need them aligned."""
    return column.to_numpy(zero_copy_only=False).copy()
