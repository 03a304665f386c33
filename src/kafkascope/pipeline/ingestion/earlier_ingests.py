"""Chooses the earlier ingests that an ingest resumes. It leaves out those that got further with the same connections:
with their state, all earlier bytes would look like retransmissions."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from kafkascope.capture.base.flow import Endpoints, Flows
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.capture.resume.reread import after
from kafkascope.limits import MAX_UNUSED_FLOWS
from kafkascope.pipeline.ingestion.state import LakeState, ResumePlan
from kafkascope.pipeline.ingestion.survey import FileSurvey, packets_of

# Packets of two consecutive files may overlap in time by this much.
_SEAM_NS = 100_000_000


@dataclass(frozen=True, slots=True)
class LakeCoverage:
    """What the lake covers: `bounds` alternate between first and last times of separate spans, in order; `ends` are the
    endpoints of the connections that an ingest may resume."""

    bounds: tuple[int, ...]
    ends: frozenset[Endpoints]


@dataclass(frozen=True, slots=True)
class FileTimes:
    """About one file: when its new packets begin, how many there are, how many of them are from times that the lake
    covers, and their endpoints among those of `LakeCoverage`. Its reader may have `died`."""

    first_ns: int | None = None
    packets: int = 0
    inside: int = 0
    ends: frozenset[Endpoints] = frozenset()
    died: bool = False


def times_of(survey: FileSurvey, coverage: LakeCoverage) -> FileTimes:
    """Never raises on what the file contains: the task that reads it reports what is wrong with it."""
    bounds = np.array(coverage.bounds, np.int64)
    first = None
    count = inside = 0
    ends: set[Endpoints] = set()
    flows = Flows()
    reader = SegmentReader(flows)
    with suppress(Exception):
        for packets in packets_of(survey.file.uri):
            reader.feed(packets)
            times = after(packets, survey.file.read_packets).time_ns
            if len(times) and first is None:
                first = int(times[0])
            count += len(times)
            inside += int((np.searchsorted(bounds, times, side="right") & 1).sum())
            if len(flows.ends) > MAX_UNUSED_FLOWS:
                ends.update(coverage.ends.intersection(flows.ends))
                flows = Flows()
                reader = SegmentReader(flows)
    ends.update(coverage.ends.intersection(flows.ends))
    return FileTimes(first, count, inside, frozenset(ends))


def times_here(surveys: list[FileSurvey], coverage: LakeCoverage) -> list[FileTimes]:
    """Looks at the files in this process."""
    return [times_of(survey, coverage) for survey in surveys]


def choose_resume(
    state: LakeState,
    captures: Sequence[FileSurvey],
    read_times: Callable[[list[FileSurvey], LakeCoverage], list[FileTimes]] = times_here,
) -> tuple[ResumePlan, frozenset[str]]:
    """Adds the files that begin before the state that some of the others left. If the lake covers the times of most of
    their packets too, they were recorded in parallel, at the other end or on another interface, and are resumed from
    there."""
    latest = state.latest()
    begins = {capture.file.uri: _begin(state, capture) for capture in captures if capture.first_ns}
    last = max(latest.values(), default=0) - _SEAM_NS
    doubtful = [capture for capture in captures if begins.get(capture.file.uri, last) < last]
    if doubtful:
        capture_times = read_times(doubtful, LakeCoverage(_bounds(state.spans), state.ends()))
        for capture, times in zip(doubtful, capture_times, strict=True):
            begins[capture.file.uri] = begins[capture.file.uri] if times.first_ns is None else times.first_ns
        if 2 * sum(times.inside for times in capture_times) > sum(times.packets for times in capture_times):
            return state.resume_plan(state.heads), frozenset()
        # Another recording may be further along: what counts is what these files have of the same connections.
        latest = state.latest(frozenset().union(*(times.ends for times in capture_times)))
        last = max(latest.values(), default=0) - _SEAM_NS
    first = min(begins.values(), default=last)
    heads = [head for head in state.heads if latest.get(head, 0) - _SEAM_NS <= first]
    return state.resume_plan(heads), frozenset(uri for uri, begin in begins.items() if begin < last)


def _begin(state: LakeState, survey: FileSurvey) -> int:
    """Where the new part begins: for a file that has grown, at its earlier end."""
    return state.until.get(survey.file.uri, survey.first_ns) if survey.file.read_packets else survey.first_ns


def _bounds(spans: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    joined: list[list[int]] = []
    for first, last in sorted((first + _SEAM_NS, last - _SEAM_NS) for first, last in spans):
        if joined and first <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], last)
        elif first < last:
            joined.append([first, last])
    return tuple(bound for span in joined for bound in span)
