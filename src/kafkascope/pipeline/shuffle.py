"""Segments as rows, for recordings that no one machine should read whole: files in, rows of TCP segments out, a flow's
rows together and in the order of the recording; and such rows in, `Segments` as the reader makes them, out."""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa

from kafkascope.capture.flow import Endpoints, Flows, Segments
from kafkascope.capture.packets import read_packets
from kafkascope.capture.segments import SegmentReader
from kafkascope.pipeline.inputs import opened

# Both ends in 36 bytes, as a flow's name.
_ENDS = Struct(">16sH16sH")
SCHEMA = (
    "flow binary, file int, packet bigint, direction tinyint, sequence bigint, acknowledgement bigint, flags tinyint,"
    " wire_length int, time_ns bigint, payload binary"
)
_ARROW = pa.schema(
    [
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
ORDER = ("flow", "file", "packet")


def segment_rows(uri: str, file: int, first_packet: int = 0) -> Iterator[pa.RecordBatch]:
    """The segments of one capture; `file` is its place among all, `first_packet` the number of its first."""
    flows = Flows()
    reader = SegmentReader(flows)
    for packets in read_packets(opened(uri)):
        yield _batch(reader.feed(packets), flows, file, first_packet)
    yield _batch(reader.finish(), flows, file, first_packet)


def _batch(segments: Segments, flows: Flows, file: int, first_packet: int) -> pa.RecordBatch:
    count = len(segments.flow)
    used, which = np.unique(segments.flow, return_inverse=True)
    names = pa.array([_name(flows.ends[number]) for number in used.tolist()], pa.binary())
    ends = np.zeros(count + 1, np.int32)
    np.cumsum(segments.length, out=ends[1:])
    payload = np.empty(int(ends[-1]), np.uint8)
    for at, start, length in zip(ends.tolist(), segments.start.tolist(), segments.length.tolist(), strict=False):
        payload[at : at + length] = segments.data[start : start + length]
    acknowledgement = segments.acknowledgement
    columns = [
        names.take(pa.array(which)) if count else pa.array([], pa.binary()),
        pa.array(np.full(count, file, np.int32)),
        pa.array(segments.packet + first_packet),
        pa.array(segments.direction.astype(np.int8)),
        pa.array(segments.sequence),
        pa.array(acknowledgement if acknowledgement is not None else np.full(count, -1)),
        pa.array(segments.flags.astype(np.int8)),
        pa.array(segments.wire_length),
        pa.array(segments.time_ns),
        pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(payload)]),
    ]
    return pa.record_batch(columns, schema=_ARROW)


def _name(ends: Endpoints) -> bytes:
    return _ENDS.pack(ends.address_a, ends.port_a, ends.address_b, ends.port_b)


class Rows:
    """Rows of sorted segments back into `Segments`; `flows` grows with what is met."""

    def __init__(self, flows: Flows) -> None:
        self._flows = flows
        self._known: dict[bytes, int] = {}

    def segments(self, batch: pa.RecordBatch) -> Segments:
        names = batch.column("flow").dictionary_encode()
        numbers = np.array([self._number(name) for name in names.dictionary.to_pylist()], np.int32)
        payload = batch.column("payload")
        _, offsets, content = payload.buffers()
        ends = np.frombuffer(offsets, np.int32)[payload.offset : payload.offset + len(payload) + 1]
        data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
        return Segments(
            data=data,
            flow=numbers[names.indices.to_numpy()] if len(batch) else np.zeros(0, np.int32),
            direction=_column(batch, "direction").astype(np.uint8),
            sequence=_column(batch, "sequence"),
            flags=_column(batch, "flags").astype(np.uint8),
            start=ends[:-1].astype(np.int64),
            length=np.diff(ends).astype(np.int32),
            wire_length=_column(batch, "wire_length"),
            time_ns=_column(batch, "time_ns"),
            packet=_column(batch, "packet"),
            acknowledgement=_column(batch, "acknowledgement"),
        )

    def _number(self, name: bytes) -> int:
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = len(self._flows.ends)
            self._flows.ends.append(Endpoints(*_ENDS.unpack(name)))
        return found


def _column(batch: pa.RecordBatch, name: str) -> Any:
    return batch.column(name).to_numpy(zero_copy_only=False)


def numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, int, int]]:
    """(uri, place among all files, first packet) of each row of a task."""
    for batch in batches:
        yield from zip(*(batch.column(index).to_pylist() for index in range(3)), strict=True)
