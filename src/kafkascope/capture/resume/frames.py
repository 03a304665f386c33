"""Saves and restores framing between two runs: its tables, searches and undecided connections. The bytes of incomplete
frames are read again; if they are gone the frame is lost, but not its end."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import PieceKind, SinglePiece
from kafkascope.capture.frames.chunks import begin_frame, collect, free_chunks
from kafkascope.capture.frames.detect.detection import Undecided
from kafkascope.capture.frames.detect.resync import Run, Search
from kafkascope.capture.frames.detect.start import UNKNOWN
from kafkascope.capture.frames.frame_table import (
    CHUNK,
    FRESH,
    PYTHON,
    REMEMBERED,
    SKIP,
    ConnSlot,
    FrameCount,
    Partial,
    held_of,
    with_chunks,
    with_slots,
    with_streams,
)
from kafkascope.capture.frames.framing import Framer
from kafkascope.capture.frames.framing_state import CONNECTION_COST, PIECE_COST
from kafkascope.capture.frames.split import claim_slot, end_stream
from kafkascope.capture.resume.places import adjacent_merged, earliest
from kafkascope.capture.resume.reread import RereadRanges
from kafkascope.capture.resume.state import NOWHERE, Carried, CarriedPieces, CarriedSearch, Ints
from kafkascope.capture.tcp.stream_table import Stream

# Values of `framing` besides PYTHON, SKIP and FRESH.
FRAMED, SEARCHED = 0, 1

Place = Callable[[int], int]
LateRows = dict[int, npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Framing:
    """The framing state of one connection as in `Carried`, but with packet numbers of this run."""

    starter: int
    opened: tuple[bool, bool]
    framing: tuple[int, int]
    state: tuple[Ints, Ints]
    places: Ints
    search: tuple[CarriedSearch | None, CarriedSearch | None]
    slot: Ints | None
    asked: tuple[Ints, ...]
    pieces: CarriedPieces | None

    @property
    def is_unfinished(self) -> bool:
        return self.pieces is not None or any(self.search) or any(place != NOWHERE for place in self.places)

    def packets(self) -> Iterator[int]:
        yield from self.places
        yield from (state[Partial.PACKET] for state in self.state if state)
        for search in self.search:
            if search is not None:
                yield from (search.packet, search.place, *(mark[2] for mark in search.marks), *search.end[3:])
        if self.pieces is not None:
            yield from (entry[5] for entry in self.pieces.entries)


def is_followed(framer: Framer, number: int) -> bool:
    """Whether more of the connection would be read."""
    places = framer.state.tables.place[2 * number : 2 * number + 2]
    return (
        bool((places >= 0).any())
        or number in framer.state.undecided
        or any(stream in framer.state.searches for stream in (2 * number, 2 * number + 1))
    )


def stop_framing(framer: Framer, number: int) -> None:
    """Stops framing the connection, and drops the frames that it began."""
    framer.state.tables = with_streams(framer.state.tables, 2 * number + 2)
    tables = framer.state.tables
    if number in framer.state.undecided:
        framer.recognition.forget(number)
    for stream in (2 * number, 2 * number + 1):
        search = framer.state.searches.pop(stream, None)
        row = search.row if search is not None else int(tables.place[stream])
        if search is not None:
            framer.search.release(search)
        if row >= 0:
            free_chunks(tables.following, tables.counts, tables.state[row])
            begin_frame(tables.state[row])
            end_stream(tables, stream, row)
        tables.place[stream] = SKIP


def framing_of(framer: Framer, number: int, late: LateRows) -> Framing:
    tables = framer.state.tables
    if 2 * number >= len(tables.place):
        return Framing(
            UNKNOWN, (False, False), (FRESH, FRESH), ((), ()), (NOWHERE, NOWHERE), (None, None), None, (), None
        )
    framing, states, places = [SKIP, SKIP], [(), ()], [NOWHERE, NOWHERE]  # type: tuple[list[int], list[Ints], list[int]]
    searches: list[CarriedSearch | None] = [None, None]
    slot = -1
    for direction in (0, 1):
        stream = 2 * number + direction
        row = int(tables.place[stream])
        search = framer.state.searches.get(stream)
        if search is not None:
            row = search.row
            framing[direction] = SEARCHED
            searches[direction] = _searched(search, late.get(stream))
        elif row >= 0:
            framing[direction] = FRAMED
        else:
            framing[direction] = row
            continue
        slot = row >> 1
        state = tables.state[row].tolist()
        state[Partial.HEAD] = state[Partial.TAIL] = -1
        if state[Partial.HAVE] == 0:
            state[Partial.PACKET] = NOWHERE
        elif held_of(state):
            low, high = state[Partial.OFFSET] + 4, state[Partial.OFFSET] + 4 + held_of(state)
            places[direction] = earliest(late.get(stream), low, high, state[Partial.PACKET])
        states[direction] = tuple(state)
    known = min(int(tables.slots[slot, ConnSlot.ASKED]), REMEMBERED) if slot >= 0 else 0
    undecided = framer.state.undecided.get(number)
    return Framing(
        starter=int(tables.starters[number]),
        opened=(bool(tables.opened[2 * number]), bool(tables.opened[2 * number + 1])),
        framing=(framing[0], framing[1]),
        state=(states[0], states[1]),
        places=tuple(places),
        search=(searches[0], searches[1]),
        slot=tuple(tables.slots[slot, [ConnSlot.HANDSHAKE, ConnSlot.HANDSHAKE_ID, ConnSlot.ASKED]].tolist())
        if slot >= 0
        else None,
        asked=tuple(map(tuple, tables.asked[slot, :known].tolist())) if slot >= 0 else (),
        pieces=None if undecided is None else _undecided(undecided),
    )


def _searched(search: Search, late: npt.NDArray[np.int64] | None) -> CarriedSearch:
    run = search.run
    first = min((packet for _, _, packet in run.marks), default=NOWHERE)
    if run.marks:
        first = earliest(late, run.offset, run.offset + len(run.data), first)
    looked = run.response_scan
    return CarriedSearch(
        offset=search.offset, first_ns=search.first_ns, packet=search.packet, time_ns=search.time,
        run_offset=run.offset, run_bytes=len(run.data), skipped=run.skipped, scanned=looked.scanned,
        candidates=tuple(looked.candidates), marks=tuple(run.marks), place=first,
        end=(search.end[0], *search.end[2:5]) if search.end is not None else (),
    )  # fmt: skip


def _undecided(undecided: Undecided) -> CarriedPieces:
    entries = tuple((e.kind, e.direction, e.offset, e.length, e.time, e.packet) for e in undecided.pieces())
    named = tuple(undecided._named)
    return CarriedPieces(undecided.client, undecided.opened, undecided.hinted, undecided._looked, named, entries)


def add_frame_ranges(carried: Carried, number: int, flow: int, place: Place, ranges: RereadRanges) -> None:
    for direction, stream in enumerate(carried.streams):
        at, base = 2 * number + direction, stream.row[Stream.BASE]
        if stream.place != NOWHERE:
            low = stream.state[Partial.OFFSET] + 4
            ranges.add(at, flow, base, low, low + held_of(stream.state), place(stream.place))
        search = stream.search
        if search is not None and search.run_bytes:
            low = search.run_offset
            ranges.add(at, flow, base, low, low + search.run_bytes, place(search.place))
        pieces = carried.pieces.entries if carried.pieces is not None else ()
        known = (
            (low, low + size, p) for kind, d, low, size, _, p in pieces if (kind, d) == (PieceKind.BYTES, direction)
        )
        for low, high, packet in adjacent_merged(known, place):
            ranges.add(at, flow, base, low, high, packet)


def restore_framing(framer: Framer, carried: Carried, number: int, place: Place, ranges: RereadRanges) -> list[str]:
    """Restores the framing of a connection; descriptions of what could not be read again."""
    framer.state.tables = with_streams(framer.state.tables, 2 * number + 2)
    tables = framer.state.tables
    tables.starters[number] = carried.starter
    slot = -1
    if carried.slot is not None:
        assert carried.client is not None
        slot = int(claim_slot(tables, number, carried.client))
        if slot < 0:
            framer.state.tables = tables = with_slots(tables)
            slot = int(claim_slot(tables, number, carried.client))
        tables.slots[slot, [ConnSlot.HANDSHAKE, ConnSlot.HANDSHAKE_ID, ConnSlot.ASKED]] = carried.slot
        if carried.asked:
            tables.asked[slot, : len(carried.asked)] = carried.asked
    unread: list[str] = []
    for direction, stream in enumerate(carried.streams):
        at = 2 * number + direction
        tables.opened[at] = stream.opened
        row = 2 * slot + (direction != carried.client)
        if stream.framing not in (FRAMED, SEARCHED):
            if slot >= 0:
                end_stream(tables, at, row)
            tables.place[at] = stream.framing
            continue
        framer.state.tables.state[row] = stream.state
        framer.state.tables.state[row, Partial.PACKET] = place(stream.state[Partial.PACKET])
        if stream.search is not None:
            tables.place[at] = PYTHON
            unread += _restore_search(framer, stream.search, at, row, place, ranges)
        elif stream.place != NOWHERE:
            unread += _collect(framer, at, row, ranges)
            tables = framer.state.tables
    if carried.pieces is not None:
        unread += _restore_undecided(framer, carried.pieces, number, place, ranges)
    return unread


def _collect(framer: Framer, stream: int, row: int, ranges: RereadRanges) -> list[str]:
    """Puts back the bytes of a frame whose rest is to come."""
    state = framer.state.tables.state[row]
    low, held = int(state[Partial.OFFSET]) + 4, held_of(state.tolist())
    data = ranges.take(stream, low, low + held)
    if data is not None:
        counts = framer.state.tables.counts
        chunks = (held + CHUNK - 1) // CHUNK
        if chunks > counts[FrameCount.FREE_CHUNKS]:
            counts[FrameCount.WANT_CHUNKS] = chunks
            larger = with_chunks(framer.state.tables)
            if larger is None:
                state[Partial.DAMAGED] = 1
                return []
            framer.state.tables = larger
        tables = framer.state.tables
        filled = int(state[Partial.FILLED])
        state[Partial.FILLED] = 0
        collect(tables.pool, tables.following, counts, state, np.frombuffer(bytearray(data), np.uint8), 0, held)
        state[Partial.FILLED] = filled
        return []
    state[Partial.DAMAGED] = 1
    return [f"{held} bytes of an unfinished frame"]


def _restore_search(
    framer: Framer, carried: CarriedSearch, stream: int, row: int, place: Place, ranges: RereadRanges
) -> list[str]:
    data = ranges.take(stream, carried.run_offset, carried.run_offset + carried.run_bytes)
    run = Run(carried.run_offset, aligned=False, skipped=carried.skipped)
    if data is None:
        run = Run(carried.run_offset + carried.run_bytes, aligned=False)
    else:
        ends = [mark[0] for mark in carried.marks[1:]] + [carried.run_bytes]
        for (start, time, packet), end in zip(carried.marks, ends, strict=False):
            run.add(data[start:end], time, place(packet))
        looked = run.response_scan
        looked.scanned, looked.candidates = carried.scanned, list(carried.candidates)
        framer.state.kept_bytes += carried.run_bytes + PIECE_COST * len(carried.marks)
    packet = place(carried.packet)
    search = framer.state.searches[stream] = Search(row, carried.offset, carried.first_ns, packet, run, carried.time_ns)
    if carried.end:
        kind, offset, time, packet = carried.end
        search.end = SinglePiece(kind, stream, offset, time, place(packet), 0, b"")
    return [] if data is not None else [f"{carried.run_bytes} bytes being searched for a frame"]


def _restore_undecided(
    framer: Framer, carried: CarriedPieces, number: int, place: Place, ranges: RereadRanges
) -> list[str]:
    undecided = Undecided(carried.client, carried.opened, hinted=carried.hinted)
    lost = 0
    for kind, direction, offset, length, time, packet in carried.entries:
        data = ranges.take(2 * number + direction, offset, offset + length) if kind == PieceKind.BYTES else b""
        if data is None:
            lost += length
            undecided.add(PieceKind.GAP, direction, offset, b"", length, time, place(packet))
        else:
            undecided.add(kind, direction, offset, data, length, time, place(packet))
    undecided._looked, undecided._named = carried.looked, list(carried.named)
    framer.state.undecided[number] = undecided
    framer.state.kept_bytes += CONNECTION_COST + undecided.size + PIECE_COST * undecided.count
    return [f"{lost} bytes of a connection that isn't recognized yet"] if lost else []
