"""What the tests of framing share: streams of messages in, rows of what the framer finds in them out."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

import numpy as np

from kafkascope.capture.base.flow import (
    Connection,
    FrameKind,
    Frames,
    PieceKind,
    Pieces,
    Segments,
)
from kafkascope.capture.frames.framing import Framer
from kafkascope.capture.tcp.reassembly import Reassembler
from tests.support.flows import Faults, Message, Recording, endpoints, record, segments
from tests.support.traffic import (
    REQUEST,
    RESPONSE,
    request,
    response,
)

PieceEntry = tuple[int, int, bytes | int]


class Row(NamedTuple):
    kind: int
    connection: int
    is_response: int
    offset: int
    lost: int
    first_ns: int
    time_ns: int
    packet: int
    body: bytes

    @property
    def end(self) -> int:
        return self.offset + self.lost + (0 if self.kind in (FrameKind.LOST, FrameKind.ENDED) else 4 + len(self.body))


def rows(frames: Iterable[Frames]) -> list[Row]:
    return [
        Row(
            int(f.kind[i]), int(f.connection[i]), int(f.is_response[i]), int(f.offset[i]), int(f.lost[i]),
            int(f.first_ns[i]), int(f.time_ns[i]), int(f.packet[i]), f.body[f.ends[i] : f.ends[i + 1]].tobytes(),
        )
        for f in frames
        for i in range(len(f.kind))
    ]  # fmt: skip


def read(
    batches: Iterable[Segments], recording: Recording, ports: Sequence[int] = ()
) -> tuple[list[Connection], list[Row]]:
    reassembler = Reassembler(recording.flows)
    framer = Framer(reassembler.connections, kafka_ports=ports)
    frames = []
    for batch in batches:
        frames.append(framer.feed(reassembler.feed(batch)))
        reassembler.apply_verdicts(frames[-1].verdicts)
    frames += [framer.feed(reassembler.finish()), framer.finish()]
    for last in frames[-2:]:
        reassembler.apply_verdicts(last.verdicts)
    return reassembler.connections, rows(frames)


def apply_verdicts(frames: Frames, connections: Sequence[Connection]) -> Frames:
    """As the reassembler does for its connections."""
    for number, protocol, client in frames.verdicts:
        connections[number].protocol, connections[number].client = protocol, client
    return frames


def read_messages(
    messages: Sequence[Message], faults: Faults | None = None, ports: Sequence[int] = ()
) -> tuple[Connection, list[Row]]:
    recording = record(Random(5), [messages], faults or Faults())
    connections, frames = read([recording.segments()], recording, ports)
    assert len(connections) == 1
    return connections[0], frames


def without(recording: Recording, lost: set[int]) -> list[Segments]:
    kept = [packet for place, packet in enumerate(recording.packets) if place not in lost]
    return [segments(kept)]


def of(frames: Iterable[Row], role: int) -> list[Row]:
    return [row for row in frames if row.is_response == role]


class Stream:
    """Pieces written down by hand, without packets."""

    def __init__(self, *, opener: int | None = REQUEST, ports: Sequence[int] = ()) -> None:
        self.connection = Connection(0, 0, endpoints(0), 0, 0, (None, None), opener is not None, opener=opener)
        self.framer = Framer([self.connection], kafka_ports=ports)
        self.offsets = [0, 0]
        self.rows: list[Row] = []
        if opener is not None:
            self.feed((PieceKind.OPEN, REQUEST, b""), (PieceKind.OPEN, RESPONSE, b""))

    def feed(self, *entries: PieceEntry) -> list[Row]:
        data = b"".join(what for _, _, what in entries if isinstance(what, bytes))
        lengths = [what if isinstance(what, int) else len(what) for _, _, what in entries]
        offsets = []
        for (_, direction, _), length in zip(entries, lengths, strict=True):
            offsets.append(self.offsets[direction])
            self.offsets[direction] += length
        sizes = np.array([len(what) if isinstance(what, bytes) else 0 for _, _, what in entries])
        frames = self.framer.feed(
            Pieces(
                np.frombuffer(data, np.uint8),
                np.array([kind for kind, _, _ in entries], np.uint8),
                np.array([direction for _, direction, _ in entries], np.int32),
                np.array(offsets, np.int64),
                np.cumsum(sizes) - sizes,
                np.array(lengths, np.int64),
                np.arange(len(entries), dtype=np.int64),
                np.arange(len(entries), dtype=np.int64),
            )
        )
        new_rows = rows([apply_verdicts(frames, [self.connection])])
        self.rows += new_rows
        return new_rows

    def say(self, *messages: Message) -> list[Row]:
        return self.feed(*((PieceKind.BYTES, direction, data) for direction, data in messages))

    def finish(self) -> list[Row]:
        self.rows += rows([apply_verdicts(self.framer.finish(), [self.connection])])
        return self.rows


def hello(identity: int = 0) -> list[Message]:
    return [(REQUEST, request("ApiVersions", 3, identity)), (RESPONSE, response("ApiVersions", 3, identity))]


def heartbeats(first: int, count: int) -> list[Message]:
    return [(REQUEST, request("Heartbeat", 4, first + n)) for n in range(count)]


def kinds(frames: Iterable[Row], role: int) -> list[int]:
    return [row.kind for row in of(frames, role)]
