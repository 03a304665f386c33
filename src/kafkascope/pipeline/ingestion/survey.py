"""Surveys each file before the plan: its kind (capture, request log or plain frames), a capture's first time, its size,
and the bytes of each flow in a sample."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from kafkascope.capture.base.flow import Endpoints, Flows, Packets, Segments
from kafkascope.capture.files.packets import read_packets
from kafkascope.capture.formats import CAPTURE
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.capture.sniff import sniff
from kafkascope.errors import InputError
from kafkascope.lake.place import place_of
from kafkascope.pipeline.ingestion.inputs import InputFile, open_input
from kafkascope.pipeline.ingestion.plain_frames import FRAMES, is_frames
from kafkascope.pipeline.ingestion.why_broken import why_of

BAD_FILE = "bad"
# Batches of packets to sample over all files, a few megabytes each: enough to spot a large flow.
SAMPLE_BATCHES = 6
# At least this much of each file, however many there are: a megabyte and a half.
LEAST_SAMPLE = 2
# What a message costs, in bytes of large ones: reading its header, pairing it, its rows. A segment with less than its
# flow can carry ends a message, nearly always.
_MESSAGE_BYTES = 5_000


class FlowSample(NamedTuple):
    """A flow in the sample: what its bytes and messages cost, in bytes of large messages, and its bytes alone."""

    ends: Endpoints
    cost: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FileSurvey:
    """`error` is why it can't be read, `broken` how it broke the reader. `flows` are those of the sample. A file
    that is `apart` begins before what earlier ingests left. `bytes` are those of the
    decompressed capture, `read_bytes` those that an earlier ingest has read; both may be estimates."""

    file: InputFile
    kind: str
    first_ns: int = 0
    error: str | None = None
    broken: str | None = None
    flows: tuple[FlowSample, ...] = ()
    apart: bool = False
    bytes: int = 0
    read_bytes: int = 0


def survey_file(file: InputFile, *, sample: int) -> FileSurvey:
    """`sample` is how many batches are sampled for flows. Never raises on what the file contains."""
    place = place_of(file.uri)
    try:
        if is_frames(place):
            return FileSurvey(replace(file, kind=FRAMES), FRAMES)
        recording = sniff(open_input(file.uri))
        if recording.file is not None:
            recording.file.close()
        kind = recording.format.kind
        file = replace(file, kind=kind)
        return _capture(file, sample, recording.packed) if kind == CAPTURE else FileSurvey(file, kind)
    except InputError as error:
        return FileSurvey(replace(file, kind=BAD_FILE), BAD_FILE, error=str(error))
    except Exception as error:  # noqa: BLE001
        return FileSurvey(replace(file, kind=BAD_FILE), BAD_FILE, broken=why_of(error))


def survey_here(files: list[InputFile], sample: int) -> list[FileSurvey]:
    """Surveys the files in this process."""
    return [survey_file(file, sample=sample) for file in files]


def _capture(file: InputFile, sample: int, packed: bool) -> FileSurvey:
    first = None
    count = sampled = stored = 0
    costs: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    fullest: dict[int, int] = {}
    flows = Flows()
    reader = SegmentReader(flows)
    for stored, packets in islice(_with_places(file.uri), sample or 1):  # noqa: B007
        count += len(packets.start)
        sampled = packets.base + len(packets.data)
        if len(packets.time_ns) and first is None:
            first = int(packets.time_ns[0])
        if not sample:
            break
        segments = reader.feed(packets)
        for number, cost, own in _costs(segments, fullest):
            costs[number] += cost
            sizes[number] += own
    samples = tuple(FlowSample(flows.ends[number], cost, sizes[number]) for number, cost in costs.most_common())
    size = file.size * sampled // stored if packed and stored else file.size
    read = min(file.read_packets * sampled // max(count, 1), size)
    return FileSurvey(file, CAPTURE, first or 0, flows=samples, bytes=size, read_bytes=read)


def _costs(segments: Segments, fullest: dict[int, int]) -> Iterator[tuple[int, int, int]]:
    """The cost and bytes of each flow in these segments; `fullest` keeps the largest segment of each."""
    length, flow = segments.wire_length, segments.flow
    for number in np.unique(flow).tolist():
        own = length[flow == number]
        fullest[number] = full = max(fullest.get(number, 0), int(own.max()))
        size = int(own.sum())
        yield number, size + _MESSAGE_BYTES * int(((own > 0) & (own < full)).sum()), size


def packets_of(uri: str) -> Iterator[Packets]:
    for _, packets in _with_places(uri):
        yield packets


def _with_places(uri: str) -> Iterator[tuple[int, Packets]]:
    """Packets, with the number of bytes that were read for them, as stored."""
    source = open_input(uri)
    with open(source, "rb") if isinstance(source, str) else source as file:
        for packets in read_packets(file):
            yield file.tell(), packets
