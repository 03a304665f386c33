"""Keeps the segments of chosen flows, for tasks that each read a part of the connections. The choice is made once per
flow, by its endpoints."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import Endpoints, Flows, Int64s, Segments

Choice = Callable[[Endpoints], bool]
_UNKNOWN, _OUT, _IN = 0, 1, 2
_COLUMNS = ("flow", "direction", "sequence", "flags", "start", "length", "wire_length", "time_ns", "packet")


def flow_hash(ends: Endpoints) -> int:
    """A 64-bit hash of both ends, the same in any run, on any machine."""
    parts = (ends.address_a, ends.port_a.to_bytes(2, "big"), ends.address_b, ends.port_b.to_bytes(2, "big"))
    return int.from_bytes(blake2b(b"".join(parts), digest_size=8).digest(), "big")


def bucket(number: int, count: int) -> Choice:
    """Chooses the flows of bucket `number` of `count`."""
    return lambda ends: flow_hash(ends) % count == number


class Chooser:
    def __init__(self, flows: Flows, choice: Choice) -> None:
        self._flows = flows
        self._choice = choice
        self._known: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)

    def release(self, numbers: Int64s) -> None:
        """Later batches may use these numbers for other flows."""
        self._known[numbers[numbers < len(self._known)]] = _UNKNOWN

    def choose(self, segments: Segments) -> Segments:
        ends = self._flows.ends
        if len(ends) > len(self._known):
            self._known = np.concatenate([self._known, np.zeros(2 * len(ends) - len(self._known), np.uint8)])
        known = self._known[segments.flow]
        if (known == _UNKNOWN).any():
            for number in np.unique(segments.flow[known == _UNKNOWN]).tolist():
                self._known[number] = _IN if self._choice(ends[number]) else _OUT
            known = self._known[segments.flow]
        kept = known == _IN
        if kept.all():
            return segments
        columns = {name: getattr(segments, name)[kept] for name in _COLUMNS}
        acknowledgement = segments.acknowledgement
        return replace(
            segments, **columns, acknowledgement=acknowledgement[kept] if acknowledgement is not None else None
        )
