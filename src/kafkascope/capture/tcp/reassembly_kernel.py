"""The kernel that turns TCP segments into connections and in-order pieces. It returns when its arrays are full; the
caller grows them and calls it again from there."""

from typing import Any

from kafkascope.capture.base.flow import ACK, FIN, RST, SYN, PieceKind
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.tcp.history import remember
from kafkascope.capture.tcp.reorder import (
    EVERYTHING,
    MOST_PLACED,
    deliver,
    drain,
    emit,
    give_up,
    give_up_all,
    insert,
    release,
)
from kafkascope.capture.tcp.stream_table import (
    KAFKA,
    RINGS,
    Conn,
    Early,
    Ended,
    Output,
    Segment,
    Stream,
    StreamCount,
    Tables,
)
from kafkascope.columnar.compiling.jit import jit
from kafkascope.limits import MAX_CONNECTIONS

_WORD = 0xFFFFFFFF
# A segment this far from the next byte belongs to another connection. Above: as much as a recording may lose at once.
# Below: a retransmission is at most some windows old.
AHEAD = 1 << 28
MOST_BEHIND = -(1 << 26)
# The same for segments that trail a connection after its end: a window.
LATE = 1 << 20
# Clocks of two machines differ by less than this, and even a busy client doesn't reuse a port within it.
CLOCKS_APART_NS = 60_000_000_000
# Connections that are examined to find one to forget; in a flood the first will do. Each new connection gives back
# a few of these.
MOST_LOOKED_AT = 1_024
LOOKS_GIVEN_BACK = 64


@jit
def distance(sequence: int, base: int, offset: int) -> Number:
    """How far a 32-bit sequence number is from an offset, the short way round."""
    apart = (sequence - base - offset) & _WORD
    return apart - (_WORD + 1) if apart > _WORD >> 1 else apart


@jit
def begin(t: Tables, o: Output, data: Any, flow: int, time: int, packet: int) -> Number:
    """The number of a new connection on the flow, -1 if there are too many. The one before it is over."""
    number = t.counts[StreamCount.CONNECTIONS]
    if t.counts[StreamCount.OTHERS] >= t.counts[StreamCount.MOST_OTHERS]:
        number = forget_connection(t, t.current[flow])
    if number >= MAX_CONNECTIONS:
        t.counts[StreamCount.REFUSED] += 1
        return -1
    before = t.current[flow]
    if before >= 0:
        for direction in range(2):
            stream = 2 * before + direction
            give_up_all(t, o, data, stream, time, packet)
            if t.streams[stream, Stream.BASE] >= 0 and not t.streams[stream, Stream.CLOSED]:
                t.streams[stream, Stream.CLOSED] = 1
                emit(t, o, PieceKind.CLOSE, stream, t.streams[stream, Stream.NEXT], 0, 0, time, packet)
        if t.connections[before, Conn.ENDED] == Ended.NOT_YET:
            t.connections[before, Conn.ENDED] = Ended.REUSED
        touch(t, before)
    t.current[flow] = number
    t.counts[StreamCount.OTHERS] += 1
    connection = t.connections[number]
    if number == t.counts[StreamCount.CONNECTIONS]:
        t.counts[StreamCount.CONNECTIONS] += 1
        connection[Conn.DIRTY] = 0
        connection[Conn.IS_NEW] = 0
    else:
        connection[Conn.IS_NEW] = 1
        emit(t, o, PieceKind.RENEWED, 2 * number, 0, 0, 0, time, packet)
    connection[Conn.FLOW] = flow
    connection[Conn.FIRST_NS] = time
    connection[Conn.LAST_NS] = time
    connection[Conn.OPENED] = 0
    connection[Conn.OPENER] = -1
    connection[Conn.ENDED] = Ended.NOT_YET
    connection[Conn.SEGMENTS] = 0
    connection[Conn.RESET_SEEN] = 0
    connection[Conn.CONFLICTS] = 0
    connection[Conn.RETRANSMITTED] = 0
    connection[Conn.DUPLICATED] = 0
    connection[Conn.PREVIOUS] = before
    connection[Conn.PROTOCOL] = 0
    connection[Conn.CLOSED_NS] = -1
    for stream in range(2 * number, 2 * number + 2):
        state = t.streams[stream]
        state[:] = -1
        t.lanes[stream] = -1
        state[Stream.NEXT] = 0
        state[Stream.HELD_BYTES] = 0
        state[Stream.HELD_COUNT] = 0
        state[Stream.CERTAIN_COUNT] = 0
        state[Stream.CERTAIN_NS] = 0
        state[Stream.SOFT] = 0
        state[Stream.CLOSED] = 0
        state[Stream.SEEN_BYTES] = 0
        state[Stream.GAP_BYTES] = 0
        state[Stream.PLACED] = 0
    return number


@jit
def forget_connection(t: Tables, kept: int) -> Number:
    """The number of a connection without Kafka, or of a retired one, that is forgotten for a new connection; or the
    next free number. A connection with bytes in this batch stays: they haven't been examined yet."""
    count = t.counts
    count[StreamCount.LOOKS] = max(count[StreamCount.LOOKS] - LOOKS_GIVEN_BACK, 0)
    for _ in range(min(MOST_LOOKED_AT - count[StreamCount.LOOKS], count[StreamCount.CONNECTIONS])):
        count[StreamCount.LOOKS] += 1
        number = count[StreamCount.HAND]
        count[StreamCount.HAND] = number + 1 if number + 1 < count[StreamCount.CONNECTIONS] else 0
        connection = t.connections[number]
        first = t.streams[2 * number]
        second = t.streams[2 * number + 1]
        if (
            number != kept
            and connection[Conn.PROTOCOL] != KAFKA
            and first[Stream.HELD_COUNT] == 0
            and second[Stream.HELD_COUNT] == 0
            and (connection[Conn.DIRTY] == 0 or (first[Stream.NEXT] == 0 and second[Stream.NEXT] == 0))
        ):
            t.forgotten[connection[Conn.PROTOCOL], 0] += 1
            t.forgotten[connection[Conn.PROTOCOL], 1] += first[Stream.SEEN_BYTES] + second[Stream.SEEN_BYTES]
            if t.current[connection[Conn.FLOW]] == number:
                t.current[connection[Conn.FLOW]] = -1
            for stream in range(2 * number, 2 * number + 2):
                if t.ring_owner[stream & (RINGS - 1)] == stream:
                    t.ring_owner[stream & (RINGS - 1)] = -1
            count[StreamCount.OTHERS] -= 1
            return number
    return count[StreamCount.CONNECTIONS]


@jit
def touch(t: Tables, number: int) -> None:
    if not t.connections[number, Conn.DIRTY]:
        t.connections[number, Conn.DIRTY] = 1
        t.dirty[t.counts[StreamCount.DIRTIES]] = number
        t.counts[StreamCount.DIRTIES] += 1


@jit
def is_over(t: Tables, number: int) -> Number:
    both = t.streams[2 * number, Stream.FIN_AT] >= 0 and t.streams[2 * number + 1, Stream.FIN_AT] >= 0
    return both or t.connections[number, Conn.RESET_SEEN] != 0


@jit
def connection_of_syn(t: Tables, o: Output, data: Any, s: Segment, i: int) -> Number:
    """The connection that a SYN belongs to, mostly a new one."""
    flow = s.flow[i]
    direction = as_int64(s.direction[i])
    number = t.current[flow]
    first = (s.sequence[i] + 1) & _WORD
    is_syn_ack = s.flags[i] & ACK != 0
    acknowledged = s.acknowledgement[i] & _WORD if is_syn_ack and len(s.acknowledgement) else as_int64(-1)
    same = False
    if number >= 0:
        base = t.streams[2 * number + direction, Stream.BASE]
        other = t.streams[2 * number + (1 - direction)]
        if base == first:
            # The same packet again, unless the same number comes by chance after the end. A SYN-ACK is identified by
            # both numbers; before it comes nothing depends on this. A second recording of the connection, after the
            # first, has the times of another clock.
            same = not is_over(t, number) or (
                s.time[i] <= t.connections[number, Conn.LAST_NS] + CLOCKS_APART_NS
                and (acknowledged < 0 or acknowledged == other[Stream.BASE])
            )
        elif base < 0 and (not is_over(t, number) or 0 <= acknowledged == other[Stream.BASE]):
            fits = other[Stream.INITIAL] < 0 or acknowledged < 0 or acknowledged == other[Stream.BASE]
            same = fits if is_syn_ack else other[Stream.BASE] < 0
    if not same:
        number = begin(t, o, data, flow, s.time[i], s.packet[i])
        if number < 0:
            return number
    stream = 2 * number + direction
    if t.streams[stream, Stream.INITIAL] < 0:
        open_stream(t, o, stream, s.sequence[i] & _WORD, s.time[i], s.packet[i])
        if not is_syn_ack and t.connections[number, Conn.OPENER] < 0:
            t.connections[number, Conn.OPENER] = direction
    other_stream = 2 * number + (1 - direction)
    if acknowledged >= 0 and t.streams[other_stream, Stream.BASE] < 0:
        # The SYN that this one acknowledges wasn't recorded, but its number is known.
        open_stream(t, o, other_stream, (acknowledged - 1) & _WORD, s.time[i], s.packet[i])
        t.connections[number, Conn.OPENER] = 1 - direction
    return number


@jit
def as_int64(value: int) -> Number:
    """An int64 of a narrower column: numba gives a variable one type."""
    return value


@jit
def open_stream(t: Tables, o: Output, stream: int, initial: int, time: int, packet: int) -> None:
    state = t.streams[stream]
    state[Stream.INITIAL] = initial
    state[Stream.BASE] = (initial + 1) & _WORD
    state[Stream.SOFT] = 0
    t.connections[stream >> 1, Conn.OPENED] = 1
    # If bytes came before the SYN the stream has begun already, with those bytes.
    if state[Stream.NEXT] == 0 and not state[Stream.CLOSED]:
        emit(t, o, PieceKind.OPEN, stream, 0, 0, 0, time, packet)


@jit
def connection_of(t: Tables, o: Output, data: Any, s: Segment, i: int) -> Number:
    """The connection that a segment without SYN belongs to, -1 for none."""
    flow = s.flow[i]
    direction = as_int64(s.direction[i])
    sequence = s.sequence[i] & _WORD
    wire = as_int64(max(s.wire_length[i], s.length[i]))
    number = t.current[flow]
    if number < 0:
        if s.flags[i] & RST:
            return as_int64(-1)
        number = begin(t, o, data, flow, s.time[i], s.packet[i])
    else:
        state = t.streams[2 * number + direction]
        if state[Stream.BASE] < 0:
            before = t.connections[number, Conn.PREVIOUS]
            if before >= 0 and t.connections[number, Conn.OPENED] and t.connections[before, Conn.FLOW] == flow:
                old = t.streams[2 * before + direction]
                if old[Stream.BASE] >= 0 and abs(distance(sequence, old[Stream.BASE], old[Stream.NEXT])) < LATE:
                    return as_int64(-1)
        else:
            apart = distance(sequence, state[Stream.BASE], state[Stream.NEXT])
            over = is_over(t, number)
            if MOST_BEHIND <= apart <= (LATE if over else AHEAD):
                return number
            if wire == 0 or s.flags[i] & RST:
                return as_int64(-1)
            if not over and sequence != state[Stream.STRAY]:
                # One segment far off proves nothing; a second one that follows it does.
                state[Stream.STRAY] = (sequence + wire) & _WORD
                t.counts[StreamCount.STRAYS] += 1
                return as_int64(-1)
            number = begin(t, o, data, flow, s.time[i], s.packet[i])
    if number >= 0 and not s.flags[i] & RST:
        state = t.streams[2 * number + direction]
        if state[Stream.BASE] < 0:
            state[Stream.BASE] = sequence
            state[Stream.SOFT] = 1 if wire == 0 else 0
    return number


@jit
def acknowledge(t: Tables, stream: int, acknowledged: int) -> None:
    state = t.streams[stream]
    if state[Stream.BASE] >= 0:
        apart = distance(acknowledged & _WORD, state[Stream.BASE], state[Stream.NEXT])
        if MOST_BEHIND <= apart <= AHEAD:
            state[Stream.ACKED] = max(state[Stream.ACKED], state[Stream.NEXT] + apart)


@jit
def take(t: Tables, o: Output, data: Any, stream: int, s: Segment, i: int) -> None:
    """Takes in payload and FIN of a segment that belongs to the stream."""
    state = t.streams[stream]
    sequence = s.sequence[i] & _WORD
    if s.flags[i] & SYN:
        sequence = (sequence + 1) & _WORD
    length = as_int64(s.length[i])
    wire = max(as_int64(s.wire_length[i]), length)
    time = s.time[i]
    packet = s.packet[i]
    offset = state[Stream.NEXT] + distance(sequence, state[Stream.BASE], state[Stream.NEXT])
    if wire > 0:
        if state[Stream.SOFT]:
            if offset == 1 and state[Stream.NEXT] == 0 and state[Stream.HEAD] < 0:
                # Offset 0 came from a keep-alive, whose number is one less than the next byte's.
                state[Stream.BASE] = (state[Stream.BASE] + 1) & _WORD
                offset = as_int64(0)
            state[Stream.SOFT] = 0
        keep_alive = wire == 1 and offset == state[Stream.NEXT] - 1
        high = offset + wire
        if state[Stream.FIN_AT] >= 0 and high > state[Stream.FIN_AT]:
            t.counts[StreamCount.AFTER_FIN_BYTES] += high - max(offset, state[Stream.FIN_AT])
            high = max(offset, state[Stream.FIN_AT])
        elif state[Stream.CLOSED] and high > state[Stream.NEXT]:
            t.counts[StreamCount.AFTER_FIN_BYTES] += high - max(offset, state[Stream.NEXT])
            high = max(offset, state[Stream.NEXT])
        recorded_end = min(offset + length, high)
        if keep_alive or high <= offset:
            pass
        elif offset == state[Stream.NEXT] and state[Stream.HEAD] < 0 and recorded_end == high:
            deliver(t, o, data, PieceKind.BYTES, stream, s.start[i], high - offset, time, packet)
        else:
            if recorded_end > offset:
                insert(t, o, data, stream, PieceKind.BYTES, offset, recorded_end, s.start[i], time, packet)
            if high > recorded_end:
                insert(t, o, data, stream, PieceKind.GAP, recorded_end, high, as_int64(0), time, packet)
    if s.flags[i] & FIN and state[Stream.FIN_AT] < 0:
        end = offset + wire
        if state[Stream.TAIL] >= 0:
            end = max(end, t.nodes[state[Stream.TAIL], Early.END])
        if end >= state[Stream.NEXT]:
            state[Stream.FIN_AT] = end
            note_end(t, stream >> 1, time)
    if state[Stream.HEAD] >= 0 or state[Stream.FIN_AT] == state[Stream.NEXT]:
        drain(t, o, data, stream, time, packet)


@jit
def reset(t: Tables, o: Output, data: Any, stream: int, sequence: int, time: int, packet: int) -> None:
    """Handles a RST of `stream`. A stream whose last bytes are missing stays open: they may come later in the
    recording, as when each direction has its own file. One missing byte may be a lost FIN."""
    number = stream >> 1
    for side in range(2 * number, 2 * number + 2):
        state = t.streams[side]
        give_up(t, o, data, side, EVERYTHING, time, packet)
        missing = state[Stream.BASE] < 0 or state[Stream.ACKED] - state[Stream.NEXT] > 1
        missing |= side == stream and distance(sequence, state[Stream.BASE], state[Stream.NEXT]) > 1
        if not missing and not state[Stream.CLOSED]:
            state[Stream.CLOSED] = 1
            emit(t, o, PieceKind.RESET, side, state[Stream.NEXT], 0, 0, time, packet)
    if t.connections[number, Conn.ENDED] == Ended.NOT_YET:
        t.connections[number, Conn.ENDED] = Ended.RESET
    t.connections[number, Conn.RESET_SEEN] = 1
    note_end(t, number, time)


@jit
def note_end(t: Tables, number: int, time: int) -> None:
    if t.connections[number, Conn.CLOSED_NS] < 0:
        t.connections[number, Conn.CLOSED_NS] = time


@jit
def has_room(t: Tables, o: Output, flow: int) -> Number:
    """Whether there is room for the most that a segment can cause: it is split around every early segment, all of them
    are delivered with gaps, conflicts are listed."""
    early = as_int64(0)
    if t.current[flow] >= 0:
        stream = 2 * t.current[flow]
        early = t.streams[stream, Stream.HELD_COUNT] + t.streams[stream + 1, Stream.HELD_COUNT]
    t.counts[StreamCount.WANT_ROWS] = max(
        t.counts[StreamCount.ROWS] + 8 * early + 32, t.counts[StreamCount.CONFLICT_ROWS] + MOST_PLACED
    )
    t.counts[StreamCount.WANT_NODES] = 2 * early + 8
    t.counts[StreamCount.WANT_CONNECTIONS] = 1
    return (
        t.counts[StreamCount.WANT_ROWS] <= len(o.kind)
        and t.counts[StreamCount.WANT_NODES] <= t.counts[StreamCount.FREE]
        and t.counts[StreamCount.CONNECTIONS] < len(t.connections)
    )


@jit
def reassemble(t: Tables, o: Output, data: Any, s: Segment, first: int) -> Number:
    """Reassembles from segment `first` on; returns the number of the first segment that wasn't taken."""
    streams = t.streams
    count = t.counts
    acknowledged = len(s.acknowledgement) > 0
    for i in range(first, len(s.flow)):
        number = t.current[s.flow[i]]
        stream = 2 * number + s.direction[i]
        length = as_int64(s.length[i])
        # The common case, without a call: bytes that are next, or an acknowledgement, while nothing waits.
        if (
            number >= 0
            and s.flags[i] & (SYN | FIN | RST) == 0
            and streams[stream, Stream.BASE] >= 0
            and streams[stream, Stream.HEAD] < 0
            and streams[stream ^ 1, Stream.HEAD] < 0
            and streams[stream, Stream.FIN_AT] < 0
            and streams[stream ^ 1, Stream.FIN_AT] <= streams[stream ^ 1, Stream.NEXT]
            and not streams[stream, Stream.CLOSED]
            and not streams[stream, Stream.SOFT]
            and length == s.wire_length[i]
            and (s.sequence[i] - streams[stream, Stream.BASE] - streams[stream, Stream.NEXT]) & _WORD == 0
            and count[StreamCount.ROWS] < len(o.kind)
        ):
            if not t.connections[number, Conn.DIRTY]:
                touch(t, number)
            t.connections[number, Conn.SEGMENTS] += 1
            t.connections[number, Conn.LAST_NS] = max(t.connections[number, Conn.LAST_NS], s.time[i])
            if (
                acknowledged
                and s.flags[i] & ACK
                and s.acknowledgement[i] >= 0
                and streams[stream ^ 1, Stream.BASE] >= 0
            ):
                apart = distance(
                    s.acknowledgement[i] & _WORD, streams[stream ^ 1, Stream.BASE], streams[stream ^ 1, Stream.NEXT]
                )
                if MOST_BEHIND <= apart <= AHEAD:
                    acked = streams[stream ^ 1, Stream.NEXT] + apart
                    streams[stream ^ 1, Stream.ACKED] = max(streams[stream ^ 1, Stream.ACKED], acked)
            if length:
                row = count[StreamCount.ROWS]
                offset = streams[stream, Stream.NEXT]
                o.kind[row] = PieceKind.BYTES
                o.stream[row] = stream
                o.offset[row] = offset
                o.start[row] = s.start[i]
                o.length[row] = length
                o.time[row] = s.time[i]
                o.packet[row] = s.packet[i]
                count[StreamCount.ROWS] = row + 1
                remember(t.ring_owner, t.ring_low, t.marks, t.ring, stream, offset, data, s.start[i], length, s.time[i])
                streams[stream, Stream.SEEN_BYTES] += length
                streams[stream, Stream.NEXT] = offset + length
            continue
        if not has_room(t, o, s.flow[i]):
            return i
        reassemble_segment(t, o, data, s, i)
    return len(s.flow)


@jit
def reassemble_segment(t: Tables, o: Output, data: Any, s: Segment, i: int) -> None:
    """The general case: any segment."""
    number = connection_of_syn(t, o, data, s, i) if s.flags[i] & SYN else connection_of(t, o, data, s, i)
    if number < 0:
        return
    touch(t, number)
    connection = t.connections[number]
    connection[Conn.SEGMENTS] += 1
    connection[Conn.LAST_NS] = max(connection[Conn.LAST_NS], s.time[i])
    stream = 2 * number + as_int64(s.direction[i])
    if s.flags[i] & ACK and len(s.acknowledgement) and s.acknowledgement[i] >= 0:
        acknowledge(t, stream ^ 1, s.acknowledgement[i])
    if s.flags[i] & RST:
        reset(t, o, data, stream, s.sequence[i] & _WORD, s.time[i], s.packet[i])
        return
    take(t, o, data, stream, s, i)
    # Checked here and not in `release`: passing the tables takes longer than the check.
    for side in range(2 * number, 2 * number + 2):
        if t.streams[side, Stream.HEAD] >= 0 or t.streams[side, Stream.FIN_AT] > t.streams[side, Stream.NEXT]:
            release(t, o, data, side, s.time[i], s.packet[i])


@jit
def finish_streams(t: Tables, o: Output, data: Any, stream: int) -> Number:
    """Delivers all that still waits, from `stream` on, from the spill alone; returns the first stream that wasn't
    done."""
    for stream in range(stream, 2 * t.counts[StreamCount.CONNECTIONS]):  # noqa: B020
        state = t.streams[stream]
        t.counts[StreamCount.WANT_ROWS] = t.counts[StreamCount.ROWS] + 2 * state[Stream.HELD_COUNT] + 4
        if t.counts[StreamCount.WANT_ROWS] > len(o.kind):
            return stream
        before = t.counts[StreamCount.ROWS]
        time = t.connections[stream >> 1, Conn.LAST_NS]
        give_up_all(t, o, data, stream, time, as_int64(-1))
        if t.counts[StreamCount.ROWS] != before:
            touch(t, stream >> 1)
    return 2 * t.counts[StreamCount.CONNECTIONS]
