"""Cuts the packets of a recording into stretches, for runs that read the same connections side by side: each makes the
exchanges of its own stretch. Where a stretch begins depends only on the files, never on how batches of them come."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kafkascope.capture.base.flow import Packets


class Position(NamedTuple):
    """A file, by its index among those of the run, and a byte of it, decompressed."""

    file: int
    offset: int


_FIRST = Position(0, 0)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The packets from `begin` up to `end`, or up to the end of the recording if that is None. A run reads all packets
    up to its end, because streams and requests before its stretch continue in it. An exchange belongs to the stretch in
    which it is complete."""

    begin: Position = _FIRST
    end: Position | None = None

    @property
    def is_last(self) -> bool:
        """Whether the run reads the whole recording, and so knows what is wrong with it and what is unfinished."""
        return self.end is None

    def has(self, position: Position) -> bool:
        return position >= self.begin and not self.is_over(position)

    def is_over(self, position: Position) -> bool:
        return self.end is not None and position >= self.end

    def bounds(self) -> list[Position]:
        return [self.begin, *([] if self.end is None else [self.end])]


ALL_PACKETS = Stretch()


def stretches(bounds: Sequence[Position]) -> list[Stretch]:
    """The stretches of a recording that is cut at these places."""
    ends = [_FIRST, *bounds]
    return [Stretch(begin, end) for begin, end in zip(ends, [*ends[1:], None], strict=True)]


def cut_packets(packets: Packets, file: int, bounds: Sequence[Position]) -> Iterator[tuple[Position, Packets]]:
    """The packets of a batch in parts, none of which reaches across a bound, with the positions of their beginnings."""
    places = packets.base + packets.start
    inside = {int(np.searchsorted(places, bound.offset)) for bound in bounds if bound.file == file}
    cuts = [0, *sorted(inside - {0, len(places)}), len(places)]
    for first, end in pairwise(cuts):
        at = int(places[first]) if len(places) else packets.base
        yield Position(file, at), packets if len(cuts) == 2 else _part(packets, first, end)


def _part(packets: Packets, first: int, end: int) -> Packets:
    return replace(
        packets,
        start=packets.start[first:end],
        captured=packets.captured[first:end],
        original=packets.original[first:end],
        time_ns=packets.time_ns[first:end],
        link=packets.link[first:end],
        first=packets.first + first,
        problems=() if first else packets.problems,
    )
