"""Puts the segments of one stream in order. The first copy of a byte wins; missing bytes become a gap when they are
certain not to come, or when more waits for them than `limits` allow."""

from typing import Any

from kafkascope.capture.base.checked import differing_bytes
from kafkascope.capture.base.flow import PieceKind
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.capture.tcp.history import FORGOTTEN, differing_from_delivered, forget_before, remember, time_of
from kafkascope.capture.tcp.stream_table import (
    EXPRESS_DISTANCE,
    FAR_DISTANCE,
    LOCAL,
    NODE_COST,
    Conn,
    Early,
    Ended,
    Output,
    Stream,
    StreamCount,
    Tables,
)
from kafkascope.columnar.compiling.jit import jit
from kafkascope.limits import MAX_EARLY_BYTES, MAX_EARLY_SEGMENTS, MAX_EARLY_TOTAL_BYTES

# Acknowledged bytes aren't sent again; but two interfaces, or the queues of one, may deliver data after its
# acknowledgement. They differ by less than this many segments of the connection, and by less than this time.
GRACE_SEGMENTS = 64
GRACE_NS = 1_000_000_000
# Without acknowledgements: Linux retransmits a lost segment after 0.2, 0.6, 1.4 … 25.4 seconds.
PATIENCE_NS = 30_000_000_000
# A retransmission takes 200 ms, or three later segments and a round trip; two interfaces see one packet within this.
SAME_PACKET_NS = 1_000_000
# Conflicts per stream that are reported one by one; the rest is counted.
MOST_PLACED = 16
EVERYTHING = 1 << 62


@jit
def emit(
    t: Tables, o: Output, kind: int, stream: int, offset: int, start: int, length: int, time: int, packet: int
) -> None:
    row = t.counts[StreamCount.ROWS]
    o.kind[row] = kind
    o.stream[row] = stream
    o.offset[row] = offset
    o.start[row] = start
    o.length[row] = length
    o.time[row] = time
    o.packet[row] = packet
    t.counts[StreamCount.ROWS] = row + 1


@jit
def bytes_at(t: Tables, data: Any, start: int) -> Numbers:
    """(array, place in it): the batch's data, or the spill."""
    if start >= 0:
        return data, start
    return t.spill, -1 - start


@jit
def deliver(
    t: Tables, o: Output, data: Any, kind: int, stream: int, start: int, length: int, time: int, packet: int
) -> None:
    state = t.streams[stream]
    emit(t, o, kind, stream, state[Stream.NEXT], start, length, time, packet)
    if kind == PieceKind.BYTES:
        source, at = bytes_at(t, data, start)
        remember(t.ring_owner, t.ring_low, t.marks, t.ring, stream, state[Stream.NEXT], source, at, length, time)
        state[Stream.SEEN_BYTES] += length
        state[Stream.NEXT] += length
    else:
        state[Stream.GAP_BYTES] += length
        state[Stream.NEXT] += length
        forget_before(t, stream, state[Stream.NEXT])


@jit
def count_repeated(
    t: Tables, o: Output, stream: int, offset: int, length: int, different: int, first: int, time: int, packet: int
) -> None:
    """Counts repeated bytes, as duplicated or retransmitted; `first` is when they first came."""
    connection = t.connections[stream >> 1]
    if first != FORGOTTEN and abs(time - first) <= SAME_PACKET_NS:
        connection[Conn.DUPLICATED] += length
    else:
        connection[Conn.RETRANSMITTED] += length
    if different:
        connection[Conn.CONFLICTS] += different
        if t.streams[stream, Stream.PLACED] < MOST_PLACED:
            t.streams[stream, Stream.PLACED] += 1
            row = t.counts[StreamCount.CONFLICT_ROWS]
            o.conflicts[row, 0] = stream
            o.conflicts[row, 1] = offset
            o.conflicts[row, 2] = different
            o.conflicts[row, 3] = packet
            t.counts[StreamCount.CONFLICT_ROWS] = row + 1


@jit
def last_far(t: Tables, stream: int, low: int) -> Number:
    """The last node of the far lane that ends at `low` or before, -1 if there is none."""
    last = no_node()
    at = t.lanes[stream, 1]
    while at >= 0 and t.nodes[at, Early.END] <= low:
        last = at
        at = t.nodes[at, Early.FAR]
        t.counts[StreamCount.WALKED] += 1
    return last


@jit
def last_express(t: Tables, stream: int, low: int) -> Number:
    """The same for the express lane."""
    last = last_far(t, stream, low)
    at = t.nodes[last, Early.EXPRESS] if last >= 0 else t.lanes[stream, 0]
    while at >= 0 and t.nodes[at, Early.END] <= low:
        last = at
        at = t.nodes[at, Early.EXPRESS]
        t.counts[StreamCount.WALKED] += 1
    return last


@jit
def lanes_of_new(counts: Any) -> Number:
    """How many lanes a new node is on, chosen at random (xorshift)."""
    state = counts[StreamCount.RANDOM]
    state ^= state << 13
    state ^= (state >> 7) & ((1 << 57) - 1)
    state ^= state << 17
    counts[StreamCount.RANDOM] = state
    drawn = state >> 20
    return no_node() + 1 + (drawn & (EXPRESS_DISTANCE - 1) == 0) + (drawn & (FAR_DISTANCE - 1) == 0)


@jit
def put_on_lanes(t: Tables, stream: int, made: int, lanes: int) -> None:
    """Adds a node to the express lane and, if `lanes` is 2, to the far lane as well."""
    last = last_express(t, stream, t.nodes[made, Early.OFFSET])
    if last < 0:
        t.nodes[made, Early.EXPRESS] = t.lanes[stream, 0]
        t.lanes[stream, 0] = made
    else:
        t.nodes[made, Early.EXPRESS] = t.nodes[last, Early.EXPRESS]
        t.nodes[last, Early.EXPRESS] = made
    if lanes > 1:
        last = last_far(t, stream, t.nodes[made, Early.OFFSET])
        if last < 0:
            t.nodes[made, Early.FAR] = t.lanes[stream, 1]
            t.lanes[stream, 1] = made
        else:
            t.nodes[made, Early.FAR] = t.nodes[last, Early.FAR]
            t.nodes[last, Early.FAR] = made


@jit
def end_of_run(t: Tables, at: int) -> Number:
    """The last of the nodes that follow `at` without a hole. Nothing can come between them any more, and they are
    removed in their order, so each of those passed remembers the last one."""
    last = at
    while True:
        further = t.nodes[last, Early.RUN]
        if further < 0:
            further = t.nodes[last, Early.FOLLOWING]
            if further < 0 or t.nodes[further, Early.OFFSET] != t.nodes[last, Early.END]:
                break
            t.nodes[last, Early.RUN] = further
        last = further
        t.counts[StreamCount.WALKED] += 1
    while at != last:
        further = t.nodes[at, Early.RUN]
        t.nodes[at, Early.RUN] = last
        at = further
    return last


@jit
def hold(
    t: Tables,
    stream: int,
    before: int,
    after: int,
    kind: int,
    offset: int,
    end: int,
    start: int,
    time: int,
    packet: int,
) -> None:
    """Adds a node between two; the caller has made room."""
    t.counts[StreamCount.FREE] -= 1
    made = t.free[t.counts[StreamCount.FREE]]
    node = t.nodes[made]
    node[Early.KIND] = kind
    node[Early.OFFSET] = offset
    node[Early.END] = end
    node[Early.AT] = start
    node[Early.TIME] = time
    node[Early.PACKET] = packet
    node[Early.FOLLOWING] = after
    node[Early.EXPRESS] = LOCAL
    node[Early.FAR] = LOCAL
    node[Early.RUN] = -1
    lanes = lanes_of_new(t.counts)
    if lanes:
        put_on_lanes(t, stream, made, lanes)
    state = t.streams[stream]
    if before < 0:
        state[Stream.HEAD] = made
    else:
        t.nodes[before, Early.FOLLOWING] = made
    if after < 0:
        state[Stream.TAIL] = made
    state[Stream.HELD_COUNT] += 1
    t.counts[StreamCount.HELD_TOTAL] += NODE_COST
    if kind == PieceKind.BYTES:
        state[Stream.HELD_BYTES] += end - offset
        t.counts[StreamCount.HELD_TOTAL] += end - offset
        if not node[Early.LISTED]:
            node[Early.LISTED] = 1
            t.fresh[t.counts[StreamCount.FRESH]] = made
            t.counts[StreamCount.FRESH] += 1


@jit
def insert(
    t: Tables, o: Output, data: Any, stream: int, kind: int, low: int, high: int, start: int, time: int, packet: int
) -> None:
    """Adds those of the bytes that never came before to the list; a GAP is bytes that the snap length cut."""
    state = t.streams[stream]
    if low < state[Stream.NEXT]:
        end = min(high, state[Stream.NEXT])
        if kind == PieceKind.BYTES:
            different = differing_from_delivered(t, stream, low, end, data, start)
            count_repeated(t, o, stream, low, end - low, different, time_of(t, stream, end), time, packet)
        start += end - low
        low = end
    before = state[Stream.TAIL]
    if before >= 0 and t.nodes[before, Early.END] > low:
        before = last_express(t, stream, low)
    at = t.nodes[before, Early.FOLLOWING] if before >= 0 else state[Stream.HEAD]
    while at >= 0 and t.nodes[at, Early.END] <= low:
        before = at
        at = t.nodes[at, Early.FOLLOWING]
        t.counts[StreamCount.WALKED] += 1
    while low < high:
        t.counts[StreamCount.WALKED] += 1
        if at < 0 or t.nodes[at, Early.OFFSET] >= high:
            hold(t, stream, before, at, kind, low, high, start, time, packet)
            return
        end = t.nodes[at, Early.OFFSET]
        if low < end:
            hold(t, stream, before, at, kind, low, end, start, time, packet)
            start += end - low
            low = end
        if kind != PieceKind.BYTES:
            # Nothing to compare: its length is only what the packet claims, and must not determine the cost.
            at = end_of_run(t, at)
        end = min(high, t.nodes[at, Early.END])
        node = t.nodes[at]
        if kind == PieceKind.BYTES and node[Early.KIND] == PieceKind.BYTES:
            source, first = bytes_at(t, data, node[Early.AT])
            different = differing_bytes(source, first + (low - node[Early.OFFSET]), data, start, end - low)
            count_repeated(t, o, stream, low, end - low, different, node[Early.TIME], time, packet)
        start += end - low
        low = end
        before = at
        at = node[Early.FOLLOWING]


@jit
def no_node() -> Number:
    """-1, no node, in the type of the tables: numba gives a variable one type."""
    return -1


@jit
def drain(t: Tables, o: Output, data: Any, stream: int, time: int, packet: int) -> None:
    """Delivers what is in order now, and the end of the stream once the FIN is reached."""
    state = t.streams[stream]
    while state[Stream.HEAD] >= 0 and t.nodes[state[Stream.HEAD], Early.OFFSET] == state[Stream.NEXT]:
        at = state[Stream.HEAD]
        node = t.nodes[at]
        length = node[Early.END] - node[Early.OFFSET]
        deliver(t, o, data, node[Early.KIND], stream, node[Early.AT], length, node[Early.TIME], node[Early.PACKET])
        state[Stream.HELD_COUNT] -= 1
        t.counts[StreamCount.HELD_TOTAL] -= NODE_COST
        if node[Early.KIND] == PieceKind.BYTES:
            state[Stream.HELD_BYTES] -= length
            t.counts[StreamCount.HELD_TOTAL] -= length
            if node[Early.AT] < 0:
                t.counts[StreamCount.SPILL_LIVE] -= length
        if node[Early.EXPRESS] != LOCAL:
            t.lanes[stream, 0] = node[Early.EXPRESS]
        if node[Early.FAR] != LOCAL:
            t.lanes[stream, 1] = node[Early.FAR]
        state[Stream.HEAD] = node[Early.FOLLOWING]
        if node[Early.FOLLOWING] < 0:
            state[Stream.TAIL] = -1
        node[Early.OFFSET] = -1
        t.free[t.counts[StreamCount.FREE]] = at
        t.counts[StreamCount.FREE] += 1
    if state[Stream.FIN_AT] >= 0 and state[Stream.FIN_AT] == state[Stream.NEXT] and not state[Stream.CLOSED]:
        state[Stream.CLOSED] = 1
        emit(t, o, PieceKind.CLOSE, stream, state[Stream.NEXT], 0, 0, time, packet)
        if t.connections[stream >> 1, Conn.ENDED] == Ended.NOT_YET:
            t.connections[stream >> 1, Conn.ENDED] = Ended.FIN


@jit
def give_up(t: Tables, o: Output, data: Any, stream: int, upto: int, time: int, packet: int) -> None:
    """Delivers the gaps that end at `upto` or before: they won't be filled."""
    state = t.streams[stream]
    while state[Stream.HEAD] >= 0 and t.nodes[state[Stream.HEAD], Early.OFFSET] <= upto:
        node = t.nodes[state[Stream.HEAD]]
        deliver(
            t,
            o,
            data,
            PieceKind.GAP,
            stream,
            0,
            node[Early.OFFSET] - state[Stream.NEXT],
            node[Early.TIME],
            node[Early.PACKET],
        )
        drain(t, o, data, stream, time, packet)
    if state[Stream.HEAD] < 0 and state[Stream.NEXT] < state[Stream.FIN_AT] <= upto:
        deliver(t, o, data, PieceKind.GAP, stream, 0, state[Stream.FIN_AT] - state[Stream.NEXT], time, packet)
        drain(t, o, data, stream, time, packet)


@jit
def give_up_all(t: Tables, o: Output, data: Any, stream: int, time: int, packet: int) -> None:
    """The connection is over, so nothing more comes. A missing tail shows in what the other side acknowledged; one
    byte of it may be a lost FIN."""
    give_up(t, o, data, stream, EVERYTHING, time, packet)
    state = t.streams[stream]
    if not state[Stream.CLOSED] and state[Stream.ACKED] - state[Stream.NEXT] > 1:
        deliver(t, o, data, PieceKind.GAP, stream, 0, state[Stream.ACKED] - state[Stream.NEXT], time, packet)


@jit
def first_open(streams: Any, stream: int, count: int) -> Number:
    """The first stream from `stream` on that `give_up_all` has something to do for, `count` if there is none."""
    while stream < count:
        state = streams[stream]
        if state[Stream.HEAD] >= 0 or state[Stream.NEXT] < state[Stream.FIN_AT]:
            break
        if not state[Stream.CLOSED] and state[Stream.ACKED] - state[Stream.NEXT] > 1:
            break
        stream += 1
    return stream


@jit
def release(t: Tables, o: Output, data: Any, stream: int, time: int, packet: int) -> None:
    """Called after each segment of the connection: stops waiting for bytes that won't come."""
    state = t.streams[stream]
    if state[Stream.HEAD] < 0 and state[Stream.FIN_AT] <= state[Stream.NEXT]:
        return
    while state[Stream.HEAD] >= 0 and (
        state[Stream.HELD_BYTES] > MAX_EARLY_BYTES or state[Stream.HELD_COUNT] > MAX_EARLY_SEGMENTS
    ):
        give_up(t, o, data, stream, t.nodes[state[Stream.HEAD], Early.OFFSET], time, packet)
    if t.counts[StreamCount.HELD_TOTAL] > MAX_EARLY_TOTAL_BYTES:
        give_up(t, o, data, stream, EVERYTHING, time, packet)
    count = t.connections[stream >> 1, Conn.SEGMENTS]
    if state[Stream.CERTAIN] >= 0 and (
        count - state[Stream.CERTAIN_COUNT] >= GRACE_SEGMENTS or time - state[Stream.CERTAIN_NS] >= GRACE_NS
    ):
        give_up(t, o, data, stream, state[Stream.CERTAIN], time, packet)
        state[Stream.CERTAIN] = -1
    while state[Stream.HEAD] >= 0 and time - t.nodes[state[Stream.HEAD], Early.TIME] >= PATIENCE_NS:
        give_up(t, o, data, stream, t.nodes[state[Stream.HEAD], Early.OFFSET], time, packet)
    if state[Stream.HEAD] < 0 and state[Stream.FIN_AT] <= state[Stream.NEXT]:
        state[Stream.CERTAIN] = -1
        return
    missing = t.nodes[state[Stream.HEAD], Early.OFFSET] if state[Stream.HEAD] >= 0 else state[Stream.FIN_AT]
    if state[Stream.CERTAIN] < missing:
        state[Stream.CERTAIN] = -1
        if state[Stream.ACKED] >= missing:
            state[Stream.CERTAIN] = state[Stream.ACKED]
            state[Stream.CERTAIN_COUNT] = count
            state[Stream.CERTAIN_NS] = time
