"""Holds the index of one batch of packets: the kernels write its rows, `take` returns a copy of the right size."""

from dataclasses import dataclass, field

import numpy as np

from kafkascope.capture.base.flow import Bytes, Int32s, Int64s, Packets
from kafkascope.capture.base.problems import Problems

# No packet takes less of a file: the header of a pcap record, or a simple packet block of pcapng.
SMALLEST_RECORD = 16


@dataclass(slots=True)
class PacketRows:
    start: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    captured: Int32s = field(default_factory=lambda: np.empty(0, np.int32))
    original: Int32s = field(default_factory=lambda: np.empty(0, np.int32))
    time_ns: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    link: Int32s = field(default_factory=lambda: np.empty(0, np.int32))
    count: int = 0
    first: int = 0
    problems: Problems = field(default_factory=Problems)

    def make_room(self, size: int) -> None:
        """Makes room for every packet that `size` bytes can contain. Only the memory that is used is touched."""
        room = size // SMALLEST_RECORD + 1
        if len(self.start) < room:
            self.start = np.empty(room, np.int64)
            self.captured = np.empty(room, np.int32)
            self.original = np.empty(room, np.int32)
            self.time_ns = np.empty(room, np.int64)
            self.link = np.empty(room, np.int32)

    def take(self, data: Bytes, base: int) -> Packets | None:
        """None if there are neither packets nor problems."""
        problems = self.problems.take()
        if not self.count and not problems:
            return None
        count, first = self.count, self.first
        self.count = 0
        self.first += count
        return Packets(
            data=data,
            start=self.start[:count].copy(),
            captured=self.captured[:count].copy(),
            original=self.original[:count].copy(),
            time_ns=self.time_ns[:count].copy(),
            link=self.link[:count].copy(),
            first=first,
            problems=problems,
            base=base,
        )
