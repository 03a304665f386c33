"""Splits the streams of Kafka connections into frames; never raises on what the wire contains.

The protocol of a connection is recognized by its bytes (`detect.start`, `recognition`). A kernel splits Kafka streams
(`split`); other streams are skipped. After bytes that are missing or invalid the next true frame is searched
(`stream_search`). The rows of a stream are complete: each begins where the one before it ended, as FRAME or TOKEN with
its length, or LOST.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.buffer_pool import BufferPool
from kafkascope.capture.base.flow import Connection, FrameKind, Frames, Pieces
from kafkascope.capture.frames.chunks import begin_frame, free_chunks
from kafkascope.capture.frames.frame_table import (
    ConnSlot,
    FrameCount,
    Partial,
    are_done,
    join_frames,
    make_cursor,
    make_output,
    wider,
    with_chunks,
    with_slots,
    with_streams,
)
from kafkascope.capture.frames.framing_state import FramingState, PieceQueue
from kafkascope.capture.frames.left_pieces import LeftPieces, PieceBatch
from kafkascope.capture.frames.long_frames import move_long
from kafkascope.capture.frames.recognition import Recognition
from kafkascope.capture.frames.slow_path import SlowPath
from kafkascope.capture.frames.split import SplitStop, split_arrays
from kafkascope.capture.frames.stream_search import StreamSearch
from kafkascope.capture.frames.survey import note_openers, survey, take_verdicts, verdicts_so_far
from kafkascope.capture.frames.token_frames import judge_last

# The most frames and bytes of one portion, but for a frame that is longer by itself. A row takes 60 bytes here, and two
# thousand until its exchange is printed.
PORTION_ROWS = 16_384
PORTION_BYTES = 16 << 20
_TIMES = [Partial.FIRST_NS, Partial.LAST_NS, Partial.PACKET]


class Framer:
    """Feed it the pieces of the `Reassembler`, with its connections. Frames come with the verdicts on connections whose
    protocol was recognized. If an end of a connection is one of `kafka_ports`, a single header makes it Kafka."""

    def __init__(self, connections: Sequence[Connection], *, kafka_ports: Collection[int] = ()) -> None:
        self.state = FramingState(connections, kafka_ports)
        self.search = StreamSearch(self.state)
        self.recognition = Recognition(self.state, self.search)
        self._slow_path = SlowPath(self.state, self.search, self.recognition)
        self._pool = BufferPool()

    def feed(self, pieces: Pieces) -> Frames:
        return join_frames(list(self.portions(pieces)))

    def finish(self) -> Frames:
        return join_frames(list(self.last_portions()))

    def is_done(self, count: int) -> npt.NDArray[np.bool_]:
        """Which of the first `count` connections are done: all their frames are out, and no more are looked for."""
        return are_done(self.state.tables, count)

    def portions(self, pieces: Pieces) -> Iterator[Frames]:
        """The frames of these pieces. Tiny ones come in several portions: a row takes more than their bytes."""
        state = self.state
        if not len(pieces.kind):
            yield state.take_frames()
            return
        columns, streams, size, opened, links = survey(pieces)
        state.tables = with_streams(state.tables, streams)
        note_openers(state.tables, state.connections, state.kafka_ports, opened)
        state.credit.earn(len(columns.kind), size)
        state.output = make_output(min(len(columns.kind) + 64, PORTION_ROWS), self._pool.take(size + 4_096))
        state.work.push(PieceBatch(columns, make_cursor(), links, LeftPieces(columns)))
        yield from self._run()
        for stream in self.search.held_back():
            self.search.finish(stream, state.searches[stream].end)
            yield from self._run()
        state.verdicts += take_verdicts(state.tables, links)
        yield state.take_frames()

    def last_portions(self) -> Iterator[Frames]:
        """The recording ends: frames that aren't complete are lost, and searches accept what they have."""
        state = self.state
        for number in list(state.undecided):
            self.recognition.decide(number, final=True)
            yield from self._run()
        # Requests first: a response is known by its request.
        for stream in sorted(state.searches, key=lambda stream: (state.searches[stream].row & 1, stream)):
            while stream in state.searches:
                self.search.finish(stream, state.searches[stream].end)
                yield from self._run()
        for row in state.tables.state[:, Partial.HAVE].nonzero()[0].tolist():
            self._lose_unfinished(row)
        yield state.take_frames()

    def _run(self) -> Iterator[Frames]:
        """Does all the work on the stack. Yields a portion whenever there are many frames."""
        state = self.state
        while state.work:
            work = state.work.top
            if isinstance(work, deque):
                self._search_queued(work)
                continue
            match self._split(work):
                case SplitStop.DONE:
                    state.work.pop()
                case SplitStop.OUTPUT_FULL:
                    yield from self._make_room(self._row_of(work))
                case SplitStop.POOL_FULL:
                    self._grow_pool(self._row_of(work))
                case SplitStop.NO_SLOT:
                    state.tables = with_slots(state.tables)
                case SplitStop.NO_PROGRAM:
                    state.add_missing_programs()
                case SplitStop.SLOW_PATH:
                    self._slow_path.process(work)
                case SplitStop.BAD_LENGTH:
                    self.search.reject_length(work)
                case SplitStop.UNSURE_TOKEN:
                    self._judge_token(self._row_of(work) >> 1)

    def _split(self, batch: PieceBatch) -> int:
        """Runs the kernel on the batch from its cursor on, until it stops."""
        state = self.state
        return split_arrays(  # type: ignore[no-any-return]
            *state.tables, *state.output, *batch.columns, batch.cursor, batch.links, *state.scanning
        )

    def _row_of(self, batch: PieceBatch) -> int:
        """The row of `Tables.state` of the stream that the kernel stopped in."""
        return int(self.state.tables.place[batch.columns.stream[batch.at]])

    def _make_room(self, row: int) -> Iterator[Frames]:
        """Yields a portion if it's large enough, else grows the output. A long frame is a portion by itself."""
        state, counts = self.state, self.state.tables.counts
        rows, size = len(state.output.kind), int(counts[FrameCount.WANT_BODY] - counts[FrameCount.BODY])
        if counts[FrameCount.ROWS] >= PORTION_ROWS or counts[FrameCount.BODY] >= PORTION_BYTES or size > PORTION_BYTES:
            state.verdicts += verdicts_so_far(state.tables)
            yield state.take_frames()
            state.output = make_output(rows, self._pool.take(max(size, PORTION_BYTES)))
            if size > PORTION_BYTES:
                move_long(state.tables, state.tables.state[row], state.output.body)
        else:
            state.output = wider(state.output, int(counts[FrameCount.WANT_BODY]))
        counts[FrameCount.WANT_BODY] = 0

    def _grow_pool(self, row: int) -> None:
        state = self.state
        tables = with_chunks(state.tables)
        if tables is not None:
            state.tables = tables
            return
        # The frame is dropped, but its length holds: the next frame begins after it.
        free_chunks(state.tables.following, state.tables.counts, state.tables.state[row])
        state.tables.state[row, Partial.DAMAGED] = 1

    def _judge_token(self, slot: int) -> None:
        judge_last(self.state.tables, self.state.output, slot, self.state.requests_of(slot))

    def _search_queued(self, pieces: PieceQueue) -> None:
        """Searches queued pieces without the kernel, up to the first one that is to be split."""
        state = self.state
        if not pieces:
            state.work.pop()
        elif pieces[0].stream in state.searches:
            self.search.add(pieces.popleft())
        else:
            state.work.pop()
            state.work.push_pieces(pieces)

    def _lose_unfinished(self, row: int) -> None:
        """The frame of this row was cut by the end of the recording."""
        tables = self.state.tables
        partial = tables.state[row]
        lost = int(partial[Partial.HAVE] + partial[Partial.FILLED])
        connection = int(tables.slots[row >> 1, ConnSlot.CONNECTION])
        free_chunks(tables.following, tables.counts, partial)
        offset, times = int(partial[Partial.OFFSET]), partial[_TIMES].tolist()
        self.state.add_row(FrameKind.LOST, connection, row & 1, offset, lost, *times)
        begin_frame(partial)
