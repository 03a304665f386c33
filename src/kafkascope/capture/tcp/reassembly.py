"""Reassembles TCP segments into connections and the bytes of their streams in order; never raises on what the wire
contains.

In-order segments aren't copied: pieces point into the batch's own data. Bytes that came too early and still wait when a
batch ends are kept in a spill of bounded size, and copied after the data of the batch that delivers them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.checked import writable
from kafkascope.capture.base.flow import (
    Bytes,
    Connection,
    Flows,
    Int64s,
    Pieces,
    Problem,
    ProtocolVerdict,
    Segments,
    plain,
)
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
# A retransmission comes at most this long after the end of its connection: it must not start a new one.
TRAILING_NS = 60_000_000_000
_NO_DATA = np.empty(0, np.uint8)
_NO_NUMBERS = np.empty(0, np.int64)
_NO_PIECES = Pieces(
    _NO_DATA, np.empty(0, np.uint8), np.empty(0, np.int32), _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS,
    _NO_NUMBERS,
)  # fmt: skip
# What a `Connection` takes from the tables: these columns of its row, and these of each of its streams.
_CONNECTION_COLUMNS = np.array(
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
_STREAM_COLUMNS = np.array([Stream.INITIAL, Stream.SEEN_BYTES, Stream.GAP_BYTES])


class Reassembler:
    """Feed it batches in the order of the recording. `connections` holds the connections met so far, by number, and is
    up to date after each batch. Once there are many, new ones take the numbers of others: of those without Kafka, so
    verdicts must be applied before the next batch, and of those that were `retire`d, which `take_gone` returns once."""

    def __init__(self, flows: Flows) -> None:
        self.connections: list[Connection] = []
        self._flows = flows
        self._tables = make_tables(MAX_OTHER_CONNECTIONS)
        self._reported = {StreamCount.STRAYS: 0, StreamCount.AFTER_FIN_BYTES: 0, StreamCount.REFUSED: 0}
        self._reported_forgotten = 0
        self._gone: list[Connection] = []
        self._touched = _NO_NUMBERS  # connections that the last batch had segments of
        self._released_flows = _NO_NUMBERS

    @property
    def forgotten(self) -> dict[str, tuple[int, int]]:
        """Protocol to (connections, bytes) of those that are no longer among `connections`."""
        rows = zip((*PROTOCOLS, PROTOCOLS[KAFKA]), self._tables.forgotten.tolist(), strict=True)
        return {protocol: (count, size) for protocol, (count, size) in rows if count}

    def apply_verdicts(self, verdicts: Sequence[ProtocolVerdict]) -> None:
        """Sets the protocols that framing recognized: connections without Kafka are forgotten first."""
        if not verdicts:
            return
        latest = {verdict.connection: verdict for verdict in verdicts}
        for number, protocol, client in latest.values():
            connection = self.connections[number]
            connection.protocol = protocol
            if client is not None:
                connection.client = client
        numbers = list(latest)
        rows = self._tables.connections
        before = rows[numbers, Conn.PROTOCOL]
        protocols = np.array([PROTOCOLS.index(verdict.protocol) for verdict in latest.values()], np.int64)
        rows[numbers, Conn.PROTOCOL] = protocols
        self._tables.counts[StreamCount.OTHERS] -= int((protocols == KAFKA).sum() - (before == KAFKA).sum())

    @property
    def is_crowded(self) -> bool:
        """If the number of connections is high enough that those that ended should be retired."""
        return bool(self._tables.counts[StreamCount.CONNECTIONS] >= self._tables.counts[StreamCount.MOST_OTHERS])

    def retire(self, is_done: npt.NDArray[np.bool_]) -> None:
        """Retires Kafka connections that ended, so that only open ones take room. `is_done` has an entry for each of
        `connections`: no later step waits for more of it. Connections of the last batch stay: their frames aren't
        paired yet."""
        count, others = self._tables.counts[[StreamCount.CONNECTIONS, StreamCount.OTHERS]].tolist()
        rows = self._tables.connections[:count]
        streams = self._tables.streams[: 2 * count].reshape(count, 2, -1)
        ended = (rows[:, Conn.PROTOCOL] == KAFKA) & is_done
        ended &= ((streams[:, :, Stream.CLOSED] == 1) & (streams[:, :, Stream.HELD_COUNT] == 0)).all(axis=1)
        ended[self._touched] = False
        retired = ended & (rows[:, Conn.LAST_NS] < rows[:, Conn.LAST_NS].max() - TRAILING_NS)
        if count - others - int(retired.sum()) > MAX_CONNECTIONS // 2:
            # At this number, a late retransmission is the smaller evil.
            retired = ended
        rows[retired, Conn.PROTOCOL] = RETIRED
        self._tables.counts[StreamCount.OTHERS] += int(retired.sum())

    def take_gone(self) -> list[Connection]:
        """Retired connections whose numbers others have now."""
        gone, self._gone = self._gone, []
        return gone

    def take_released_flows(self) -> Int64s:
        """Numbers of flows without a connection, once there are many of them: new flows may have these numbers."""
        released, self._released_flows = self._released_flows, _NO_NUMBERS
        return released

    def feed(self, segments: Segments) -> Pieces:
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
        self._release_flows()
        return pieces

    def _release_flows(self) -> None:
        flows = len(self._flows.ends)
        if flows > MAX_UNUSED_FLOWS:
            unused = np.flatnonzero(self._tables.current[:flows] < 0)
            self._released_flows = unused if len(unused) > MAX_UNUSED_FLOWS else _NO_NUMBERS

    def finish(self) -> Pieces:
        """The recording ends: bytes that wait for missing ones are delivered after gaps."""
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
        """Brings the `Connection`s up to date with the tables."""
        tables = self._tables
        self._touched = dirty = tables.dirty[: tables.counts[StreamCount.DIRTIES]].copy()
        if not len(dirty):
            return
        dirty.sort()
        tables.counts[StreamCount.DIRTIES] = 0
        self._unretire(dirty)
        rows = np.empty((len(dirty), 1 + len(_CONNECTION_COLUMNS) + 2 * len(_STREAM_COLUMNS)), np.int64)
        _copy_columns(tables.connections, tables.streams, dirty, _CONNECTION_COLUMNS, _STREAM_COLUMNS, rows)
        connections, ends = self.connections, self._flows.ends
        for (
            number, flow, first_ns, last_ns, opened, opener, ended, closed_ns, conflicts, retransmitted, duplicated,
            is_new, first, seen, gaps, other_first, other_seen, other_gaps,
        ) in rows.tolist():  # fmt: skip
            sequence = first if first >= 0 else None, other_first if other_first >= 0 else None
            if number == len(connections) or is_new:
                if number < len(connections) and connections[number].protocol == PROTOCOLS[KAFKA]:
                    self._gone.append(connections[number])
                # By position: there are very many, and keyword arguments take twice as long.
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

    def _unretire(self, touched: Int64s) -> None:
        """A retired connection that has another segment stays a Kafka connection."""
        protocols = self._tables.connections[touched, Conn.PROTOCOL]
        retired = touched[protocols == RETIRED]
        self._tables.connections[retired, Conn.PROTOCOL] = KAFKA
        self._tables.counts[StreamCount.OTHERS] -= len(retired)

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
        new = {column: count[column] - reported for column, reported in self._reported.items()}
        self._reported = {column: count[column] for column in self._reported}
        if new[StreamCount.STRAYS]:
            problems.append(
                Problem(
                    "stray",
                    f"{new[StreamCount.STRAYS]} segments don't belong to any connection of their flow",
                    -1,
                    -1,
                    0,
                )
            )
        if new[StreamCount.AFTER_FIN_BYTES]:
            lost = new[StreamCount.AFTER_FIN_BYTES]
            problems.append(Problem("after_fin", f"{lost} bytes came after the end of their stream", -1, -1, lost))
        if new[StreamCount.REFUSED]:
            refused = new[StreamCount.REFUSED]
            text = f"more than {MAX_CONNECTIONS} connections at once; {refused} segments of others are left out"
            problems.append(Problem("too_many_connections", text, -1, -1, 0))
        forgotten = sum(self._tables.forgotten[:RETIRED, 0].tolist())
        if forgotten > self._reported_forgotten:
            new_ones = forgotten - self._reported_forgotten
            detail = f"more than {MAX_OTHER_CONNECTIONS} connections without Kafka; {new_ones} of them are forgotten"
            problems.append(Problem("forgotten", detail, -1, -1, 0))
            self._reported_forgotten = forgotten
        return tuple(problems)


def _place(stream: int) -> str:
    return f"connection {stream >> 1}, direction {stream & 1}"


@jit
def _copy_columns(connections: Any, streams: Any, numbers: Any, columns: Any, stream_columns: Any, rows: Any) -> None:
    """Fills one row per connection, which isn't dirty any more then: its number, its columns, those of its streams."""
    for index in range(len(numbers)):
        number = numbers[index]
        rows[index, 0] = number
        at = 1
        for column in columns:
            rows[index, at] = connections[number, column]
            at += 1
        for stream in range(2 * number, 2 * number + 2):
            for column in stream_columns:
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
