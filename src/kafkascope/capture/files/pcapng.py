"""Indexes the packets of a pcapng file: several sections of either byte order, interfaces with their own link type and
clock. A block with one wrong length is kept if the other length gives its end; a block that can't be repaired costs
everything before the next valid one. Both are reported."""

import numpy as np

from kafkascope.capture.base.flow import Bytes
from kafkascope.capture.files.packet_rows import PacketRows
from kafkascope.capture.files.pcapng_blocks import (
    BYTE_ORDER,
    SEARCH_BYTES,
    SMALLEST_BLOCK,
    BlockStop,
    Interface,
    find_block,
    index_blocks,
    is_block,
)
from kafkascope.errors import InputError
from kafkascope.limits import MAX_BLOCK_BYTES, MAX_INTERFACES

_SECTION_BYTES = 28
_INTERFACE_BYTES = 20
_OPTION_RESOLUTION, _OPTION_OFFSET = 9, 14
_MICROSECONDS = 6


class PcapngReader:
    """`index` is called repeatedly, each time with all bytes from where the last call stopped."""

    def __init__(self, rows: PacketRows) -> None:
        self._rows = rows
        self._opened = False
        self._big = False
        self._interfaces = np.zeros((16, 5), np.int64)
        self._interface_count = 0
        self._last_ns = 0
        self._lost_from = -1  # offset of a broken block in the file, while the next one is searched
        self._searched = -1  # how far
        self._trusted = -1

    def index(self, data: Bytes, position: int, base: int, final: bool) -> int:
        """Adds rows for the whole packets of `data` from `position` on; returns where to go on. `base` is where `data`
        begins in the file."""
        rows = self._rows
        while True:
            if self._lost_from >= 0:
                at, has_next = find_block(data, self._searched - base, self._big, final)
                self._searched = base + at
                if not has_next and not final:
                    # The broken block is kept until it is clear where it ends: that may repair it.
                    return position if at - position <= SEARCH_BYTES else at
                end = at if has_next else len(data)
                if self._repair_length(data, position, base, end):
                    continue
                self._report_loss(
                    "reading continues after it" if has_next else "no block was found after it", base + end
                )
                position = end
            rows.count, position, why, self._last_ns = index_blocks(
                data, position, self._big, self._trusted - base, self._interfaces, self._interface_count,
                rows.start, rows.captured, rows.original, rows.time_ns, rows.link, rows.count, self._last_ns,
            )  # fmt: skip
            if why == BlockStop.NEW_SECTION:
                after = self._section(data, position, final)
            elif why == BlockStop.NEW_INTERFACE:
                after = self._interface(data, position, base)
            elif why in (BlockStop.MORE, BlockStop.BROKEN, BlockStop.NO_END):
                after = None if why == BlockStop.MORE else -1
            else:
                after = position + self._number(data, position + 4)
                what = (
                    "is longer than its block" if why == BlockStop.BAD_PACKET else "belongs to an undescribed interface"
                )
                rows.problems.add("bad packet", f"a packet {what}", base + position, after - position)
            if why == BlockStop.NO_END:
                after = self._without_end(data, position, base, final)
            if after is None:
                if not final:
                    return position
                if position == len(data):
                    return position
                if not self._opened:
                    have = len(data) - position
                    raise InputError(f"the pcapng header is cut: {have} bytes of {_SECTION_BYTES}; copy it again")
                at, has_next = find_block(data, position + 1, self._big, True)
                if not has_next and not self._fits(data, position, len(data)):
                    lost = len(data) - position
                    detail = f"the file ends inside a block: only {lost} bytes of it are present"
                    rows.problems.add("cut", detail, base + position, lost)
                    return len(data)
                self._lost_from, self._searched = base + position, base + at
            elif after < 0:
                if not self._opened:
                    raise InputError("the pcapng header is broken: its first block isn't a section; copy it again")
                self._lost_from, self._searched = base + position, base + position + 1
            else:
                position = after

    def _number(self, data: Bytes, position: int, size: int = 4, *, signed: bool = False) -> int:
        raw = data[position : position + size].tobytes()
        return int.from_bytes(raw, "big" if self._big else "little", signed=signed)

    def _section(self, data: Bytes, position: int, final: bool) -> int | None:
        """Where the section's blocks begin; None without enough data, -1 if this isn't a whole section."""
        if len(data) - position < _SECTION_BYTES:
            return None
        order = data[position + 8 : position + 12].tobytes()
        if order not in (BYTE_ORDER.to_bytes(4, "big"), BYTE_ORDER.to_bytes(4, "little")):
            return -1
        before, self._big = self._big, order == BYTE_ORDER.to_bytes(4, "big")
        length = self._number(data, position + 4)
        lies = length < _SECTION_BYTES or length & 3 or length > MAX_BLOCK_BYTES
        if not lies and length > len(data) - position and not final:
            self._big = before
            return None
        # Its byte order mark is valid: blocks of this byte order follow, wherever it ends.
        self._opened = True
        self._interface_count = 0
        if lies or length > len(data) - position:
            return -1
        return position + length if self._number(data, position + length - 4) == length else -1

    def _interface(self, data: Bytes, position: int, base: int) -> int:
        length = self._number(data, position + 4)
        after = position + length
        number = self._interface_count
        if length < _INTERFACE_BYTES or number >= MAX_INTERFACES:
            self._rows.problems.add("bad interface", "an interface that can't be used", base + position, length)
            return after
        if number == len(self._interfaces):
            self._interfaces = np.concatenate([self._interfaces, np.zeros_like(self._interfaces)])
        row = self._interfaces[number]
        row[Interface.LINK] = self._number(data, position + 8, 2)
        row[Interface.SNAP_LENGTH] = self._number(data, position + 12)
        row[Interface.RESOLUTION_BASE], row[Interface.RESOLUTION], row[Interface.OFFSET_NS] = 10, _MICROSECONDS, 0
        option = position + 16
        while after - 4 - option >= 4:
            code, size = self._number(data, option, 2), self._number(data, option + 2, 2)
            if code == 0 or size > after - 8 - option:
                break
            if code == _OPTION_RESOLUTION and size >= 1:
                value = int(data[option + 4])
                row[Interface.RESOLUTION_BASE], row[Interface.RESOLUTION] = 2 if value & 0x80 else 10, value & 0x7F
            elif code == _OPTION_OFFSET and size >= 8:
                seconds = self._number(data, option + 4, 8, signed=True)
                row[Interface.OFFSET_NS] = (seconds * 1_000_000_000 + 2**63) % 2**64 - 2**63
            option += 4 + (size + 3) // 4 * 4
        self._interface_count = number + 1
        return after

    def _fits(self, data: Bytes, position: int, end: int) -> bool:
        """Whether the length at the end of a block from `position` to `end` is right."""
        length = end - position
        known = length >= SMALLEST_BLOCK and length & 3 == 0 and length <= MAX_BLOCK_BYTES
        return known and self._number(data, end - 4) == length

    def _repair_length(self, data: Bytes, position: int, base: int, end: int) -> bool:
        """If the first length is wrong and the last one right, writes the right one over it, in our own copy."""
        if base + position != self._lost_from or not self._fits(data, position, end):
            return False
        if self._number(data, position + 4) == end - position:
            # Both are right, as in a section without its mark: something else is wrong with it.
            return False
        length = (end - position).to_bytes(4, "big" if self._big else "little")
        data[position + 4 : position + 8] = np.frombuffer(length, np.uint8)
        self._rows.problems.add("broken block", "the length in front of it is wrong", self._lost_from, 0)
        self._lost_from = -1
        return True

    def _without_end(self, data: Bytes, position: int, base: int, final: bool) -> int | None:
        """The two lengths of a block differ. If a block follows at the end that the first one gives, that length is
        right and the block is whole; unless another begins inside it, right after a correct last length."""
        after = position + self._number(data, position + 4)
        if not final and len(data) - after < SEARCH_BYTES:
            return None
        inside, has_inner = find_block(data[:after], position + SMALLEST_BLOCK, self._big, True)
        if has_inner and self._fits(data, position, inside):
            return -1
        if is_block(data, after, self._big) or (final and after == len(data)):
            self._trusted = base + position
            self._rows.problems.add("broken block", "the length after it is wrong", base + position, 0)
            return position
        return -1

    def _report_loss(self, detail: str, end: int) -> None:
        self._rows.problems.add("broken block", detail, self._lost_from, end - self._lost_from)
        self._lost_from = -1
