"""Frames of Kafka connections: `Pieces` of all streams in, `Frames` out; never raises on what the wire says.

What a connection speaks is found from what it says (`detect_start`, `detection`); Kafka is split by a kernel
(`split`), and everything else is left alone. After bytes that are missing or make no sense the next true frame is
searched (`resync`). The rows of a stream leave nothing out: each begins where the one before it ended, as FRAME or
TOKEN with its length, or LOST.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator

import numpy as np

from kafkascope.capture.base.buffer_pool import BufferPool
from kafkascope.capture.base.flow import (
    Connection,
    FrameKind,
    Frames,
    PieceKind,
    Pieces,
    Problem,
)
from kafkascope.capture.base.memory_view import Content
from kafkascope.capture.frames.attend import CONNECTION_COST, PIECE_COST, attend_again, attend_ahead, is_left
from kafkascope.capture.frames.chunks import begin_frame, free_chunks
from kafkascope.capture.frames.cut_frames import end_in_gap
from kafkascope.capture.frames.detect.credit import READ_AGAIN, SCAN_BYTES, Credit
from kafkascope.capture.frames.detect.cut_packets import begins_frame
from kafkascope.capture.frames.detect.detection import Undecided
from kafkascope.capture.frames.detect.resync import Parts, Run, Search
from kafkascope.capture.frames.detect.start import make_scanning
from kafkascope.capture.frames.frame_table import (
    NO_FRAMES,
    NO_OUTPUT,
    PYTHON,
    REMEMBERED,
    SKIP,
    ConnSlot,
    Cursor,
    FrameCount,
    Given,
    Partial,
    join_frames,
    make_cursor,
    make_output,
    make_piece,
    make_tables,
    put_row,
    take_frames,
    wider,
    with_chunks,
    with_slots,
    with_streams,
)
from kafkascope.capture.frames.late_requests import is_held_back, look_again
from kafkascope.capture.frames.left_pieces import LeftPieces, Work
from kafkascope.capture.frames.long_frames import move_long
from kafkascope.capture.frames.scan_program import ScanPrograms
from kafkascope.capture.frames.split import (
    SplitStop,
    align,
    begin,
    end_stream,
    go_on,
    renew,
    split_arrays,
)
from kafkascope.capture.frames.survey import note_starters, sure_so_far, survey, take_sure, tell_sure
from kafkascope.capture.frames.token_frames import judge_last
from kafkascope.limits import MAX_PROBLEMS, MAX_SEARCHED_BYTES, MAX_SEARCHED_TOTAL_BYTES

# Frames and bytes that go on together at the most, but for a frame that is longer by itself. A row takes 60 bytes here
# and two thousand until its exchange is printed.
PORTION_ROWS = 16_384
PORTION_BYTES = 16 << 20
_NONE = np.empty(0, np.int32)
_TIMES = [Partial.FIRST_NS, Partial.LAST_NS, Partial.PACKET]


class Framer:
    """Feed it what the `Reassembler` gives, with its connections; their `protocol` and `client` are set as they are
    found. A connection with an end on one of `kafka_ports` is Kafka on the word of a single header."""

    def __init__(self, connections: list[Connection], *, kafka_ports: Collection[int] = ()) -> None:
        self._connections = connections
        self._ports = frozenset(kafka_ports)
        self._tables = make_tables()
        self._programs = ScanPrograms()
        self._scanning = make_scanning(self._programs)
        self._undecided: OrderedDict[int, Undecided] = OrderedDict()  # whose first is found at once
        self._searches: dict[int, Search] = {}
        self._kept = 0
        self._credit = Credit()
        self._pool = BufferPool()
        self._output = NO_OUTPUT
        self._work: list[Work | list[Given]] = []  # or pieces by themselves, the next one last
        self._problems: list[Problem] = []

    def feed(self, pieces: Pieces) -> Frames:
        return join_frames(list(self.portions(pieces)))

    def finish(self) -> Frames:
        return join_frames(list(self.last_portions()))

    def portions(self, pieces: Pieces) -> Iterator[Frames]:
        """The frames of these pieces. Tiny ones come in several portions: a row takes more than their bytes."""
        if not len(pieces.kind):
            yield self._frames()
            return
        piece, streams, size, begun, following = survey(pieces)
        self._tables = with_streams(self._tables, streams)
        note_starters(self._tables, self._connections, self._ports, begun)
        self._credit.earn(len(piece.kind), size)
        self._output = make_output(min(len(piece.kind) + 64, PORTION_ROWS), self._pool.take(size + 4_096))
        self._work.append(Work(piece, make_cursor(), following, LeftPieces(piece)))
        for frames in self._run():
            tell_sure(self._tables, self._connections, sure_so_far(self._tables))
            yield frames
        yield from look_again(self)
        tell_sure(self._tables, self._connections, take_sure(self._tables, following))
        yield self._frames()

    def last_portions(self) -> Iterator[Frames]:
        """The recording ends: a frame that is not complete is lost, a search takes what it can get."""
        for number in list(self._undecided):
            self._decide(number, final=True)
            yield from self._run()
        # Requests first: a response is known by its request.
        for stream in sorted(self._searches, key=lambda stream: (self._searches[stream].row & 1, stream)):
            while stream in self._searches:
                self._last_chance(stream, self._searches[stream].end)
                yield from self._run()
        for row in self._tables.state[:, Partial.HAVE].nonzero()[0].tolist():
            state = self._tables.state[row]
            lost = int(state[Partial.HAVE] + state[Partial.FILLED])
            connection = int(self._tables.slots[row >> 1, ConnSlot.CONNECTION])
            free_chunks(self._tables.following, self._tables.counts, state)
            self._row(FrameKind.LOST, connection, row & 1, int(state[Partial.OFFSET]), lost, *state[_TIMES].tolist())
            begin_frame(state)
        yield self._frames()

    def _frames(self) -> Frames:
        if self._output is NO_OUTPUT and not self._problems:
            return NO_FRAMES
        output, self._output = self._output, NO_OUTPUT
        problems, self._problems = tuple(self._problems), []
        return take_frames(output, self._tables.counts, problems)

    def _cut(self, row: int) -> Iterator[Frames]:
        """A portion that is large enough, or none: there is more room then. A long frame is a portion by itself."""
        counts = self._tables.counts
        rows, size = len(self._output.kind), int(counts[FrameCount.WANT_BODY] - counts[FrameCount.BODY])
        if counts[FrameCount.ROWS] >= PORTION_ROWS or counts[FrameCount.BODY] >= PORTION_BYTES or size > PORTION_BYTES:
            yield self._frames()
            self._output = make_output(rows, self._pool.take(max(size, PORTION_BYTES)))
            if size > PORTION_BYTES:
                move_long(self._tables, self._tables.state[row], self._output.body)
        else:
            self._output = wider(self._output, int(counts[FrameCount.WANT_BODY]))
        counts[FrameCount.WANT_BODY] = 0

    def _run(self) -> Iterator[Frames]:
        """All work, and what is read again on the way before what comes after it. Yields portions of many frames."""
        while self._work:
            now = self._work[-1]
            if isinstance(now, list):
                self._go_through(now)
                continue
            why = split_arrays(*self._tables, *self._output, *now.piece, now.cursor, now.following, *self._scanning)
            if why == SplitStop.DONE:
                self._work.pop()
            elif why == SplitStop.FULL:
                yield from self._cut(int(self._tables.place[now.piece.stream[now.at]]))
            elif why == SplitStop.POOL:
                self._grow_pool(int(self._tables.place[now.piece.stream[now.at]]))
            elif why == SplitStop.SLOTS:
                self._tables = with_slots(self._tables)
            elif why == SplitStop.PROGRAM:
                self._programs.need(*self._scanning.wanted.reshape(2, 1))
                self._scanning = make_scanning(self._programs)
            elif why == SplitStop.ATTEND:
                if now.cursor.item(Cursor.AGAIN) >= 0 and is_left(self, now):
                    attend_again(self, now)
                else:
                    self._attend(now, now.at)
                if now.cursor.item(Cursor.AGAIN) < 0 and self._work[-1] is now:
                    attend_ahead(self, now)
            elif why == SplitStop.NONSENSE:
                self._distrust(now, now.at, int(now.cursor[Cursor.BYTE]))
            else:
                slot = int(self._tables.place[now.piece.stream[now.at]]) >> 1
                judge_last(self._tables, self._output, slot, self._asked(slot))

    def _go_through(self, pieces: list[Given]) -> None:
        """What nobody can split yet is searched without the kernel, up to the first piece that is to be split."""
        if not pieces:
            self._work.pop()
            return
        kind, stream, offset, time, packet, length, data = pieces[-1]
        if stream in self._searches:
            pieces.pop()
            self._search(stream, kind, offset, data, length, time, packet)
        else:
            self._work.pop()
            self._read_again(pieces[::-1])

    def _grow_pool(self, row: int) -> None:
        tables = with_chunks(self._tables)
        if tables is not None:
            self._tables = tables
            return
        # The frame is given up, not its length: the next one is where it says.
        free_chunks(self._tables.following, self._tables.counts, self._tables.state[row])
        self._tables.state[row, Partial.DAMAGED] = 1

    def _attend(self, work: Work, at: int) -> None:
        """A piece that the kernel leaves to us: of a stream that is not split, or a gap in one that is."""
        stream, place = work.left.take(at)
        go_on(work.cursor, work.following, len(work.piece.kind))
        row = self._tables.place.item(stream)
        if row >= 0:
            state = self._tables.state[row]
            self._output, end = end_in_gap(self._tables, self._output, row, self._asked(row >> 1))
            if state[Partial.HAVE]:
                offset, first_ns, packet = (
                    int(state[Partial.OFFSET]),
                    int(state[Partial.FIRST_NS]),
                    int(state[Partial.PACKET]),
                )
            else:
                offset, first_ns, packet = max(place[1], end), place[4], place[5]
            self._lose(stream, row, offset, first_ns, packet, place[1])
        if stream in self._searches:
            self._search(stream, *place)
        else:
            self._consider(stream, *place)

    def _consider(
        self,
        stream: int,
        kind: int,
        offset: int,
        data: bytes,
        length: int,
        time: int,
        packet: int,
        parts: Parts | None = None,
    ) -> None:
        """A piece of a connection that is not known to be Kafka."""
        number = stream >> 1
        undecided = self._undecided.get(number)
        if kind == PieceKind.RENEWED:
            if undecided is not None:
                self._forget(number)
            renew(self._tables, number)
            return
        if kind == PieceKind.OPEN:
            self._tables.opened[stream] = 1
            return
        if undecided is None:
            if kind in (PieceKind.CLOSE, PieceKind.RESET):
                self._tables.place[stream] = SKIP
                return
            undecided = self._undecided[number] = self._new(number)
            self._kept += CONNECTION_COST
        undecided.add(kind, stream & 1, offset, data, length, time, packet, parts)
        self._kept += len(data) + PIECE_COST * (1 if parts is None else len(parts.lengths))
        self._decide(number, final=all(undecided.ended))
        if self._kept > MAX_SEARCHED_TOTAL_BYTES:
            self._make_room(packet)

    def _make_room(self, packet: int) -> None:
        while self._kept > MAX_SEARCHED_TOTAL_BYTES and self._undecided:
            oldest = next(iter(self._undecided))
            self._problem("undecided", f"connection {oldest} is left alone: too much waits to be recognised", packet)
            self._forget(oldest)

    def _decide(self, number: int, *, final: bool) -> None:
        undecided = self._undecided[number]
        verdict = undecided.verdict(self._credit, final=final)
        if verdict is not None or final:
            self._forget(number)
        if verdict is not None:
            self._connections[number].protocol = verdict.protocol
            if verdict.client is not None:
                self._begin(number, verdict.client, undecided)

    def _new(self, number: int) -> Undecided:
        connection = self._connections[number]
        ends = (connection.ends.port_a in self._ports, connection.ends.port_b in self._ports)
        client = connection.opener
        if client is None and ends[0] != ends[1]:
            # Direction 0 goes from end a to end b; requests go to the port.
            client = 1 if ends[0] else 0
        opened = (bool(self._tables.opened[2 * number]), bool(self._tables.opened[2 * number + 1]))
        return Undecided(client, opened, hinted=any(ends))

    def _forget(self, number: int) -> None:
        undecided = self._undecided.pop(number)
        self._kept -= CONNECTION_COST + undecided.size + PIECE_COST * undecided.count
        self._tables.place[2 * number : 2 * number + 2] = SKIP

    def _begin(self, number: int, client: int, undecided: Undecided) -> None:
        """A Kafka connection: what it said so far is read again."""
        self._connections[number].client = client
        slot = begin(self._tables, number, client)
        if slot < 0:
            self._tables = with_slots(self._tables)
            slot = begin(self._tables, number, client)
        for direction in (0, 1):
            stream = 2 * number + direction
            row = 2 * int(slot) + (direction != client)
            if not undecided.opened[direction]:
                first = next((entry for entry in undecided.entries if entry.direction == direction), None)
                offset, time, packet = (first.offset, first.time, first.packet) if first else (0, 0, -1)
                self._lose(stream, row, offset, time, packet, offset)
        pieces: list[Given] = []
        for kind, direction, offset, run, start, length, time, packet, _ in undecided.pieces():
            data = bytes(run.data[start : start + length]) if run is not None and kind == PieceKind.BYTES else b""
            pieces.append((kind, 2 * number + direction, offset, time, packet, length, data))
        self._work.append(pieces[::-1])

    def _lose(self, stream: int, row: int, offset: int, first_ns: int, packet: int, at: int) -> None:
        """The stream's frames are lost from `offset` on; its bytes go on at `at`."""
        free_chunks(self._tables.following, self._tables.counts, self._tables.state[row])
        begin_frame(self._tables.state[row])
        self._tables.place[stream] = PYTHON
        self._searches[stream] = Search(row, offset, first_ns, packet, Run(at, aligned=False), first_ns)

    def _distrust(self, work: Work, at: int, position: int) -> None:
        """A length that no frame has: everything from its prefix on is searched."""
        piece = work.piece
        stream = int(piece.stream[at])
        row = int(self._tables.place[stream])
        state = self._tables.state[row]
        offset, first_ns, packet = int(state[Partial.OFFSET]), int(state[Partial.FIRST_NS]), int(state[Partial.PACKET])
        prefix = int(state[Partial.PREFIX]).to_bytes(4, "big")
        said = int.from_bytes(prefix, "big", signed=True)
        what = "responses" if row & 1 else "requests"
        self._problem("length", f"connection {stream >> 1}, {what} at {offset}: {said} is no frame's length", packet)
        self._lose(stream, row, offset, first_ns, packet, offset)
        search = self._searches[stream]
        search.run.add(prefix, first_ns, packet)
        # Not there again: what begins here was just found wanting.
        search.run.skipped = 1
        self._kept += 4 + PIECE_COST
        go_on(work.cursor, work.following, len(piece.kind))
        left = int(piece.length[at]) - position
        if left > 0:
            rest = Content(piece.data, piece.waited).bytes(piece.start.item(at) + position, left)
            self._search(
                stream, PieceKind.BYTES, offset + 4, rest, len(rest), int(piece.time[at]), int(piece.packet[at])
            )

    def _search(
        self,
        stream: int,
        kind: int,
        offset: int,
        data: bytes,
        length: int,
        time: int,
        packet: int,
        parts: Parts | None = None,
    ) -> None:
        search = self._searches[stream]
        search.time = max(search.time, time if parts is None else int(parts.times.max()))
        if search.packet < 0:
            search.first_ns, search.packet = time, packet
        if kind == PieceKind.BYTES:
            search.run.add(data, time, packet, parts)
            self._kept += len(data) + PIECE_COST * (1 if parts is None else len(parts.lengths))
            found = self._find(search, final=False)
            if found is not None:
                self._resume(stream, found, None)
            elif len(search.run.data) > MAX_SEARCHED_BYTES or self._kept > MAX_SEARCHED_TOTAL_BYTES:
                self._shorten(search)
        elif kind in (PieceKind.GAP, PieceKind.CLOSE, PieceKind.RESET):
            end: Given = (kind, stream, offset, time, packet, length, b"")
            if kind == PieceKind.GAP or not is_held_back(self, stream, end):
                self._last_chance(stream, end)

    def _shorten(self, search: Search) -> None:
        """The older half of what is searched goes; the rest may hold the next frame still."""
        before = len(search.run.data) + PIECE_COST * search.run.count
        search.run.drop(len(search.run.data) // 2)
        self._kept -= before - len(search.run.data) - PIECE_COST * search.run.count

    def _last_chance(self, stream: int, behind: Given | None) -> None:
        """Nothing follows on these bytes: one frame is enough now. `behind` is the piece that ends them."""
        search = self._searches[stream]
        found = self._find(search, final=True)
        if found is None and self._begins_frame(search, behind):
            found = 0
        if found is not None:
            self._resume(stream, found, behind)
            return
        end = search.run.offset + len(search.run.data)
        self._drop(search)
        if behind is not None and behind[0] == PieceKind.GAP:
            search.run = Run(behind[2] + behind[5], aligned=False)
            return
        del self._searches[stream]
        number = stream >> 1
        if end > search.offset:
            lost = end - search.offset
            self._row(
                FrameKind.LOST, number, search.row & 1, search.offset, lost, search.first_ns, search.time, search.packet
            )
        end_stream(self._tables, stream, search.row)
        if behind is not None:
            self._row(FrameKind.ENDED, number, search.row & 1, behind[2], 0, behind[3], behind[3], behind[4])

    def _drop(self, search: Search) -> None:
        self._kept -= len(search.run.data) + PIECE_COST * search.run.count

    def _find(self, search: Search, *, final: bool) -> int | None:
        response, run, credit = bool(search.row & 1), search.run, self._credit
        if not credit.may_look(final=final):
            return None
        chains = run.responses(self._asked(search.row >> 1), credit, anew=final) if response else run.requests(credit)
        for chain in chains:
            strong = len(chain.strong)
            if strong >= 2 or (final and strong):
                return search.run.first_before(chain, response=response)
        return None

    def _begins_frame(self, search: Search, behind: Given | None) -> bool:
        run = search.run
        if run.skipped or not run.data or self._credit.is_spent:
            return False
        cut = 0
        if behind is not None and behind[0] == PieceKind.GAP:
            # Bytes that the snap length cut have the number of their packet; the run begins with it.
            if len(run.marks) > 1 or run.marks[0][2] != behind[4]:
                return False
            cut = behind[5]
        return begins_frame(run.data, self._asked(search.row >> 1), cut, response=bool(search.row & 1))

    def _asked(self, slot: int) -> dict[int, tuple[int, int]]:
        known = min(int(self._tables.slots[slot, ConnSlot.ASKED]), REMEMBERED)
        return {identity: (key, version) for identity, key, version in self._tables.asked[slot, :known].tolist()}

    def _resume(self, stream: int, found: int, behind: Given | None) -> None:
        """A frame begins at place `found` of the run: what lies before it is lost, the rest is split."""
        search = self._searches.pop(stream)
        run = search.run
        self._drop(search)
        self._credit.spend(READ_AGAIN + len(run.data) // SCAN_BYTES)
        lost = run.offset + found - search.offset
        if lost:
            number = stream >> 1
            self._row(
                FrameKind.LOST, number, search.row & 1, search.offset, lost, search.first_ns, search.time, search.packet
            )
        align(self._tables.place, self._tables.state, stream, search.row)
        pieces: list[Given] = []
        ends = [place for place, _, _ in run.marks[1:]] + [len(run.data)]
        for (place, time, packet), end in zip(run.marks, ends, strict=True):
            start = max(place, found)
            if start < end:
                data = bytes(run.data[start:end])
                pieces.append((PieceKind.BYTES, stream, run.offset + start, time, packet, end - start, data))
        self._read_again(pieces if behind is None else [*pieces, behind])

    def _read_again(self, pieces: list[Given]) -> None:
        piece = make_piece(pieces)
        self._work.append(Work(piece, make_cursor(), _NONE, LeftPieces(piece)))

    def _row(self, *values: int) -> None:
        """kind, connection, is_response, offset, lost, first_ns, time_ns, packet"""
        if self._tables.counts[FrameCount.ROWS] + 2 >= len(self._output.kind):
            self._output = wider(self._output, 0)
        put_row(self._output, self._tables.counts, values)

    def _problem(self, kind: str, detail: str, packet: int) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(Problem(kind, detail, packet, -1, 0))
