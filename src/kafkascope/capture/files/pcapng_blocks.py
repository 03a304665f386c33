"""The kernels that index the blocks of a pcapng section, and that search for the next valid block.

A block has its length twice, at its start and at its end. Nothing of a block is read before its end is compared with
the end of the data."""

from enum import IntEnum
from typing import Any

import numpy as np

from kafkascope.capture.base.numbers import Number, Numbers, any16, any32
from kafkascope.columnar.compiling.jit import jit
from kafkascope.limits import MAX_BLOCK_BYTES, MAX_PACKET_BYTES

SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, PACKET = 0x0A0D0D0A, 1, 2, 3, 6
SMALLEST_BLOCK = 12
# Blocks with names, statistics, a systemd journal entry, decryption secrets, and custom ones: they help to find the
# next block.
_KNOWN = (INTERFACE, OLD_PACKET, SIMPLE_PACKET, PACKET, 4, 5, 9, 10, 0xBAD, 0x4000_0BAD)
# Bytes before the packet in its block, and those plus the length after it.
_PACKET_HEAD, _PACKET_FRAME = 28, 32
_SIMPLE_HEAD, _SIMPLE_FRAME = 12, 16
BYTE_ORDER = 0x1A2B3C4D
# A search looks for blocks up to this size: all that hold packets.
SEARCH_BYTES = MAX_PACKET_BYTES + 4_096
_LARGEST_INT32 = 0x7FFF_FFFF


class BlockStop(IntEnum):
    """Why the kernel stopped."""

    MORE = 0
    NEW_SECTION = 1
    NEW_INTERFACE = 2
    BROKEN = 3
    NO_END = 4
    BAD_PACKET = 5
    NO_INTERFACE = 6


class Interface(IntEnum):
    """Columns of the interface table."""

    LINK = 0
    SNAP_LENGTH = 1
    RESOLUTION_BASE = 2
    RESOLUTION = 3
    OFFSET_NS = 4


_TENS = np.array([10**power for power in range(19)], dtype=np.int64)
_SECOND = np.int64(1_000_000_000)


@jit
def to_ns(stamp: Number, base: Number, exponent: Number, offset: Number) -> Number:
    """`stamp` counts units of base ** -exponent seconds; it is unsigned, and may have its highest bit set."""
    if base == 10:
        if exponent <= 9:
            return stamp * _TENS[9 - exponent] + offset
        return (stamp // _TENS[exponent - 9] if exponent - 9 < 19 else np.int64(0)) + offset
    if exponent >= 64:
        return offset
    if exponent == 0:
        return stamp * _SECOND + offset
    unit = np.int64(1)
    seconds = (stamp >> exponent) & ((unit << (64 - exponent)) - 1)
    fraction = stamp & ((unit << exponent) - 1)
    if exponent > 33:
        # 2**33 * 10**9 is the most that fits; what is dropped is less than a nanosecond.
        fraction >>= exponent - 33
        exponent = np.int64(33)
    return seconds * _SECOND + (fraction * _SECOND >> exponent) + offset


@jit
def index_blocks(
    data: Any, position: Number, big: bool, trusted: Number, interfaces: Any, interface_count: Number,
    start: Any, captured: Any, original: Any, time_ns: Any, links: Any, count: Number, last_ns: Number,
) -> Numbers:  # fmt: skip
    """(rows, where it stopped, why, time of the last packet). The block at `trusted` may end with a wrong length."""
    stop = len(data)
    while stop - position >= SMALLEST_BLOCK:
        kind = any32(data, position, big)
        if kind == SECTION:
            return count, position, BlockStop.NEW_SECTION, last_ns
        length = any32(data, position + 4, big)
        if length < SMALLEST_BLOCK or length & 3 or length > MAX_BLOCK_BYTES:
            return count, position, BlockStop.BROKEN, last_ns
        if length > stop - position:
            break
        if any32(data, position + length - 4, big) != length and position != trusted:
            return count, position, BlockStop.NO_END, last_ns
        if kind == INTERFACE:
            return count, position, BlockStop.NEW_INTERFACE, last_ns
        if kind in (PACKET, OLD_PACKET):
            if length < _PACKET_FRAME:
                return count, position, BlockStop.BAD_PACKET, last_ns
            size = any32(data, position + 20, big)
            wire = any32(data, position + 24, big)
            if size > length - _PACKET_FRAME:
                return count, position, BlockStop.BAD_PACKET, last_ns
            which = any32(data, position + 8, big) if kind == PACKET else any16(data, position + 8, big)
            if which >= interface_count:
                return count, position, BlockStop.NO_INTERFACE, last_ns
            stamp = any32(data, position + 12, big) << 32 | any32(data, position + 16, big)
            last_ns = to_ns(
                stamp,
                interfaces[which, Interface.RESOLUTION_BASE],
                interfaces[which, Interface.RESOLUTION],
                interfaces[which, Interface.OFFSET_NS],
            )
            start[count] = position + _PACKET_HEAD
        elif kind == SIMPLE_PACKET:
            if length < _SIMPLE_FRAME:
                return count, position, BlockStop.BAD_PACKET, last_ns
            which = np.int64(0)
            if interface_count == 0:
                return count, position, BlockStop.NO_INTERFACE, last_ns
            wire = any32(data, position + 8, big)
            # It has no captured length: the block contains the packet padded to four bytes, unless the snap length cut
            # it.
            size = min(wire, length - _SIMPLE_FRAME)
            if interfaces[0, Interface.SNAP_LENGTH] > 0:
                size = min(size, interfaces[0, Interface.SNAP_LENGTH])
            start[count] = position + _SIMPLE_HEAD
        else:
            position += length
            continue
        captured[count] = size
        original[count] = min(wire, _LARGEST_INT32)
        time_ns[count] = last_ns
        links[count] = interfaces[which, Interface.LINK]
        count += 1
        position += length
    return count, position, BlockStop.MORE, last_ns


@jit
def is_block(data: Any, position: Number, big: bool) -> Number:
    """Whether a whole block of a known kind is at `position`, in this byte order or as a section in either."""
    stop = len(data)
    if stop - position < SMALLEST_BLOCK:
        return False
    kind = any32(data, position, big)
    if kind == SECTION:
        order = any32(data, position + 8, True)
        swapped = any32(data, position + 8, False)
        if order != BYTE_ORDER and swapped != BYTE_ORDER:
            return False
        big = order == BYTE_ORDER
    elif kind not in _KNOWN:
        return False
    length = any32(data, position + 4, big)
    if length < SMALLEST_BLOCK or length & 3 or length > SEARCH_BYTES or length > stop - position:
        return False
    return any32(data, position + length - 4, big) == length


@jit
def find_block(data: Any, position: Number, big: bool, final: bool) -> Numbers:
    """(where the next block is, True), or (where to continue the search with more data, False)."""
    last = len(data) - SMALLEST_BLOCK if final else len(data) - SEARCH_BYTES
    while position <= last:
        if is_block(data, position, big):
            return position, True
        position += 1
    return position, False
