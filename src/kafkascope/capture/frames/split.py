"""Splits pieces of Kafka streams into frames, in a kernel that stops where Python must decide or provide memory.

A frame inside one piece is copied once; one that spans pieces is collected in chunks of a bounded pool."""

from enum import IntEnum
from typing import Any

from kafkascope.capture.base.checked import copy, place, read_i16, read_i32
from kafkascope.capture.base.flow import FrameKind, PieceKind
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.frames.chunks import begin_frame, collect, collected, damage, free_chunks, held_bytes
from kafkascope.capture.frames.detect.grade import SMALLEST_REQUEST, SMALLEST_RESPONSE
from kafkascope.capture.frames.detect.start import (
    HINTED,
    IS_KAFKA,
    IS_TLS,
    UNKNOWN,
    Opening,
    Scanning,
    StartVerdict,
    judge_start,
    queue_piece,
)
from kafkascope.capture.frames.frame_table import (
    CHUNK,
    FRESH,
    PYTHON,
    REMEMBERED,
    SKIP,
    ConnSlot,
    Cursor,
    FrameCount,
    Output,
    Partial,
    PieceColumns,
    Tables,
)
from kafkascope.capture.frames.tokens import IS_FRAME, IS_TOKEN, judge
from kafkascope.columnar.compiling.jit import inlined, jit
from kafkascope.limits import MAX_FRAME_BYTES


class SplitStop(IntEnum):
    """Why the kernel stopped. It goes on from its cursor when it is called again: after the caller did what is missing,
    or took the piece at the cursor."""

    DONE = 0  # the batch is done; within the kernel, the piece
    OUTPUT_FULL = 1  # the next row or its body (`WANT_BODY`) doesn't fit the output
    POOL_FULL = 2  # an unfinished frame needs more chunks (`WANT_CHUNKS`) than are free
    SLOW_PATH = 3  # the piece is for Python: its stream isn't split, or a gap reaches beyond the frame
    BAD_LENGTH = 4  # the length prefix that ends before the cursor's byte can't be a frame's length
    UNSURE_TOKEN = 5  # the last row may be a raw SASL token or a frame
    NO_SLOT = 6  # a Kafka connection needs a slot, and none is free
    NO_PROGRAM = 7  # the scan program of a message (`Scanning.wanted`) isn't compiled


# One empty frame is the response to a SASL token (protocol note 7); more in a row than this are
# zeros, not frames.
MOST_SHORT = 16
SASL_HANDSHAKE = 17


@jit
def add_row(
    o: Output, count: Any, state: Any, connection: int, kind: int, response: int, offset: int, lost: int
) -> None:
    """Adds a row with the times of `state`; its body ends where the output's does."""
    row = count[FrameCount.ROWS]
    o.ends[row + 1] = count[FrameCount.BODY]
    o.kind[row] = kind
    o.connection[row] = connection
    o.is_response[row] = response
    o.offset[row] = offset
    o.lost[row] = lost
    o.first[row] = state[Partial.FIRST_NS]
    o.time[row] = state[Partial.LAST_NS]
    o.packet[row] = state[Partial.PACKET]
    count[FrameCount.ROWS] = row + 1


@jit
def has_header(state: Any, role: int) -> Number:
    """Whether the numbers of a damaged frame's header were recorded."""
    return state[Partial.DAMAGED] > (SMALLEST_RESPONSE if role else SMALLEST_REQUEST)


@jit
def end_damaged(t: Tables, o: Output, k: int) -> Number:
    """Ends a damaged frame: its body are the bytes before the first missing one, if they include the header. Otherwise
    it may have been a handshake, and raw tokens follow, passwords among them. UNSURE_TOKEN: this may be such a token.
    The output has room."""
    state = t.state[k]
    slot = k >> 1
    role = k & 1
    count = t.counts
    connection = t.slots[slot, ConnSlot.CONNECTION]
    if not has_header(state, role):
        free_chunks(t.following, count, state)
        add_row(o, count, state, connection, FrameKind.LOST, role, state[Partial.OFFSET], 4 + state[Partial.LENGTH])
        begin_frame(state)
        if role == 0:
            state[Partial.TOKENS] = 1
        return SplitStop.DONE
    held = held_bytes(state)
    target = count[FrameCount.BODY]
    copy(o.body, target, t.pool, state[Partial.HEAD] * CHUNK, held)
    free_chunks(t.following, count, state)
    count[FrameCount.BODY] += held
    add_row(o, count, state, connection, FrameKind.FRAME, role, state[Partial.OFFSET], state[Partial.LENGTH] - held)
    begin_frame(state)
    if state[Partial.TOKENS]:
        return SplitStop.UNSURE_TOKEN
    remember_frame(t.slots, t.asked, t.state, slot, role, o.body, target, held)
    return SplitStop.DONE


@jit
def remember_frame(slots: Any, asked: Any, state: Any, slot: int, role: int, data: Any, body: int, length: int) -> None:
    """Remembers what later frames depend on: the last requests, and the handshake before raw tokens (protocol note
    6)."""
    if role == 0 and length >= SMALLEST_REQUEST:
        at = slots[slot, ConnSlot.ASKED] % REMEMBERED
        asked[slot, at, 0] = read_i32(data, body + 4)
        asked[slot, at, 1] = read_i16(data, body)
        asked[slot, at, 2] = read_i16(data, body + 2)
        slots[slot, ConnSlot.ASKED] += 1
        if read_i16(data, body) == SASL_HANDSHAKE and read_i16(data, body + 2) == 0:
            slots[slot, ConnSlot.HANDSHAKE] = 1
            slots[slot, ConnSlot.HANDSHAKE_ID] = read_i32(data, body + 4)
            state[2 * slot, Partial.TOKENS] = 1
    elif (
        role == 1
        and length >= SMALLEST_RESPONSE
        and slots[slot, ConnSlot.HANDSHAKE]
        and read_i32(data, body) == slots[slot, ConnSlot.HANDSHAKE_ID]
    ):
        slots[slot, ConnSlot.HANDSHAKE] = 0
        state[2 * slot + 1, Partial.TOKENS] = 1


@jit
def claim_slot(t: Tables, connection: int, client: int) -> Number:
    """A slot for a Kafka connection, -1 if none is free. In both streams a frame begins with the next byte."""
    count = t.counts
    if count[FrameCount.FREE_SLOTS] == 0:
        return int64(-1)
    count[FrameCount.FREE_SLOTS] -= 1
    slot = t.free_slots[count[FrameCount.FREE_SLOTS]]
    t.slots[slot, :] = 0
    t.slots[slot, ConnSlot.CONNECTION] = connection
    t.slots[slot, ConnSlot.CLIENT] = client
    t.slots[slot, ConnSlot.OPEN_STREAMS] = 2
    for direction in range(2):
        align_stream(t.place, t.state, 2 * connection + direction, 2 * slot + (direction != client))
    return slot


@jit
def align_stream(place: Any, state: Any, stream: int, row: int) -> None:
    """A frame begins with the next byte of the stream."""
    state[row, :] = 0
    state[row, Partial.HEAD] = -1
    state[row, Partial.TAIL] = -1
    begin_frame(state[row])
    place[stream] = row


@jit
def end_stream(t: Tables, stream: int, row: int) -> None:
    """No more frames come in the stream; a slot whose streams both ended is free."""
    t.place[stream] = SKIP
    t.slots[row >> 1, ConnSlot.OPEN_STREAMS] -= 1
    if t.slots[row >> 1, ConnSlot.OPEN_STREAMS] == 0:
        t.free_slots[t.counts[FrameCount.FREE_SLOTS]] = row >> 1
        t.counts[FrameCount.FREE_SLOTS] += 1


@jit
def forget_connection(t: Tables, connection: int) -> None:
    """The number belongs to another connection from here on."""
    for stream in range(2 * connection, 2 * connection + 2):
        t.place[stream] = FRESH
        t.opened[stream] = 0


@jit
def int64(value: int) -> Number:
    """An int64: numba gives a variable one type."""
    return value


@jit
def leave_to_python(t: Tables, connection: int, cursor: Any) -> None:
    """The pieces of the connection that wait are replayed, to Python."""
    first = t.first[connection]
    cursor[Cursor.REPLAY] = first[Opening.HEAD]
    first[:] = 0
    t.place[2 * connection] = PYTHON
    t.place[2 * connection + 1] = PYTHON


@inlined
def read_start(t: Tables, p: PieceColumns, links: Any, s: Scanning, i: int, cursor: Any) -> Number:
    """Reads a piece from the start of a connection without a verdict. DONE: the cursor is where it goes on."""
    stream = p.stream[i]
    connection = stream >> 1
    first = t.first[connection]
    kind = p.kind[i]
    if not cursor[Cursor.LOOKING]:
        if kind == PieceKind.OPEN:
            t.opened[stream] = 1
            cursor[Cursor.PIECE] += 1
            return SplitStop.DONE
        if first[Opening.PIECES] == 0:
            if kind in (PieceKind.CLOSE, PieceKind.RESET):
                t.place[stream] = SKIP
                cursor[Cursor.PIECE] += 1
                return SplitStop.DONE
            starter = t.starters[connection]
            if (
                kind != PieceKind.BYTES
                or starter == UNKNOWN
                or not (t.opened[stream] and t.opened[stream ^ 1])
                or t.place[stream ^ 1] != FRESH
                or t.counts[FrameCount.WAITING] == len(t.waiting)
            ):
                for either in range(2 * connection, 2 * connection + 2):
                    if t.place[either] == FRESH:
                        t.place[either] = PYTHON
                return SplitStop.SLOW_PATH
            first[Opening.CLIENT] = starter & 1
            t.waiting[t.counts[FrameCount.WAITING]] = connection
            t.counts[FrameCount.WAITING] += 1
        queue_piece(first, links, i, kind, stream & 1, p.length[i])
        if kind == PieceKind.GAP:
            leave_to_python(t, connection, cursor)
            return SplitStop.DONE
        cursor[Cursor.LOOKING] = 1
    verdict = judge_start(s, p, first, links, t.starters[connection] & HINTED != 0)
    if verdict == StartVerdict.COMPILE:
        return SplitStop.NO_PROGRAM
    if verdict == StartVerdict.KAFKA:
        if claim_slot(t, connection, first[Opening.CLIENT]) < 0:
            return SplitStop.NO_SLOT
        cursor[Cursor.REPLAY] = first[Opening.HEAD]
        first[:] = 0
        first[Opening.SURE] = IS_KAFKA
    elif verdict == StartVerdict.TLS:
        t.place[2 * connection] = SKIP
        t.place[2 * connection + 1] = SKIP
        first[:] = 0
        first[Opening.SURE] = IS_TLS
        cursor[Cursor.PIECE] += 1
    elif verdict == StartVerdict.UNSURE:
        leave_to_python(t, connection, cursor)
    else:
        cursor[Cursor.PIECE] += 1
    cursor[Cursor.LOOKING] = 0
    return SplitStop.DONE


@jit
def advance(cursor: Any, links: Any, count: int) -> None:
    """The piece is done. Replayed pieces end with the piece that the cursor is at."""
    cursor[Cursor.BYTE] = 0
    if cursor[Cursor.REPLAY] >= 0:
        cursor[Cursor.REPLAY] = links[cursor[Cursor.REPLAY]]
        if cursor[Cursor.REPLAY] >= 0:
            return
    if cursor[Cursor.PIECE] < count:
        cursor[Cursor.PIECE] += 1


@jit
def split(t: Tables, o: Output, p: PieceColumns, cursor: Any, links: Any, s: Scanning) -> Number:
    """Splits the batch from the cursor on, and leaves the cursor where it stopped."""
    count = t.counts
    pieces = len(p.kind)
    while True:
        i = cursor[Cursor.REPLAY]
        if i < 0:
            i = cursor[Cursor.PIECE]
            if i == pieces:
                # Pieces that still wait when the batch ends are kept by Python.
                if len(links) == 0 or count[FrameCount.LEFT] == count[FrameCount.WAITING]:
                    return SplitStop.DONE
                connection = t.waiting[count[FrameCount.LEFT]]
                count[FrameCount.LEFT] += 1
                if t.first[connection, Opening.PIECES] > 0:
                    leave_to_python(t, connection, cursor)
                continue
        k = t.place[p.stream[i]]
        if p.kind[i] == PieceKind.RENEWED and k < 0:
            if k == PYTHON or t.place[p.stream[i] ^ 1] == PYTHON:
                return SplitStop.SLOW_PATH
            forget_connection(t, p.stream[i] >> 1)
            advance(cursor, links, pieces)
            continue
        if k == FRESH:
            stop = read_start(t, p, links, s, i, cursor)
            if stop != SplitStop.DONE:
                return stop
            continue
        if k != SKIP:
            if k == PYTHON:
                return SplitStop.SLOW_PATH
            stop = split_piece(t, o, p, i, k, cursor, s)
            if stop != SplitStop.DONE:
                return stop
        advance(cursor, links, pieces)


@inlined
def split_piece(t: Tables, o: Output, p: PieceColumns, i: int, k: int, cursor: Any, s: Scanning) -> Number:
    """Splits a piece of a Kafka stream from the cursor's byte on."""
    count = t.counts
    at = cursor[Cursor.BYTE]
    state = t.state[k]
    slot = k >> 1
    role = k & 1
    connection = t.slots[slot, ConnSlot.CONNECTION]
    kind = p.kind[i]
    length = p.length[i]
    if count[FrameCount.ROWS] + 2 >= len(o.kind):
        return SplitStop.OUTPUT_FULL
    if kind == PieceKind.GAP:
        if at > 0:
            return SplitStop.DONE
        if not 0 <= length <= state[Partial.LENGTH] - state[Partial.FILLED]:
            return SplitStop.SLOW_PATH
        if state[Partial.FILLED] + length == state[Partial.LENGTH] and count[FrameCount.BODY] + CHUNK > len(o.body):
            count[FrameCount.WANT_BODY] = count[FrameCount.BODY] + CHUNK
            return SplitStop.OUTPUT_FULL
        # Bytes of the frame are lost, but not its end.
        damage(t.following, count, state)
        state[Partial.FILLED] += length
        if state[Partial.FILLED] < state[Partial.LENGTH]:
            return SplitStop.DONE
        cursor[Cursor.BYTE] = length
        return end_damaged(t, o, k)
    if kind in (PieceKind.CLOSE, PieceKind.RESET):
        if state[Partial.HAVE] > 0:
            free_chunks(t.following, count, state)
            add_row(
                o,
                count,
                state,
                connection,
                FrameKind.LOST,
                role,
                state[Partial.OFFSET],
                p.offset[i] - state[Partial.OFFSET],
            )
            begin_frame(state)
        state[Partial.FIRST_NS] = p.time[i]
        state[Partial.LAST_NS] = p.time[i]
        state[Partial.PACKET] = p.packet[i]
        add_row(o, count, state, connection, FrameKind.ENDED, role, p.offset[i], 0)
        end_stream(t, p.stream[i], k)
        return SplitStop.DONE
    if kind != PieceKind.BYTES:
        return SplitStop.DONE
    source, start = place(p.data, p.waited, p.start[i])
    while True:
        if state[Partial.LENGTH] < 0:
            if at == length:
                return SplitStop.DONE
            if state[Partial.HAVE] == 0:
                state[Partial.OFFSET] = p.offset[i] + at
                state[Partial.FIRST_NS] = p.time[i]
                state[Partial.LAST_NS] = p.time[i]
                state[Partial.PACKET] = p.packet[i]
            while state[Partial.HAVE] < 4 and at < length:
                state[Partial.PREFIX] = (state[Partial.PREFIX] << 8) | source[start + at]
                state[Partial.HAVE] += 1
                at += 1
            state[Partial.LAST_NS] = max(state[Partial.LAST_NS], p.time[i])
            if state[Partial.HAVE] < 4:
                return SplitStop.DONE
            state[Partial.SHORT] = (
                state[Partial.SHORT] + 1
                if state[Partial.PREFIX] < (SMALLEST_RESPONSE if role else SMALLEST_REQUEST)
                else 0
            )
            if state[Partial.PREFIX] > MAX_FRAME_BYTES or state[Partial.SHORT] > MOST_SHORT:
                cursor[Cursor.BYTE] = at
                return SplitStop.BAD_LENGTH
            state[Partial.LENGTH] = state[Partial.PREFIX]
        need = state[Partial.LENGTH] - state[Partial.FILLED]
        here = length - at
        if here > 0:
            state[Partial.LAST_NS] = max(state[Partial.LAST_NS], p.time[i])
        if state[Partial.DAMAGED]:
            part = min(need, here)
            state[Partial.FILLED] += part
            at += part
            if state[Partial.FILLED] < state[Partial.LENGTH]:
                return SplitStop.DONE
            if count[FrameCount.ROWS] + 2 >= len(o.kind) or count[FrameCount.BODY] + CHUNK > len(o.body):
                count[FrameCount.WANT_BODY] = count[FrameCount.BODY] + CHUNK
                cursor[Cursor.BYTE] = at
                return SplitStop.OUTPUT_FULL
            if end_damaged(t, o, k) == SplitStop.UNSURE_TOKEN:
                cursor[Cursor.BYTE] = at
                return SplitStop.UNSURE_TOKEN
            continue
        if need > here:
            if here == 0:
                return SplitStop.DONE
            wanted = (state[Partial.FILLED] + here + CHUNK - 1) // CHUNK - (state[Partial.FILLED] + CHUNK - 1) // CHUNK
            if wanted > count[FrameCount.FREE_CHUNKS]:
                count[FrameCount.WANT_CHUNKS] = wanted
                cursor[Cursor.BYTE] = at
                return SplitStop.POOL_FULL
            collect(t.pool, t.following, count, state, source, start + at, here)
            return SplitStop.DONE
        if count[FrameCount.ROWS] + 2 >= len(o.kind) or count[FrameCount.BODY] + state[Partial.LENGTH] > len(o.body):
            count[FrameCount.WANT_BODY] = count[FrameCount.BODY] + state[Partial.LENGTH]
            cursor[Cursor.BYTE] = at
            return SplitStop.OUTPUT_FULL
        target = count[FrameCount.BODY]
        collected(t.pool, t.following, state, o.body, target)
        copy(o.body, target + state[Partial.FILLED], source, start + at, need)
        # A response has a correlation id at least: an empty frame is the response to a token.
        verdict = int64(IS_FRAME if state[Partial.LENGTH] else IS_TOKEN)
        if state[Partial.TOKENS] and state[Partial.LENGTH] > 0:
            verdict = judge(t, s, slot, role, o.body, target, state[Partial.LENGTH])
            if verdict == StartVerdict.COMPILE:
                cursor[Cursor.BYTE] = at
                return SplitStop.NO_PROGRAM
            if verdict == IS_FRAME:
                state[Partial.TOKENS] = 0
        free_chunks(t.following, count, state)
        at += need
        count[FrameCount.BODY] += state[Partial.LENGTH]
        add_row(
            o,
            count,
            state,
            connection,
            FrameKind.TOKEN if verdict == IS_TOKEN else FrameKind.FRAME,
            role,
            state[Partial.OFFSET],
            0,
        )
        if verdict == IS_FRAME:
            remember_frame(t.slots, t.asked, t.state, slot, role, o.body, target, state[Partial.LENGTH])
        begin_frame(state)
        if verdict == StartVerdict.UNSURE:
            cursor[Cursor.BYTE] = at
            return SplitStop.UNSURE_TOKEN


@jit
def split_arrays(
    t_place: Any, t_opened: Any, t_starters: Any, t_first: Any, t_waiting: Any, t_free_slots: Any, t_state: Any,
    t_slots: Any, t_asked: Any, t_pool: Any, t_following: Any, t_counts: Any, o_body: Any, o_ends: Any, o_kind: Any,
    o_connection: Any, o_is_response: Any, o_offset: Any, o_lost: Any, o_first: Any, o_time: Any, o_packet: Any,
    p_kind: Any, p_stream: Any, p_offset: Any, p_start: Any, p_length: Any, p_time: Any, p_packet: Any, p_data: Any,
    p_waited: Any, cursor: Any, links: Any, s_entry: Any, s_operations: Any, s_tags: Any, s_request_tags: Any,
    s_response_tags: Any, s_facts: Any, s_seen: Any, s_names: Any, s_scratch: Any, s_stack: Any, s_wanted: Any,
) -> Number:  # fmt: skip
    """`split` for Python, which passes the arrays one by one. With the named tuples, whose types numba infers again
    each time, a call takes 4 µs instead of 1: with its 14 calls a small recording is read in 1.5 ms."""
    t = Tables(
        t_place, t_opened, t_starters, t_first, t_waiting, t_free_slots, t_state, t_slots, t_asked, t_pool, t_following,
        t_counts,
    )  # fmt: skip
    o = Output(o_body, o_ends, o_kind, o_connection, o_is_response, o_offset, o_lost, o_first, o_time, o_packet)
    p = PieceColumns(p_kind, p_stream, p_offset, p_start, p_length, p_time, p_packet, p_data, p_waited)
    s = Scanning(
        s_entry, s_operations, s_tags, s_request_tags, s_response_tags, s_facts, s_seen, s_names, s_scratch, s_stack,
        s_wanted,
    )  # fmt: skip
    return split(t, o, p, cursor, links, s)
