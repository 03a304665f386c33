"""Both ends of TCP segments in, flow numbers out: an open-addressing hash that grows."""

import os
import struct
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import Endpoints, Flows, Int32s
from kafkascope.capture.base.numbers import Number
from kafkascope.columnar.compiling.jit import jit

_START = 1 << 10
_MIX = np.int64(-0x61C8864680B583EB)  # 2**64 divided by the golden ratio
# A row of `keys`, big endian: both addresses, then both ports in the last half of a number.
_KEY = struct.Struct(">16s16s4xHH")
EMPTY, FULL = -1, -1


class FlowState(IntEnum):
    """The places of `known`."""

    COUNT = 0
    UNUSED = 1
    STACK = 2


@jit
def _hash(seed: Number, one: Number, two: Number, three: Number, four: Number, ports: Number) -> Number:
    value = seed
    for word in (one, two, three, four, ports):
        value = (value ^ word) * _MIX
        value ^= value >> 29 & 0x7_FFFF_FFFF
    value *= _MIX
    return value ^ value >> 32 & 0xFFFF_FFFF


@jit
def flow_number(
    slots: Any,
    keys: Any,
    known: Any,
    seed: Number,
    one: Number,
    two: Number,
    three: Number,
    four: Number,
    ports: Number,
) -> Number:
    """The flow with this key, a new one where it was not met before; FULL where the table must grow first."""
    mask = len(slots) - 1
    at = _hash(seed, one, two, three, four, ports) & mask
    while slots[at] != EMPTY:
        number = np.int64(slots[at])
        if (
            keys[number, 4] == ports
            and keys[number, 1] == two
            and keys[number, 3] == four
            and keys[number, 0] == one
            and keys[number, 2] == three
        ):
            return number
        at = (at + 1) & mask
    if known[FlowState.UNUSED] > 0:
        known[FlowState.UNUSED] -= 1
        number = known[FlowState.STACK + known[FlowState.UNUSED]]
    elif known[FlowState.COUNT] < len(keys):
        number = known[FlowState.COUNT]
        known[FlowState.COUNT] += 1
    else:
        return np.int64(FULL)
    keys[number, 0] = one
    keys[number, 1] = two
    keys[number, 2] = three
    keys[number, 3] = four
    keys[number, 4] = ports
    slots[at] = number
    return number


@jit
def _fill_slots(slots: Any, keys: Any, used: Any, seed: Number) -> None:
    mask = len(slots) - 1
    for number in used:
        key = keys[number]
        at = _hash(seed, key[0], key[1], key[2], key[3], key[4]) & mask
        while slots[at] != EMPTY:
            at = (at + 1) & mask
        slots[at] = number


class FlowTable:
    """`slots` is twice as long as `keys`, so a search ends soon. The seed is secret: nobody can choose addresses that
    all fall into one place. `known` has the count of numbers ever used, and a stack of those to use again."""

    def __init__(self, flows: Flows) -> None:
        self._flows = flows
        self.seed = np.int64(int.from_bytes(os.urandom(8)) >> 1)
        self.keys: npt.NDArray[np.int64] = np.empty((max(_START, 2 * len(flows.ends)), 5), np.int64)
        self.known = np.zeros(FlowState.STACK + len(self.keys), np.int64)
        self.known[FlowState.COUNT] = len(flows.ends)
        self._stacked = 0
        for number, ends in enumerate(flows.ends):
            self.keys[number] = (
                *struct.unpack(">4q", ends.address_a + ends.address_b),
                ends.port_a << 16 | ends.port_b,
            )
        self.slots = self._slots()

    def take_back(self) -> None:
        """Numbers that reassembly has no use for, to be used again. Nothing of an earlier batch may hold them."""
        unused = self._flows.unused
        if len(unused):
            self._flows.unused = unused[:0]
            self.known[FlowState.UNUSED] = self._stacked = len(unused)
            self.known[FlowState.STACK : FlowState.STACK + len(unused)] = unused
            self.slots = self._slots()

    def _slots(self) -> Int32s:
        size = 1 << (2 * len(self.keys) - 1).bit_length()
        slots = np.full(size, EMPTY, np.int32)
        if self.known[FlowState.COUNT]:
            used = np.ones(int(self.known[FlowState.COUNT]), np.bool_)
            used[self.known[FlowState.STACK : FlowState.STACK + self.known[FlowState.UNUSED]]] = False
            _fill_slots(slots, self.keys, np.flatnonzero(used), self.seed)
        return slots

    def grow(self) -> None:
        self.keys = np.concatenate([self.keys, np.empty_like(self.keys)])
        self.known = np.concatenate(
            [self.known, np.zeros(len(self.keys) - len(self.known) + FlowState.STACK, np.int64)]
        )
        self.slots = self._slots()

    def tell(self) -> None:
        """New flows into the list that the other steps read."""
        ends = self._flows.ends
        if self._stacked:
            again = self.known[FlowState.STACK + self.known[FlowState.UNUSED] : FlowState.STACK + self._stacked]
            for number, found in zip(again.tolist(), self._ends(self.keys[again]), strict=True):
                ends[number] = found
            self._stacked = int(self.known[FlowState.UNUSED])
        ends += self._ends(self.keys[len(ends) : self.known[FlowState.COUNT]])

    def _ends(self, keys: npt.NDArray[np.int64]) -> list[Endpoints]:
        return [
            Endpoints._make((address_a, port_a, address_b, port_b))
            for address_a, address_b, port_a, port_b in _KEY.iter_unpack(keys.astype(">i8").tobytes())
        ]
