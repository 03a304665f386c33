"""Puts capture files in the order of their first packets: a shell's glob puts `trace.pcap10` before `trace.pcap2`."""

import os
import stat
from collections.abc import Iterable

from kafkascope.capture.files.packets import read_packets
from kafkascope.capture.files.source import Input
from kafkascope.errors import InputError

# The first packet is within this many bytes, unless it is larger: then the reader takes more.
_LOOKED_BYTES = 65_536


def by_first_packet(paths: Iterable[Input]) -> list[Input]:
    """The same inputs, with the captures among them ordered by time, stably. What isn't a file with a path, or isn't a
    capture with a packet in it, keeps its place."""
    ordered = list(paths)
    if len(ordered) < 2:
        return ordered
    times = {place: time for place, path in enumerate(ordered) if (time := _first_ns(path)) is not None}
    moved = [ordered[place] for place in sorted(times, key=times.__getitem__)]
    for place, path in zip(times, moved, strict=True):
        ordered[place] = path
    return ordered


def _first_ns(path: Input) -> int | None:
    """Never raises: the reader of the file reports what is wrong with it."""
    if not isinstance(path, str | os.PathLike) or os.fspath(path) == "-":
        return None
    try:
        # A pipe's bytes can be read only once.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        for packets in read_packets(path, chunk_bytes=_LOOKED_BYTES):
            if len(packets.time_ns):
                return int(packets.time_ns[0])
    except (InputError, OSError, ValueError, IndexError):
        return None
    return None
