"""What is unfinished at the end of a run, as numbers and places: one `Carried` a connection out, JSON both ways. Bytes
of the recording are never in it; where they lie is, and a later run reads them again from there."""

import json
from dataclasses import dataclass
from typing import Any, Self

from kafkascope.capture.base.flow import Endpoints
from kafkascope.errors import InputError

# Another one where a reader of this form would go wrong.
FORM = 2
# A packet is a number: its file's place in `files`, and its own number there. Fits what JSON readers take for whole.
PACKET_BITS = 40
NOWHERE = -1

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CarriedSearch:
    """A stream of a Kafka connection whose next frame is not found. `marks` are (place in the bytes, time, packet),
    `end` is (kind, offset, time, packet) where the stream has ended."""

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
    """One direction. `row` is its row of `stream_table`, `delivered` are (end, time) of what was delivered last,
    `early` are (kind, offset, end, time, packet) of what came too early. `state` is its row of `frame_table` where it
    is split into frames, and `place` where the bytes of the unfinished one begin; `framing` is what became of it
    otherwise."""

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
    """A connection of which nobody knows yet what it speaks: `entries` are (kind, direction, offset, length, time,
    packet) of all its pieces."""

    client: int | None
    opened: tuple[bool, bool]
    hinted: bool
    looked: int
    named: Ints
    entries: tuple[Ints, ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """A connection that goes on. `files` are (order, uri) of the recordings that its packets lie in; `number` and
    `previous` tell it and the one before it on the same ports apart. `closed_ns` is -1 before its first FIN or RST,
    `connection_id` None until it is named by a first frame. `waiting` are (kind, is response, offset, size, first_ns,
    last_ns, packet, losses, place) of frames without a partner, and behind that the number of bytes that were not
    recorded, if there are any. `place` is the earliest packet that must be read again."""

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
        """(uri, packet) from where on recordings must still be there; None where nothing is read again."""
        if self.place == NOWHERE:
            return None
        return self.files[self.place >> PACKET_BITS][1], self.place & ((1 << PACKET_BITS) - 1)

    def to_json(self) -> str:
        return json.dumps({"form": FORM, **_fields(self)}, default=_fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        from kafkascope.capture.resume.check import check

        try:
            told = json.loads(text)
            form = told.pop("form")
            if form != FORM:
                raise InputError(f"what an earlier run left is of form {form}, this version reads {FORM}")
            for name in ("files", "asked", "waiting"):
                told[name] = _rows(told[name])
            told["streams"] = tuple(_stream(one) for one in told["streams"])
            told["slot"] = _row(told["slot"])
            told["pieces"] = _pieces(told["pieces"]) if told["pieces"] else None
            made = cls(**told)
            check(made)
            return made
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"what an earlier run left cannot be read: {type(error).__name__}") from None


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def _row(told: Any) -> Any:
    return tuple(told) if told is not None else None


def _rows(told: Any) -> Any:
    return tuple(map(tuple, told))


def _stream(told: dict[str, Any]) -> CarriedStream:
    search = told["search"]
    if search:
        rows = {"candidates": _row(search["candidates"]), "marks": _rows(search["marks"])}
        search = CarriedSearch(**search | rows | {"end": _row(search.get("end", ()))})
    rows = {name: _row(told[name]) for name in ("row", "state")}
    rows |= {name: _rows(told[name]) for name in ("delivered", "early")}
    return CarriedStream(**told | rows | {"search": search})


def _pieces(told: dict[str, Any]) -> CarriedPieces:
    rows = {"opened": _row(told["opened"]), "named": _row(told["named"]), "entries": _rows(told["entries"])}
    return CarriedPieces(**told | rows)
