"""Reads the TCP segments of packets, whatever the link layer and tunnel, and numbers their flows.

IP fragments are reassembled first: their segment comes in the place of the fragment that completed it. Packets that
aren't TCP are left out."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kafkascope.capture.base.flow import Bytes, Flows, Int64s, Packets, Segments
from kafkascope.capture.base.problems import Problems, counted
from kafkascope.capture.files.link import IPV4, IPV6
from kafkascope.capture.net.dissect import DissectStop, Fragment, SkipReason, dissect
from kafkascope.capture.net.flow_table import FlowTable
from kafkascope.capture.net.fragments import Datagram, DatagramKey, FragmentStore

_FRAGMENT_ROWS = 1024
_COLUMNS = (
    ("flow", np.int32),
    ("direction", np.uint8),
    ("sequence", np.int64),
    ("flags", np.uint8),
    ("start", np.int64),
    ("length", np.int32),
    ("wire_length", np.int32),
    ("time_ns", np.int64),
    ("packet", np.int64),
    ("acknowledgement", np.int64),
)
_REASONS = {
    SkipReason.CUT_HEADERS: ("cut headers", "cut inside the headers"),
    SkipReason.MALFORMED: ("malformed", "with IP or TCP headers that contradict themselves"),
    SkipReason.LINK_NOT_KNOWN: ("link type", "of a link type that isn't read"),
    SkipReason.TOO_DEEP: ("tunnels", "with more nested tunnels than are followed"),
    SkipReason.IN_PPPOE: ("pppoe", "in PPPoE, compressed, encrypted or in multilink, which isn't read"),
    SkipReason.IN_ERSPAN: ("erspan", "in ERSPAN of a version or frame type that isn't read"),
    SkipReason.IN_MACSEC: ("macsec", "in MACsec, which isn't read"),
    SkipReason.IN_GTP_U: ("gtp", "in GTP-U, which isn't read"),
    SkipReason.IN_VXLAN_GPE: ("vxlan gpe", "in VXLAN-GPE, which isn't read"),
}

Columns = dict[str, Any]
_NOTHING: Columns = {name: np.empty(0, kind) for name, kind in _COLUMNS}
_NO_SEGMENTS = Segments(data=np.empty(0, np.uint8), **_NOTHING)


class SegmentReader:
    """Reads one recording, or several in turn that share their flows."""

    def __init__(self, flows: Flows) -> None:
        self._table = FlowTable(flows)
        self._problems = Problems()
        self._store = FragmentStore(self._problems)
        self._fragments = np.empty((_FRAGMENT_ROWS, len(Fragment)), np.int64)

    def release(self, flows: Int64s) -> None:
        """Numbers of flows that no later step uses any more: new flows get them."""
        self._table.release(flows)

    def feed(self, packets: Packets) -> Segments:
        numbers = np.arange(packets.first, packets.first + len(packets.start), dtype=np.int64)
        levels = np.zeros(len(numbers), np.uint8)
        columns: Columns = {
            "starts": packets.start, "captured": packets.captured, "original": packets.original,
            "times": packets.time_ns, "links": packets.link, "numbers": numbers, "levels": levels,
        }  # fmt: skip
        segments, whole, cut = self._dissect(packets.data, columns, packets)
        parts, blocks = [segments], [packets.data]
        end = len(packets.data)
        # A reassembled datagram may be a tunnel with fragments in it. Each round reads the datagrams of the round
        # before: nested headers cause any number of rounds, each of fewer bytes.
        while whole:
            block, columns = _as_packets(columns, whole)
            segments, whole, more_cut = self._dissect(block, columns, packets)
            segments["start"] += end
            parts.append(segments)
            blocks.append(block)
            end += len(block)
            cut += more_cut
        if len(numbers):
            self._store.give_up_old(int(packets.time_ns[-1]))
        self._table.publish()
        ordered = _in_order(parts)
        if cut:
            self._report_cut(ordered, packets)
        data = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        return Segments(data=data, **ordered, problems=self._problems.take())

    def finish(self) -> Segments:
        """No segments, but the problems of datagrams that are still incomplete."""
        self._store.give_up_all()
        problems = self._problems.take()
        return replace(_NO_SEGMENTS, problems=problems) if problems else _NO_SEGMENTS

    def _dissect(
        self, data: Bytes, columns: Columns, packets: Packets
    ) -> tuple[Columns, list[tuple[int, int, Datagram]], int]:
        """(segments, datagrams that became whole as (row, tunnels around it, datagram), segments that were recorded in
        part)"""
        room = len(columns["starts"])
        out = {name: np.empty(room, kind) for name, kind in _COLUMNS}
        skipped = np.zeros((len(SkipReason), 4), np.int64)
        whole: list[tuple[int, int, Datagram]] = []
        row = count = 0
        stop = DissectStop.FRAGMENTS_FULL
        table = self._table
        while stop != DissectStop.DONE:
            row, count, fragments, stop = dissect(
                data, row, *columns.values(), table.slots, table.keys, table.state, table.seed, *out.values(), count,
                self._fragments, skipped,
            )  # fmt: skip
            if stop == DissectStop.FLOWS_FULL:
                table.grow()
            whole += self._add(data, columns, self._fragments[:fragments], packets)
        reasons = skipped.tolist()
        self._report(reasons, columns, packets)
        return {name: column[:count] for name, column in out.items()}, whole, reasons[SkipReason.IN_PART][0]

    def _add(
        self, data: Bytes, columns: Columns, fragments: Int64s, packets: Packets
    ) -> Iterator[tuple[int, int, Datagram]]:
        rows = fragments[:, Fragment.ROW]
        numbers = columns["numbers"][rows]
        places = packets.base + packets.start[numbers - packets.first]
        lists = (fragments.tolist(), columns["times"][rows].tolist(), numbers.tolist(), places.tolist())
        for fragment, time_ns, number, place in zip(*lists, strict=True):
            datagram = self._store.add(
                DatagramKey(
                    fragment[Fragment.VERSION],
                    fragment[Fragment.IDENTIFICATION],
                    fragment[Fragment.PROTOCOL],
                    tuple(fragment[5:9]),
                ),
                fragment[Fragment.OFFSET],
                bool(fragment[Fragment.MORE]),
                data[fragment[Fragment.START] : fragment[Fragment.END]].tobytes(),
                fragment[Fragment.LENGTH],
                time_ns,
                number,
                place,
            )
            if datagram is not None:
                yield fragment[Fragment.ROW], fragment[Fragment.LEVEL], datagram

    def _report(self, skipped: list[list[int]], columns: Columns, packets: Packets) -> None:
        """The packets that were skipped, counted by reason."""
        for reason, (kind, text) in _REASONS.items():
            count, size, row, link = skipped[reason]
            if count:
                detail = f"{text} ({link})" if reason == SkipReason.LINK_NOT_KNOWN else text
                self._count(kind, count, detail, size, int(columns["numbers"][row]), packets)

    def _report_cut(self, segments: Columns, packets: Packets) -> None:
        missing = segments["wire_length"] - segments["length"]
        cut = np.flatnonzero(missing)
        first, lost = int(segments["packet"][cut[0]]), int(missing[cut].sum(dtype=np.int64))
        self._count("snap length", len(cut), "recorded in part", lost, first, packets)

    def _count(self, kind: str, count: int, detail: str, size: int, number: int, packets: Packets) -> None:
        offset = packets.base + int(packets.start[number - packets.first])
        self._problems.keep(counted(kind, count, detail, number, offset, size))


def _as_packets(columns: Columns, whole: list[tuple[int, int, Datagram]]) -> tuple[Bytes, Columns]:
    """The datagrams one after the other, as packets of raw IP. Each is at most `LONGEST_DATAGRAM` and a header long."""
    sizes = np.array([len(datagram.packet) for _, _, datagram in whole], np.int64)
    rows = np.array([row for row, _, _ in whole], np.int64)
    return np.frombuffer(b"".join(datagram.packet for _, _, datagram in whole), np.uint8), {
        "starts": np.cumsum(sizes) - sizes,
        "captured": sizes.astype(np.int32),
        "original": np.array([datagram.original for _, _, datagram in whole], np.int32),
        "times": columns["times"][rows],
        "links": np.array([IPV4 if datagram.packet[0] >> 4 == 4 else IPV6 for _, _, datagram in whole], np.int32),
        "numbers": columns["numbers"][rows],
        "levels": np.array([level for _, level, _ in whole], np.uint8),
    }


def _in_order(parts: list[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    joined = {name: np.concatenate([part[name] for part in parts]) for name, _ in _COLUMNS}
    order = np.argsort(joined["packet"], kind="stable")
    return {name: column[order] for name, column in joined.items()}
