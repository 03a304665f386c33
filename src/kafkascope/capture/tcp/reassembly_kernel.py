"""The kernel that turns TCP segments into connections and in-order pieces. Where its arrays are full it returns; the
caller grows them and goes on from there."""

from typing import Any

from kafkascope.capture.base.flow import (
    ACK,
    FIN,
    RST,
    SYN,
    PieceKind,
)
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
# A segment this far from the next byte is not of this connection. Ahead: as much as a recording may lose in one piece.
# Behind: an old retransmission is at most some windows old.
AHEAD = 1 << 28
BEHIND = -(1 << 26)
# The same for what trails behind a connection that has ended: a window.
LATE = 1 << 20
# Clocks of two machines differ by less than this; and a client's ports do not come round in it, on one that is busy.
CLOCKS_APART_NS = 60_000_000_000
# Connections that are looked at for one to forget; of a flood the first will do. Each new one gives back a few looks.
MOST_LOOKED_AT = 1_024
LOOKS_GIVEN_BACK = 64


@jit
def distance(sequence: int, base: int, offset: int) -> Number:
    """How far a 32-bit sequence number is from an offset, the short way round."""
    apart = (sequence - base - offset) & _WORD
    return apart - (_WORD + 1) if apart > _WORD >> 1 else apart


@jit
def begin(t: Tables, o: Output, data: Any, flow: int, time: int, packet: int) -> Number:
    """A new connection on the flow, -1 where there are too many. The one before it is over."""
    number = t.counts[StreamCount.CONNECTIONS]
    if t.counts[StreamCount.OTHERS] >= t.counts[StreamCount.MOST_OTHERS]:
        number = forget_one(t, t.current[flow])
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
def forget_one(t: Tables, kept: int) -> Number:
    """The number of one without Kafka, or of a retired one, that is forgotten for a new connection; or the next number.
    One that has bytes in this batch stays: nobody has looked at them yet."""
    count = t.counts
    count[StreamCount.LOOKS] = max(count[StreamCount.LOOKS] - LOOKS_GIVEN_BACK, 0)
    for _ in range(min(MOST_LOOKED_AT - count[StreamCount.LOOKS], count[StreamCount.CONNECTIONS])):
        count[StreamCount.LOOKS] += 1
        number = count[StreamCount.HAND]
        count[StreamCount.HAND] = number + 1 if number + 1 < count[StreamCount.CONNECTIONS] else 0
        connection = t.connections[number]
        one = t.streams[2 * number]
        two = t.streams[2 * number + 1]
        if (
            number != kept
            and connection[Conn.PROTOCOL] != KAFKA
            and one[Stream.HELD_COUNT] == 0
            and two[Stream.HELD_COUNT] == 0
            and (connection[Conn.DIRTY] == 0 or (one[Stream.NEXT] == 0 and two[Stream.NEXT] == 0))
        ):
            t.forgotten[connection[Conn.PROTOCOL], 0] += 1
            t.forgotten[connection[Conn.PROTOCOL], 1] += one[Stream.SEEN_BYTES] + two[Stream.SEEN_BYTES]
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
def opened_by(t: Tables, o: Output, data: Any, s: Segment, i: int) -> Number:
    """The connection that a SYN belongs to, a new one mostly."""
    flow = s.flow[i]
    direction = np_int(s.direction[i])
    number = t.current[flow]
    first = (s.sequence[i] + 1) & _WORD
    answer = s.flags[i] & ACK != 0
    acknowledged = s.acknowledgement[i] & _WORD if answer and len(s.acknowledgement) else np_int(-1)
    same = False
    if number >= 0:
        base = t.streams[2 * number + direction, Stream.BASE]
        other = t.streams[2 * number + (1 - direction)]
        if base == first:
            # The same packet once more, unless the same number comes by chance after the end. Of an answer both numbers
            # tell; before it comes nothing depends on this. A second recording of the connection, behind the first, has
            # its times by another clock.
            same = not is_over(t, number) or (
                s.time[i] <= t.connections[number, Conn.LAST_NS] + CLOCKS_APART_NS
                and (acknowledged < 0 or acknowledged == other[Stream.BASE])
            )
        elif base < 0 and (not is_over(t, number) or 0 <= acknowledged == other[Stream.BASE]):
            fits = other[Stream.INITIAL] < 0 or acknowledged < 0 or acknowledged == other[Stream.BASE]
            same = fits if answer else other[Stream.BASE] < 0
    if not same:
        number = begin(t, o, data, flow, s.time[i], s.packet[i])
        if number < 0:
            return number
    stream = 2 * number + direction
    if t.streams[stream, Stream.INITIAL] < 0:
        open_stream(t, o, stream, s.sequence[i] & _WORD, s.time[i], s.packet[i])
        if not answer and t.connections[number, Conn.OPENER] < 0:
            t.connections[number, Conn.OPENER] = direction
    other_stream = 2 * number + (1 - direction)
    if acknowledged >= 0 and t.streams[other_stream, Stream.BASE] < 0:
        # The SYN that this one answers is not in the recording; its number is.
        open_stream(t, o, other_stream, (acknowledged - 1) & _WORD, s.time[i], s.packet[i])
        t.connections[number, Conn.OPENER] = 1 - direction
    return number


@jit
def np_int(value: int) -> Number:
    """An int64 of a narrower column: numba gives a variable one type."""
    return value


@jit
def open_stream(t: Tables, o: Output, stream: int, initial: int, time: int, packet: int) -> None:
    state = t.streams[stream]
    state[Stream.INITIAL] = initial
    state[Stream.BASE] = (initial + 1) & _WORD
    state[Stream.SOFT] = 0
    t.connections[stream >> 1, Conn.OPENED] = 1
    # Where bytes came before the SYN the stream is under way already, and they were the first.
    if state[Stream.NEXT] == 0 and not state[Stream.CLOSED]:
        emit(t, o, PieceKind.OPEN, stream, 0, 0, 0, time, packet)


@jit
def met_by(t: Tables, o: Output, data: Any, s: Segment, i: int) -> Number:
    """The connection that a segment without SYN belongs to, -1 where it belongs to none."""
    flow = s.flow[i]
    direction = np_int(s.direction[i])
    sequence = s.sequence[i] & _WORD
    wire = np_int(max(s.wire_length[i], s.length[i]))
    number = t.current[flow]
    if number < 0:
        if s.flags[i] & RST:
            return np_int(-1)
        number = begin(t, o, data, flow, s.time[i], s.packet[i])
    else:
        state = t.streams[2 * number + direction]
        if state[Stream.BASE] < 0:
            before = t.connections[number, Conn.PREVIOUS]
            if before >= 0 and t.connections[number, Conn.OPENED] and t.connections[before, Conn.FLOW] == flow:
                old = t.streams[2 * before + direction]
                if old[Stream.BASE] >= 0 and abs(distance(sequence, old[Stream.BASE], old[Stream.NEXT])) < LATE:
                    return np_int(-1)
        else:
            apart = distance(sequence, state[Stream.BASE], state[Stream.NEXT])
            over = is_over(t, number)
            if BEHIND <= apart <= (LATE if over else AHEAD):
                return number
            if wire == 0 or s.flags[i] & RST:
                return np_int(-1)
            if not over and sequence != state[Stream.STRAY]:
                # One that is far off proves nothing; the one that follows on it does.
                state[Stream.STRAY] = (sequence + wire) & _WORD
                t.counts[StreamCount.STRAYS] += 1
                return np_int(-1)
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
        if BEHIND <= apart <= AHEAD:
            state[Stream.ACKED] = max(state[Stream.ACKED], state[Stream.NEXT] + apart)


@jit
def take(t: Tables, o: Output, data: Any, stream: int, s: Segment, i: int) -> None:
    """Payload and FIN of a segment that belongs to the stream."""
    state = t.streams[stream]
    sequence = s.sequence[i] & _WORD
    if s.flags[i] & SYN:
        sequence = (sequence + 1) & _WORD
    length = np_int(s.length[i])
    wire = max(np_int(s.wire_length[i]), length)
    time = s.time[i]
    packet = s.packet[i]
    offset = state[Stream.NEXT] + distance(sequence, state[Stream.BASE], state[Stream.NEXT])
    if wire > 0:
        if state[Stream.SOFT]:
            if offset == 1 and state[Stream.NEXT] == 0 and state[Stream.HEAD] < 0:
                # Offset 0 came from a keep-alive, whose number is one less than the next byte's.
                state[Stream.BASE] = (state[Stream.BASE] + 1) & _WORD
                offset = np_int(0)
            state[Stream.SOFT] = 0
        keep_alive = wire == 1 and offset == state[Stream.NEXT] - 1
        high = offset + wire
        if state[Stream.FIN_AT] >= 0 and high > state[Stream.FIN_AT]:
            t.counts[StreamCount.AFTER_FIN_BYTES] += high - max(offset, state[Stream.FIN_AT])
            high = max(offset, state[Stream.FIN_AT])
        elif state[Stream.CLOSED] and high > state[Stream.NEXT]:
            t.counts[StreamCount.AFTER_FIN_BYTES] += high - max(offset, state[Stream.NEXT])
            high = max(offset, state[Stream.NEXT])
        there = min(offset + length, high)
        if keep_alive or high <= offset:
            pass
        elif offset == state[Stream.NEXT] and state[Stream.HEAD] < 0 and there == high:
            deliver(t, o, data, PieceKind.BYTES, stream, s.start[i], high - offset, time, packet)
        else:
            if there > offset:
                insert(t, o, data, stream, PieceKind.BYTES, offset, there, s.start[i], time, packet)
            if high > there:
                insert(t, o, data, stream, PieceKind.GAP, there, high, np_int(0), time, packet)
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
    """By a segment of `stream`. A stream whose last bytes are still missing stays open: they may stand behind it, as
    where each direction has a file of its own. One byte may be a FIN that was lost."""
    number = stream >> 1
    for one in range(2 * number, 2 * number + 2):
        state = t.streams[one]
        give_up(t, o, data, one, EVERYTHING, time, packet)
        missing = state[Stream.BASE] < 0 or state[Stream.ACKED] - state[Stream.NEXT] > 1
        missing |= one == stream and distance(sequence, state[Stream.BASE], state[Stream.NEXT]) > 1
        if not missing and not state[Stream.CLOSED]:
            state[Stream.CLOSED] = 1
            emit(t, o, PieceKind.RESET, one, state[Stream.NEXT], 0, 0, time, packet)
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
    """For the most that one segment can do: split around every early segment, deliver all with gaps, list conflicts."""
    early = np_int(0)
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
    """From segment `first` on; the number of the first segment that was not taken."""
    streams = t.streams
    count = t.counts
    acknowledged = len(s.acknowledgement) > 0
    for i in range(first, len(s.flow)):
        number = t.current[s.flow[i]]
        stream = 2 * number + s.direction[i]
        length = np_int(s.length[i])
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
                if BEHIND <= apart <= AHEAD:
                    there = streams[stream ^ 1, Stream.NEXT] + apart
                    streams[stream ^ 1, Stream.ACKED] = max(streams[stream ^ 1, Stream.ACKED], there)
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
        reassemble_one(t, o, data, s, i)
    return len(s.flow)


@jit
def reassemble_one(t: Tables, o: Output, data: Any, s: Segment, i: int) -> None:
    """Any segment."""
    number = opened_by(t, o, data, s, i) if s.flags[i] & SYN else met_by(t, o, data, s, i)
    if number < 0:
        return
    touch(t, number)
    connection = t.connections[number]
    connection[Conn.SEGMENTS] += 1
    connection[Conn.LAST_NS] = max(connection[Conn.LAST_NS], s.time[i])
    stream = 2 * number + np_int(s.direction[i])
    if s.flags[i] & ACK and len(s.acknowledgement) and s.acknowledgement[i] >= 0:
        acknowledge(t, stream ^ 1, s.acknowledgement[i])
    if s.flags[i] & RST:
        reset(t, o, data, stream, s.sequence[i] & _WORD, s.time[i], s.packet[i])
        return
    take(t, o, data, stream, s, i)
    # Asked here and not there: handing over the tables takes longer than looking.
    for one in range(2 * number, 2 * number + 2):
        if t.streams[one, Stream.HEAD] >= 0 or t.streams[one, Stream.FIN_AT] > t.streams[one, Stream.NEXT]:
            release(t, o, data, one, s.time[i], s.packet[i])


@jit
def finish_streams(t: Tables, o: Output, data: Any, stream: int) -> Number:
    """From `stream` on, everything that still waits, out of the spill alone; the first stream that was not done."""
    for stream in range(stream, 2 * t.counts[StreamCount.CONNECTIONS]):  # noqa: B020
        state = t.streams[stream]
        t.counts[StreamCount.WANT_ROWS] = t.counts[StreamCount.ROWS] + 2 * state[Stream.HELD_COUNT] + 4
        if t.counts[StreamCount.WANT_ROWS] > len(o.kind):
            return stream
        before = t.counts[StreamCount.ROWS]
        time = t.connections[stream >> 1, Conn.LAST_NS]
        give_up_all(t, o, data, stream, time, np_int(-1))
        if t.counts[StreamCount.ROWS] != before:
            touch(t, stream >> 1)
    return 2 * t.counts[StreamCount.CONNECTIONS]
