"""The state of a connection at the end of a run, `Carried`, as numbers and places, with its JSON form. It never holds
bytes of a recording: it says where they are, and a later run reads them again."""

import json
from dataclasses import dataclass
from typing import Any

from kafkascope.capture.base.flow import Endpoints

# Changes whenever a reader of the previous form would go wrong.
STATE_FORM = 2
# A place is one number: the file's index in `files`, then the packet's number. JSON readers keep it an integer.
PACKET_BITS = 40
NOWHERE = -1

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CarriedSearch:
    """A stream of a Kafka connection whose next frame is being searched. `marks` are (place in the bytes, time,
    packet); `end` is (kind, offset, time, packet) if the stream has ended."""

    offset: int
    first_ns: int
    packet: int
    time_ns: int
    run_offset: int
    run_bytes: int
    skipped: int
    scanned: int
    candidates: Ints
    marks: tuple[Ints, ...]
    place: int
    end: Ints = ()


@dataclass(frozen=True, slots=True)
class CarriedStream:
    """One direction of a connection. `row` is its row of `stream_table`, `delivered` are (end, time) of the last
    deliveries, `early` are (kind, offset, end, time, packet) of segments that came too early. `framing` says how it is
    framed; `state` is its row of `frame_table` if it is split into frames, and `place` is where the bytes of the
    unfinished frame begin."""

    row: Ints
    delivered: tuple[Ints, ...]
    early: tuple[Ints, ...]
    opened: bool
    framing: int
    state: Ints
    place: int
    search: CarriedSearch | None


@dataclass(frozen=True, slots=True)
class CarriedPieces:
    """A connection whose protocol isn't known yet: `entries` are (kind, direction, offset, length, time, packet) of all
    its pieces."""

    client: int | None
    opened: tuple[bool, bool]
    hinted: bool
    looked: int
    named: Ints
    entries: tuple[Ints, ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """A connection that goes on. `files` are (order, uri) of the recordings with its packets; `number` and `previous`
    distinguish it from the connection before it on the same ports. `closed_ns` is -1 before its first FIN or RST,
    `connection_id` is None before its first frame. `waiting` are (kind, is response, offset, size, first_ns, last_ns,
    packet, losses, place) of frames without a partner, followed by the number of bytes that were not recorded, if any.
    `place` is the earliest packet that must be read again."""

    files: tuple[tuple[int, str], ...]
    address_a: str
    port_a: int
    address_b: str
    port_b: int
    number: int
    previous: int
    current: bool
    first_ns: int
    last_ns: int
    opened: bool
    opener: int | None
    ended: int
    reset_seen: bool
    closed_ns: int
    segments: int
    conflict_bytes: int
    retransmitted_bytes: int
    duplicated_bytes: int
    protocol: str
    client: int | None
    connection_id: str | None
    client_software: str | None
    software_from: int
    starter: int
    streams: tuple[CarriedStream, CarriedStream]
    slot: Ints | None
    asked: tuple[Ints, ...]
    pieces: CarriedPieces | None
    waiting: tuple[Ints, ...]
    place: int

    @property
    def ends(self) -> Endpoints:
        return Endpoints(bytes.fromhex(self.address_a), self.port_a, bytes.fromhex(self.address_b), self.port_b)

    @property
    def first_place(self) -> tuple[str, int] | None:
        """(uri, packet) from which recordings must still exist; None if nothing is read again."""
        if self.place == NOWHERE:
            return None
        return self.files[self.place >> PACKET_BITS][1], self.place & ((1 << PACKET_BITS) - 1)

    def to_json(self) -> str:
        return json.dumps({"form": STATE_FORM, **_fields(self)}, default=_fields, separators=(",", ":"))


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}
