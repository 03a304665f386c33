"""The kernel of framing: pieces of Kafka streams in, whole frames out. A frame inside one piece is copied once; one
that spans pieces is collected in chunks of a pool that cannot grow without end. It stops where Python must decide or
where memory is short, and goes on from there."""

from typing import Any

from kafkascope.capture.flow import BYTES, CLOSE, ENDED, FRAME, GAP, LOST, RESET, TOKEN
from kafkascope.capture.frame_table import (
    ASKED,
    BODY,
    CHUNK,
    CONNECTION,
    DAMAGED,
    FILLED,
    FIRST_NS,
    FREE_CHUNK,
    FREE_CHUNKS,
    HANDSHAKE,
    HANDSHAKE_ID,
    HAVE,
    HEAD,
    LAST_NS,
    LENGTH,
    OFFSET,
    PACKET,
    PREFIX,
    PYTHON,
    REMEMBERED,
    ROWS,
    SHORT,
    SKIP,
    TAIL,
    TOKENS,
    WANT_BODY,
    WANT_CHUNKS,
    Output,
    Piece,
    Tables,
)
from kafkascope.capture.numbers import Number, jit
from kafkascope.capture.recognise import SMALLEST_REQUEST, SMALLEST_RESPONSE
from kafkascope.capture.stream_table import copy
from kafkascope.columnar.memory import load_i16, load_i32, load_u8
from kafkascope.limits import MAX_FRAME_BYTES

# Why the kernel stopped.
DONE, FULL, POOL, ATTEND, NONSENSE, JUDGE = range(6)

# One empty frame answers a SASL token (GOTCHAS 9c); this many are zeros that somebody sends.
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
def begin_frame(state: Any) -> None:
    state[HAVE] = 0
    state[PREFIX] = 0
    state[LENGTH] = -1
    state[FILLED] = 0
    state[DAMAGED] = 0


@jit
def free_chunks(following: Any, count: Any, state: Any) -> None:
    if state[HEAD] >= 0:
        number = (state[FILLED] + CHUNK - 1) // CHUNK
        following[state[TAIL]] = count[FREE_CHUNK]
        count[FREE_CHUNK] = state[HEAD]
        count[FREE_CHUNKS] += number
        state[HEAD] = -1
        state[TAIL] = -1


@jit
def collect(pool: int, following: Any, count: Any, state: Any, address: int, length: int) -> None:
    """More bytes of an unfinished frame; there are enough free chunks."""
    while length > 0:
        used = state[FILLED] % CHUNK
        if used == 0:
            made = count[FREE_CHUNK]
            count[FREE_CHUNK] = following[made]
            count[FREE_CHUNKS] -= 1
            following[made] = -1
            if state[HEAD] < 0:
                state[HEAD] = made
            else:
                following[state[TAIL]] = made
            state[TAIL] = made
        part = min(length, CHUNK - used)
        copy(pool + state[TAIL] * CHUNK + used, address, part)
        state[FILLED] += part
        address += part
        length -= part


@jit
def collected(pool: int, following: Any, state: Any, target: int) -> None:
    """What was collected to the address `target`."""
    left = state[FILLED]
    chunk = state[HEAD]
    while left > 0:
        part = min(left, CHUNK)
        copy(target, pool + chunk * CHUNK, part)
        target += part
        left -= part
        chunk = following[chunk]


@jit
def note(slots: Any, asked: Any, state: Any, slot: int, role: int, body: int, length: int) -> None:
    """What later frames depend on: requests under way, and the handshake that raw tokens follow on (GOTCHAS 6)."""
    if role == 0 and length >= SMALLEST_REQUEST:
        at = slots[slot, ASKED] % REMEMBERED
        asked[slot, at, 0] = load_i32(body + 4)
        asked[slot, at, 1] = load_i16(body)
        asked[slot, at, 2] = load_i16(body + 2)
        slots[slot, ASKED] += 1
        if load_i16(body) == SASL_HANDSHAKE and load_i16(body + 2) == 0:
            slots[slot, HANDSHAKE] = 1
            slots[slot, HANDSHAKE_ID] = load_i32(body + 4)
            state[2 * slot, TOKENS] = 1
    elif (
        role == 1
        and length >= SMALLEST_RESPONSE
        and slots[slot, HANDSHAKE]
        and load_i32(body) == slots[slot, HANDSHAKE_ID]
    ):
        slots[slot, HANDSHAKE] = 0
        state[2 * slot + 1, TOKENS] = 1


@jit
def split(t: Tables, o: Output, p: Piece, data: int, cursor: Any) -> Number:
    """From the piece `cursor[0]`, byte `cursor[1]` on; the cursor says how far it came."""
    count = t.counts
    pool = t.pool.ctypes.data
    body = o.body.ctypes.data
    for i in range(cursor[0], len(p.kind)):
        at = cursor[1]
        cursor[0] = i
        cursor[1] = 0
        k = t.place[p.stream[i]]
        if k == SKIP:
            continue
        if k == PYTHON:
            return ATTEND
        state = t.state[k]
        slot = k >> 1
        role = k & 1
        connection = t.slots[slot, CONNECTION]
        kind = p.kind[i]
        length = p.length[i]
        if count[ROWS] + 2 >= len(o.kind):
            cursor[1] = at
            return FULL
        if kind == GAP:
            if not 0 <= length <= state[LENGTH] - state[FILLED]:
                return ATTEND
            # The frame is lost, but not its end.
            free_chunks(t.following, count, state)
            state[DAMAGED] = 1
            state[FILLED] += length
            if state[FILLED] == state[LENGTH]:
                emit(o, count, state, connection, LOST, role, state[OFFSET], 4 + state[LENGTH])
                begin_frame(state)
            continue
        if kind in (CLOSE, RESET):
            if state[HAVE] > 0:
                free_chunks(t.following, count, state)
                emit(o, count, state, connection, LOST, role, state[OFFSET], p.offset[i] - state[OFFSET])
                begin_frame(state)
            state[FIRST_NS] = p.time[i]
            state[LAST_NS] = p.time[i]
            state[PACKET] = p.packet[i]
            emit(o, count, state, connection, ENDED, role, p.offset[i], 0)
            t.place[p.stream[i]] = SKIP
            continue
        if kind != BYTES:
            continue
        address = data + p.start[i]
        while True:
            if state[LENGTH] < 0:
                if at == length:
                    break
                if state[HAVE] == 0:
                    state[OFFSET] = p.offset[i] + at
                    state[FIRST_NS] = p.time[i]
                    state[LAST_NS] = p.time[i]
                    state[PACKET] = p.packet[i]
                while state[HAVE] < 4 and at < length:
                    state[PREFIX] = (state[PREFIX] << 8) | load_u8(address + at)
                    state[HAVE] += 1
                    at += 1
                state[LAST_NS] = max(state[LAST_NS], p.time[i])
                if state[HAVE] < 4:
                    break
                state[SHORT] = (
                    state[SHORT] + 1 if state[PREFIX] < (SMALLEST_RESPONSE if role else SMALLEST_REQUEST) else 0
                )
                if state[PREFIX] > MAX_FRAME_BYTES or state[SHORT] > MOST_SHORT:
                    cursor[1] = at
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
                    break
                if count[ROWS] + 2 >= len(o.kind):
                    cursor[1] = at
                    return FULL
                emit(o, count, state, connection, LOST, role, state[OFFSET], 4 + state[LENGTH])
                begin_frame(state)
                continue
            if need > here:
                if here == 0:
                    break
                wanted = (state[FILLED] + here + CHUNK - 1) // CHUNK - (state[FILLED] + CHUNK - 1) // CHUNK
                if wanted > count[FREE_CHUNKS]:
                    count[WANT_CHUNKS] = wanted
                    cursor[1] = at
                    return POOL
                collect(pool, t.following, count, state, address + at, here)
                break
            if count[ROWS] + 2 >= len(o.kind) or count[BODY] + state[LENGTH] > len(o.body):
                count[WANT_BODY] = count[BODY] + state[LENGTH]
                cursor[1] = at
                return FULL
            target = body + count[BODY]
            collected(pool, t.following, state, target)
            copy(target + state[FILLED], address + at, need)
            free_chunks(t.following, count, state)
            at += need
            count[BODY] += state[LENGTH]
            # A response has a correlation id at least: an empty frame answers a token.
            emit(o, count, state, connection, FRAME if state[LENGTH] else TOKEN, role, state[OFFSET], 0)
            judged = state[TOKENS] and state[LENGTH] > 0
            if not judged:
                note(t.slots, t.asked, t.state, slot, role, target, state[LENGTH])
            begin_frame(state)
            if judged:
                cursor[1] = at
                return JUDGE
    cursor[0] = len(p.kind)
    cursor[1] = 0
    return DONE
