"""A recording in, its packets and problems out, all at once: what the tests of readers compare."""

from io import BytesIO
from typing import Any, NamedTuple

from kafkascope.capture.base.flow import Flows, Packets, Problem
from kafkascope.capture.files.packets import read_packets
from kafkascope.capture.net.segments import SegmentReader

SMALL_CHUNK = 65_536


class Seen(NamedTuple):
    time_ns: int
    link: int
    original: int
    data: bytes


class Segment(NamedTuple):
    source: bytes
    source_port: int
    target: bytes
    target_port: int
    sequence: int
    acknowledgement: int
    flags: int
    payload: bytes
    wire_length: int
    time_ns: int
    packet: int


class Drip:
    """A file that gives `size` bytes a read."""

    def __init__(self, data: bytes, size: int = 1) -> None:
        self._data = BytesIO(data)
        self._size = size

    def readinto(self, view: memoryview) -> int:
        return self._data.readinto(view[: self._size])


def seen(batches: list[Packets]) -> list[Seen]:
    return [
        Seen(int(time_ns), int(link), int(original), batch.data[start : start + captured].tobytes())
        for batch in batches
        for start, captured, original, time_ns, link in zip(
            batch.start, batch.captured, batch.original, batch.time_ns, batch.link, strict=True
        )
    ]


def read(source: Any, **options: Any) -> tuple[list[Seen], list[Problem]]:
    """`source` as `read_packets` takes it, or bytes."""
    batches = list(read_packets(BytesIO(source) if isinstance(source, bytes) else source, **options))
    assert [batch.first for batch in batches] == [
        sum(len(earlier.start) for earlier in batches[:index]) for index in range(len(batches))
    ]
    return seen(batches), [problem for batch in batches for problem in batch.problems]


def segments(source: Any, **options: Any) -> tuple[list[Segment], list[Problem]]:
    """All segments, with the problems of both steps."""
    flows = Flows()
    reader = SegmentReader(flows)
    rows: list[Segment] = []
    problems: list[Problem] = []
    for batch in read_packets(BytesIO(source) if isinstance(source, bytes) else source, **options):
        problems += batch.problems
        fed = reader.feed(batch)
        problems += fed.problems
        assert fed.acknowledgement is not None
        for index in range(len(fed.flow)):
            ends = flows.ends[fed.flow[index]]
            sides = [(ends.address_a, ends.port_a), (ends.address_b, ends.port_b)]
            assert sides == sorted(sides)
            back = int(fed.direction[index])
            start, length = int(fed.start[index]), int(fed.length[index])
            assert 0 <= start <= start + length <= len(fed.data)
            assert length <= fed.wire_length[index]
            rows.append(
                Segment(
                    *sides[back],
                    *sides[1 - back],
                    int(fed.sequence[index]),
                    int(fed.acknowledgement[index]),
                    int(fed.flags[index]),
                    fed.data[start : start + length].tobytes(),
                    int(fed.wire_length[index]),
                    int(fed.time_ns[index]),
                    int(fed.packet[index]),
                )
            )
    problems += reader.finish().problems
    return rows, problems
