"""Searches the next frame of Kafka streams that lost their frame boundaries, in bytes without a gap."""

from collections.abc import Iterator

from kafkascope.capture.base.flow import FrameKind, PieceKind, SinglePiece
from kafkascope.capture.base.memory_view import Content
from kafkascope.capture.frames.chunks import begin_frame, free_chunks
from kafkascope.capture.frames.cut_frames import end_in_gap
from kafkascope.capture.frames.detect.credit import READ_AGAIN, SCAN_BYTES
from kafkascope.capture.frames.detect.cut_packets import begins_frame
from kafkascope.capture.frames.detect.resync import Run, Search
from kafkascope.capture.frames.frame_table import PYTHON, ConnSlot, Cursor, Partial
from kafkascope.capture.frames.framing_state import PIECE_COST, FramingState
from kafkascope.capture.frames.left_pieces import PieceBatch
from kafkascope.capture.frames.split import advance, align_stream, end_stream
from kafkascope.limits import MAX_SEARCHED_BYTES, MAX_SEARCHED_TOTAL_BYTES


class StreamSearch:
    """Works on the `searches` of the state. When the next frame is found, its bytes are pushed to be split again."""

    def __init__(self, state: FramingState) -> None:
        self._state = state

    def start(self, stream: int, row: int, offset: int, first_ns: int, packet: int, resumes_at: int) -> None:
        """The stream's frames are lost from `offset` on; its bytes resume at another offset."""
        state = self._state
        free_chunks(state.tables.following, state.tables.counts, state.tables.state[row])
        begin_frame(state.tables.state[row])
        state.tables.place[stream] = PYTHON
        state.searches[stream] = Search(row, offset, first_ns, packet, Run(resumes_at, aligned=False), first_ns)

    def start_at_gap(self, gap: SinglePiece, row: int) -> None:
        """A gap that reaches beyond the frame of a stream that was split so far."""
        state, partial = self._state, self._state.tables.state[row]
        state.output, end = end_in_gap(state.tables, state.output, row, state.requests_of(row >> 1))
        if partial[Partial.HAVE]:
            offset, first_ns, packet = (
                int(partial[Partial.OFFSET]),
                int(partial[Partial.FIRST_NS]),
                int(partial[Partial.PACKET]),
            )
        else:
            offset, first_ns, packet = max(gap.offset, end), gap.time, gap.packet
        self.start(gap.stream, row, offset, first_ns, packet, gap.offset)

    def reject_length(self, batch: PieceBatch) -> None:
        """No frame has the length that the kernel stopped at: everything from its prefix on is searched."""
        state, columns, at = self._state, batch.columns, batch.at
        position = int(batch.cursor[Cursor.BYTE])
        stream = int(columns.stream[at])
        row = int(state.tables.place[stream])
        partial = state.tables.state[row]
        offset = int(partial[Partial.OFFSET])
        first_ns, packet = int(partial[Partial.FIRST_NS]), int(partial[Partial.PACKET])
        prefix = int(partial[Partial.PREFIX]).to_bytes(4, "big")
        length = int.from_bytes(prefix, "big", signed=True)
        direction = "responses" if row & 1 else "requests"
        detail = f"connection {stream >> 1}, {direction} at {offset}: {length} can't be a frame's length"
        state.add_problem("length", detail, packet)
        self.start(stream, row, offset, first_ns, packet, offset)
        search = state.searches[stream]
        search.run.add(prefix, first_ns, packet)
        # No frame begins at the prefix that was just rejected.
        search.run.skipped = 1
        state.kept_bytes += 4 + PIECE_COST
        advance(batch.cursor, batch.links, len(columns.kind))
        left = int(columns.length[at]) - position
        if left > 0:
            rest = Content(columns.data, columns.waited).bytes(columns.start.item(at) + position, left)
            time, packet = int(columns.time[at]), int(columns.packet[at])
            self.add(SinglePiece(PieceKind.BYTES, stream, offset + 4, time, packet, left, rest))

    def add(self, piece: SinglePiece) -> None:
        """The next piece of a stream that is searched."""
        state = self._state
        kind, stream, _, time, packet, _, data = piece
        search = state.searches[stream]
        search.time = max(search.time, time)
        if search.packet < 0:
            search.first_ns, search.packet = time, packet
        if kind == PieceKind.BYTES:
            search.run.add(data, time, packet)
            state.kept_bytes += len(data) + PIECE_COST
            place = self._find(search, final=False)
            if place is not None:
                self._resume(stream, place, None)
            elif len(search.run.data) > MAX_SEARCHED_BYTES or state.kept_bytes > MAX_SEARCHED_TOTAL_BYTES:
                self._drop_half(search)
        elif kind in (PieceKind.GAP, PieceKind.CLOSE, PieceKind.RESET):
            end = piece._replace(data=b"")
            if kind == PieceKind.GAP or not self._is_held_back(stream, end):
                self.finish(stream, end)

    def finish(self, stream: int, end: SinglePiece | None) -> None:
        """No bytes follow in this run: a single frame is enough now. `end` is the piece that ends the run, None at the
        end of the recording."""
        state = self._state
        search = state.searches[stream]
        place = self._find(search, final=True)
        if place is None and self._begins_cut_frame(search, end):
            place = 0
        if place is not None:
            self._resume(stream, place, end)
            return
        run_end = search.run.offset + len(search.run.data)
        self.release(search)
        if end is not None and end.kind == PieceKind.GAP:
            search.run = Run(end.offset + end.length, aligned=False)
            return
        del state.searches[stream]
        if run_end > search.offset:
            self._add_lost_row(stream, search, run_end)
        end_stream(state.tables, stream, search.row)
        if end is not None:
            response = search.row & 1
            state.add_row(FrameKind.ENDED, stream >> 1, response, end.offset, 0, end.time, end.time, end.packet)

    def release(self, search: Search) -> None:
        """The search no longer counts for what is kept."""
        self._state.kept_bytes -= len(search.run.data) + PIECE_COST * search.run.count

    def held_back(self) -> Iterator[int]:
        """Streams of responses that were held back and may be finished now: requests have come since, or none can come
        any more. Whoever gets a stream finishes it before taking the next one."""
        state = self._state
        for stream, search in list(state.searches.items()):
            if search.end is None:
                continue
            requests = state.tables.slots.item(search.row >> 1, ConnSlot.ASKED)
            known, search.asked = search.asked, requests
            if not self._may_have_requests(stream ^ 1) or (
                requests > known and self._find(search, final=True) is not None
            ):
                yield stream

    def _is_held_back(self, stream: int, end: SinglePiece) -> bool:
        """Whether responses that end here without a frame wait until more requests are known. Each direction can have a
        file of its own, and a broker may hang up first."""
        state = self._state
        search = state.searches[stream]
        if not search.row & 1 or not self._may_have_requests(stream ^ 1) or self._find(search, final=True) is not None:
            return False
        search.end, search.asked = end, state.tables.slots.item(search.row >> 1, ConnSlot.ASKED)
        return True

    def _may_have_requests(self, stream: int) -> bool:
        return stream in self._state.searches or self._state.tables.place.item(stream) >= 0

    def _drop_half(self, search: Search) -> None:
        """Drops the older half of the run; the rest may still hold the next frame."""
        run = search.run
        before = len(run.data) + PIECE_COST * run.count
        run.drop(len(run.data) // 2)
        self._state.kept_bytes -= before - len(run.data) - PIECE_COST * run.count

    def _find(self, search: Search, *, final: bool) -> int | None:
        """The place in the run where the next true frame begins."""
        response, run, credit = bool(search.row & 1), search.run, self._state.credit
        if not credit.may_look(final=final):
            return None
        if response:
            chains = run.responses(self._state.requests_of(search.row >> 1), credit, anew=final)
        else:
            chains = run.requests(credit)
        for chain in chains:
            strong = len(chain.strong)
            if strong >= 2 or (final and strong):
                return search.run.first_before(chain, response=response)
        return None

    def _begins_cut_frame(self, search: Search, end: SinglePiece | None) -> bool:
        """Whether the run begins with a frame that was recorded in part."""
        run = search.run
        if run.skipped or not run.data or self._state.credit.is_spent:
            return False
        cut = 0
        if end is not None and end.kind == PieceKind.GAP:
            # Bytes that the snap length cut have the number of their packet; the run begins with it.
            if len(run.marks) > 1 or run.marks[0][2] != end.packet:
                return False
            cut = end.length
        return begins_frame(run.data, self._state.requests_of(search.row >> 1), cut, response=bool(search.row & 1))

    def _resume(self, stream: int, place: int, end: SinglePiece | None) -> None:
        """A frame begins at this place of the run: the bytes before it are lost, the rest is split."""
        state = self._state
        search = state.searches.pop(stream)
        run = search.run
        self.release(search)
        state.credit.spend(READ_AGAIN + len(run.data) // SCAN_BYTES)
        if run.offset + place > search.offset:
            self._add_lost_row(stream, search, run.offset + place)
        align_stream(state.tables.place, state.tables.state, stream, search.row)
        pieces: list[SinglePiece] = []
        ends = [mark for mark, _, _ in run.marks[1:]] + [len(run.data)]
        for (mark, time, packet), mark_end in zip(run.marks, ends, strict=True):
            start = max(mark, place)
            if start < mark_end:
                data = bytes(run.data[start:mark_end])
                offset = run.offset + start
                pieces.append(SinglePiece(PieceKind.BYTES, stream, offset, time, packet, mark_end - start, data))
        state.work.push_pieces(pieces if end is None else [*pieces, end])

    def _add_lost_row(self, stream: int, search: Search, end: int) -> None:
        """The bytes from the start of the search to this offset aren't frames."""
        response, lost = search.row & 1, end - search.offset
        self._state.add_row(
            FrameKind.LOST, stream >> 1, response, search.offset, lost, search.first_ns, search.time, search.packet
        )
