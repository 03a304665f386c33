"""Indexes the packets of a pcap file. After bytes that can't be a record, reading continues at the next place where
several records in a row make sense; a second file that follows the first is read as well. Both are reported."""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from kafkascope.capture.base.flow import Bytes
from kafkascope.capture.base.numbers import Number, Numbers, any16, any32
from kafkascope.capture.files.link import LINUX_SLL
from kafkascope.capture.files.packet_rows import PacketRows
from kafkascope.columnar.compiling.jit import jit
from kafkascope.errors import InputError
from kafkascope.limits import MAX_PACKET_BYTES

HEADER = 24
_MICRO, _NANO, _MODIFIED = 0xA1B2_C3D4, 0xA1B2_3C4D, 0xA1B2_CD34
_LINK_BITS = 0x03FF_FFFF  # the other bits are the length of the frame checksum
# A record's header: times and lengths. Kuznetsov's modified libpcap adds interface, protocol and packet type.
_RECORD, _MODIFIED_RECORD = 16, 24
# libpcap 1.5, as RHEL 7 has it, counts the cooked header among the captured bytes and not among those on the wire.
_COOKED = 16

# After a broken record, only this many in a row, within a day of each other, count as records. Three are enough if
# their time is near that of the records before, or if a file header precedes them.
_CHAIN = 3
_LONG_CHAIN = 6
# Fewer are enough at the end of the file: near in time, of another time, after a file header.
_CHAIN_AT_END, _LONG_CHAIN_AT_END, _CHAIN_OF_FILE_AT_END = 2, 3, 1
_NEAR_SECONDS = 86_400
# There was no TCP in 1978: small numbers that look like records of another time are tables.
_OLDEST_SECONDS = 1 << 28
# With fewer bytes after it a place can seldom be decided; and the problems of a small file come together.
_AHEAD_BYTES = 65_536
_LARGEST_WIRE = 16 * MAX_PACKET_BYTES
_LARGEST_INT32 = 0x7FFF_FFFF
_SECOND = 1_000_000_000


class PcapStop(IntEnum):
    """Why the kernel stopped."""

    MORE = 0
    BROKEN = 1
    KEEP = 2
    DOUBT = 3
    NEW_FILE = 4


class RecordFit(IntEnum):
    """How well bytes fit a record: not at all, more are needed, plausible, near in time to the records before."""

    NO = 0
    WAIT = 1
    FAR = 2
    NEAR = 3


class RecordLayout(NamedTuple):
    """The records of one file: byte order, nanoseconds in a unit of the fraction, bytes of a record's header, how many
    more bytes may be captured than were on the wire, link type."""

    big: bool
    unit: Number
    record: Number
    beyond: Number
    link: Number


@jit
def is_file_header(data: Any, position: Number) -> Number:
    """Whether a file header (version 2.4) is at `position`."""
    big = _is_magic(any32(data, position, True))
    if not big and not _is_magic(any32(data, position, False)):
        return False
    return any16(data, position + 4, big) == 2 and any16(data, position + 6, big) == 4


@jit
def _is_magic(number: Number) -> bool:
    return number in (_MICRO, _NANO, _MODIFIED)


@jit
def layout_of(data: Any, position: Number) -> RecordLayout:
    """The layout in the file header at `position`, which is whole."""
    big = _is_magic(any32(data, position, True))
    magic = any32(data, position, big)
    link = any32(data, position + 20, big) & _LINK_BITS
    return RecordLayout(
        big,
        1 if magic == _NANO else 1000,
        _MODIFIED_RECORD if magic == _MODIFIED else _RECORD,
        _COOKED if link == LINUX_SLL else 0,
        link,
    )


@jit
def is_plausible(data: Any, position: Number, layout: RecordLayout, near: Number, any_fraction: bool) -> Number:
    """Whether a record header may be at `position`; `near` is a time in seconds, or -1."""
    big = layout.big
    size = any32(data, position + 8, big)
    if size == 0 or size > MAX_PACKET_BYTES:
        return False
    wire = any32(data, position + 12, big)
    if wire + layout.beyond < size or wire > _LARGEST_WIRE:
        return False
    fraction = any32(data, position + 4, big)
    if fraction * layout.unit >= _SECOND and not any_fraction:
        return False
    seconds = any32(data, position, big)
    if seconds == size and fraction == size and wire == size:
        return False  # a table of one number; its entries would lead from one to the next
    return near < 0 or abs(seconds - near) <= _NEAR_SECONDS


@jit
def classify_unusual(
    data: Any, position: Number, layout: RecordLayout, near: Number, last: Number, trusted: bool, final: bool
) -> Number:
    """What to do with an unusual record: the record after it decides."""
    stop = len(data)
    big = layout.big
    if is_file_header(data, position):
        return PcapStop.NEW_FILE if stop - position >= HEADER else PcapStop.MORE
    seconds = any32(data, position, big)
    size = any32(data, position + 8, big)
    wire = any32(data, position + 12, big)
    # All zeros are a hole in the file, not a packet of 1970.
    if size > MAX_PACKET_BYTES or (size == 0 and wire == 0 and seconds == 0):
        return PcapStop.BROKEN
    after = position + layout.record + size
    if after > stop:
        return PcapStop.MORE
    # More bytes than were on the wire, a packet larger than any, or a fraction of a full second or more.
    beyond = size > wire + layout.beyond
    wrong = beyond or wire > _LARGEST_WIRE or any32(data, position + 4, big) * layout.unit >= _SECOND
    # The rest of a file may begin anywhere: the first of its records has to look like one.
    wrong = wrong or (near < 0 and (size == 0 or seconds < _OLDEST_SECONDS))
    far = near >= 0 and abs(seconds - near) > _NEAR_SECONDS and abs(seconds - last) > _NEAR_SECONDS
    if trusted or not (wrong or far):
        return PcapStop.KEEP
    if stop - after < layout.record:
        if not final:
            return PcapStop.MORE
        return PcapStop.BROKEN if beyond and after != stop else PcapStop.KEEP
    if is_file_header(data, after) or is_plausible(data, after, layout, seconds, False):
        return PcapStop.KEEP
    if beyond:
        return PcapStop.BROKEN
    # Times may all be wrong, or all fractions (nanoseconds in a file of microseconds): one of both must fit.
    if is_plausible(data, after, layout, -1, False) or is_plausible(data, after, layout, seconds, True):
        return PcapStop.KEEP
    return PcapStop.BROKEN if wrong else PcapStop.DOUBT


@jit
def index_records(
    data: Any, position: Number, layout: RecordLayout, near: Number, last: Number, trusted: Number, start: Any,
    captured: Any, original: Any, time_ns: Any, links: Any, count: Number, final: bool,
) -> Numbers:  # fmt: skip
    """(rows, where it stopped, why, time of the last record that was near the one before, time of the last record). The
    record at `trusted` counts, however unusual."""
    stop = len(data)
    big, record, beyond = layout.big, layout.record, layout.beyond
    while stop - position >= record:
        seconds = any32(data, position, big)
        fraction_ns = any32(data, position + 4, big) * layout.unit
        size = any32(data, position + 8, big)
        wire = any32(data, position + 12, big)
        after = position + record + size
        fits = 0 < size <= wire + beyond and size <= MAX_PACKET_BYTES
        usual = fits and wire <= _LARGEST_WIRE and fraction_ns < _SECOND
        if usual and near >= 0 and abs(seconds - near) <= _NEAR_SECONDS:
            if after > stop:
                break
            near = seconds
        else:
            why = classify_unusual(data, position, layout, near, last, position == trusted, final)
            if why != PcapStop.KEEP:
                return count, position, why, near, last
            if near < 0 or abs(seconds - near) <= _NEAR_SECONDS or abs(seconds - last) <= _NEAR_SECONDS:
                near = seconds
        last = seconds
        start[count] = position + record
        captured[count] = size
        original[count] = min(wire, _LARGEST_INT32)
        time_ns[count] = seconds * _SECOND + fraction_ns
        links[count] = layout.link
        count += 1
        position = after
    return count, position, PcapStop.MORE, near, last


@jit
def chain_fit(data: Any, position: Number, layout: RecordLayout, near: Number, final: bool) -> Number:
    """Whether a chain of records begins at `position`, with or without a file header: `NEAR` the given time, or `FAR`
    from it; `WAIT` if that takes more data."""
    stop = len(data)
    at = position
    header = is_file_header(data, position)
    if header:
        at += HEADER
        if at > stop:
            return RecordFit.NO if final else RecordFit.WAIT
        layout = layout_of(data, position)
    big, record = layout.big, layout.record
    is_near = True
    enough = _CHAIN
    links = 0
    before = np.int64(-1)
    while links < enough and stop - at >= record and is_plausible(data, at, layout, before, False):
        before = any32(data, at, big)
        size = any32(data, at + 8, big)
        if links == 0 and near >= 0:
            is_near = abs(before - near) <= _NEAR_SECONDS
        # Without a time to compare with, packets that were recorded whole count as near.
        whole = size - any32(data, at + 12, big) in (0, layout.beyond)
        if not (header or (is_near and (near >= 0 or whole))):
            if before < _OLDEST_SECONDS:
                return RecordFit.NO
            enough = _LONG_CHAIN
        at += record + size
        links += 1
    if links < enough:
        if stop - at >= record:
            return RecordFit.NO
        if not final:
            return RecordFit.WAIT
        least = _CHAIN_OF_FILE_AT_END if header else _CHAIN_AT_END if enough == _CHAIN else _LONG_CHAIN_AT_END
        if at != stop or links < least:
            return RecordFit.NO
    return RecordFit.NEAR if is_near else RecordFit.FAR


@jit
def find_records(
    data: Any, position: Number, limit: Number, layout: RecordLayout, near: Number, far_too: bool, final: bool
) -> Numbers:
    """(where records go on, `NEAR` or `FAR`); or (where to continue the search, `NO`), before `limit` if more data is
    needed. The work per byte is bounded by the length of a chain."""
    ahead = _RECORD if final else _AHEAD_BYTES
    while position < limit and len(data) - position >= ahead:
        fit = RecordFit.NO
        # The middle bytes of a magic rule out nearly every place, at little cost.
        magic = data[position + 1] == 0xB2 or data[position + 2] == 0xB2
        if magic or is_plausible(data, position, layout, -1, False):
            fit = chain_fit(data, position, layout, near, final)
        if fit == RecordFit.WAIT:
            return position, RecordFit.NO
        if fit == RecordFit.NEAR or (fit == RecordFit.FAR and far_too):
            return position, fit
        position += 1
    return position, RecordFit.NO


class PcapReader:
    """`index` is called repeatedly, each time with all bytes from where the last call stopped."""

    def __init__(self, rows: PacketRows) -> None:
        self._rows = rows
        self._opened = False
        self._layout = RecordLayout(False, 1, _RECORD, 0, 0)
        # In seconds. A single wrong time changes `_last`, not `_near`.
        self._near = self._last = -1
        # Offsets in the file, -1 for none.
        self._trusted = -1
        self._doubted_to = -1
        self._lost_from = -1  # start of a broken record, while the next one is searched
        self._searched = -1
        self._far_too = True  # whether records of another time count
        self._far = -1  # where such records begin
        self._far_from = -1  # from here on they are as good as others
        self._preferred_to = -1
        self._cut = False

    def index(self, data: Bytes, position: int, base: int, final: bool) -> int:
        """Adds rows for the whole packets of `data` from `position` on; returns where to go on. `base` is where `data`
        begins in the file."""
        if not self._opened:
            if len(data) - position < HEADER:
                if final:
                    have = len(data) - position
                    raise InputError(f"the pcap header is cut: {have} bytes of {HEADER}; copy it again")
                return position
            position = self._open(data, position)
        rows = self._rows
        while True:
            if self._lost_from >= 0:
                position, resumed = self._search(data, base, final)
                if not resumed and not final:
                    return position
                self._report_loss(resumed, base + position)
            if position == len(data):
                return position
            rows.count, position, why, self._near, self._last = index_records(
                data, position, self._layout, self._near, self._last, self._trusted - base, rows.start,
                rows.captured, rows.original, rows.time_ns, rows.link, rows.count, final,
            )  # fmt: skip
            if why == PcapStop.MORE and (not final or position == len(data)):
                return position
            if why == PcapStop.NEW_FILE:
                detail = "another pcap file begins here, and is read as well"
                rows.problems.add("joined files", detail, base + position)
                position = self._open(data, position)
            elif why == PcapStop.DOUBT:
                holds = self._holds_records(data, position, base, final)
                if holds is None:
                    return position
                if holds:
                    self._start_search(base + position)
                else:
                    self._trusted = base + position
            else:
                self._start_search(base + position)
                self._cut = why == PcapStop.MORE
                # A record that is only cut contains a packet: records of another time would be inside that packet.
                self._far_too = not self._cut or not self._is_sane(data, position)

    def _open(self, data: Bytes, position: int) -> int:
        self._layout = layout_of(data, position)
        self._near = self._last = -1
        self._opened = True
        return position + HEADER

    def _is_sane(self, data: Bytes, position: int) -> bool:
        short = len(data) - position < self._layout.record
        return short or bool(is_plausible(data, position, self._layout, self._near, False))

    def _holds_records(self, data: Bytes, position: int, base: int, final: bool) -> bool | None:
        """Only the time of this record is wrong, and no record follows: either it is whole and what follows is broken,
        or it isn't a record and has valid ones inside. None without enough data."""
        size = int.from_bytes(data[position + 8 : position + 12].tobytes(), "big" if self._layout.big else "little")
        after = position + self._layout.record + size
        begin = max(self._doubted_to - base, position + 1)
        at, fit = find_records(data, begin, after, self._layout, self._near, False, final)
        self._doubted_to = base + at
        if fit == RecordFit.NO and at < after and not final:
            return None
        return bool(fit != RecordFit.NO)

    def _start_search(self, offset: int) -> None:
        """A packet may contain a recording of another time: up to the end of the largest packet, records near in time
        are searched first. No byte is searched twice for that reason, whatever the file contains."""
        self._lost_from, self._searched = offset, offset + 1
        self._far, self._far_too, self._cut = -1, True, False
        self._far_from = offset + self._layout.record + MAX_PACKET_BYTES if offset >= self._preferred_to else offset

    def _search(self, data: Bytes, base: int, final: bool) -> tuple[int, bool]:
        """(where records go on, True); or (from where the data is still needed, False)."""
        while True:
            limit = len(data) if self._far < 0 else self._far_from - base
            far_too = self._far_too and self._far < 0
            at, fit = find_records(data, self._searched - base, limit, self._layout, self._near, far_too, final)
            self._searched = base + at
            if fit == RecordFit.NEAR or (fit == RecordFit.FAR and self._searched >= self._far_from):
                return at, True
            if fit == RecordFit.FAR:
                self._far = self._searched
                self._searched += 1
            elif self._far >= 0 and (self._searched >= self._far_from or final):
                self._preferred_to = self._searched
                return self._far - base, True
            elif final:
                return len(data), False
            else:
                return (self._far if self._far >= 0 else self._searched) - base, False

    def _report_loss(self, resumed: bool, end: int) -> None:
        lost = end - self._lost_from
        problems = self._rows.problems
        if resumed:
            problems.add("broken record", "reading continues after it", self._lost_from, lost)
        elif self._cut:
            detail = f"the file ends inside a record: only {lost} bytes of it are present"
            problems.add("cut", detail, self._lost_from, lost)
        else:
            problems.add("broken record", "no record was found after it", self._lost_from, lost)
        self._lost_from = -1
