"""Segments of one stream in any order in, its bytes in order out. The first copy of a byte wins; what is missing
becomes a gap when it is sure not to come, or when more waits for it than `limits` allow."""

from typing import Any

from kafkascope.capture.base.checked import differing_bytes
from kafkascope.capture.base.flow import BYTES, CLOSE, GAP
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.capture.tcp.history import NEVER, differing_from_delivered, forget_before, remember, time_of
from kafkascope.capture.tcp.stream_table import (
    ACKED,
    AT,
    CERTAIN,
    CERTAIN_COUNT,
    CERTAIN_NS,
    CLOSED,
    CONFLICT_ROWS,
    CONFLICTS,
    DUPLICATED,
    END,
    ENDED,
    ENDED_FIN,
    EXPRESS,
    EXPRESS_DISTANCE,
    FAR,
    FAR_DISTANCE,
    FIN_AT,
    FOLLOWING,
    FREE,
    FRESH,
    GAP_BYTES,
    HEAD,
    HELD_BYTES,
    HELD_COUNT,
    HELD_TOTAL,
    KIND,
    LISTED,
    LOCAL,
    NEXT,
    NODE_COST,
    OFFSET,
    OPEN_STILL,
    PACKET,
    PLACED,
    RANDOM,
    RETRANSMITTED,
    ROWS,
    RUN,
    SEEN_BYTES,
    SEGMENTS,
    SPILL_LIVE,
    TAIL,
    TIME,
    WALKED,
    Output,
    Tables,
)
from kafkascope.columnar.compiling.jit import jit
from kafkascope.limits import MAX_EARLY_BYTES, MAX_EARLY_SEGMENTS, MAX_EARLY_TOTAL_BYTES

# The other side acknowledged it, so it is not sent again; but two interfaces, or the queues of one, may hand over data
# after its acknowledgement. They differ by less than this many segments of the connection, and less than this time.
GRACE_SEGMENTS = 64
GRACE_NS = 1_000_000_000
# Without acknowledgements: Linux sends a lost segment again after 0.2, 0.6, 1.4 … 25.4 seconds.
PATIENCE_NS = 30_000_000_000
# A retransmission takes 200 ms, or three later segments and a round trip; two interfaces see one packet within this.
SAME_PACKET_NS = 1_000_000
# Conflicts told one by one, a stream; the rest is counted.
MOST_PLACED = 16
EVERYTHING = 1 << 62


@jit
def emit(
    t: Tables, o: Output, kind: int, stream: int, offset: int, start: int, length: int, time: int, packet: int
) -> None:
    row = t.counts[ROWS]
    o.kind[row] = kind
    o.stream[row] = stream
    o.offset[row] = offset
    o.start[row] = start
    o.length[row] = length
    o.time[row] = time
    o.packet[row] = packet
    t.counts[ROWS] = row + 1


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
    emit(t, o, kind, stream, state[NEXT], start, length, time, packet)
    if kind == BYTES:
        source, at = bytes_at(t, data, start)
        remember(t.ring_owner, t.ring_low, t.marks, t.ring, stream, state[NEXT], source, at, length, time)
        state[SEEN_BYTES] += length
        state[NEXT] += length
    else:
        state[GAP_BYTES] += length
        state[NEXT] += length
        forget_before(t, stream, state[NEXT])


@jit
def count_again(
    t: Tables, o: Output, stream: int, offset: int, length: int, different: int, first: int, time: int, packet: int
) -> None:
    """Bytes that were there before, since `first`."""
    connection = t.connections[stream >> 1]
    if first != NEVER and abs(time - first) <= SAME_PACKET_NS:
        connection[DUPLICATED] += length
    else:
        connection[RETRANSMITTED] += length
    if different:
        connection[CONFLICTS] += different
        if t.streams[stream, PLACED] < MOST_PLACED:
            t.streams[stream, PLACED] += 1
            row = t.counts[CONFLICT_ROWS]
            o.conflicts[row, 0] = stream
            o.conflicts[row, 1] = offset
            o.conflicts[row, 2] = different
            o.conflicts[row, 3] = packet
            t.counts[CONFLICT_ROWS] = row + 1


@jit
def last_far(t: Tables, stream: int, low: int) -> Number:
    """The last node of the far lane that ends at `low` or before, -1 where there is none."""
    last = np_minus_one()
    at = t.lanes[stream, 1]
    while at >= 0 and t.nodes[at, END] <= low:
        last = at
        at = t.nodes[at, FAR]
        t.counts[WALKED] += 1
    return last


@jit
def last_express(t: Tables, stream: int, low: int) -> Number:
    """The same of the express lane."""
    last = last_far(t, stream, low)
    at = t.nodes[last, EXPRESS] if last >= 0 else t.lanes[stream, 0]
    while at >= 0 and t.nodes[at, END] <= low:
        last = at
        at = t.nodes[at, EXPRESS]
        t.counts[WALKED] += 1
    return last


@jit
def lanes_of_new(counts: Any) -> Number:
    """How many lanes a new node is on, by chance (xorshift)."""
    state = counts[RANDOM]
    state ^= state << 13
    state ^= (state >> 7) & ((1 << 57) - 1)
    state ^= state << 17
    counts[RANDOM] = state
    drawn = state >> 20
    return np_minus_one() + 1 + (drawn & (EXPRESS_DISTANCE - 1) == 0) + (drawn & (FAR_DISTANCE - 1) == 0)


@jit
def put_on_lanes(t: Tables, stream: int, made: int, lanes: int) -> None:
    """On the express lane, and with two lanes on the far one as well."""
    last = last_express(t, stream, t.nodes[made, OFFSET])
    if last < 0:
        t.nodes[made, EXPRESS] = t.lanes[stream, 0]
        t.lanes[stream, 0] = made
    else:
        t.nodes[made, EXPRESS] = t.nodes[last, EXPRESS]
        t.nodes[last, EXPRESS] = made
    if lanes > 1:
        last = last_far(t, stream, t.nodes[made, OFFSET])
        if last < 0:
            t.nodes[made, FAR] = t.lanes[stream, 1]
            t.lanes[stream, 1] = made
        else:
            t.nodes[made, FAR] = t.nodes[last, FAR]
            t.nodes[last, FAR] = made


@jit
def end_of_run(t: Tables, at: int) -> Number:
    """The last of the nodes that follow `at` without a hole. Nothing can come between them any more, and they are
    removed in their order, so each of those passed remembers the last one."""
    last = at
    while True:
        further = t.nodes[last, RUN]
        if further < 0:
            further = t.nodes[last, FOLLOWING]
            if further < 0 or t.nodes[further, OFFSET] != t.nodes[last, END]:
                break
            t.nodes[last, RUN] = further
        last = further
        t.counts[WALKED] += 1
    while at != last:
        further = t.nodes[at, RUN]
        t.nodes[at, RUN] = last
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
    """A new node between two; there is room."""
    t.counts[FREE] -= 1
    made = t.free[t.counts[FREE]]
    node = t.nodes[made]
    node[KIND] = kind
    node[OFFSET] = offset
    node[END] = end
    node[AT] = start
    node[TIME] = time
    node[PACKET] = packet
    node[FOLLOWING] = after
    node[EXPRESS] = LOCAL
    node[FAR] = LOCAL
    node[RUN] = -1
    lanes = lanes_of_new(t.counts)
    if lanes:
        put_on_lanes(t, stream, made, lanes)
    state = t.streams[stream]
    if before < 0:
        state[HEAD] = made
    else:
        t.nodes[before, FOLLOWING] = made
    if after < 0:
        state[TAIL] = made
    state[HELD_COUNT] += 1
    t.counts[HELD_TOTAL] += NODE_COST
    if kind == BYTES:
        state[HELD_BYTES] += end - offset
        t.counts[HELD_TOTAL] += end - offset
        if not node[LISTED]:
            node[LISTED] = 1
            t.fresh[t.counts[FRESH]] = made
            t.counts[FRESH] += 1


@jit
def insert(
    t: Tables, o: Output, data: Any, stream: int, kind: int, low: int, high: int, start: int, time: int, packet: int
) -> None:
    """What of these bytes nobody sent before goes into the list; a GAP stands for bytes that the snap length cut."""
    state = t.streams[stream]
    if low < state[NEXT]:
        end = min(high, state[NEXT])
        if kind == BYTES:
            different = differing_from_delivered(t, stream, low, end, data, start)
            count_again(t, o, stream, low, end - low, different, time_of(t, stream, end), time, packet)
        start += end - low
        low = end
    before = state[TAIL]
    if before >= 0 and t.nodes[before, END] > low:
        before = last_express(t, stream, low)
    at = t.nodes[before, FOLLOWING] if before >= 0 else state[HEAD]
    while at >= 0 and t.nodes[at, END] <= low:
        before = at
        at = t.nodes[at, FOLLOWING]
        t.counts[WALKED] += 1
    while low < high:
        t.counts[WALKED] += 1
        if at < 0 or t.nodes[at, OFFSET] >= high:
            hold(t, stream, before, at, kind, low, high, start, time, packet)
            return
        end = t.nodes[at, OFFSET]
        if low < end:
            hold(t, stream, before, at, kind, low, end, start, time, packet)
            start += end - low
            low = end
        if kind != BYTES:
            # Nothing to compare: its length is what the packet claims, and no measure for what it may cost.
            at = end_of_run(t, at)
        end = min(high, t.nodes[at, END])
        node = t.nodes[at]
        if kind == BYTES and node[KIND] == BYTES:
            source, first = bytes_at(t, data, node[AT])
            different = differing_bytes(source, first + (low - node[OFFSET]), data, start, end - low)
            count_again(t, o, stream, low, end - low, different, node[TIME], time, packet)
        start += end - low
        low = end
        before = at
        at = node[FOLLOWING]


@jit
def np_minus_one() -> Number:
    """-1 of the type that the tables have: numba gives a variable one type."""
    return -1


@jit
def drain(t: Tables, o: Output, data: Any, stream: int, time: int, packet: int) -> None:
    """Delivers what is next by now, and the end where the FIN is reached."""
    state = t.streams[stream]
    while state[HEAD] >= 0 and t.nodes[state[HEAD], OFFSET] == state[NEXT]:
        at = state[HEAD]
        node = t.nodes[at]
        length = node[END] - node[OFFSET]
        deliver(t, o, data, node[KIND], stream, node[AT], length, node[TIME], node[PACKET])
        state[HELD_COUNT] -= 1
        t.counts[HELD_TOTAL] -= NODE_COST
        if node[KIND] == BYTES:
            state[HELD_BYTES] -= length
            t.counts[HELD_TOTAL] -= length
            if node[AT] < 0:
                t.counts[SPILL_LIVE] -= length
        if node[EXPRESS] != LOCAL:
            t.lanes[stream, 0] = node[EXPRESS]
        if node[FAR] != LOCAL:
            t.lanes[stream, 1] = node[FAR]
        state[HEAD] = node[FOLLOWING]
        if node[FOLLOWING] < 0:
            state[TAIL] = -1
        node[OFFSET] = -1
        t.free[t.counts[FREE]] = at
        t.counts[FREE] += 1
    if state[FIN_AT] >= 0 and state[FIN_AT] == state[NEXT] and not state[CLOSED]:
        state[CLOSED] = 1
        emit(t, o, CLOSE, stream, state[NEXT], 0, 0, time, packet)
        if t.connections[stream >> 1, ENDED] == OPEN_STILL:
            t.connections[stream >> 1, ENDED] = ENDED_FIN


@jit
def give_up(t: Tables, o: Output, data: Any, stream: int, upto: int, time: int, packet: int) -> None:
    """Gaps that end at `upto` or before become gaps for good."""
    state = t.streams[stream]
    while state[HEAD] >= 0 and t.nodes[state[HEAD], OFFSET] <= upto:
        node = t.nodes[state[HEAD]]
        deliver(t, o, data, GAP, stream, 0, node[OFFSET] - state[NEXT], node[TIME], node[PACKET])
        drain(t, o, data, stream, time, packet)
    if state[HEAD] < 0 and state[NEXT] < state[FIN_AT] <= upto:
        deliver(t, o, data, GAP, stream, 0, state[FIN_AT] - state[NEXT], time, packet)
        drain(t, o, data, stream, time, packet)


@jit
def give_up_all(t: Tables, o: Output, data: Any, stream: int, time: int, packet: int) -> None:
    """The connection is over: nothing comes any more. A missing tail shows in what the other side acknowledged; one
    byte of it may be a FIN that was lost as well."""
    give_up(t, o, data, stream, EVERYTHING, time, packet)
    state = t.streams[stream]
    if not state[CLOSED] and state[ACKED] - state[NEXT] > 1:
        deliver(t, o, data, GAP, stream, 0, state[ACKED] - state[NEXT], time, packet)


@jit
def first_open(streams: Any, stream: int, count: int) -> Number:
    """The first stream from `stream` on that `give_up_all` has something to do for, `count` where there is none."""
    while stream < count:
        state = streams[stream]
        if state[HEAD] >= 0 or state[NEXT] < state[FIN_AT]:
            break
        if not state[CLOSED] and state[ACKED] - state[NEXT] > 1:
            break
        stream += 1
    return stream


@jit
def release(t: Tables, o: Output, data: Any, stream: int, time: int, packet: int) -> None:
    """After each segment of the connection: gives up what will not come."""
    state = t.streams[stream]
    if state[HEAD] < 0 and state[FIN_AT] <= state[NEXT]:
        return
    while state[HEAD] >= 0 and (state[HELD_BYTES] > MAX_EARLY_BYTES or state[HELD_COUNT] > MAX_EARLY_SEGMENTS):
        give_up(t, o, data, stream, t.nodes[state[HEAD], OFFSET], time, packet)
    if t.counts[HELD_TOTAL] > MAX_EARLY_TOTAL_BYTES:
        give_up(t, o, data, stream, EVERYTHING, time, packet)
    count = t.connections[stream >> 1, SEGMENTS]
    if state[CERTAIN] >= 0 and (count - state[CERTAIN_COUNT] >= GRACE_SEGMENTS or time - state[CERTAIN_NS] >= GRACE_NS):
        give_up(t, o, data, stream, state[CERTAIN], time, packet)
        state[CERTAIN] = -1
    while state[HEAD] >= 0 and time - t.nodes[state[HEAD], TIME] >= PATIENCE_NS:
        give_up(t, o, data, stream, t.nodes[state[HEAD], OFFSET], time, packet)
    if state[HEAD] < 0 and state[FIN_AT] <= state[NEXT]:
        state[CERTAIN] = -1
        return
    missing = t.nodes[state[HEAD], OFFSET] if state[HEAD] >= 0 else state[FIN_AT]
    if state[CERTAIN] < missing:
        state[CERTAIN] = -1
        if state[ACKED] >= missing:
            state[CERTAIN] = state[ACKED]
            state[CERTAIN_COUNT] = count
            state[CERTAIN_NS] = time
