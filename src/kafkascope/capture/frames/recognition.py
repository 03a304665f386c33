"""Recognizes the protocol of connections that the kernel is not sure of; pieces are kept until a verdict is reached."""

from collections import deque

from kafkascope.capture.base.flow import PieceKind, ProtocolVerdict, SinglePiece
from kafkascope.capture.frames.detect.detection import Undecided
from kafkascope.capture.frames.frame_table import SKIP, with_slots
from kafkascope.capture.frames.framing_state import CONNECTION_COST, PIECE_COST, FramingState
from kafkascope.capture.frames.split import claim_slot, forget_connection
from kafkascope.capture.frames.stream_search import StreamSearch
from kafkascope.limits import MAX_SEARCHED_TOTAL_BYTES


class Recognition:
    """Works on the `undecided` connections of the state. The pieces of a Kafka connection are pushed to be read again,
    those of others are dropped."""

    def __init__(self, state: FramingState, search: StreamSearch) -> None:
        self._state = state
        self._search = search

    def add(self, piece: SinglePiece) -> None:
        """A piece of a connection that isn't known to be Kafka."""
        state = self._state
        kind, stream, offset, time, packet, length, data = piece
        number = stream >> 1
        undecided = state.undecided.get(number)
        if kind == PieceKind.RENEWED:
            if undecided is not None:
                self.forget(number)
            forget_connection(state.tables, number)
            return
        if kind == PieceKind.OPEN:
            state.tables.opened[stream] = 1
            return
        if undecided is None:
            if kind in (PieceKind.CLOSE, PieceKind.RESET):
                state.tables.place[stream] = SKIP
                return
            undecided = state.undecided[number] = self._new(number)
            state.kept_bytes += CONNECTION_COST
        undecided.add(kind, stream & 1, offset, data, length, time, packet)
        state.kept_bytes += len(data) + PIECE_COST
        self.decide(number, final=all(undecided.ended))
        if state.kept_bytes > MAX_SEARCHED_TOTAL_BYTES:
            self.make_room(packet)

    def decide(self, number: int, *, final: bool) -> None:
        """Acts on the verdict, if there is one by now; `final` says that no more of the connection comes."""
        state = self._state
        undecided = state.undecided[number]
        verdict = undecided.verdict(state.credit, final=final)
        if verdict is not None or final:
            self.forget(number)
        if verdict is not None:
            state.verdicts.append(ProtocolVerdict(number, verdict.protocol, verdict.client))
            if verdict.client is not None:
                self._read_as_kafka(number, verdict.client, undecided)

    def make_room(self, packet: int) -> None:
        """Forgets the oldest connections until what is kept is within its limit."""
        state = self._state
        while state.kept_bytes > MAX_SEARCHED_TOTAL_BYTES and state.undecided:
            oldest = next(iter(state.undecided))
            state.add_problem(
                "undecided", f"connection {oldest} is left alone: too much waits to be recognised", packet
            )
            self.forget(oldest)

    def forget(self, number: int) -> None:
        """Drops the pieces; later ones are skipped."""
        state = self._state
        undecided = state.undecided.pop(number)
        state.kept_bytes -= CONNECTION_COST + undecided.size + PIECE_COST * undecided.count
        state.tables.place[2 * number : 2 * number + 2] = SKIP

    def _new(self, number: int) -> Undecided:
        state = self._state
        connection = state.connections[number]
        is_port = (connection.ends.port_a in state.kafka_ports, connection.ends.port_b in state.kafka_ports)
        client = connection.opener
        if client is None and is_port[0] != is_port[1]:
            # Direction 0 goes from end a to end b; requests go to the port.
            client = 1 if is_port[0] else 0
        opened = (bool(state.tables.opened[2 * number]), bool(state.tables.opened[2 * number + 1]))
        return Undecided(client, opened, hinted=any(is_port))

    def _read_as_kafka(self, number: int, client: int, undecided: Undecided) -> None:
        """The connection is Kafka: its pieces so far are read again."""
        state = self._state
        slot = claim_slot(state.tables, number, client)
        if slot < 0:
            state.tables = with_slots(state.tables)
            slot = claim_slot(state.tables, number, client)
        for direction in (0, 1):
            row = 2 * int(slot) + (direction != client)
            if not undecided.opened[direction]:
                first = next((entry for entry in undecided.entries if entry.direction == direction), None)
                offset, time, packet = (first.offset, first.time, first.packet) if first else (0, 0, -1)
                self._search.start(2 * number + direction, row, offset, time, packet, offset)
        pieces: deque[SinglePiece] = deque()
        for kind, direction, offset, run, start, length, time, packet, _ in undecided.pieces():
            data = bytes(run.data[start : start + length]) if run is not None and kind == PieceKind.BYTES else b""
            pieces.append(SinglePiece(kind, 2 * number + direction, offset, time, packet, length, data))
        state.work.push(pieces)
