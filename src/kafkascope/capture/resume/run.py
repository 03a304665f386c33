"""The steps of a capture in, a `Carried` for each connection that goes on out; and back, so that the next run has what
this one had: the same numbers, and the same bytes, read again from where they lie."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kafkascope.capture.base.flow import (
    Connection,
    Endpoints,
    Flows,
    Frames,
    Int64s,
    PieceKind,
    Problem,
)
from kafkascope.capture.exchanges.exchanges import Ends, Pairer, Recordings
from kafkascope.capture.exchanges.identity import connection_hash, connection_name
from kafkascope.capture.exchanges.pairing import LONGEST_WAIT_NS
from kafkascope.capture.files.packets import CHUNK_BYTES
from kafkascope.capture.files.source import Input
from kafkascope.capture.frames.frame_table import (
    Partial,
)
from kafkascope.capture.frames.framing import Framer
from kafkascope.capture.frames.headers import (
    Frame,
)
from kafkascope.capture.resume.choose import Choice
from kafkascope.capture.resume.frames import Framing, framing_of, is_attended, leave_alone, restore_framing, want_frames
from kafkascope.capture.resume.pairs import named, restore_ends, restore_waiting, waiting_ids, waiting_of, want_waiting
from kafkascope.capture.resume.places import Late, PlaceReader, PlaceWriter
from kafkascope.capture.resume.reread import Reopen, Reopening, Wanted
from kafkascope.capture.resume.state import NOWHERE, Carried, CarriedSearch, CarriedStream, Ints
from kafkascope.capture.resume.tcp import delivered_of, early_of, has_unfinished, is_over, restore, row_of, want_early
from kafkascope.capture.tcp.reassembly import TRAILING_NS, Reassembler
from kafkascope.capture.tcp.stream_table import (
    Conn,
    Stream,
)

# A broker closes a connection that is idle for connections.max.idle.ms, ten minutes by default, and says so.
IDLE_NS = 2 * LONGEST_WAIT_NS


def reopened(uri: str) -> Input | None:
    """The file itself, where it is one."""
    return uri if os.path.isfile(uri) else None


@dataclass(frozen=True, slots=True)
class Part:
    """A run over a part of a recording. `carried` is what the run before left; not the `last` one leaves something
    itself. `skip` is how many packets of a file (by uri) were read before; `choose` says of a flow's ends that it is
    read here; `reopen` finds the files of earlier runs. A connection without a packet for `idle_ns` of the recording
    is taken for ended. Packets come in batches of `chunk_bytes`: larger ones where few of them are chosen.
    What is wrong with the files themselves another run tells, where `tells_files` is not set. `on_gone` hears of Kafka
    connections that ended and are forgotten before the run is over."""

    carried: Sequence[Carried] = ()
    last: bool = True
    skip: Mapping[str, int] = field(default_factory=dict)
    choose: Choice | None = None
    reopen: Reopen = reopened
    idle_ns: int = IDLE_NS
    chunk_bytes: int = CHUNK_BYTES
    tells_files: bool = True
    on_gone: Callable[[Connection, Ends], None] = lambda _connection, _ends: None

    def mine(self) -> list[Carried]:
        """Of `carried` those that are read here: connections of this run have their numbers."""
        return [one for one in self.carried if self.choose is None or self.choose(one.ends)]


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class Steps:
    flows: Flows
    reassembler: Reassembler
    framer: Framer
    pairer: Pairer
    recordings: Recordings


def late_pieces(steps: Steps, held: Callable[[], list[Frames]]) -> Late:
    """`held` are frames that are not paired yet."""
    return Late(lambda: _needed(steps, held()))


def _needed(steps: Steps, held: list[Frames]) -> Int64s:
    """Stream to the first offset whose packet may be asked for."""
    connections = steps.reassembler.connections
    needed: Int64s = steps.reassembler._tables.streams[: 2 * len(connections), Stream.NEXT].copy()
    clients = np.array([one.client or 0 for one in connections], np.int64)
    waiting = steps.pairer._waiting
    rows = [waiting[:, [Frame.CONNECTION, Frame.RESPONSE, Frame.OFFSET]].T]
    rows += [np.stack([one.connection, one.is_response, one.offset]).astype(np.int64) for one in held]
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


def carry(steps: Steps, late: Late, *, now_ns: int, idle_ns: int) -> tuple[list[Carried], list[Carried]]:
    """(those that go on, those with something unfinished that had no packet for so long that they will not); `now_ns`
    is the latest time of the recording."""
    connections, tables = steps.reassembler.connections, steps.reassembler._tables
    pieces = late.by_stream()
    waiting = waiting_of(steps.pairer, connections, pieces)
    lasting: list[Carried] = []
    idle: list[Carried] = []
    for one in connections:
        age = now_ns - one.last_ns
        over = is_over(tables, one.number)
        unfinished = one.number in waiting or has_unfinished(tables, one.number)
        if over and age > TRAILING_NS and not unfinished and not is_attended(steps.framer, one.number):
            continue
        framing = framing_of(steps.framer, one.number, pieces)
        unfinished |= framing.is_unfinished
        goes_on = age <= (min(idle_ns, TRAILING_NS) if over and not unfinished else idle_ns)
        if goes_on or unfinished:
            (lasting if goes_on else idle).append(_carried(steps, one.number, framing, waiting.get(one.number, [])))
    return lasting, idle


def leave_out(steps: Steps, ended: Sequence[Carried]) -> None:
    """Connections that were told to their end elsewhere: nothing of them comes out of these steps any more."""
    numbers = [one.number for one in ended]
    waiting = steps.pairer._waiting
    steps.pairer._waiting = waiting[~np.isin(waiting[:, Frame.CONNECTION], numbers)]
    for number in numbers:
        leave_alone(steps.framer, number)


def _carried(steps: Steps, number: int, framing: Framing, waiting: list[Ints]) -> Carried:
    tables = steps.reassembler._tables
    one = steps.reassembler.connections[number]
    row = tables.connections[number].tolist()
    early = [early_of(tables, 2 * number + direction) for direction in (0, 1)]
    packets = [item[4] for items in early for item in items]
    packets += [packet for item in waiting for packet in (item[6], item[8])] + list(framing.packets())
    place = PlaceWriter(steps.recordings, packets)
    ends = steps.pairer.ends[number] if number < len(steps.pairer.ends) else None
    return Carried(
        files=place.files,
        address_a=one.ends.address_a.hex(),
        port_a=one.ends.port_a,
        address_b=one.ends.address_b.hex(),
        port_b=one.ends.port_b,
        number=number,
        previous=row[Conn.PREVIOUS],
        current=bool(tables.current[one.flow] == number),
        first_ns=one.first_ns,
        last_ns=one.last_ns,
        opened=one.opened,
        opener=one.opener,
        ended=row[Conn.ENDED],
        reset_seen=bool(row[Conn.RESET_SEEN]),
        closed_ns=row[Conn.CLOSED_NS],
        segments=row[Conn.SEGMENTS],
        conflict_bytes=one.conflict_bytes,
        retransmitted_bytes=one.retransmitted_bytes,
        duplicated_bytes=one.duplicated_bytes,
        protocol=one.protocol,
        client=one.client,
        connection_id=named(ends),
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
    numbers = [known.setdefault(one.ends, len(known)) for one in carried]
    return Flows(list(known)), numbers


def resume(
    steps: Steps, late: Late | None, carried: Sequence[Carried], flows: list[int], old: PlaceReader, reopen: Reopen
) -> list[tuple[str, Problem]]:
    """Puts the steps, which have read nothing yet, where those of the run before stood. (uri, problem) of what could
    not be read again."""
    wanted = Wanted(steps.flows.ends)
    places = [old.reader(one) for one in carried]
    for number, (one, flow, place) in enumerate(zip(carried, flows, places, strict=True)):
        for want in (want_early, want_frames, want_waiting):
            want(one, number, flow, place, wanted)
    wanted.fetch([(uri, old.firsts[uri]) for uri in old.uris], reopen)
    unread = restore(steps.reassembler, carried, flows, places, wanted)
    for number, (one, place) in enumerate(zip(carried, places, strict=True)):
        restore_ends(steps.pairer, one)
        unread += [(number, said) for said in restore_framing(steps.framer, one, number, place, wanted)]
    unread += restore_waiting(steps.pairer, carried, places, wanted)
    if late is not None:
        late.add(np.array(list(_late(carried, places)), np.int64).reshape(-1, 4))
    if isinstance(reopen, Reopening):
        connections = steps.reassembler.connections
        # The same name as a first frame gives, also where none has come yet.
        reopen.lost |= {connection_name(connection_hash(connections[number])) for number, _ in unread}
        reopen.restored |= waiting_ids(steps.pairer)
    return [_problem(carried[number], said) for number, said in unread]


def _late(carried: Sequence[Carried], places: Sequence[Any]) -> Iterator[tuple[int, int, int, int]]:
    """What the next run must know of bytes that came late in the run before."""
    for number, (one, place) in enumerate(zip(carried, places, strict=True)):
        for _, response, offset, size, _, _, _, _, first, *_ in one.waiting:
            yield 2 * number + ((one.client or 0) ^ response), offset, offset + 4 + size, place(first)
        for direction, stream in enumerate(one.streams):
            if stream.place != NOWHERE:
                yield 2 * number + direction, stream.state[Partial.OFFSET], stream.row[Stream.NEXT], place(stream.place)
            if stream.search is not None and stream.search.place != NOWHERE:
                search = stream.search
                low = search.run_offset
                yield 2 * number + direction, low, low + search.run_bytes, place(search.place)
        for kind, direction, offset, length, _, packet in one.pieces.entries if one.pieces is not None else ():
            if kind == PieceKind.BYTES:
                yield 2 * number + direction, offset, offset + length, place(packet)


def _problem(one: Carried, said: str) -> tuple[str, Problem]:
    uri, packet = one.first_place or ("", -1)
    return uri, Problem("unfinished", f"{said} cannot be read again", packet, -1, 0)
