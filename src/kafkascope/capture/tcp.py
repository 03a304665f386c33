"""TCP reassembly: `Segments` in, `Pieces` of streams in order and `Connection`s out; never raises on what the wire
says.

In-order segments are not copied: pieces point into the batch's own data. What came too early and still waits when a
batch ends is kept in a spill of bounded size, and copied behind the data of the batch that delivers it.
"""

from typing import Literal

import numpy as np

from kafkascope.capture.flow import Bytes, Connection, Flows, Pieces, Problem, Segments
from kafkascope.capture.reassemble import finish_streams, reassemble
from kafkascope.capture.spill import fresh_bytes, gather, keep_early, move_spill, spilled_bytes
from kafkascope.capture.stream_table import (
    AFTER_FIN_BYTES,
    CLOSED_NS,
    CONFLICT_ROWS,
    CONFLICTS,
    CONNECTIONS,
    DIRTIES,
    DIRTY,
    DUPLICATED,
    ENDED,
    FIRST_NS,
    FLOW,
    GAP_BYTES,
    INITIAL,
    IS_NEW,
    KAFKA,
    LAST_NS,
    OPENED,
    OPENER,
    OTHERS,
    PROTOCOL,
    PROTOCOLS,
    REFUSED,
    RETRANSMITTED,
    ROWS,
    SEEN_BYTES,
    SPILL_ADDRESS,
    SPILL_LIVE,
    SPILL_USED,
    STRAYS,
    WANT_ROWS,
    Output,
    Segment,
    grown,
    longer,
    make_output,
    make_tables,
)
from kafkascope.limits import MAX_CONNECTIONS, MAX_OTHER_CONNECTIONS, MAX_UNUSED_FLOWS

ENDINGS = (None, "fin", "reset", "reused")
# One kind of array, so that the kernels are compiled once.
_PLAIN: tuple[Literal["C"], Literal["W"]] = ("C", "W")
_NO_DATA = np.empty(0, np.uint8)
# Of either stream, what its connection tells.
_TOLD = np.array([INITIAL, SEEN_BYTES, GAP_BYTES])


class Reassembler:
    """Feed it batches in the order of the recording. `connections` holds the connections met so far, by number, and is
    up to date after each batch. Those without Kafka are forgotten once there are too many, and their numbers used
    again: `protocol` must be told before the next batch."""

    def __init__(self, flows: Flows) -> None:
        self.connections: list[Connection] = []
        self._flows = flows
        self._tables = make_tables()
        self._told = {STRAYS: 0, AFTER_FIN_BYTES: 0, REFUSED: 0}
        self._told_forgotten = 0
        self._touched = np.empty(0, np.int64)

    @property
    def forgotten(self) -> dict[str, tuple[int, int]]:
        """Protocol to (connections, bytes) of those that are not among `connections` any more."""
        rows = zip(PROTOCOLS, self._tables.forgotten.tolist(), strict=True)
        return {protocol: (count, size) for protocol, (count, size) in rows if count}

    def feed(self, segments: Segments) -> Pieces:
        self._learn_protocols()
        segment = _columns(segments)
        flows = int(segment.flow.max()) + 1 if len(segment.flow) else 0
        self._tables = grown(self._tables, flows)
        output = make_output(len(segment.flow) + 64)
        data = np.ascontiguousarray(segments.data)
        at = reassemble(self._tables, output, data.ctypes.data, segment, 0)
        while at < len(segment.flow):
            self._tables = grown(self._tables, flows)
            output = _wider(output, int(self._tables.counts[WANT_ROWS]))
            at = reassemble(self._tables, output, data.ctypes.data, segment, at)
        pieces = self._pieces(data, output)
        self._free_flows()
        return pieces

    def _learn_protocols(self) -> None:
        """What was found in the connections of the last batch."""
        rows = self._tables.connections
        known = rows[self._touched, PROTOCOL]
        found = np.array([PROTOCOLS.index(self.connections[n].protocol) for n in self._touched.tolist()], np.int64)
        rows[self._touched, PROTOCOL] = found
        self._tables.counts[OTHERS] -= int((found == KAFKA).sum() - (known == KAFKA).sum())
        self._touched = self._touched[:0]

    def _free_flows(self) -> None:
        """Once there are many flows of no connection their numbers may be used again."""
        known = len(self._flows.ends)
        if known > MAX_UNUSED_FLOWS:
            unused = np.flatnonzero(self._tables.current[:known] < 0)
            self._flows.unused = unused if len(unused) > MAX_UNUSED_FLOWS else unused[:0]

    def finish(self) -> Pieces:
        """The recording ends: what waits for missing bytes is delivered behind gaps."""
        output = make_output(64)
        at = finish_streams(self._tables, output, 0)
        while at < 2 * self._tables.counts[CONNECTIONS]:
            output = _wider(output, int(self._tables.counts[WANT_ROWS]))
            at = finish_streams(self._tables, output, at)
        return self._pieces(_NO_DATA, output)

    def _pieces(self, data: Bytes, output: Output) -> Pieces:
        tables = self._tables
        spilled = spilled_bytes(tables, output)
        waited = np.empty(spilled, np.uint8)
        if spilled:
            gather(tables, output, waited.ctypes.data, len(data))
        self._keep(data)
        self._update()
        problems = self._problems(output)
        rows = int(tables.counts[ROWS])
        tables.counts[ROWS] = 0
        tables.counts[CONFLICT_ROWS] = 0
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
        if count[SPILL_USED] + fresh > len(self._tables.spill):
            # At least half of the new one is free, so that moving pays.
            spill = np.empty(2 * int(count[SPILL_LIVE] + fresh) + 65_536, np.uint8)
            move_spill(self._tables, spill.ctypes.data)
            self._tables = self._tables._replace(spill=spill)
            count[SPILL_ADDRESS] = spill.ctypes.data
        keep_early(self._tables, data.ctypes.data)
        if count[SPILL_LIVE] == 0:
            count[SPILL_USED] = 0

    def _update(self) -> None:
        """Brings the `Connection`s up to what the tables say."""
        tables = self._tables
        dirty = np.sort(tables.dirty[: tables.counts[DIRTIES]])
        tables.counts[DIRTIES] = 0
        self._touched = np.concatenate([self._touched, dirty])
        rows = tables.connections[dirty].tolist()
        streams = tables.streams[(2 * dirty)[:, None] + (0, 1)][:, :, _TOLD].reshape(-1, 6).tolist()
        tables.connections[dirty, DIRTY] = 0
        tables.connections[dirty, IS_NEW] = 0
        connections, ends = self.connections, self._flows.ends
        for number, row, told in zip(dirty.tolist(), rows, streams, strict=True):
            first, seen, gaps, other_first, other_seen, other_gaps = told
            opened, closed = bool(row[OPENED]), ENDINGS[row[ENDED]]
            closed_ns = row[CLOSED_NS] if row[CLOSED_NS] >= 0 else None
            opener = row[OPENER] if row[OPENER] >= 0 else None
            sequence = first if first >= 0 else None, other_first if other_first >= 0 else None
            bytes_seen, gap_bytes = [seen, other_seen], [gaps, other_gaps]
            if number == len(connections) or row[IS_NEW]:
                flow = row[FLOW]
                # In their order: there are very many, and names take as long again.
                connections[number : number + 1] = [
                    Connection(
                        number, flow, ends[flow], row[FIRST_NS], row[LAST_NS], sequence, opened, closed, closed_ns,
                        None, PROTOCOLS[0], bytes_seen, gap_bytes, row[CONFLICTS], row[RETRANSMITTED], row[DUPLICATED],
                        opener,
                    )
                ]  # fmt: skip
                continue
            connection = connections[number]
            connection.last_ns = row[LAST_NS]
            connection.opened, connection.opener = opened, opener
            connection.closed, connection.closed_ns = closed, closed_ns
            connection.initial_sequence = sequence
            connection.bytes_seen, connection.gap_bytes = bytes_seen, gap_bytes
            connection.conflict_bytes = row[CONFLICTS]
            connection.retransmitted_bytes = row[RETRANSMITTED]
            connection.duplicated_bytes = row[DUPLICATED]

    def _problems(self, output: Output) -> tuple[Problem, ...]:
        count = self._tables.counts
        problems = [
            Problem(
                "conflict",
                f"{_place(stream)}: {different} bytes at {offset} differ from those seen first",
                packet,
                -1,
                0,
            )
            for stream, offset, different, packet in output.conflicts[: count[CONFLICT_ROWS]].tolist()
        ]
        new = {what: int(count[what]) - told for what, told in self._told.items()}
        self._told = {what: int(count[what]) for what in self._told}
        if new[STRAYS]:
            problems.append(Problem("stray", f"{new[STRAYS]} segments fit no connection of their flow", -1, -1, 0))
        if new[AFTER_FIN_BYTES]:
            lost = new[AFTER_FIN_BYTES]
            problems.append(Problem("after_fin", f"{lost} bytes came behind the end of their stream", -1, -1, lost))
        if new[REFUSED]:
            said = f"more than {MAX_CONNECTIONS} connections; {new[REFUSED]} segments of further ones are left out"
            problems.append(Problem("too_many_connections", said, -1, -1, 0))
        forgotten = int(self._tables.forgotten[:, 0].sum())
        if forgotten > self._told_forgotten:
            new_ones = forgotten - self._told_forgotten
            said = f"more than {MAX_OTHER_CONNECTIONS} connections without Kafka; {new_ones} of them are forgotten"
            problems.append(Problem("forgotten", said, -1, -1, 0))
            self._told_forgotten = forgotten
        return tuple(problems)


def _place(stream: int) -> str:
    return f"connection {stream >> 1}, direction {stream & 1}"


def _columns(segments: Segments) -> Segment:
    acknowledgement = segments.acknowledgement
    return Segment(
        np.require(segments.flow, np.int32, _PLAIN),
        np.require(segments.direction, np.uint8, _PLAIN),
        np.require(segments.sequence, np.int64, _PLAIN),
        np.require(segments.flags, np.uint8, _PLAIN),
        np.require(segments.start, np.int64, _PLAIN),
        np.require(segments.length, np.int32, _PLAIN),
        np.require(segments.wire_length, np.int32, _PLAIN),
        np.require(segments.time_ns, np.int64, _PLAIN),
        np.require(segments.packet, np.int64, _PLAIN),
        np.empty(0, np.int64) if acknowledgement is None else np.require(acknowledgement, np.int64, _PLAIN),
    )


def _wider(output: Output, rows: int) -> Output:
    return Output(*(longer(column, rows) for column in output))
