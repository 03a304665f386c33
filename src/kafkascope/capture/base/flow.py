"""The batches that pass between the steps of reading a recording, as numpy columns: packets, TCP segments, stream
pieces, frames. Rows of a batch are in the order of the file; a batch is tens of megabytes, so memory stays flat."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Uint8s = npt.NDArray[np.uint8]


def plain(column: Any, kind: Any) -> Any:
    """The same numbers in one type of array, so that the kernels are compiled once."""
    return column if column.dtype == kind and column.flags.carray else np.require(column, kind, ("C", "W"))


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the recording that couldn't be read, and what it cost. `place` is a packet number, or -1 for the
    file itself; `offset` is in the file. If `detail` counts packets, `packets` is their number, otherwise 0; `more`
    counts further problems of this kind."""

    kind: str
    detail: str
    place: int
    offset: int
    lost_bytes: int
    packets: int = 0
    more: int = 0


@dataclass(frozen=True, slots=True)
class Packets:
    """Whole packets of a pcap or pcapng file. `start` is where a packet's bytes begin in `data`; `captured` is how many
    were recorded, `original` how many were on the wire. `first` is the number of the first packet, counted from 0 over
    the whole file; `base` is where `data` begins in the decompressed file."""

    data: Bytes
    start: Int64s
    captured: Int32s
    original: Int32s
    time_ns: Int64s
    link: Int32s
    first: int
    problems: tuple[Problem, ...] = ()
    base: int = 0


class Endpoints(NamedTuple):
    """The two ends of a flow, the lower one first. Addresses are 16 bytes (IPv4 mapped into IPv6). A tuple, because
    there are very many, and making one takes a third of the time."""

    address_a: bytes
    port_a: int
    address_b: bytes
    port_b: int


@dataclass(slots=True)
class Flows:
    """Flows by number; `Segments.flow` are such numbers."""

    ends: list[Endpoints] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Segments:
    """TCP segments. `direction` is 0 from the lower end to the higher, 1 back. `start` is where the payload begins in
    `data`; `length` bytes of it were recorded, `wire_length` were sent (more if the snap length cut the packet, or with
    offload). Packets without TCP are left out; `packet` is the packet's number. `acknowledgement` is -1 if the segment
    acknowledges nothing, and None if the reader doesn't provide it: reassembly then waits longer for lost bytes."""

    data: Bytes
    flow: Int32s
    direction: Uint8s
    sequence: Int64s  # the 32-bit number of the header
    flags: Uint8s
    start: Int64s
    length: Int32s
    wire_length: Int32s
    time_ns: Int64s
    packet: Int64s
    problems: tuple[Problem, ...] = ()
    acknowledgement: Int64s | None = None


FIN, SYN, RST, ACK = 1, 2, 4, 16


@dataclass(frozen=True, slots=True)
class Pieces:
    """In-order bytes of streams. `stream` numbers one direction of one connection: 2 * connection + direction. A row
    with `kind` GAP means `length` bytes that never came; OPEN, CLOSE and RESET rows have no bytes. `offset` is the
    position in the stream (the first byte after SYN is 0, or the first byte seen). RENEWED: the connection that had
    this number is forgotten, and the number now belongs to another. `start` is where the bytes begin in `data` or,
    counted on after its end, in `waited`: bytes of earlier batches that came before the bytes they follow."""

    data: Bytes
    kind: Uint8s
    stream: Int32s
    offset: Int64s
    start: Int64s
    length: Int64s
    time_ns: Int64s
    packet: Int64s
    problems: tuple[Problem, ...] = ()
    waited: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))


class SinglePiece(NamedTuple):
    """One piece outside a batch. `length` is how much of the stream it covers: for a gap, `data` is empty."""

    kind: int
    stream: int
    offset: int
    time: int
    packet: int
    length: int
    data: bytes


class PieceKind(IntEnum):
    """`Pieces.kind`."""

    BYTES = 0
    GAP = 1
    OPEN = 2
    CLOSE = 3
    RESET = 4
    RENEWED = 5


@dataclass(slots=True)
class Connection:
    """One TCP connection. `client` is the direction that requests come from (0 or 1), None until known. `protocol` is
    unknown, kafka, tls, http or other. `opened` says whether its start was recorded, `opener` which direction opened
    it. `closed` is how it ended first: fin, reset, or reused if a new connection took its ports; `closed_ns` is the
    time of its first FIN or RST. Repeated bytes count as `retransmitted_bytes`, or as `duplicated_bytes` if the
    recording has the packet twice."""

    number: int
    flow: int
    ends: Endpoints
    first_ns: int
    last_ns: int
    initial_sequence: tuple[int | None, int | None]
    opened: bool
    closed: str | None = None
    closed_ns: int | None = None
    client: int | None = None
    protocol: str = "unknown"
    bytes_seen: list[int] = field(default_factory=lambda: [0, 0])
    gap_bytes: list[int] = field(default_factory=lambda: [0, 0])
    conflict_bytes: int = 0
    retransmitted_bytes: int = 0
    duplicated_bytes: int = 0
    opener: int | None = None


class ProtocolVerdict(NamedTuple):
    """The protocol that framing recognized on a connection. `client` is the direction that sends requests, None unless
    the protocol is Kafka."""

    connection: int
    protocol: str
    client: int | None = None


@dataclass(frozen=True, slots=True)
class Frames:
    """Kafka frames of recognised connections, without their 4-byte lengths: row i is `body[ends[i]:ends[i+1]]`.
    `offset` is the position of its length prefix in the stream; `first_ns` and `time_ns` are when its first and last
    byte were seen, `packet` is where it starts. `kind`: FRAME, TOKEN (a SASL token without a Kafka header), LOST (a gap
    of `lost` bytes in the stream, no body) or ENDED (the stream's end, no body). If a FRAME was recorded in part, its
    body ends before the first missing byte, and `lost` counts the rest. `verdicts`
    are the connections whose protocol was recognised since the batch before, including those of these frames."""

    body: Bytes
    ends: Int64s
    kind: Uint8s
    connection: Int32s
    is_response: Uint8s
    offset: Int64s
    lost: Int64s
    first_ns: Int64s
    time_ns: Int64s
    packet: Int64s
    problems: tuple[Problem, ...] = ()
    verdicts: tuple[ProtocolVerdict, ...] = ()

    @property
    def size(self) -> int:
        return int(self.ends[-1] - self.ends[0])

    @classmethod
    def whole(cls, bodies: list[bytes], rows: list[tuple[int, int, int, int, int]]) -> "Frames":
        """Frames that did not come from a stream; a row is connection, is_response, offset, time and packet."""
        columns = np.array(rows, dtype=np.int64).reshape(len(rows), 5).T
        ends = np.zeros(len(bodies) + 1, dtype=np.int64)
        np.cumsum([len(body) for body in bodies], out=ends[1:])
        return cls(
            body=np.frombuffer(bytearray().join(bodies), dtype=np.uint8),
            ends=ends,
            kind=np.full(len(bodies), FrameKind.FRAME, dtype=np.uint8),
            connection=columns[0].astype(np.int32),
            is_response=columns[1].astype(np.uint8),
            offset=columns[2],
            lost=np.zeros(len(bodies), dtype=np.int64),
            first_ns=columns[3],
            time_ns=columns[3],
            packet=columns[4],
        )


class FrameKind(IntEnum):
    """`Frames.kind`."""

    FRAME = 0
    TOKEN = 1
    LOST = 2
    ENDED = 3
