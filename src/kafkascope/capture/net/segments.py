"""Packets of any link layer and tunnel in, TCP segments with flow numbers out; packets that are no TCP are left out.

Fragments are put together first: their segment stands where the last missing one came."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kafkascope.capture.base.flow import Bytes, Flows, Int64s, Packets, Segments
from kafkascope.capture.base.problems import Problems, counted
from kafkascope.capture.files.link import IPV4, IPV6
from kafkascope.capture.net.dissect import (
    DissectStop,
    Fragment,
    SkipReason,
    dissect,
)
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
    SkipReason.LINK_NOT_KNOWN: ("link type", "of a link type that is not read"),
    SkipReason.TOO_DEEP: ("tunnels", "with more tunnels within each other than are followed"),
    SkipReason.IN_PPPOE: ("pppoe", "in PPPoE, compressed, encrypted or in multilink, which is not read"),
    SkipReason.IN_ERSPAN: ("erspan", "in ERSPAN of a version or frame type that is not read"),
    SkipReason.IN_MACSEC: ("macsec", "in MACsec, which is not read"),
    SkipReason.IN_GTP_U: ("gtp", "in GTP-U, which is not read"),
    SkipReason.IN_VXLAN_GPE: ("vxlan gpe", "in VXLAN-GPE, which is not read"),
}

Columns = dict[str, Any]
_NOTHING: Columns = {name: np.empty(0, kind) for name, kind in _COLUMNS}
_NO_SEGMENTS = Segments(data=np.empty(0, np.uint8), **_NOTHING)


class SegmentReader:
    """One for a recording, or for several that share their flows one after the other."""

    def __init__(self, flows: Flows) -> None:
        self._table = FlowTable(flows)
        self._problems = Problems()
        self._store = FragmentStore(self._problems)
        self._fragments = np.empty((_FRAGMENT_ROWS, len(Fragment)), np.int64)

    def feed(self, packets: Packets) -> Segments:
        self._table.take_back()
        numbers = np.arange(packets.first, packets.first + len(packets.start), dtype=np.int64)
        levels = np.zeros(len(numbers), np.uint8)
        given: Columns = {
            "starts": packets.start, "captured": packets.captured, "original": packets.original,
            "times": packets.time_ns, "links": packets.link, "numbers": numbers, "levels": levels,
        }  # fmt: skip
        found, whole, cut = self._dissect(packets.data, given, packets)
        parts, blocks = [found], [packets.data]
        end = len(packets.data)
        # A datagram that was put together may be a tunnel with fragments in it. Each round reads what the round before
        # put together: headers within headers make as many rounds as they like, of ever fewer bytes.
        while whole:
            block, given = _as_packets(given, whole)
            found, whole, more_cut = self._dissect(block, given, packets)
            found["start"] += end
            parts.append(found)
            blocks.append(block)
            end += len(block)
            cut += more_cut
        if len(numbers):
            self._store.give_up_old(int(packets.time_ns[-1]))
        self._table.tell()
        ordered = _in_order(parts)
        if cut:
            self._tell_cut(ordered, packets)
        data = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        return Segments(data=data, **ordered, problems=self._problems.take())

    def finish(self) -> Segments:
        """No segments: the problems of what is still incomplete."""
        self._store.give_up_all()
        problems = self._problems.take()
        return replace(_NO_SEGMENTS, problems=problems) if problems else _NO_SEGMENTS

    def _dissect(
        self, data: Bytes, given: Columns, packets: Packets
    ) -> tuple[Columns, list[tuple[int, int, Datagram]], int]:
        """Segments; datagrams that became whole: (row, tunnels around it, datagram); how many segments are recorded in
        part."""
        room = len(given["starts"])
        out = {name: np.empty(room, kind) for name, kind in _COLUMNS}
        bad = np.zeros((len(SkipReason), 4), np.int64)
        whole: list[tuple[int, int, Datagram]] = []
        row = count = 0
        why = DissectStop.FRAGMENTS_FULL
        table = self._table
        while why != DissectStop.DONE:
            row, count, pieces, why = dissect(
                data, row, *given.values(), table.slots, table.keys, table.known, table.seed, *out.values(), count,
                self._fragments, bad,
            )  # fmt: skip
            if why == DissectStop.FLOWS_FULL:
                table.grow()
            whole += self._add(data, given, self._fragments[:pieces], packets)
        told = bad.tolist()
        self._tell(told, given, packets)
        return {name: column[:count] for name, column in out.items()}, whole, told[SkipReason.IN_PART][0]

    def _add(
        self, data: Bytes, given: Columns, fragments: Int64s, packets: Packets
    ) -> Iterator[tuple[int, int, Datagram]]:
        rows = fragments[:, Fragment.ROW]
        numbers = given["numbers"][rows]
        places = packets.base + packets.start[numbers - packets.first]
        columns = (fragments.tolist(), given["times"][rows].tolist(), numbers.tolist(), places.tolist())
        for fragment, time_ns, number, place in zip(*columns, strict=True):
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

    def _tell(self, bad: list[list[int]], given: Columns, packets: Packets) -> None:
        for reason, (kind, said) in _REASONS.items():
            count, size, row, link = bad[reason]
            if count:
                named = f"{said} ({link})" if reason == SkipReason.LINK_NOT_KNOWN else said
                self._count(kind, count, named, size, int(given["numbers"][row]), packets)

    def _tell_cut(self, found: Columns, packets: Packets) -> None:
        missing = found["wire_length"] - found["length"]
        cut = np.flatnonzero(missing)
        first, lost = int(found["packet"][cut[0]]), int(missing[cut].sum(dtype=np.int64))
        self._count("snap length", len(cut), "recorded in part", lost, first, packets)

    def _count(self, kind: str, count: int, said: str, size: int, number: int, packets: Packets) -> None:
        offset = packets.base + int(packets.start[number - packets.first])
        self._problems.keep(counted(kind, count, said, number, offset, size))


def _as_packets(given: Columns, whole: list[tuple[int, int, Datagram]]) -> tuple[Bytes, Columns]:
    """Datagrams one after the other, as packets of raw IP. Each is within `LONGEST_DATAGRAM` and a header."""
    sizes = np.array([len(made.packet) for _, _, made in whole], np.int64)
    rows = np.array([row for row, _, _ in whole], np.int64)
    return np.frombuffer(b"".join(made.packet for _, _, made in whole), np.uint8), {
        "starts": np.cumsum(sizes) - sizes,
        "captured": sizes.astype(np.int32),
        "original": np.array([made.original for _, _, made in whole], np.int32),
        "times": given["times"][rows],
        "links": np.array([IPV4 if made.packet[0] >> 4 == 4 else IPV6 for _, _, made in whole], np.int32),
        "numbers": given["numbers"][rows],
        "levels": np.array([level for _, level, _ in whole], np.uint8),
    }


def _in_order(parts: list[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    joined = {name: np.concatenate([part[name] for part in parts]) for name, _ in _COLUMNS}
    order = np.argsort(joined["packet"], kind="stable")
    return {name: column[order] for name, column in joined.items()}
