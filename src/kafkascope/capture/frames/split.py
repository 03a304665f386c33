"""The kernel of framing: pieces of Kafka streams in, whole frames out. A frame inside one piece is copied once; one
that spans pieces is collected in chunks of a pool that cannot grow without end. It stops where Python must decide or
where memory is short, and goes on from there."""

from typing import Any

from kafkascope.capture.base.checked import copy, place, read_i16, read_i32
from kafkascope.capture.base.flow import BYTES, CLOSE, ENDED, FRAME, GAP, LOST, OPEN, RENEWED, RESET, TOKEN
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.frames.chunks import begin_frame, collect, collected, damage, free_chunks, held_bytes
from kafkascope.capture.frames.detect.grade import SMALLEST_REQUEST, SMALLEST_RESPONSE
from kafkascope.capture.frames.detect.start import CLIENT as ASKING
from kafkascope.capture.frames.detect.start import (
    COMPILE,
    HINTED,
    IS_KAFKA,
    IS_TLS,
    KAFKA,
    PIECES,
    SURE,
    TLS,
    UNKNOWN,
    UNSURE,
    Scanning,
    look,
    wait,
)
from kafkascope.capture.frames.detect.start import HEAD as FIRST_PIECE
from kafkascope.capture.frames.frame_table import (
    AGAIN,
    ASKED,
    AT_BYTE,
    AT_PIECE,
    BODY,
    CHUNK,
    CLIENT,
    CONNECTION,
    DAMAGED,
    FILLED,
    FIRST_NS,
    FREE_CHUNKS,
    FREE_SLOTS,
    FRESH,
    HANDSHAKE,
    HANDSHAKE_ID,
    HAVE,
    HEAD,
    LAST_NS,
    LEFT,
    LENGTH,
    LOOKING,
    OFFSET,
    OPEN_STREAMS,
    PACKET,
    PREFIX,
    PYTHON,
    REMEMBERED,
    ROWS,
    SHORT,
    SKIP,
    TAIL,
    TOKENS,
    WAITING,
    WANT_BODY,
    WANT_CHUNKS,
    Output,
    Piece,
    Tables,
)
from kafkascope.capture.frames.tokens import IS_FRAME, IS_TOKEN, judge
from kafkascope.columnar.compiling.jit import inlined, jit
from kafkascope.limits import MAX_FRAME_BYTES

# Why the kernel stopped.
DONE, FULL, POOL, ATTEND, NONSENSE, JUDGE, SLOTS, PROGRAM = range(8)

# One empty frame answers a SASL token (protocol note 7); this many are zeros that somebody sends.
MOST_SHORT = 16
SASL_HANDSHAKE = 17


@jit
def emit(o: Output, count: Any, state: Any, connection: int, kind: int, response: int, offset: int, lost: int) -> None:
    """A row with the times of `state`; its body ends where the output's does."""
    row = count[ROWS]
    o.ends[row + 1] = count[BODY]
    o.kind[row] = kind
    o.connection[row] = connection
    o.is_response[row] = response
    o.offset[row] = offset
    o.lost[row] = lost
    o.first[row] = state[FIRST_NS]
    o.time[row] = state[LAST_NS]
    o.packet[row] = state[PACKET]
    count[ROWS] = row + 1


@jit
def has_header(state: Any, role: int) -> Number:
    """Whether the numbers of a damaged frame's header are there."""
    return state[DAMAGED] > (SMALLEST_RESPONSE if role else SMALLEST_REQUEST)


@jit
def end_damaged(t: Tables, o: Output, k: int) -> Number:
    """The end of a damaged frame: the bytes before the first that is missing are its body, if they tell what it is.
    Otherwise it may have been a handshake, and what follows raw tokens, passwords among them. JUDGE: so may this one.
    There is room."""
    state = t.state[k]
    slot = k >> 1
    role = k & 1
    count = t.counts
    connection = t.slots[slot, CONNECTION]
    if not has_header(state, role):
        free_chunks(t.following, count, state)
        emit(o, count, state, connection, LOST, role, state[OFFSET], 4 + state[LENGTH])
        begin_frame(state)
        if role == 0:
            state[TOKENS] = 1
        return DONE
    held = held_bytes(state)
    target = count[BODY]
    copy(o.body, target, t.pool, state[HEAD] * CHUNK, held)
    free_chunks(t.following, count, state)
    count[BODY] += held
    emit(o, count, state, connection, FRAME, role, state[OFFSET], state[LENGTH] - held)
    begin_frame(state)
    if state[TOKENS]:
        return JUDGE
    note(t.slots, t.asked, t.state, slot, role, o.body, target, held)
    return DONE


@jit
def note(slots: Any, asked: Any, state: Any, slot: int, role: int, data: Any, body: int, length: int) -> None:
    """What later frames depend on: requests under way, and the handshake that raw tokens follow on (protocol note
    6)."""
    if role == 0 and length >= SMALLEST_REQUEST:
        at = slots[slot, ASKED] % REMEMBERED
        asked[slot, at, 0] = read_i32(data, body + 4)
        asked[slot, at, 1] = read_i16(data, body)
        asked[slot, at, 2] = read_i16(data, body + 2)
        slots[slot, ASKED] += 1
        if read_i16(data, body) == SASL_HANDSHAKE and read_i16(data, body + 2) == 0:
            slots[slot, HANDSHAKE] = 1
            slots[slot, HANDSHAKE_ID] = read_i32(data, body + 4)
            state[2 * slot, TOKENS] = 1
    elif (
        role == 1
        and length >= SMALLEST_RESPONSE
        and slots[slot, HANDSHAKE]
        and read_i32(data, body) == slots[slot, HANDSHAKE_ID]
    ):
        slots[slot, HANDSHAKE] = 0
        state[2 * slot + 1, TOKENS] = 1


@jit
def begin(t: Tables, connection: int, client: int) -> Number:
    """A slot for a Kafka connection, -1 where none is free; the next byte of both streams is the first of a frame."""
    count = t.counts
    if count[FREE_SLOTS] == 0:
        return np_int(-1)
    count[FREE_SLOTS] -= 1
    slot = t.free_slots[count[FREE_SLOTS]]
    t.slots[slot, :] = 0
    t.slots[slot, CONNECTION] = connection
    t.slots[slot, CLIENT] = client
    t.slots[slot, OPEN_STREAMS] = 2
    for direction in range(2):
        align(t.place, t.state, 2 * connection + direction, 2 * slot + (direction != client))
    return slot


@jit
def align(place: Any, state: Any, stream: int, row: int) -> None:
    """The next byte of the stream is the first of a frame."""
    state[row, :] = 0
    state[row, HEAD] = -1
    state[row, TAIL] = -1
    begin_frame(state[row])
    place[stream] = row


@jit
def end_stream(t: Tables, stream: int, row: int) -> None:
    """Nothing of the stream is a frame any more; a slot whose streams both ended is free."""
    t.place[stream] = SKIP
    t.slots[row >> 1, OPEN_STREAMS] -= 1
    if t.slots[row >> 1, OPEN_STREAMS] == 0:
        t.free_slots[t.counts[FREE_SLOTS]] = row >> 1
        t.counts[FREE_SLOTS] += 1


@jit
def renew(t: Tables, connection: int) -> None:
    """The number is another connection's from here on."""
    for stream in range(2 * connection, 2 * connection + 2):
        t.place[stream] = FRESH
        t.opened[stream] = 0


@jit
def np_int(value: int) -> Number:
    """An int64: numba gives a variable one type."""
    return value


@jit
def leave(t: Tables, connection: int, cursor: Any) -> None:
    """What waits of the connection is read again, by Python."""
    first = t.first[connection]
    cursor[AGAIN] = first[FIRST_PIECE]
    first[:] = 0
    t.place[2 * connection] = PYTHON
    t.place[2 * connection + 1] = PYTHON


@inlined
def meet(t: Tables, p: Piece, following: Any, s: Scanning, i: int, cursor: Any) -> Number:
    """A piece of a connection that nothing is known of. DONE: the cursor says where it goes on."""
    stream = p.stream[i]
    connection = stream >> 1
    first = t.first[connection]
    kind = p.kind[i]
    if not cursor[LOOKING]:
        if kind == OPEN:
            t.opened[stream] = 1
            cursor[AT_PIECE] += 1
            return DONE
        if first[PIECES] == 0:
            if kind in (CLOSE, RESET):
                t.place[stream] = SKIP
                cursor[AT_PIECE] += 1
                return DONE
            starter = t.starters[connection]
            if (
                kind != BYTES
                or starter == UNKNOWN
                or not (t.opened[stream] and t.opened[stream ^ 1])
                or t.place[stream ^ 1] != FRESH
                or t.counts[WAITING] == len(t.waiting)
            ):
                for one in range(2 * connection, 2 * connection + 2):
                    if t.place[one] == FRESH:
                        t.place[one] = PYTHON
                return ATTEND
            first[ASKING] = starter & 1
            t.waiting[t.counts[WAITING]] = connection
            t.counts[WAITING] += 1
        wait(first, following, i, kind, stream & 1, p.length[i])
        if kind == GAP:
            leave(t, connection, cursor)
            return DONE
        cursor[LOOKING] = 1
    why = look(s, p, first, following, t.starters[connection] & HINTED != 0)
    if why == COMPILE:
        return PROGRAM
    if why == KAFKA:
        if begin(t, connection, first[ASKING]) < 0:
            return SLOTS
        cursor[AGAIN] = first[FIRST_PIECE]
        first[:] = 0
        first[SURE] = IS_KAFKA
    elif why == TLS:
        t.place[2 * connection] = SKIP
        t.place[2 * connection + 1] = SKIP
        first[:] = 0
        first[SURE] = IS_TLS
        cursor[AT_PIECE] += 1
    elif why == UNSURE:
        leave(t, connection, cursor)
    else:
        cursor[AT_PIECE] += 1
    cursor[LOOKING] = 0
    return DONE


@jit
def go_on(cursor: Any, following: Any, count: int) -> None:
    """The piece is done. Those that are read again end with the piece that the cursor stands at."""
    cursor[AT_BYTE] = 0
    if cursor[AGAIN] >= 0:
        cursor[AGAIN] = following[cursor[AGAIN]]
        if cursor[AGAIN] >= 0:
            return
    if cursor[AT_PIECE] < count:
        cursor[AT_PIECE] += 1


@jit
def split(t: Tables, o: Output, p: Piece, cursor: Any, following: Any, s: Scanning) -> Number:
    """From the cursor on, which says how far it came."""
    count = t.counts
    pieces = len(p.kind)
    while True:
        i = cursor[AGAIN]
        if i < 0:
            i = cursor[AT_PIECE]
            if i == pieces:
                # What still waits of a connection when the batch ends is kept by Python.
                if len(following) == 0 or count[LEFT] == count[WAITING]:
                    return DONE
                connection = t.waiting[count[LEFT]]
                count[LEFT] += 1
                if t.first[connection, PIECES] > 0:
                    leave(t, connection, cursor)
                continue
        k = t.place[p.stream[i]]
        if p.kind[i] == RENEWED and k < 0:
            if k == PYTHON or t.place[p.stream[i] ^ 1] == PYTHON:
                return ATTEND
            renew(t, p.stream[i] >> 1)
            go_on(cursor, following, pieces)
            continue
        if k == FRESH:
            why = meet(t, p, following, s, i, cursor)
            if why != DONE:
                return why
            continue
        if k != SKIP:
            if k == PYTHON:
                return ATTEND
            why = split_piece(t, o, p, i, k, cursor, s)
            if why != DONE:
                return why
        go_on(cursor, following, pieces)


@inlined
def split_piece(t: Tables, o: Output, p: Piece, i: int, k: int, cursor: Any, s: Scanning) -> Number:
    """Of a Kafka stream, from the cursor's byte on."""
    count = t.counts
    at = cursor[AT_BYTE]
    state = t.state[k]
    slot = k >> 1
    role = k & 1
    connection = t.slots[slot, CONNECTION]
    kind = p.kind[i]
    length = p.length[i]
    if count[ROWS] + 2 >= len(o.kind):
        return FULL
    if kind == GAP:
        if at > 0:
            return DONE
        if not 0 <= length <= state[LENGTH] - state[FILLED]:
            return ATTEND
        if state[FILLED] + length == state[LENGTH] and count[BODY] + CHUNK > len(o.body):
            count[WANT_BODY] = count[BODY] + CHUNK
            return FULL
        # Bytes of the frame are lost, but not its end.
        damage(t.following, count, state)
        state[FILLED] += length
        if state[FILLED] < state[LENGTH]:
            return DONE
        cursor[AT_BYTE] = length
        return end_damaged(t, o, k)
    if kind in (CLOSE, RESET):
        if state[HAVE] > 0:
            free_chunks(t.following, count, state)
            emit(o, count, state, connection, LOST, role, state[OFFSET], p.offset[i] - state[OFFSET])
            begin_frame(state)
        state[FIRST_NS] = p.time[i]
        state[LAST_NS] = p.time[i]
        state[PACKET] = p.packet[i]
        emit(o, count, state, connection, ENDED, role, p.offset[i], 0)
        end_stream(t, p.stream[i], k)
        return DONE
    if kind != BYTES:
        return DONE
    source, start = place(p.data, p.waited, p.start[i])
    while True:
        if state[LENGTH] < 0:
            if at == length:
                return DONE
            if state[HAVE] == 0:
                state[OFFSET] = p.offset[i] + at
                state[FIRST_NS] = p.time[i]
                state[LAST_NS] = p.time[i]
                state[PACKET] = p.packet[i]
            while state[HAVE] < 4 and at < length:
                state[PREFIX] = (state[PREFIX] << 8) | source[start + at]
                state[HAVE] += 1
                at += 1
            state[LAST_NS] = max(state[LAST_NS], p.time[i])
            if state[HAVE] < 4:
                return DONE
            state[SHORT] = state[SHORT] + 1 if state[PREFIX] < (SMALLEST_RESPONSE if role else SMALLEST_REQUEST) else 0
            if state[PREFIX] > MAX_FRAME_BYTES or state[SHORT] > MOST_SHORT:
                cursor[AT_BYTE] = at
                return NONSENSE
            state[LENGTH] = state[PREFIX]
        need = state[LENGTH] - state[FILLED]
        here = length - at
        if here > 0:
            state[LAST_NS] = max(state[LAST_NS], p.time[i])
        if state[DAMAGED]:
            part = min(need, here)
            state[FILLED] += part
            at += part
            if state[FILLED] < state[LENGTH]:
                return DONE
            if count[ROWS] + 2 >= len(o.kind) or count[BODY] + CHUNK > len(o.body):
                count[WANT_BODY] = count[BODY] + CHUNK
                cursor[AT_BYTE] = at
                return FULL
            if end_damaged(t, o, k) == JUDGE:
                cursor[AT_BYTE] = at
                return JUDGE
            continue
        if need > here:
            if here == 0:
                return DONE
            wanted = (state[FILLED] + here + CHUNK - 1) // CHUNK - (state[FILLED] + CHUNK - 1) // CHUNK
            if wanted > count[FREE_CHUNKS]:
                count[WANT_CHUNKS] = wanted
                cursor[AT_BYTE] = at
                return POOL
            collect(t.pool, t.following, count, state, source, start + at, here)
            return DONE
        if count[ROWS] + 2 >= len(o.kind) or count[BODY] + state[LENGTH] > len(o.body):
            count[WANT_BODY] = count[BODY] + state[LENGTH]
            cursor[AT_BYTE] = at
            return FULL
        target = count[BODY]
        collected(t.pool, t.following, state, o.body, target)
        copy(o.body, target + state[FILLED], source, start + at, need)
        # A response has a correlation id at least: an empty frame answers a token.
        verdict = np_int(IS_FRAME if state[LENGTH] else IS_TOKEN)
        if state[TOKENS] and state[LENGTH] > 0:
            verdict = judge(t, s, slot, role, o.body, target, state[LENGTH])
            if verdict == COMPILE:
                cursor[AT_BYTE] = at
                return PROGRAM
            if verdict == IS_FRAME:
                state[TOKENS] = 0
        free_chunks(t.following, count, state)
        at += need
        count[BODY] += state[LENGTH]
        emit(o, count, state, connection, TOKEN if verdict == IS_TOKEN else FRAME, role, state[OFFSET], 0)
        if verdict == IS_FRAME:
            note(t.slots, t.asked, t.state, slot, role, o.body, target, state[LENGTH])
        begin_frame(state)
        if verdict == UNSURE:
            cursor[AT_BYTE] = at
            return JUDGE


@jit
def split_arrays(
    t_place: Any, t_opened: Any, t_starters: Any, t_first: Any, t_waiting: Any, t_free_slots: Any, t_state: Any,
    t_slots: Any, t_asked: Any, t_pool: Any, t_following: Any, t_counts: Any, o_body: Any, o_ends: Any, o_kind: Any,
    o_connection: Any, o_is_response: Any, o_offset: Any, o_lost: Any, o_first: Any, o_time: Any, o_packet: Any,
    p_kind: Any, p_stream: Any, p_offset: Any, p_start: Any, p_length: Any, p_time: Any, p_packet: Any, p_data: Any,
    p_waited: Any, cursor: Any, following: Any, s_entry: Any, s_operations: Any, s_tags: Any, s_request_tags: Any,
    s_response_tags: Any, s_facts: Any, s_seen: Any, s_names: Any, s_scratch: Any, s_stack: Any, s_wanted: Any,
) -> Number:  # fmt: skip
    """`split` for Python, array by array: what is in a tuple numba looks at anew in each call, ten times as long."""
    t = Tables(
        t_place, t_opened, t_starters, t_first, t_waiting, t_free_slots, t_state, t_slots, t_asked, t_pool, t_following,
        t_counts,
    )  # fmt: skip
    o = Output(o_body, o_ends, o_kind, o_connection, o_is_response, o_offset, o_lost, o_first, o_time, o_packet)
    p = Piece(p_kind, p_stream, p_offset, p_start, p_length, p_time, p_packet, p_data, p_waited)
    s = Scanning(
        s_entry, s_operations, s_tags, s_request_tags, s_response_tags, s_facts, s_seen, s_names, s_scratch, s_stack,
        s_wanted,
    )  # fmt: skip
    return split(t, o, p, cursor, following, s)
