"""Holds what framing remembers between batches, for the objects that do its work: all of them read and write it."""

from collections import OrderedDict, deque
from collections.abc import Collection, Sequence

import numpy as np

from kafkascope.capture.base.flow import Connection, Frames, Problem, ProtocolVerdict, SinglePiece
from kafkascope.capture.frames.detect.credit import Credit
from kafkascope.capture.frames.detect.detection import Undecided
from kafkascope.capture.frames.detect.resync import Search
from kafkascope.capture.frames.detect.start import make_scanning
from kafkascope.capture.frames.frame_table import (
    NO_FRAMES,
    NO_OUTPUT,
    REMEMBERED,
    ConnSlot,
    FrameCount,
    make_cursor,
    make_piece_columns,
    make_tables,
    put_row,
    take_frames,
    wider,
)
from kafkascope.capture.frames.left_pieces import LeftPieces, PieceBatch
from kafkascope.capture.frames.scan_program import ScanPrograms
from kafkascope.limits import MAX_PROBLEMS

# What a connection or a piece that waits takes beside its bytes.
CONNECTION_COST = 2_048
PIECE_COST = 256
_NO_LINKS = np.empty(0, np.int32)

# Pieces that are searched one by one, the next one first.
PieceQueue = deque[SinglePiece]


class WorkStack:
    """Batches that are being framed. Pieces that have to be read again come on top: before what follows them."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: list[PieceBatch | PieceQueue] = []

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def top(self) -> PieceBatch | PieceQueue:
        return self._items[-1]

    def push(self, work: PieceBatch | PieceQueue) -> None:
        self._items.append(work)

    def push_pieces(self, pieces: Sequence[SinglePiece]) -> None:
        """As a batch for the kernel."""
        columns = make_piece_columns(pieces)
        self._items.append(PieceBatch(columns, make_cursor(), _NO_LINKS, LeftPieces(columns)))

    def pop(self) -> None:
        self._items.pop()


class FramingState:
    """`connections` are read, never written. `kept_bytes` is what `undecided` connections and `searches` hold, with
    their costs. `output` takes the frames, `verdicts` and `problems` go out with them."""

    def __init__(self, connections: Sequence[Connection], kafka_ports: Collection[int]) -> None:
        self.connections = connections
        self.kafka_ports = frozenset(kafka_ports)
        self.tables = make_tables()
        self.programs = ScanPrograms()
        self.scanning = make_scanning(self.programs)
        self.undecided: OrderedDict[int, Undecided] = OrderedDict()  # by connection, the oldest first
        self.searches: dict[int, Search] = {}  # by stream
        self.kept_bytes = 0
        self.credit = Credit()
        self.output = NO_OUTPUT
        self.work = WorkStack()
        self.verdicts: list[ProtocolVerdict] = []
        self.problems: list[Problem] = []

    def requests_of(self, slot: int) -> dict[int, tuple[int, int]]:
        """Correlation id to (API key, version) of the last requests of a connection."""
        known = min(int(self.tables.slots[slot, ConnSlot.ASKED]), REMEMBERED)
        return {identity: (key, version) for identity, key, version in self.tables.asked[slot, :known].tolist()}

    def add_row(self, *values: int) -> None:
        """kind, connection, is_response, offset, lost, first_ns, time_ns, packet"""
        if self.tables.counts[FrameCount.ROWS] + 2 >= len(self.output.kind):
            self.output = wider(self.output, 0)
        put_row(self.output, self.tables.counts, values)

    def add_problem(self, kind: str, detail: str, packet: int) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(kind, detail, packet, -1, 0))

    def add_missing_programs(self) -> None:
        """Compiles the scan programs that the kernel stopped for."""
        self.programs.need(*self.scanning.wanted.reshape(2, 1))
        self.scanning = make_scanning(self.programs)

    def take_frames(self) -> Frames:
        if self.output is NO_OUTPUT and not self.problems and not self.verdicts:
            return NO_FRAMES
        output, self.output = self.output, NO_OUTPUT
        problems, self.problems = tuple(self.problems), []
        verdicts, self.verdicts = tuple(self.verdicts), []
        return take_frames(output, self.tables.counts, problems, verdicts)
