"""Captures of an ingest in, the earlier ingests out that it goes on from: not those that got further with the same
connections, whose state would take all earlier bytes for sent again."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from kafkascope.capture.base.flow import Endpoints, Flows
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.capture.resume.reread import after
from kafkascope.limits import MAX_UNUSED_FLOWS
from kafkascope.pipeline.ingestion.state import GoingOn, State
from kafkascope.pipeline.ingestion.survey import Surveyed, packets_of

# Packets of two files that follow each other may be out of order by so much.
SEAM_NS = 100_000_000


@dataclass(frozen=True, slots=True)
class Known:
    """What the lake has: `bounds` are first and last times in turn, apart and in order; `ends` are of the connections
    that it may go on with."""

    bounds: tuple[int, ...]
    ends: frozenset[Endpoints]


@dataclass(frozen=True, slots=True)
class Times:
    """Of one file: when its new packets begin, how many there are, how many of them are from times that the lake has,
    and between which ends of `Known` they went. Its reader may have `died`."""

    first_ns: int | None = None
    packets: int = 0
    inside: int = 0
    ends: frozenset[Endpoints] = frozenset()
    died: bool = False


def times_of(one: Surveyed, known: Known) -> Times:
    """Never raises on what the file holds: the task that reads it says what is wrong with it."""
    bounds = np.array(known.bounds, np.int64)
    first = None
    count = inside = 0
    ends: set[Endpoints] = set()
    flows = Flows()
    reader = SegmentReader(flows)
    with suppress(Exception):
        for packets in packets_of(one.found.uri):
            reader.feed(packets)
            times = after(packets, one.found.read_packets).time_ns
            if len(times) and first is None:
                first = int(times[0])
            count += len(times)
            inside += int((np.searchsorted(bounds, times, side="right") & 1).sum())
            if len(flows.ends) > MAX_UNUSED_FLOWS:
                ends.update(known.ends.intersection(flows.ends))
                flows = Flows()
                reader = SegmentReader(flows)
    ends.update(known.ends.intersection(flows.ends))
    return Times(first, count, inside, frozenset(ends))


def times_here(files: list[Surveyed], known: Known) -> list[Times]:
    """In this process."""
    return [times_of(one, known) for one in files]


def gone_on_from(
    before: State, captures: Sequence[Surveyed], look: Callable[[list[Surveyed], Known], list[Times]] = times_here
) -> tuple[GoingOn, frozenset[str]]:
    """And the files that begin before what some of the others left. Where most of what they have is from times that the
    lake has too, they were recorded beside what is there, at the other end or another interface: they go on from it."""
    latest = before.latest()
    begins = {one.found.uri: _begin(before, one) for one in captures if one.first_ns}
    last = max(latest.values(), default=0) - SEAM_NS
    doubtful = [one for one in captures if begins.get(one.found.uri, last) < last]
    if doubtful:
        found = look(doubtful, Known(_bounds(before.spans), before.ends()))
        for one, times in zip(doubtful, found, strict=True):
            begins[one.found.uri] = begins[one.found.uri] if times.first_ns is None else times.first_ns
        if 2 * sum(times.inside for times in found) > sum(times.packets for times in found):
            return before.going_on(before.heads), frozenset()
        # Another recording may be further on: what counts is what these files have of the same connections.
        latest = before.latest(frozenset().union(*(times.ends for times in found)))
        last = max(latest.values(), default=0) - SEAM_NS
    first = min(begins.values(), default=last)
    heads = [head for head in before.heads if latest.get(head, 0) - SEAM_NS <= first]
    return before.going_on(heads), frozenset(uri for uri, begin in begins.items() if begin < last)


def _begin(before: State, one: Surveyed) -> int:
    """Of a file that has grown, where it ended."""
    return before.until.get(one.found.uri, one.first_ns) if one.found.read_packets else one.first_ns


def _bounds(spans: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    joined: list[list[int]] = []
    for first, last in sorted((first + SEAM_NS, last - SEAM_NS) for first, last in spans):
        if joined and first <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], last)
        elif first < last:
            joined.append([first, last])
    return tuple(bound for span in joined for bound in span)
