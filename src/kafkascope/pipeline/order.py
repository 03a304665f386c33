"""Captures of an ingest in, the earlier ingests out that it goes on from: not those that got further with the same
connections, whose state would take all earlier bytes for sent again."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from kafkascope.capture.carry_bytes import after
from kafkascope.capture.flow import Endpoints, Flows
from kafkascope.capture.segments import SegmentReader
from kafkascope.pipeline.state import GoingOn, State
from kafkascope.pipeline.survey import Surveyed, packets_of

# Packets of two files that follow each other may be out of order by so much.
SEAM_NS = 100_000_000


def gone_on_from(before: State, captures: Sequence[Surveyed]) -> tuple[GoingOn, frozenset[str]]:
    """And the files that begin before what some of the others left. Where most of what they have is from times that the
    lake has too, they were recorded beside what is there, at the other end or another interface: they go on from it."""
    latest = before.latest()
    begins = {one.found.uri: _begin(before, one) for one in captures if one.first_ns}
    last = max(latest.values(), default=0) - SEAM_NS
    doubtful = [one for one in captures if begins.get(one.found.uri, last) < last]
    if doubtful:
        known = _Times(before.spans)
        for one in doubtful:
            begins[one.found.uri] = known.look(one, begins[one.found.uri])
        if known.most_inside():
            return before.going_on(before.heads), frozenset()
        # Another recording may be further on: what counts is what these files have of the same connections.
        latest = before.latest(known.ends)
        last = max(latest.values(), default=0) - SEAM_NS
    first = min(begins.values(), default=last)
    heads = [head for head in before.heads if latest.get(head, 0) - SEAM_NS <= first]
    return before.going_on(heads), frozenset(uri for uri, begin in begins.items() if begin < last)


def _begin(before: State, one: Surveyed) -> int:
    """Of a file that has grown, where it ended."""
    return before.until.get(one.found.uri, one.first_ns) if one.found.read_packets else one.first_ns


class _Times:
    """Counts the packets of files that are from times that the lake has, and knows between which `ends` they went."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        joined: list[list[int]] = []
        for first, last in sorted((first + SEAM_NS, last - SEAM_NS) for first, last in spans):
            if joined and first <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], last)
            elif first < last:
                joined.append([first, last])
        self._bounds: npt.NDArray[np.int64] = np.array(joined, np.int64).reshape(-1)
        self._packets = self._inside = 0
        self.ends: set[Endpoints] = set()

    def look(self, one: Surveyed, otherwise: int) -> int:
        """The first new packet's time."""
        first = None
        flows = Flows()
        reader = SegmentReader(flows)
        # The task that reads it says what is wrong with it.
        with suppress(Exception):
            for packets in packets_of(one.found.uri):
                reader.feed(packets)
                times = after(packets, one.found.read_packets).time_ns
                if len(times) and first is None:
                    first = int(times[0])
                self._packets += len(times)
                self._inside += int((np.searchsorted(self._bounds, times, side="right") & 1).sum())
        self.ends.update(flows.ends)
        return otherwise if first is None else first

    def most_inside(self) -> bool:
        return 2 * self._inside > self._packets
