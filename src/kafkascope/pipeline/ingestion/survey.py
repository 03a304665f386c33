"""Files in, what they are and where they belong out: capture, request log or plain frames; captures by their first
packet's time, and how many bytes each of their flows has in a sample."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from kafkascope.capture.base.flow import Endpoints, Flows, Packets, Segments
from kafkascope.capture.files.packets import read_packets
from kafkascope.capture.formats import CAPTURE
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.capture.sniff import sniff
from kafkascope.errors import InputError
from kafkascope.lake.place import place_of
from kafkascope.pipeline.ingestion.frames_input import FRAMES, is_frames
from kafkascope.pipeline.ingestion.inputs import Found, opened

BAD = "bad"
# Batches of packets that are looked at, over all files, of a few megabytes each: enough to know an elephant.
SAMPLE_BATCHES = 10
# Of any one file, however many there are: a megabyte and a half.
LEAST_SAMPLE = 2
# What a message costs, in bytes of large ones: reading its header, pairing it, its rows. A segment with less than its
# flow can carry ends a message, nearly always.
MESSAGE_BYTES = 5_000


@dataclass(frozen=True, slots=True)
class Surveyed:
    """`error` says why it cannot be read, `broken` how it broke the reader. `flows` are what flows cost in the
    sample, in bytes, by their ends. A file that is `apart` begins before what earlier ingests left."""

    found: Found
    kind: str
    first_ns: int = 0
    error: str | None = None
    broken: str | None = None
    flows: tuple[tuple[Endpoints, int], ...] = ()
    apart: bool = False


def survey(found: Found, *, sample: int) -> Surveyed:
    """`sample` is how many batches are looked at for their flows. Never raises on what the file holds."""
    place = place_of(found.uri)
    try:
        if is_frames(place):
            return Surveyed(replace(found, kind=FRAMES), FRAMES)
        recording = sniff(opened(found.uri))
        if recording.file is not None:
            recording.file.close()
        kind = recording.format.kind
        found = replace(found, kind=kind)
        return _capture(found, sample) if kind == CAPTURE else Surveyed(found, kind)
    except InputError as error:
        return Surveyed(replace(found, kind=BAD), BAD, error=str(error))
    except Exception as error:  # noqa: BLE001
        from kafkascope.pipeline.ingestion.failing_files import why_of

        return Surveyed(replace(found, kind=BAD), BAD, broken=why_of(error))


def survey_here(found: list[Found], sample: int) -> list[Surveyed]:
    """In this process."""
    return [survey(one, sample=sample) for one in found]


def _capture(found: Found, sample: int) -> Surveyed:
    first = None
    costs: Counter[int] = Counter()
    fullest: dict[int, int] = {}
    flows = Flows()
    reader = SegmentReader(flows)
    for packets in islice(packets_of(found.uri), sample or 1):
        if len(packets.time_ns) and first is None:
            first = int(packets.time_ns[0])
        if not sample:
            break
        segments = reader.feed(packets)
        for number, cost in _costs(segments, fullest):
            costs[number] += cost
    known = tuple((flows.ends[number], cost) for number, cost in costs.most_common())
    return Surveyed(found, CAPTURE, first or 0, flows=known)


def _costs(segments: Segments, fullest: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Of each flow in these segments; `fullest` remembers the largest segment of each."""
    length, flow = segments.wire_length, segments.flow
    for number in np.unique(flow).tolist():
        own = length[flow == number]
        fullest[number] = full = max(fullest.get(number, 0), int(own.max()))
        yield number, int(own.sum()) + MESSAGE_BYTES * int(((own > 0) & (own < full)).sum())


def packets_of(uri: str) -> Iterator[Packets]:
    source = opened(uri)
    if not isinstance(source, str):
        yield from read_packets(source)
        return
    with open(source, "rb") as file:
        yield from read_packets(file)


def balanced(surveyed: list[Surveyed], buckets: int) -> dict[Endpoints, int]:
    """Flows of the sample to buckets, the largest first and each into the emptiest: one connection may have nearly half
    of all bytes. What the sample has not goes by its hash."""
    sizes: Counter[Endpoints] = Counter()
    for one in surveyed:
        for ends, size in one.flows:
            sizes[ends] += size
    filled = [0] * buckets
    chosen: dict[Endpoints, int] = {}
    for ends, size in sizes.most_common():
        emptiest = filled.index(min(filled))
        filled[emptiest] += size
        chosen[ends] = emptiest
    return chosen
