"""Saves each connection that continues after the end of a run as a `Carried`, and restores it in the next run: with the
same numbers, and the same bytes, read again from the recordings."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kafkascope.capture.base.flow import Connection, Endpoints, Flows, Frames, Int64s, PieceKind, Problem
from kafkascope.capture.exchanges.exchanges import Ends, ExchangeBatch, Pairer, Recordings
from kafkascope.capture.exchanges.identity import connection_hash, connection_name
from kafkascope.capture.exchanges.pairing import LONGEST_WAIT_NS
from kafkascope.capture.files.packets import CHUNK_BYTES
from kafkascope.capture.files.source import Input
from kafkascope.capture.frames.frame_table import Partial
from kafkascope.capture.frames.framing import Framer
from kafkascope.capture.frames.headers import Frame
from kafkascope.capture.resume.choose import Choice
from kafkascope.capture.resume.frames import (
    Framing,
    add_frame_ranges,
    framing_of,
    is_followed,
    restore_framing,
    stop_framing,
)
from kafkascope.capture.resume.pairs import (
    add_waiting_ranges,
    connection_id_of,
    restore_ends,
    restore_waiting,
    waiting_ids,
    waiting_of,
)
from kafkascope.capture.resume.places import LatePieces, PlaceReader, PlaceWriter
from kafkascope.capture.resume.reread import Reopen, ReopenTracker, RereadRanges
from kafkascope.capture.resume.state import NOWHERE, Carried, CarriedSearch, CarriedStream, Ints
from kafkascope.capture.resume.stretch import ALL_PACKETS, Stretch
from kafkascope.capture.resume.tcp import (
    add_early_ranges,
    delivered_of,
    early_of,
    has_unfinished,
    is_over,
    restore,
    row_of,
)
from kafkascope.capture.tcp.reassembly import TRAILING_NS, Reassembler
from kafkascope.capture.tcp.stream_table import Conn, Stream

# A broker closes a connection that is idle for connections.max.idle.ms, ten minutes by default, with a FIN.
IDLE_NS = 2 * LONGEST_WAIT_NS


def reopened(uri: str) -> Input | None:
    """The file itself, if it exists."""
    return uri if os.path.isfile(uri) else None


@dataclass(frozen=True, slots=True)
class Part:
    """A run over a part of a recording. `carried` is what the run before left; every run but the `last` leaves state
    itself. `skip` is how many packets of a file (by uri) were read before; `choose` decides by a flow's ends whether it
    is read in this run; `reopen` finds the files of earlier runs. A connection without a packet for `idle_ns` of the
    recording counts as ended. Packets come in batches of `chunk_bytes`, larger if few of them are chosen. Without
    `tells_files`, another run reports what is wrong with the files themselves. `on_gone` is called with Kafka
    connections that ended and are forgotten before the run is over. Runs that read the same connections have a
    `stretch` each; bodies outside it aren't read, unless `on_elsewhere` wants these exchanges."""

    carried: Sequence[Carried] = ()
    last: bool = True
    skip: Mapping[str, int] = field(default_factory=dict)
    choose: Choice | None = None
    reopen: Reopen = reopened
    idle_ns: int = IDLE_NS
    chunk_bytes: int = CHUNK_BYTES
    tells_files: bool = True
    on_gone: Callable[[Connection, Ends], None] = lambda _connection, _ends: None
    stretch: Stretch = ALL_PACKETS
    on_elsewhere: Callable[[ExchangeBatch], None] | None = None

    def mine(self) -> list[Carried]:
        """Those of `carried` that this run reads: its connections get their numbers."""
        return [carried for carried in self.carried if self.choose is None or self.choose(carried.ends)]


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class Steps:
    flows: Flows
    reassembler: Reassembler
    framer: Framer
    pairer: Pairer
    recordings: Recordings


def late_pieces(steps: Steps, held: Callable[[], list[Frames]]) -> LatePieces:
    """`held` are frames that aren't paired yet."""
    return LatePieces(lambda: _needed(steps, held()))


def _needed(steps: Steps, held: list[Frames]) -> Int64s:
    """By stream, the first offset whose packet may still be needed."""
    connections = steps.reassembler.connections
    needed: Int64s = steps.reassembler._tables.streams[: 2 * len(connections), Stream.NEXT].copy()
    clients = np.array([connection.client or 0 for connection in connections], np.int64)
    waiting = steps.pairer._waiting
    rows = [waiting[:, [Frame.CONNECTION, Frame.RESPONSE, Frame.OFFSET]].T]
    rows += [np.stack([frames.connection, frames.is_response, frames.offset]).astype(np.int64) for frames in held]
    for connection, response, offset in rows:
        np.minimum.at(needed, 2 * connection + (clients[connection] ^ response), offset)
    tables = steps.framer.state.tables
    framed = np.flatnonzero(tables.place[: len(needed)] >= 0)
    state = tables.state[tables.place[framed]]
    needed[framed] = np.where(
        state[:, Partial.HAVE] > 0, np.minimum(needed[framed], state[:, Partial.OFFSET]), needed[framed]
    )
    for stream, search in steps.framer.state.searches.items():
        needed[stream] = min(needed[stream], search.offset)
    for number in steps.framer.state.undecided:
        needed[2 * number : 2 * number + 2] = 0
    return needed


def carry(steps: Steps, late: LatePieces, *, now_ns: int, idle_ns: int) -> tuple[list[Carried], list[Carried]]:
    """(connections that continue, unfinished connections without a packet for so long that they have ended). `now_ns`
    is the latest time of the recording."""
    connections, tables = steps.reassembler.connections, steps.reassembler._tables
    pieces = late.by_stream()
    waiting = waiting_of(steps.pairer, connections, pieces)
    lasting: list[Carried] = []
    idle: list[Carried] = []
    for connection in connections:
        age = now_ns - connection.last_ns
        over = is_over(tables, connection.number)
        unfinished = connection.number in waiting or has_unfinished(tables, connection.number)
        if over and age > TRAILING_NS and not unfinished and not is_followed(steps.framer, connection.number):
            continue
        framing = framing_of(steps.framer, connection.number, pieces)
        unfinished |= framing.is_unfinished
        goes_on = age <= (min(idle_ns, TRAILING_NS) if over and not unfinished else idle_ns)
        if goes_on or unfinished:
            (lasting if goes_on else idle).append(
                _carried(steps, connection.number, framing, waiting.get(connection.number, []))
            )
    return lasting, idle


def leave_out(steps: Steps, ended: Sequence[Carried]) -> None:
    """Drops connections that are finished elsewhere: these steps emit nothing more of them."""
    numbers = [carried.number for carried in ended]
    waiting = steps.pairer._waiting
    steps.pairer._waiting = waiting[~np.isin(waiting[:, Frame.CONNECTION], numbers)]
    for number in numbers:
        stop_framing(steps.framer, number)


def _carried(steps: Steps, number: int, framing: Framing, waiting: list[Ints]) -> Carried:
    tables = steps.reassembler._tables
    connection = steps.reassembler.connections[number]
    row = tables.connections[number].tolist()
    early = [early_of(tables, 2 * number + direction) for direction in (0, 1)]
    packets = [item[4] for items in early for item in items]
    packets += [packet for item in waiting for packet in (item[6], item[8])] + list(framing.packets())
    place = PlaceWriter(steps.recordings, packets)
    ends = steps.pairer.ends[number] if number < len(steps.pairer.ends) else None
    return Carried(
        files=place.files,
        address_a=connection.ends.address_a.hex(),
        port_a=connection.ends.port_a,
        address_b=connection.ends.address_b.hex(),
        port_b=connection.ends.port_b,
        number=number,
        previous=row[Conn.PREVIOUS],
        current=bool(tables.current[connection.flow] == number),
        first_ns=connection.first_ns,
        last_ns=connection.last_ns,
        opened=connection.opened,
        opener=connection.opener,
        ended=row[Conn.ENDED],
        reset_seen=bool(row[Conn.RESET_SEEN]),
        closed_ns=row[Conn.CLOSED_NS],
        segments=row[Conn.SEGMENTS],
        conflict_bytes=connection.conflict_bytes,
        retransmitted_bytes=connection.retransmitted_bytes,
        duplicated_bytes=connection.duplicated_bytes,
        protocol=connection.protocol,
        client=connection.client,
        connection_id=connection_id_of(ends),
        client_software=ends.software if ends is not None else None,
        software_from=ends.software_from if ends is not None else 0,
        starter=framing.starter,
        streams=(
            _stream(steps, 2 * number, early[0], framing, place),
            _stream(steps, 2 * number + 1, early[1], framing, place),
        ),
        slot=framing.slot,
        asked=framing.asked,
        pieces=None
        if framing.pieces is None
        else replace(framing.pieces, entries=tuple((*e[:5], place(e[5])) for e in framing.pieces.entries)),
        waiting=tuple((*item[:6], place(item[6]), item[7], place(item[8]), *item[9:]) for item in waiting),
        place=place(min((packet for packet in packets if packet >= 0), default=NOWHERE)),
    )


def _stream(steps: Steps, stream: int, early: list[list[int]], framing: Framing, place: PlaceWriter) -> CarriedStream:
    tables = steps.reassembler._tables
    direction = stream & 1
    state = list(framing.state[direction])
    if state:
        state[Partial.PACKET] = place(state[Partial.PACKET])
    return CarriedStream(
        row=row_of(tables, stream),
        delivered=delivered_of(tables, stream),
        early=tuple((*item[:4], place(item[4])) for item in early),
        opened=framing.opened[direction],
        framing=framing.framing[direction],
        state=tuple(state),
        place=place(framing.places[direction]),
        search=_search(framing.search[direction], place),
    )


def _search(search: CarriedSearch | None, place: PlaceWriter) -> CarriedSearch | None:
    if search is None:
        return None
    marks = tuple((at, time, place(packet)) for at, time, packet in search.marks)
    end = (*search.end[:3], place(search.end[3])) if search.end else ()
    return replace(search, packet=place(search.packet), place=place(search.place), marks=marks, end=end)


def flows_of(carried: Sequence[Carried]) -> tuple[Flows, list[int]]:
    """The flows of these connections, and the flow of each."""
    known: dict[Endpoints, int] = {}
    numbers = [known.setdefault(connection.ends, len(known)) for connection in carried]
    return Flows(list(known)), numbers


def resume(
    steps: Steps,
    late: LatePieces | None,
    carried: Sequence[Carried],
    flows: list[int],
    old: PlaceReader,
    reopen: Reopen,
) -> list[tuple[str, Problem]]:
    """Puts the steps, which have read nothing yet, into the state in which the previous run ended. Returns (uri,
    problem) of what couldn't be read again."""
    ranges = RereadRanges(steps.flows.ends)
    places = [old.reader(connection) for connection in carried]
    for number, (connection, flow, place) in enumerate(zip(carried, flows, places, strict=True)):
        for add_ranges in (add_early_ranges, add_frame_ranges, add_waiting_ranges):
            add_ranges(connection, number, flow, place, ranges)
    ranges.fetch([(uri, old.firsts[uri]) for uri in old.uris], reopen)
    unread = restore(steps.reassembler, carried, flows, places, ranges)
    for number, (connection, place) in enumerate(zip(carried, places, strict=True)):
        restore_ends(steps.pairer, connection)
        unread += [
            (number, unread_part) for unread_part in restore_framing(steps.framer, connection, number, place, ranges)
        ]
    unread += restore_waiting(steps.pairer, carried, places, ranges)
    if late is not None:
        late.add(np.array(list(_late(carried, places)), np.int64).reshape(-1, 4))
    if isinstance(reopen, ReopenTracker):
        connections = steps.reassembler.connections
        # The id that a first frame will give it, even if none has come yet.
        reopen.lost |= {connection_name(connection_hash(connections[number])) for number, _ in unread}
        reopen.restored |= waiting_ids(steps.pairer)
    return [_problem(carried[number], unread_part) for number, unread_part in unread]


def _late(carried: Sequence[Carried], places: Sequence[Any]) -> Iterator[tuple[int, int, int, int]]:
    """(stream, offset, end, packet) of bytes that came late in the run before."""
    for number, (connection, place) in enumerate(zip(carried, places, strict=True)):
        for _, response, offset, size, _, _, _, _, first, *_ in connection.waiting:
            yield 2 * number + ((connection.client or 0) ^ response), offset, offset + 4 + size, place(first)
        for direction, stream in enumerate(connection.streams):
            if stream.place != NOWHERE:
                yield 2 * number + direction, stream.state[Partial.OFFSET], stream.row[Stream.NEXT], place(stream.place)
            if stream.search is not None and stream.search.place != NOWHERE:
                search = stream.search
                low = search.run_offset
                yield 2 * number + direction, low, low + search.run_bytes, place(search.place)
        for kind, direction, offset, length, _, packet in (
            connection.pieces.entries if connection.pieces is not None else ()
        ):
            if kind == PieceKind.BYTES:
                yield 2 * number + direction, offset, offset + length, place(packet)


def _problem(connection: Carried, unread_part: str) -> tuple[str, Problem]:
    uri, packet = connection.first_place or ("", -1)
    return uri, Problem("unfinished", f"{unread_part} can't be read again", packet, -1, 0)
