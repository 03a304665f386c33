"""Numbers the flows of TCP segments by their two endpoints, in an open-addressing hash table that grows."""

import os
import struct
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import Endpoints, Flows, Int32s, Int64s
from kafkascope.capture.base.numbers import Number
from kafkascope.columnar.compiling.jit import jit

_START = 1 << 10
_MIX = np.int64(-0x61C8864680B583EB)  # 2**64 divided by the golden ratio
# A row of `keys`, big endian: both addresses, then both ports in the last half of a number.
_KEY = struct.Struct(">16s16s4xHH")
EMPTY, FULL = -1, -1


class FlowState(IntEnum):
    """The places of `state`."""

    COUNT = 0  # numbers ever used
    UNUSED = 1  # numbers on the stack of those that new flows take first
    STACK = 2  # where the stack begins


@jit
def _hash(seed: Number, a_high: Number, a_low: Number, b_high: Number, b_low: Number, ports: Number) -> Number:
    value = seed
    for word in (a_high, a_low, b_high, b_low, ports):
        value = (value ^ word) * _MIX
        value ^= value >> 29 & 0x7_FFFF_FFFF
    value *= _MIX
    return value ^ value >> 32 & 0xFFFF_FFFF


@jit
def flow_number(
    slots: Any,
    keys: Any,
    state: Any,
    seed: Number,
    a_high: Number,
    a_low: Number,
    b_high: Number,
    b_low: Number,
    ports: Number,
) -> Number:
    """The number of the flow with these addresses and ports, a new one the first time; FULL if the table must grow
    first."""
    mask = len(slots) - 1
    at = _hash(seed, a_high, a_low, b_high, b_low, ports) & mask
    while slots[at] != EMPTY:
        number = np.int64(slots[at])
        if (
            keys[number, 4] == ports
            and keys[number, 1] == a_low
            and keys[number, 3] == b_low
            and keys[number, 0] == a_high
            and keys[number, 2] == b_high
        ):
            return number
        at = (at + 1) & mask
    if state[FlowState.UNUSED] > 0:
        state[FlowState.UNUSED] -= 1
        number = state[FlowState.STACK + state[FlowState.UNUSED]]
    elif state[FlowState.COUNT] < len(keys):
        number = state[FlowState.COUNT]
        state[FlowState.COUNT] += 1
    else:
        return np.int64(FULL)
    keys[number, 0] = a_high
    keys[number, 1] = a_low
    keys[number, 2] = b_high
    keys[number, 3] = b_low
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
    all hash to one slot. `state` has the places of `FlowState`."""

    def __init__(self, flows: Flows) -> None:
        self._flows = flows
        self.seed = np.int64(int.from_bytes(os.urandom(8)) >> 1)
        self.keys: npt.NDArray[np.int64] = np.empty((max(_START, 2 * len(flows.ends)), 5), np.int64)
        self.state = np.zeros(FlowState.STACK + len(self.keys), np.int64)
        self.state[FlowState.COUNT] = len(flows.ends)
        self._stacked = 0
        for number, ends in enumerate(flows.ends):
            self.keys[number] = (
                *struct.unpack(">4q", ends.address_a + ends.address_b),
                ends.port_a << 16 | ends.port_b,
            )
        self.slots = self._slots()

    def release(self, numbers: Int64s) -> None:
        """New flows take these numbers first. No later step may use one of them for the flow that had it."""
        if len(numbers):
            self.state[FlowState.UNUSED] = self._stacked = len(numbers)
            self.state[FlowState.STACK : FlowState.STACK + len(numbers)] = numbers
            self.slots = self._slots()

    def _slots(self) -> Int32s:
        size = 1 << (2 * len(self.keys) - 1).bit_length()
        slots = np.full(size, EMPTY, np.int32)
        if self.state[FlowState.COUNT]:
            used = np.ones(int(self.state[FlowState.COUNT]), np.bool_)
            used[self.state[FlowState.STACK : FlowState.STACK + self.state[FlowState.UNUSED]]] = False
            _fill_slots(slots, self.keys, np.flatnonzero(used), self.seed)
        return slots

    def grow(self) -> None:
        self.keys = np.concatenate([self.keys, np.empty_like(self.keys)])
        self.state = np.concatenate(
            [self.state, np.zeros(len(self.keys) - len(self.state) + FlowState.STACK, np.int64)]
        )
        self.slots = self._slots()

    def publish(self) -> None:
        """Adds the new flows to the list that later steps read."""
        ends = self._flows.ends
        if self._stacked:
            reused = self.state[FlowState.STACK + self.state[FlowState.UNUSED] : FlowState.STACK + self._stacked]
            for number, endpoints in zip(reused.tolist(), self._ends(self.keys[reused]), strict=True):
                ends[number] = endpoints
            self._stacked = int(self.state[FlowState.UNUSED])
        ends += self._ends(self.keys[len(ends) : self.state[FlowState.COUNT]])

    def _ends(self, keys: npt.NDArray[np.int64]) -> list[Endpoints]:
        return [
            Endpoints._make((address_a, port_a, address_b, port_b))
            for address_a, address_b, port_a, port_b in _KEY.iter_unpack(keys.astype(">i8").tobytes())
        ]
