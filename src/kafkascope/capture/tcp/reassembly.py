"""TCP reassembly: `Segments` in, `Pieces` of streams in order and `Connection`s out; never raises on what the wire
says.

In-order segments are not copied: pieces point into the batch's own data. What came too early and still waits when a
batch ends is kept in a spill of bounded size, and copied behind the data of the batch that delivers it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.checked import writable
from kafkascope.capture.base.flow import Bytes, Connection, Flows, Pieces, Problem, Segments, plain
from kafkascope.capture.tcp.reassembly_kernel import finish_streams, reassemble
from kafkascope.capture.tcp.reorder import first_open
from kafkascope.capture.tcp.spill import fresh_bytes, gather, keep_early, move_spill, spilled_bytes
from kafkascope.capture.tcp.stream_table import (
    KAFKA,
    PROTOCOLS,
    RETIRED,
    Conn,
    Output,
    Segment,
    Stream,
    StreamCount,
    grown,
    longer,
    make_output,
    make_tables,
)
from kafkascope.columnar.compiling.jit import jit
from kafkascope.limits import MAX_CONNECTIONS, MAX_OTHER_CONNECTIONS, MAX_PROBLEMS, MAX_UNUSED_FLOWS

ENDINGS = (None, "fin", "reset", "reused")
# A retransmission comes this long after the end of its connection at the most: it must not found a new one.
TRAILING_NS = 60_000_000_000
_NO_DATA = np.empty(0, np.uint8)
_NO_NUMBERS = np.empty(0, np.int64)
_NO_PIECES = Pieces(
    _NO_DATA, np.empty(0, np.uint8), np.empty(0, np.int32), _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS,
    _NO_NUMBERS,
)  # fmt: skip
# What Python is told of a connection: its number, these of its row, and of either stream these.
_TOLD = np.array(
    [
        Conn.FLOW,
        Conn.FIRST_NS,
        Conn.LAST_NS,
        Conn.OPENED,
        Conn.OPENER,
        Conn.ENDED,
        Conn.CLOSED_NS,
        Conn.CONFLICTS,
        Conn.RETRANSMITTED,
        Conn.DUPLICATED,
        Conn.IS_NEW,
    ]
)
_TOLD_OF_STREAM = np.array([Stream.INITIAL, Stream.SEEN_BYTES, Stream.GAP_BYTES])


class Reassembler:
    """Feed it batches in the order of the recording. `connections` holds the connections met so far, by number, and is
    up to date after each batch. Once there are many, new ones take the numbers of others: of those without Kafka, so
    `protocol` must be set before the next batch, and of those that were `retire`d, which `take_gone` returns once."""

    def __init__(self, flows: Flows) -> None:
        self.connections: list[Connection] = []
        self._flows = flows
        self._tables = make_tables(MAX_OTHER_CONNECTIONS)
        self._told = {StreamCount.STRAYS: 0, StreamCount.AFTER_FIN_BYTES: 0, StreamCount.REFUSED: 0}
        self._told_forgotten = 0
        self._gone: list[Connection] = []
        self._touched = _NO_NUMBERS

    @property
    def forgotten(self) -> dict[str, tuple[int, int]]:
        """Protocol to (connections, bytes) of those that are not among `connections` any more."""
        rows = zip((*PROTOCOLS, PROTOCOLS[KAFKA]), self._tables.forgotten.tolist(), strict=True)
        return {protocol: (count, size) for protocol, (count, size) in rows if count}

    def retire(self, is_done: Callable[[int], npt.NDArray[np.bool_]]) -> None:
        """Lets connections go that have ended, where there are many, so that open ones are all that counts.
        `is_done` says of the first so many that nothing waits for them in later steps. Those of the last batch stay:
        their frames are not paired yet."""
        last = self._touched
        self._learn_protocols()
        count, others, most = self._tables.counts[
            [StreamCount.CONNECTIONS, StreamCount.OTHERS, StreamCount.MOST_OTHERS]
        ].tolist()
        if count < most:
            return
        rows = self._tables.connections[:count]
        streams = self._tables.streams[: 2 * count].reshape(count, 2, -1)
        over = (rows[:, Conn.PROTOCOL] == KAFKA) & is_done(count)
        over &= ((streams[:, :, Stream.CLOSED] == 1) & (streams[:, :, Stream.HELD_COUNT] == 0)).all(axis=1)
        over[last] = False
        going = over & (rows[:, Conn.LAST_NS] < rows[:, Conn.LAST_NS].max() - TRAILING_NS)
        if count - others - int(going.sum()) > MAX_CONNECTIONS // 2:
            # So many that a late retransmission is the smaller evil.
            going = over
        rows[going, Conn.PROTOCOL] = RETIRED
        self._tables.counts[StreamCount.OTHERS] += int(going.sum())

    def take_gone(self) -> list[Connection]:
        """Retired connections whose numbers others have now."""
        gone, self._gone = self._gone, []
        return gone

    def feed(self, segments: Segments) -> Pieces:
        self._learn_protocols()
        segment = _columns(segments)
        flows = int(segment.flow.max()) + 1 if len(segment.flow) else 0
        self._tables = grown(self._tables, flows)
        output = make_output(len(segment.flow) + 64)
        data = writable(segments.data)
        at = reassemble(self._tables, output, data, segment, 0)
        while at < len(segment.flow):
            self._tables = grown(self._tables, flows)
            output = _wider(output, int(self._tables.counts[StreamCount.WANT_ROWS]))
            at = reassemble(self._tables, output, data, segment, at)
        pieces = self._pieces(data, output)
        self._free_flows()
        return pieces

    def _learn_protocols(self) -> None:
        """What was found in the connections of the last batch."""
        if not len(self._touched):
            return
        rows = self._tables.connections
        known = rows[self._touched, Conn.PROTOCOL]
        found = np.array([PROTOCOLS.index(self.connections[n].protocol) for n in self._touched.tolist()], np.int64)
        rows[self._touched, Conn.PROTOCOL] = found
        self._tables.counts[StreamCount.OTHERS] -= int((found == KAFKA).sum() - (known == KAFKA).sum())
        self._touched = self._touched[:0]

    def _free_flows(self) -> None:
        """Once there are many flows of no connection their numbers may be used again."""
        known = len(self._flows.ends)
        if known > MAX_UNUSED_FLOWS:
            unused = np.flatnonzero(self._tables.current[:known] < 0)
            self._flows.unused = unused if len(unused) > MAX_UNUSED_FLOWS else unused[:0]

    def finish(self) -> Pieces:
        """The recording ends: what waits for missing bytes is delivered behind gaps."""
        streams = 2 * int(self._tables.counts[StreamCount.CONNECTIONS])
        at = int(first_open(self._tables.streams, 0, streams))
        if at == streams:
            return _NO_PIECES
        output = make_output(64)
        at = finish_streams(self._tables, output, _NO_DATA, at)
        while at < streams:
            output = _wider(output, int(self._tables.counts[StreamCount.WANT_ROWS]))
            at = finish_streams(self._tables, output, _NO_DATA, at)
        return self._pieces(_NO_DATA, output)

    def _pieces(self, data: Bytes, output: Output) -> Pieces:
        tables = self._tables
        waited = _NO_DATA
        if tables.counts[StreamCount.SPILL_USED]:
            waited = np.empty(spilled_bytes(tables, output), np.uint8)
            gather(tables, output, waited, len(data))
        if tables.counts[StreamCount.FRESH] or tables.counts[StreamCount.SPILL_USED]:
            self._keep(data)
        self._update()
        problems = self._problems(output)
        rows = int(tables.counts[StreamCount.ROWS])
        tables.counts[StreamCount.ROWS] = 0
        tables.counts[StreamCount.CONFLICT_ROWS] = 0
        return Pieces(
            data,
            output.kind[:rows],
            output.stream[:rows],
            output.offset[:rows],
            output.start[:rows],
            output.length[:rows],
            output.time[:rows],
            output.packet[:rows],
            problems,
            waited,
        )

    def _keep(self, data: Bytes) -> None:
        count = self._tables.counts
        fresh = fresh_bytes(self._tables)
        if count[StreamCount.SPILL_USED] + fresh > len(self._tables.spill):
            # At least half of the new one is free, so that moving pays.
            spill = np.empty(2 * int(count[StreamCount.SPILL_LIVE] + fresh) + 65_536, np.uint8)
            move_spill(self._tables, spill)
            self._tables = self._tables._replace(spill=spill)
        keep_early(self._tables, data)
        if count[StreamCount.SPILL_LIVE] == 0:
            count[StreamCount.SPILL_USED] = 0

    def _update(self) -> None:
        """Brings the `Connection`s up to what the tables say."""
        tables = self._tables
        dirty = tables.dirty[: tables.counts[StreamCount.DIRTIES]].copy()
        if not len(dirty):
            return
        dirty.sort()
        tables.counts[StreamCount.DIRTIES] = 0
        self._touched = np.concatenate([self._touched, dirty])
        rows = np.empty((len(dirty), 1 + len(_TOLD) + 2 * len(_TOLD_OF_STREAM)), np.int64)
        _tell(tables.connections, tables.streams, dirty, _TOLD, _TOLD_OF_STREAM, rows)
        connections, ends = self.connections, self._flows.ends
        for (
            number, flow, first_ns, last_ns, opened, opener, ended, closed_ns, conflicts, retransmitted, duplicated,
            is_new, first, seen, gaps, other_first, other_seen, other_gaps,
        ) in rows.tolist():  # fmt: skip
            sequence = first if first >= 0 else None, other_first if other_first >= 0 else None
            if number == len(connections) or is_new:
                if number < len(connections) and connections[number].protocol == PROTOCOLS[KAFKA]:
                    self._gone.append(connections[number])
                # In their order: there are very many, and names take as long again.
                connection = Connection(
                    number, flow, ends[flow], first_ns, last_ns, sequence, opened > 0, ENDINGS[ended],
                    closed_ns if closed_ns >= 0 else None, None, PROTOCOLS[0], [seen, other_seen], [gaps, other_gaps],
                    conflicts, retransmitted, duplicated, opener if opener >= 0 else None,
                )  # fmt: skip
                connections[number : number + 1] = [connection]
                continue
            connection = connections[number]
            connection.last_ns = last_ns
            connection.opened, connection.opener = opened > 0, opener if opener >= 0 else None
            connection.closed, connection.closed_ns = ENDINGS[ended], closed_ns if closed_ns >= 0 else None
            connection.initial_sequence = sequence
            connection.bytes_seen, connection.gap_bytes = [seen, other_seen], [gaps, other_gaps]
            connection.conflict_bytes = conflicts
            connection.retransmitted_bytes = retransmitted
            connection.duplicated_bytes = duplicated

    def _problems(self, output: Output) -> tuple[Problem, ...]:
        count = self._tables.counts.tolist()
        conflicts = output.conflicts[: count[StreamCount.CONFLICT_ROWS]]
        problems = [
            Problem(
                "conflict",
                f"{_place(stream)}: {different} bytes at {offset} differ from those seen first",
                packet,
                -1,
                0,
            )
            for stream, offset, different, packet in conflicts[:MAX_PROBLEMS].tolist()
        ]
        if len(conflicts) > MAX_PROBLEMS:
            problems[-1] = replace(problems[-1], more=len(conflicts) - MAX_PROBLEMS)
        new = {what: count[what] - told for what, told in self._told.items()}
        self._told = {what: count[what] for what in self._told}
        if new[StreamCount.STRAYS]:
            problems.append(
                Problem("stray", f"{new[StreamCount.STRAYS]} segments fit no connection of their flow", -1, -1, 0)
            )
        if new[StreamCount.AFTER_FIN_BYTES]:
            lost = new[StreamCount.AFTER_FIN_BYTES]
            problems.append(Problem("after_fin", f"{lost} bytes came behind the end of their stream", -1, -1, lost))
        if new[StreamCount.REFUSED]:
            refused = new[StreamCount.REFUSED]
            text = f"more than {MAX_CONNECTIONS} connections at once; {refused} segments of others are left out"
            problems.append(Problem("too_many_connections", text, -1, -1, 0))
        forgotten = sum(self._tables.forgotten[:RETIRED, 0].tolist())
        if forgotten > self._told_forgotten:
            new_ones = forgotten - self._told_forgotten
            said = f"more than {MAX_OTHER_CONNECTIONS} connections without Kafka; {new_ones} of them are forgotten"
            problems.append(Problem("forgotten", said, -1, -1, 0))
            self._told_forgotten = forgotten
        return tuple(problems)


def _place(stream: int) -> str:
    return f"connection {stream >> 1}, direction {stream & 1}"


@jit
def _tell(connections: Any, streams: Any, numbers: Any, told: Any, told_of_stream: Any, rows: Any) -> None:
    """One row a connection, which is not touched any more then."""
    for index in range(len(numbers)):
        number = numbers[index]
        rows[index, 0] = number
        at = 1
        for column in told:
            rows[index, at] = connections[number, column]
            at += 1
        for stream in range(2 * number, 2 * number + 2):
            for column in told_of_stream:
                rows[index, at] = streams[stream, column]
                at += 1
        connections[number, Conn.DIRTY] = 0
        connections[number, Conn.IS_NEW] = 0


def _columns(segments: Segments) -> Segment:
    acknowledgement = segments.acknowledgement
    return Segment(
        plain(segments.flow, np.int32),
        plain(segments.direction, np.uint8),
        plain(segments.sequence, np.int64),
        plain(segments.flags, np.uint8),
        plain(segments.start, np.int64),
        plain(segments.length, np.int32),
        plain(segments.wire_length, np.int32),
        plain(segments.time_ns, np.int64),
        plain(segments.packet, np.int64),
        _NO_NUMBERS if acknowledgement is None else plain(acknowledgement, np.int64),
    )


def _wider(output: Output, rows: int) -> Output:
    return Output(*(longer(column, rows) for column in output))
