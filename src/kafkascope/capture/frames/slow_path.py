"""Processes the pieces that the framing kernel leaves to Python: each goes to a search or to recognition."""

import numpy as np

from kafkascope.capture.base.flow import PieceKind, SinglePiece
from kafkascope.capture.frames.detect.resync import PieceGroup
from kafkascope.capture.frames.frame_table import PYTHON, Cursor
from kafkascope.capture.frames.framing_state import PIECE_COST, FramingState
from kafkascope.capture.frames.left_pieces import PieceBatch, PieceRow
from kafkascope.capture.frames.recognition import Recognition
from kafkascope.capture.frames.split import advance
from kafkascope.capture.frames.stream_search import StreamSearch
from kafkascope.limits import MAX_SEARCHED_TOTAL_BYTES, MAX_UNDECIDED_BYTES

# Fewer pieces are processed one by one: arrays take longer. So are a few at a time of more, until the rest can be
# processed together.
FEW_TIED, FEW = 8, 4


class SlowPath:
    """Pieces of one stream that follow each other are processed together where that changes nothing."""

    def __init__(self, state: FramingState, search: StreamSearch, recognition: Recognition) -> None:
        self._state = state
        self._search = search
        self._recognition = recognition

    def process(self, batch: PieceBatch) -> None:
        """The piece that the kernel stopped at, and those after it that it would leave to Python as well."""
        if batch.is_replaying and self._is_left(batch):
            self._process_replayed(batch)
        else:
            self._process_stopped(batch)
        if not batch.is_replaying and self._state.work.top is batch:
            self._process_following(batch)

    def _is_left(self, batch: PieceBatch) -> bool:
        """Whether the kernel would leave the next piece to Python."""
        return self._state.tables.place.item(batch.columns.stream.item(batch.at)) == PYTHON

    def _process_stopped(self, batch: PieceBatch) -> None:
        """A piece of a stream that isn't split, or a gap in one that is."""
        piece = batch.left.take(batch.at)
        advance(batch.cursor, batch.links, len(batch.columns.kind))
        row = self._state.tables.place.item(piece.stream)
        if row >= 0:
            self._search.start_at_gap(piece, row)
        self._add(piece)

    def _process_replayed(self, batch: PieceBatch) -> None:
        """The pieces of a connection that are read again, up to one that is for the kernel."""
        for row in batch.left.replayed(batch.at, batch.links):
            index, count = row[6:8]
            taken = self._process_row(batch, row)
            batch.cursor[Cursor.REPLAY] = batch.left.number(index + taken - 1)
            advance(batch.cursor, batch.links, len(batch.columns.kind))
            if (
                taken < count
                or batch.cursor.item(Cursor.REPLAY) < 0
                or self._state.work.top is not batch
                or not self._is_left(batch)
            ):
                return

    def _process_following(self, batch: PieceBatch) -> None:
        """The pieces from the cursor on, up to one that is for the kernel or has to be read again first."""
        state, left = self._state, batch.left
        at: int = batch.cursor.item(Cursor.PIECE)
        place = state.tables.place
        while state.work.top is batch and (rows := left.ahead(at, state.tables)):
            for row in rows:
                stream, kind, *_, count, _ = row
                state_row = place.item(stream)
                if state_row == PYTHON:
                    taken = self._process_row(batch, row)
                elif state_row >= 0 or kind == PieceKind.RENEWED:
                    batch.cursor[Cursor.PIECE] = at
                    return
                else:
                    taken = count
                at += taken
                if kind == PieceKind.RENEWED or taken < count or state.work.top is not batch:
                    break
        batch.cursor[Cursor.PIECE] = at

    def _process_row(self, batch: PieceBatch, row: PieceRow) -> int:
        """How many of the pieces were processed: the others are for the kernel, or have to wait."""
        stream, kind, offset, start, time, packet, index, count, length = row
        state, left, number = self._state, batch.left, stream >> 1
        if count == 1:
            self._add(SinglePiece(kind, stream, offset, time, packet, length, left.bytes(kind, start, length)))
            return 1
        if count < FEW_TIED or stream in state.searches:
            return self._process_one_by_one(batch, stream, index, count)
        taken = 0
        while taken < count:
            undecided = state.undecided.get(number)
            if count - taken >= FEW and undecided is not None and undecided.size < MAX_UNDECIDED_BYTES:
                data, group = left.together(index + taken, count - taken)
                broken = bool((group.kinds == PieceKind.GAP).any())
                if undecided.may_join(stream & 1, data, broken=broken):
                    first = left.take(left.number(index + taken))
                    undecided.add_group(stream & 1, first.offset, data, group)
                    self._recognition.decide(number, final=False)
                    self._count_kept(number, group)
                    return count
            done = self._process_one_by_one(batch, stream, index + taken, min(FEW, count - taken))
            taken += done
            if done < FEW:
                break
        return taken

    def _count_kept(self, number: int, group: PieceGroup) -> None:
        """Counts the bytes of these pieces; if that is too much, each of them makes room. A connection that was
        forgotten, this one too, gave back all its bytes."""
        state = self._state
        sizes = np.where(group.kinds == PieceKind.GAP, 0, group.lengths) + PIECE_COST
        total = int(sizes.sum())
        if state.kept_bytes + total <= MAX_SEARCHED_TOTAL_BYTES:
            state.kept_bytes += total
            return
        for size, packet in zip(sizes.tolist(), group.packets.tolist(), strict=True):
            state.kept_bytes += size
            if number in state.undecided:
                self._recognition.make_room(packet)

    def _process_one_by_one(self, batch: PieceBatch, stream: int, index: int, count: int) -> int:
        state, left = self._state, batch.left
        for taken in range(count):
            if state.work.top is not batch or state.tables.place.item(stream) != PYTHON:
                return taken
            self._add(left.take(left.number(index + taken)))
        return count

    def _add(self, piece: SinglePiece) -> None:
        if piece.stream in self._state.searches:
            self._search.add(piece)
        else:
            self._recognition.add(piece)
