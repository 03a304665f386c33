"""The bytes of a pcap file in, rows of whole packets out. A record that cannot be one is skipped to the next place
where several records in a row make sense; what lies between is reported."""

from typing import Any

from kafkascope.capture.flow import Bytes
from kafkascope.capture.numbers import Number, Numbers, any32, jit
from kafkascope.capture.rows import Rows
from kafkascope.errors import InputError
from kafkascope.limits import MAX_PACKET_BYTES

HEADER = 24
_RECORD = 16
# Magic as it lies in the file: (big endian, nanoseconds in a unit of the fraction).
MAGICS = {
    bytes.fromhex("a1b2c3d4"): (True, 1000),
    bytes.fromhex("d4c3b2a1"): (False, 1000),
    bytes.fromhex("a1b23c4d"): (True, 1),
    bytes.fromhex("4d3cb2a1"): (False, 1),
}
_LINK_BITS = 0x03FF_FFFF  # the rest says how long the frame checksum is

# Only this many records in a row, within a day of each other, are taken for records after a broken one.
_CHAIN = 3
_CHAIN_AT_END = 2
_CHAIN_BYTES = _CHAIN * (_RECORD + MAX_PACKET_BYTES)
_NEAR_SECONDS = 86_400
_LARGEST_INT32 = 0x7FFF_FFFF

MORE, BROKEN = 0, 1


@jit
def plausible(data: Any, position: Number, big: bool, unit: Number, near: Number) -> Number:
    """Whether a record header may stand here; `near` is a time in seconds, or -1."""
    size = any32(data, position + 8, big)
    if size == 0 or size > MAX_PACKET_BYTES:
        return False
    wire = any32(data, position + 12, big)
    if wire < size or wire > 16 * MAX_PACKET_BYTES:
        return False
    if any32(data, position + 4, big) * unit >= 1_000_000_000:
        return False
    return near < 0 or abs(any32(data, position, big) - near) <= _NEAR_SECONDS


@jit
def index_records(
    data: Any, position: Number, big: bool, unit: Number, link: Number,
    start: Any, captured: Any, original: Any, time_ns: Any, links: Any, count: Number, final: bool,
) -> Numbers:  # fmt: skip
    """(rows, where it stopped, why)"""
    stop = len(data)
    while stop - position >= _RECORD:
        seconds = any32(data, position, big)
        size = any32(data, position + 8, big)
        wire = any32(data, position + 12, big)
        # All zeros is a hole in the file, no packet of 1970.
        if size > MAX_PACKET_BYTES or (size == 0 and wire == 0 and seconds == 0):
            return count, position, BROKEN
        after = position + _RECORD + size
        if after > stop:
            break
        if size > wire:
            # More than was on the wire: true only where a record follows.
            if stop - after < _RECORD:
                if not final:
                    break
                if after != stop:
                    return count, position, BROKEN
            elif not plausible(data, after, big, unit, seconds):
                return count, position, BROKEN
        start[count] = position + _RECORD
        captured[count] = size
        original[count] = min(wire, _LARGEST_INT32)
        time_ns[count] = seconds * 1_000_000_000 + any32(data, position + 4, big) * unit
        links[count] = link
        count += 1
        position = after
    return count, position, MORE


@jit
def find_records(data: Any, position: Number, big: bool, unit: Number, near: Number, final: bool) -> Numbers:
    """(where records go on, True), or (where to search on when there is more, False)."""
    stop = len(data)
    last = stop - _RECORD if final else stop - _CHAIN_BYTES
    while position <= last:
        at = position
        before = near
        links = 0
        while links < _CHAIN and stop - at >= _RECORD and plausible(data, at, big, unit, before):
            before = any32(data, at, big)
            at += _RECORD + any32(data, at + 8, big)
            links += 1
        if at <= stop and (links == _CHAIN or (final and links >= _CHAIN_AT_END and at == stop)):
            return position, True
        position += 1
    return position, False


class PcapReader:
    """`index` is called again and again with all bytes from where the last call stopped."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._opened = False
        self._big = False
        self._unit = 1
        self._link = 0
        self._near = -1
        self._lost_from = -1  # offset in the file where a broken record stands, while we search for the next

    def index(self, data: Bytes, position: int, base: int, final: bool) -> int:
        """Rows for the whole packets of `data` from `position` on; returns where to go on. `base` is where `data`
        begins in the file."""
        if not self._opened:
            if len(data) - position < HEADER:
                if final:
                    there = len(data) - position
                    raise InputError(f"the pcap header is cut: {there} bytes of {HEADER}; copy it again")
                return position
            self._open(data[position : position + HEADER].tobytes())
            position += HEADER
        rows = self._rows
        while True:
            if self._lost_from >= 0:
                position, found = find_records(data, position, self._big, self._unit, self._near, final)
                if not found:
                    if final:
                        lost = base + len(data) - self._lost_from
                        self._tell("broken record", "no record is found behind it", lost)
                        position = len(data)
                    return position
                self._tell("broken record", "reading goes on behind it", base + position - self._lost_from)
            before = rows.count
            rows.count, position, why = index_records(
                data, position, self._big, self._unit, self._link,
                rows.start, rows.captured, rows.original, rows.time_ns, rows.link, rows.count, final,
            )  # fmt: skip
            if rows.count > before:
                self._near = int(rows.time_ns[rows.count - 1]) // 1_000_000_000
            if why == MORE and (not final or position == len(data)):
                return position
            self._lost_from = base + position
            if why == MORE:
                # The last record is cut, or its length lies and others follow.
                at, found = find_records(data, position + 1, self._big, self._unit, self._near, True)
                if not found:
                    lost = len(data) - position
                    self._tell("cut", f"the file ends inside a record: {lost} bytes of it are there", lost)
                    return len(data)
                position = at
            else:
                position += 1

    def _open(self, header: bytes) -> None:
        self._big, self._unit = MAGICS[header[:4]]
        self._link = int.from_bytes(header[20:24], "big" if self._big else "little") & _LINK_BITS
        self._opened = True

    def _tell(self, kind: str, detail: str, lost: int) -> None:
        self._rows.problems.add(kind, detail, self._lost_from, lost)
        self._lost_from = -1
