"""Segments as rows, for recordings that no one machine should read whole: files in, rows of TCP segments out, a bucket
of connections after the other, a connection's rows in the order of the recording; and such rows in, exchanges out."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa

from kafkascope.capture.account import Account
from kafkascope.capture.carry import Carried
from kafkascope.capture.carry_bytes import after
from kafkascope.capture.carry_choose import flow_hash
from kafkascope.capture.carry_run import Part
from kafkascope.capture.exchanges import Ends, ExchangeBatch, Recordings
from kafkascope.capture.file_tally import FileTallies, FileTally
from kafkascope.capture.flow import Endpoints, Flows, Packets, Problem, Segments
from kafkascope.capture.packets import read_packets
from kafkascope.capture.reader import Capture
from kafkascope.capture.segments import SegmentReader
from kafkascope.pipeline.inputs import opened

SCHEMA = (
    "bucket int, flow binary, file int, packet bigint, direction tinyint, sequence bigint, acknowledgement bigint,"
    " flags tinyint, wire_length int, time_ns bigint, payload binary"
)
_ARROW = pa.schema(
    [
        ("bucket", pa.int32()),
        ("flow", pa.binary()),
        ("file", pa.int32()),
        ("packet", pa.int64()),
        ("direction", pa.int8()),
        ("sequence", pa.int64()),
        ("acknowledgement", pa.int64()),
        ("flags", pa.int8()),
        ("wire_length", pa.int32()),
        ("time_ns", pa.int64()),
        ("payload", pa.binary()),
    ]
)
# The order in which a task wants them: time is no order, it runs backwards in real files.
ORDER = ("bucket", "flow", "file", "packet")
# Both ends in 36 bytes, as a flow's name. Rows without one are not segments: they tell of a file, in JSON, or that a
# bucket is there.
_ENDS = Struct(">16sH16sH")
NO_FLOW = b""
# Packets are numbered over all files: a file's number stands above its packets'.
FILE_BITS = 40


def segment_rows(uri: str, file: int, skip: int, buckets: int) -> Iterator[pa.RecordBatch]:
    """The segments of one capture, and what is to be told of it; `file` is its place among all, `skip` how many of its
    packets an earlier ingest has read."""
    flows = Flows()
    reader = SegmentReader(flows)
    told = Account()
    names = _Names(flows, buckets)
    for packets in read_packets(opened(uri)):
        new: Packets = after(packets, skip)
        told.packets += len(new.start)
        told.add_times(new.time_ns)
        segments = reader.feed(new)
        told.add_problems([*packets.problems, *segments.problems])
        yield _batch(segments, names, file)
    last = reader.finish()
    told.add_problems(last.problems)
    yield _batch(last, names, file)
    yield note_row(0, file, _said(told))


def _said(account: Account) -> str:
    kept = [[kind, one.detail, one.place, one.lost_bytes] for kind, some in account.kept.items() for _, one in some]
    return json.dumps([account.packets, account.first_ns, account.last_ns, dict(account.problems), kept])


def note_row(bucket: int, file: int, text: str) -> pa.RecordBatch:
    values = [bucket, NO_FLOW, file, -1, 0, 0, -1, 0, 0, 0, text.encode()]
    return pa.record_batch(
        [pa.array([value], field.type) for value, field in zip(values, _ARROW, strict=True)], schema=_ARROW
    )


class _Names:
    """Flow number to bucket and name, found once."""

    def __init__(self, flows: Flows, buckets: int) -> None:
        self._flows, self._buckets = flows, buckets
        self._known: dict[Endpoints, tuple[int, bytes]] = {}

    def __call__(self, number: int) -> tuple[int, bytes]:
        ends = self._flows.ends[number]
        if ends not in self._known:
            name = _ENDS.pack(ends.address_a, ends.port_a, ends.address_b, ends.port_b)
            self._known[ends] = (flow_hash(ends) % self._buckets, name)
        return self._known[ends]


def _batch(segments: Segments, names: _Names, file: int) -> pa.RecordBatch:
    count = len(segments.flow)
    used, which = np.unique(segments.flow, return_inverse=True)
    known = [names(number) for number in used.tolist()]
    buckets = np.array([bucket for bucket, _ in known], np.int32)
    flows = pa.array([name for _, name in known], pa.binary())
    lengths = np.maximum(segments.length, 0).astype(np.int64)
    ends = np.zeros(count + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    # Every byte of the payloads by its place in the batch.
    shift = np.repeat(segments.start - ends[:-1], lengths)
    payload = segments.data[np.arange(int(ends[-1])) + shift] if count else np.zeros(0, np.uint8)
    acknowledgement = segments.acknowledgement
    columns = [
        pa.array(buckets[which] if count else buckets),
        flows.take(pa.array(which)) if count else flows,
        pa.array(np.full(count, file, np.int32)),
        pa.array(segments.packet),
        pa.array(segments.direction.astype(np.int8)),
        pa.array(segments.sequence),
        pa.array(acknowledgement if acknowledgement is not None else np.full(count, -1)),
        pa.array(segments.flags.astype(np.int8)),
        pa.array(segments.wire_length),
        pa.array(segments.time_ns),
        pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(payload)]),
    ]
    return pa.record_batch(columns, schema=_ARROW)


def by_bucket(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Sorted rows as one stream of batches a bucket. Each must be read to its end before the next."""
    pieces = (piece for batch in batches for piece in _split(batch))
    ahead = next(pieces, None)
    while ahead is not None:
        number = ahead[0]
        rest: list[tuple[int, pa.RecordBatch]] = []

        def same(
            first: pa.RecordBatch, wanted: int, left: list[tuple[int, pa.RecordBatch]]
        ) -> Iterator[pa.RecordBatch]:
            yield first
            for one in pieces:
                if one[0] != wanted:
                    left.append(one)
                    return
                yield one[1]

        yield number, same(ahead[1], number, rest)
        ahead = rest[0] if rest else None


def _split(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    buckets = batch.column("bucket").to_numpy()
    starts = np.flatnonzero(np.diff(buckets, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(batch)], strict=False):
        yield int(buckets[start]), batch.slice(start, end - start)


class SegmentsReading:
    """What `Reading` is for files, for the rows of one bucket."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], uris: Sequence[str], kafka_ports: Sequence[int], part: Part
    ) -> None:
        self._batches, self._uris = batches, uris
        self._ports, self._part = kafka_ports, part
        self._capture: Capture | None = None
        self._known: dict[bytes, int] = {}
        self._recordings = Recordings()
        self._tallies = FileTallies(self._recordings)
        self.account = Account()
        self.carried: list[Carried] = []
        self.file_bytes = 0

    @property
    def ends(self) -> list[Ends]:
        return self._capture.ends if self._capture is not None else []

    def by_file(self) -> dict[str, FileTally]:
        return self._tallies.by_uri()

    def batches(self) -> Iterator[ExchangeBatch]:
        recordings = self._recordings
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
            recordings.first_packets.append(base + (number << FILE_BITS))
        found = chain.from_iterable(self._fed(capture, batch, base) for batch in self._batches)
        for one in chain(found, capture.suspend()):
            if len(one):
                self.account.add_batch(one)
                yield one
        self.carried = capture.carried

    def pending(self) -> Iterator[ExchangeBatch]:
        if self._capture is not None:
            for one in self._capture.finish():
                if len(one):
                    self.account.add_batch(one)
                    yield one

    def _fed(self, capture: Capture, batch: pa.RecordBatch, base: int) -> Iterator[ExchangeBatch]:
        notes = int((np.diff(_column_offsets(batch.column("flow"))) == 0).sum())
        for row in batch.slice(0, notes).select(["file", "payload"]).to_pylist():
            self._hear(row["file"], row["payload"])
        rows = batch.slice(notes)
        self.file_bytes += rows.nbytes
        if len(rows):
            segments = self._segments(rows, capture.flows, base)
            yield from capture.feed_segments(segments, int(segments.packet[0]))

    def _hear(self, file: int, text: bytes) -> None:
        if file < 0:
            return
        packets, first, last, problems, kept = json.loads(text)
        times = np.array([one for one in (first, last) if one is not None], np.int64)
        tally = self._tallies.of(self._tallies.earlier + file)
        tally.packets += packets
        tally.add_times(times)
        self.account.packets += packets
        self.account.add_times(times)
        self.account.file = self._uris[file]
        for kind, detail, place, lost in kept:
            self.account.add_problems([Problem(kind, detail, place, -1, lost)])
        for kind, count in problems.items():
            self.account.problems[kind] += count - sum(one[0] == kind for one in kept)

    def _segments(self, rows: pa.RecordBatch, flows: Flows, base: int) -> Segments:
        names = rows.column("flow").dictionary_encode()
        numbers = np.array([self._number(name, flows) for name in names.dictionary.to_pylist()], np.int32)
        payload = rows.column("payload")
        ends = _column_offsets(payload)
        content = payload.buffers()[2]
        packet = _column(rows, "packet") + (_column(rows, "file").astype(np.int64) << FILE_BITS) + base
        return Segments(
            data=np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8),
            flow=numbers[names.indices.to_numpy()],
            direction=_column(rows, "direction").astype(np.uint8),
            sequence=_column(rows, "sequence"),
            flags=_column(rows, "flags").astype(np.uint8),
            start=ends[:-1].astype(np.int64),
            length=np.diff(ends).astype(np.int32),
            wire_length=_column(rows, "wire_length"),
            time_ns=_column(rows, "time_ns"),
            packet=packet,
            acknowledgement=_column(rows, "acknowledgement"),
        )

    def _number(self, name: bytes, flows: Flows) -> int:
        found = self._known.get(name)
        if found is None:
            ends = Endpoints(*_ENDS.unpack(name))
            if not self._known:
                # Those that an earlier ingest left have their numbers already.
                self._known = {
                    _ENDS.pack(one.address_a, one.port_a, one.address_b, one.port_b): number
                    for number, one in enumerate(flows.ends)
                }
            found = self._known.setdefault(name, len(flows.ends))
            if found == len(flows.ends):
                flows.ends.append(ends)
        return found


def _column(batch: pa.RecordBatch, name: str) -> Any:
    return batch.column(name).to_numpy(zero_copy_only=False)


def _column_offsets(column: pa.Array) -> Any:
    """Where the values of a binary column begin and end in its bytes."""
    if not len(column):
        return np.zeros(1, np.int32)
    return np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
