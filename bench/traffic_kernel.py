"""Simulates 200 connections and writes their TCP packets as pcap.

Planning and writing are numba kernels, so that a gigabyte takes seconds. Chance is splitmix64 in `rng`: the same on
every machine."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

MSS = 1448
# pcap record header, Ethernet, IPv4, TCP with timestamps.
RECORD_BYTES, ETHERNET_BYTES, IP_BYTES, TCP_BYTES = 16, 14, 20, 32
HEADERS = ETHERNET_BYTES + IP_BYTES + TCP_BYTES
FIN, SYN, PSH, ACK = 1, 2, 8, 16
US, MS = 1_000, 1_000_000

# Shares of segments that carry data; about half of all packets do.
LOST = 0.0072  # by the network: only the retransmission is recorded, milliseconds later
AGAIN = 0.0045  # recorded, and retransmitted all the same
UNRECORDED = 0.0008  # delivered, but the recorder dropped it: a gap
LATE = 0.0110  # overtaken by those after it, if there are any

# Columns of a planned packet.
TIME, STREAM, SEQUENCE, START, LENGTH, FLAGS, HIDDEN = range(7)
COLUMNS = 7
# Columns of a connection.
NEXT_NS, SCHEDULE_NS, PHASE, CORRELATION, ROLE, LEFT, RATE, LAST_RESPONSE_NS = range(8)
CONNECTION_COLUMNS = 8
UNOPENED, SAYS_HELLO, ASKS, SPEAKS, CLOSED = range(5)
# Columns of a stream, one direction of a connection.
SENT, CALM_NS, CLOCK_NS, EMITTED, RECEIVED, HIGHEST, ACKNOWLEDGED = range(7)
STREAM_COLUMNS = 7
# What `counts` counts.
FRAMES, SMALL, EXCHANGES, SILENT, LOST_COUNT, AGAIN_COUNT, UNRECORDED_COUNT, LATE_COUNT, FRAME_BYTES = range(9)
COUNTS = 9
SMALL_BYTES = 500
CORRELATION_IN_REQUEST, CORRELATION_IN_RESPONSE, CLIENT_ID_AT = 8, 4, 14
CLIENT_ID_DIGITS_END = 28


class Frames(NamedTuple):
    """`at[pair, direction, variant]` is where a frame begins in `data`, length prefix first; `size` how long it is. A
    role takes the first of its `choices` whose `chances` are above the roll; its `opening` are the first two."""

    data: npt.NDArray[np.uint8]
    at: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    waits: npt.NDArray[np.bool_]
    silent: npt.NDArray[np.bool_]
    pipelined: npt.NDArray[np.bool_]
    split: npt.NDArray[np.bool_]
    chances: npt.NDArray[np.float64]
    choices: npt.NDArray[np.int64]
    opening: npt.NDArray[np.int64]


class State(NamedTuple):
    """Where every connection is, and what was counted on the way there."""

    connections: npt.NDArray[np.int64]
    streams: npt.NDArray[np.int64]
    rng: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]
    by_pair: npt.NDArray[np.int64]
    by_connection: npt.NDArray[np.int64]
    clean: bool


class Step(NamedTuple):
    """Packets that are planned: `used` rows, whose payloads lie in `buffer`."""

    rows: npt.NDArray[np.int64]
    used: npt.NDArray[np.int64]
    buffer: npt.NDArray[np.uint8]


def _kernel(function: Any) -> Any:
    return njit(cache=True, nogil=True)(function)


@_kernel
def chance(rng: Any) -> Any:
    rng[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = rng[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return np.float64(mixed >> np.uint64(11)) / 9007199254740992.0


@_kernel
def put(step: Any, time: Any, stream: Any, sequence: Any, start: Any, length: Any, flags: Any) -> Any:
    rows, used = step.rows, step.used
    row = used[0]
    rows[row, TIME] = time
    rows[row, STREAM] = stream
    rows[row, SEQUENCE] = sequence
    rows[row, START] = start
    rows[row, LENGTH] = length
    rows[row, FLAGS] = flags
    rows[row, HIDDEN] = 0
    used[0] += 1
    return row


@_kernel
def send(step: Any, state: Any, stream: Any, at: Any, start: Any, length: Any, first: Any) -> Any:
    """Segments of one write, and the acknowledgements they get; when the last byte has arrived. `first` is how long
    the first segment is at most."""
    mine, counts, rng = state.streams[stream], state.counts, state.rng
    time = max(at, mine[CLOCK_NS] + US)
    arrived = time
    done, number = 0, 0
    while done < length:
        size = min(MSS if number else first, length - done)
        last = done + size == length
        flags = ACK | PSH if last else ACK
        row = put(step, time, stream, mine[SENT], start + done, size, flags)
        seen = time
        if time > mine[CALM_NS] and not state.clean:
            roll = chance(rng)
            if roll < LOST:
                seen = time + 2 * MS + np.int64(28 * MS * chance(rng))
                step.rows[row, TIME] = seen
                mine[CALM_NS] = seen + MS
                counts[LOST_COUNT] += 1
            elif roll < LOST + AGAIN:
                again = time + 2 * MS + np.int64(28 * MS * chance(rng))
                put(step, again, stream, mine[SENT], start + done, size, flags)
                mine[CALM_NS] = again + MS
                counts[AGAIN_COUNT] += 1
            elif roll < LOST + AGAIN + UNRECORDED:
                step.rows[row, HIDDEN] = 1
                mine[CALM_NS] = time + MS
                counts[UNRECORDED_COUNT] += 1
            elif roll < LOST + AGAIN + UNRECORDED + LATE and not last:
                seen = time + 40 * US + np.int64(200 * US * chance(rng))
                step.rows[row, TIME] = seen
                mine[CALM_NS] = seen + MS
                counts[LATE_COUNT] += 1
        arrived = max(arrived, seen)
        number += 1
        if number % 2 == 0 or (last and chance(rng) < 0.5):
            put(step, time + 35 * US, stream ^ 1, -1, 0, 0, ACK)
        mine[SENT] += size
        done += size
        mine[CLOCK_NS] = time
        time += 12 * US + np.int64(4 * US * chance(rng))
    return arrived


@_kernel
def say(pool: Any, at: Any, size: Any, buffer: Any, end: Any, correlation: Any, request: Any, connection: Any) -> Any:
    """One frame of the pool at `buffer[end:]`, with its own correlation and client id."""
    if end + size > len(buffer):
        raise ValueError("the buffer of one step is full")
    buffer[end : end + size] = pool[at : at + size]
    where = end + (CORRELATION_IN_REQUEST if request else CORRELATION_IN_RESPONSE)
    for index in range(4):
        buffer[where + index] = (correlation >> (24 - 8 * index)) & 0xFF
    if request:
        left = connection
        for index in range(7):
            buffer[end + CLIENT_ID_DIGITS_END - 1 - index] = 48 + left % 10
            left //= 10
    return end + size


@_kernel
def plan(until: Any, pool: Any, state: Any, step: Any, end: Any) -> Any:
    """Everything that begins before `until`; the end of `buffer`."""
    connections, streams, rng, counts = state.connections, state.streams, state.rng, state.counts
    rows, used, buffer = step.rows, step.used, step.buffer
    variants = pool.at.shape[2]
    for connection in range(len(connections)):
        me = connections[connection]
        request, response = 2 * connection, 2 * connection + 1
        while me[NEXT_NS] < until and me[PHASE] != CLOSED:
            if used[0] + 4_000 > len(rows):
                raise ValueError("the rows of one step are full")
            now = me[NEXT_NS]
            role = me[ROLE]
            if me[PHASE] == UNOPENED:
                put(step, now, request, streams[request, SENT] - 1, 0, 0, SYN)
                put(step, now + 100 * US, response, streams[response, SENT] - 1, 0, 0, SYN | ACK)
                put(step, now + 200 * US, request, -1, 0, 0, ACK)
                now += 300 * US
                me[PHASE] = SAYS_HELLO
            if me[LEFT] == 0:
                close(step, streams, connection, now)
                me[PHASE] = CLOSED
                break
            burst = np.int64(1)
            if me[PHASE] == SPEAKS:
                roll = chance(rng)
                pair = -1
                for index in range(pool.chances.shape[1]):
                    if roll < pool.chances[role, index]:
                        pair = pool.choices[role, index]
                        break
                if pool.pipelined[pair] and chance(rng) < 0.3:
                    burst += 1 + np.int64(3 * chance(rng))
            else:
                pair = pool.opening[role, me[PHASE] - SAYS_HELLO]
                me[PHASE] += 1
            first_variant = np.int64(variants * chance(rng))
            start, written = end, 0
            for index in range(burst):
                variant = (first_variant + index * 7) % variants
                length = pool.size[pair, 0, variant]
                end = say(
                    pool.data, pool.at[pair, 0, variant], length, buffer, end, me[CORRELATION] + index, True, connection
                )
                written += length
                counts[FRAMES] += 1
                counts[SMALL] += length < SMALL_BYTES
                counts[FRAME_BYTES] += length
            arrived = send(step, state, request, now, start, written, MSS)
            state.by_pair[pair] += burst
            ready = arrived
            for index in range(burst):
                variant = (first_variant + index * 7) % variants
                counts[EXCHANGES] += 1
                if pool.silent[pair, variant]:
                    counts[SILENT] += 1
                    continue
                ready += 60 * US + np.int64(1_500 * US * chance(rng) * chance(rng))
                if pool.waits[pair, variant]:
                    ready += np.int64(500 * MS * chance(rng))
                length = pool.size[pair, 1, variant]
                start = end
                end = say(
                    pool.data,
                    pool.at[pair, 1, variant],
                    length,
                    buffer,
                    end,
                    me[CORRELATION] + index,
                    False,
                    connection,
                )
                head = np.int64(MSS)
                if pool.split[pair]:
                    head = 30 + np.int64(80 * chance(rng))
                ready = max(ready, me[LAST_RESPONSE_NS])
                ready = send(step, state, response, ready, start, length, head)
                me[LAST_RESPONSE_NS] = ready
                written += length
                counts[FRAMES] += 1
                counts[SMALL] += length < SMALL_BYTES
                counts[FRAME_BYTES] += length
            me[CORRELATION] += burst
            me[LEFT] -= 1
            state.by_connection[connection] += written
            me[SCHEDULE_NS] += np.int64(written * 1e9 / me[RATE] * (0.5 + chance(rng)))
            me[NEXT_NS] = max(me[SCHEDULE_NS], ready + 20 * US)
    return end


@_kernel
def close(step: Any, streams: Any, connection: Any, now: Any) -> Any:
    request, response = 2 * connection, 2 * connection + 1
    now = max(now, streams[request, CALM_NS], streams[response, CALM_NS], streams[response, CLOCK_NS]) + 50 * US
    put(step, now, request, streams[request, SENT], 0, 0, FIN | ACK)
    put(step, now + 60 * US, response, streams[response, SENT], 0, 0, FIN | ACK)
    put(step, now + 120 * US, request, -1, 0, 0, ACK)
    return now


@_kernel
def write(rows: Any, order: Any, buffer: Any, streams: Any, ends: Any, out: Any) -> Any:
    """The rows in `order` as pcap records; how many bytes and packets that were."""
    position, packets = 0, 0
    for row in order:
        stream = rows[row, STREAM]
        mine, other = streams[stream], streams[stream ^ 1]
        length, flags = rows[row, LENGTH], rows[row, FLAGS]
        sequence = rows[row, SEQUENCE]
        if sequence < 0:
            sequence = mine[EMITTED]
        stop = sequence + length + (1 if flags & (SYN | FIN) else 0)
        mine[EMITTED] = max(mine[EMITTED], stop)
        mine[HIGHEST] = max(mine[HIGHEST], stop)
        if sequence <= mine[RECEIVED] < stop:
            # At most one segment is missing at a time: with it everything has arrived.
            mine[RECEIVED] = mine[HIGHEST]
        if rows[row, HIDDEN]:
            continue
        if flags & ACK:
            # Without news only a missing segment makes a receiver speak.
            if flags == ACK and length == 0 and mine[ACKNOWLEDGED] == other[RECEIVED] == other[HIGHEST]:
                continue
            mine[ACKNOWLEDGED] = other[RECEIVED]
        time = rows[row, TIME]
        total = HEADERS + length
        if position + RECORD_BYTES + total > len(out):
            raise ValueError("the output of one step is full")
        for index, value in enumerate((time // 1_000_000_000, time % 1_000_000_000, total, total)):
            for byte in range(4):
                out[position + 4 * index + byte] = (value >> (8 * byte)) & 0xFF
        position += RECORD_BYTES
        source, target = ends[stream], ends[stream ^ 1]
        for index in range(6):
            out[position + index] = target[index]
            out[position + 6 + index] = source[index]
        out[position + 12] = 8
        out[position + 13] = 0
        position += ETHERNET_BYTES
        big(out, position, 0x4500 << 16 | (total - ETHERNET_BYTES))
        big(out, position + 4, (packets & 0xFFFF) << 16 | 0x4000)
        big(out, position + 8, 64 << 24 | 6 << 16)
        for index in range(4):
            out[position + 12 + index] = source[6 + index]
            out[position + 16 + index] = target[6 + index]
        position += IP_BYTES
        for index in range(2):
            out[position + index] = source[10 + index]
            out[position + 2 + index] = target[10 + index]
        big(out, position + 4, sequence & 0xFFFFFFFF)
        big(out, position + 8, other[RECEIVED] & 0xFFFFFFFF if flags & ACK else 0)
        big(out, position + 12, 8 << 28 | flags << 16 | 0xFFFF)
        big(out, position + 16, 0)
        big(out, position + 20, 0x0101080A)
        big(out, position + 24, (time // MS) & 0xFFFFFFFF)
        big(out, position + 28, (time // MS - 1) & 0xFFFFFFFF)
        position += TCP_BYTES
        start = rows[row, START]
        out[position : position + length] = buffer[start : start + length]
        position += length
        packets += 1
    return position, packets


@_kernel
def big(out: Any, at: Any, value: Any) -> Any:
    for index in range(4):
        out[at + index] = (value >> (24 - 8 * index)) & 0xFF
