"""Checks what a run has left against what a run can leave. A state comes out of a lake, which is input, and its numbers
become rows, places and sizes of the kernels' tables: no other numbers come in than could have gone out."""

from collections.abc import Iterable
from typing import Any

from kafkascope.capture.base.flow import (
    FrameKind,
    PieceKind,
)
from kafkascope.capture.frames import frame_table as frames
from kafkascope.capture.frames.detect.start import HINTED, UNKNOWN
from kafkascope.capture.resume.state import NOWHERE, PACKET_BITS, Carried, CarriedPieces, CarriedSearch, CarriedStream
from kafkascope.capture.tcp import stream_table as streams
from kafkascope.limits import MAX_EARLY_SEGMENTS, MAX_FRAME_BYTES, MAX_SEARCHED_BYTES, MAX_UNDECIDED_PIECES

# Offsets and counts stay far below what an int64 holds: sums of some of them do too.
_FAR = 1 << 60
_WORD = 1 << 32
_INT64, _INT32 = 1 << 63, 1 << 31
# More files than one connection runs through, with all their packets below `_FAR`.
_MOST_FILES = 1 << 16
# A stream whose next frame is searched holds a piece more than its limit for a moment.
_MOST_SEARCHED = 2 * MAX_SEARCHED_BYTES
# What `framing` says of a stream: split, searched, or one of those below 0.
_FRAMED, _SEARCHED = 0, 1


def check(one: Carried) -> None:
    """`ValueError` where no run has left this."""
    _files(one)
    for address in (one.address_a, one.address_b):
        _need(isinstance(address, str) and len(bytes.fromhex(address)) == 16)
    _numbers([one.port_a, one.port_b], 0, 1 << 16)
    _numbers([one.number, one.segments, one.conflict_bytes, one.retransmitted_bytes, one.duplicated_bytes], 0, _FAR)
    _numbers([one.previous], -1, _FAR)
    _numbers([one.first_ns, one.last_ns, one.closed_ns], -_INT64, _INT64)
    _numbers([one.software_from], 0, _FAR)
    _numbers([one.ended], 0, streams.Ended.REUSED + 1)
    _numbers([one.starter], UNKNOWN, 2 * HINTED)
    _flags(one.current, one.opened, one.reset_seen)
    for side in (one.opener, one.client):
        _need(side is None or _is_number(side, 0, 2))
    _need(one.protocol in streams.PROTOCOLS)
    _need(one.client_software is None or _is_text(one.client_software))
    if one.connection_id is not None:
        _need(isinstance(one.connection_id, str) and len(one.connection_id) == 16)
        int(one.connection_id, 16)
    _need(len(one.streams) == 2)
    for stream in one.streams:
        _stream(one, stream)
    _slot(one)
    if one.pieces is not None:
        _pieces(one, one.pieces)
    for row in one.waiting:
        _waiting(one, row)
    _place(one, one.place)


def _is_text(value: Any) -> bool:
    """One that a column holds: a lone surrogate is a `ValueError` of its own."""
    return isinstance(value, str) and value.encode() is not None


def _files(one: Carried) -> None:
    _need(len(one.files) <= _MOST_FILES)
    for order, uri in one.files:
        _numbers([order], 0, _FAR)
        _need(_is_text(uri) and uri != "")


def _stream(one: Carried, stream: CarriedStream) -> None:
    row = stream.row
    _need(len(row) == len(streams.Stream) and len(stream.state) in (0, len(frames.Partial)))
    _numbers(row, -_INT64, _INT64)
    # Lists of the tables: they are made anew.
    _need(row[streams.Stream.HEAD] == row[streams.Stream.TAIL] == -1)
    _numbers([row[at] for at in (streams.Stream.BASE, streams.Stream.INITIAL, streams.Stream.STRAY)], -1, _WORD)
    _numbers([row[at] for at in (streams.Stream.FIN_AT, streams.Stream.ACKED, streams.Stream.CERTAIN)], -1, _FAR)
    counts = (
        streams.Stream.NEXT,
        streams.Stream.HELD_BYTES,
        streams.Stream.HELD_COUNT,
        streams.Stream.CERTAIN_COUNT,
        streams.Stream.SEEN_BYTES,
    )
    _numbers([row[at] for at in (*counts, streams.Stream.GAP_BYTES, streams.Stream.PLACED)], 0, _FAR)
    _numbers([row[at] for at in (streams.Stream.SOFT, streams.Stream.CLOSED)], 0, 2)
    _need(len(stream.delivered) <= streams.MARKS and len(stream.early) <= MAX_EARLY_SEGMENTS)
    for end, time in stream.delivered:
        _numbers([end], 0, _FAR)
        _numbers([time], -_INT64, _INT64)
    at = row[streams.Stream.NEXT]
    for kind, low, high, time, packet in stream.early:
        _need(kind in (PieceKind.BYTES, PieceKind.GAP))
        _numbers([low, high, time], -_INT64, _INT64)
        _need(at <= low < high <= row[streams.Stream.NEXT] + _INT32)
        _place(one, packet)
        at = high
    _flags(stream.opened)
    _numbers([stream.framing], frames.FRESH, _SEARCHED + 1)
    _need((stream.framing == _SEARCHED) == (stream.search is not None))
    _need((stream.framing >= _FRAMED) == bool(stream.state) and (not stream.state or one.slot is not None))
    _place(one, stream.place)
    if stream.state:
        _state(one, stream)
    else:
        _need(stream.place == NOWHERE)
    if stream.search is not None:
        _search(one, stream.search)


def _state(one: Carried, stream: CarriedStream) -> None:
    state = stream.state
    _numbers(state, -_INT64, _INT64)
    _need(state[frames.Partial.HEAD] == state[frames.Partial.TAIL] == -1)
    have, length, filled = state[frames.Partial.HAVE], state[frames.Partial.LENGTH], state[frames.Partial.FILLED]
    _numbers([have], 0, 5)
    _need(0 <= filled < length <= MAX_FRAME_BYTES if have == 4 else length == -1 and filled == 0)
    _numbers([state[frames.Partial.PREFIX]], 0, 1 << 8 * have)
    _numbers([state[frames.Partial.OFFSET], state[frames.Partial.SHORT]], 0, _FAR)
    _numbers([state[frames.Partial.TOKENS]], 0, 2)
    _numbers([state[frames.Partial.DAMAGED]], 0, 2 + min(filled, frames.CHUNK))
    _place(one, state[frames.Partial.PACKET])
    # Bytes that are there are read again, or the frame is lost.
    held = frames.held_of(state) > 0
    _need(held == (stream.place != NOWHERE) and not (held and stream.search is not None))


def _search(one: Carried, search: CarriedSearch) -> None:
    _numbers([search.offset, search.run_offset, search.skipped], 0, _FAR)
    _numbers([search.first_ns, search.time_ns], -_INT64, _INT64)
    _numbers([search.run_bytes], 0, _MOST_SEARCHED)
    _numbers([search.scanned, *search.candidates], 0, search.run_bytes + 1)
    _need(search.skipped <= search.run_bytes)
    before = 0
    for at, time, packet in search.marks:
        _numbers([at], before, search.run_bytes + 1)
        _numbers([time], -_INT64, _INT64)
        _place(one, packet)
        before = at
    _place(one, search.packet)
    _place(one, search.place)
    if search.end:
        kind, offset, time, packet = search.end
        _need(kind in (PieceKind.CLOSE, PieceKind.RESET))
        _numbers([offset], 0, _FAR)
        _numbers([time], -_INT64, _INT64)
        _place(one, packet)


def _slot(one: Carried) -> None:
    _need(len(one.asked) <= frames.REMEMBERED)
    for row in one.asked:
        _need(len(row) == 3)
        _numbers(row, -_INT32, _INT32)
    if one.slot is None:
        _need(not one.asked)
        return
    handshake, identity, asked = one.slot
    _numbers([handshake], 0, 2)
    _numbers([identity], -_INT32, _INT32)
    _numbers([asked], len(one.asked), _FAR)
    _need(one.client is not None)


def _pieces(one: Carried, pieces: CarriedPieces) -> None:
    _need(pieces.client is None or _is_number(pieces.client, 0, 2))
    _need(len(pieces.opened) == 2 and len(pieces.named) == 2 and len(pieces.entries) <= 2 * MAX_UNDECIDED_PIECES)
    _flags(*pieces.opened, pieces.hinted)
    _numbers([pieces.looked, *pieces.named], 0, _FAR)
    for kind, direction, offset, length, time, packet in pieces.entries:
        _numbers([kind], PieceKind.BYTES, PieceKind.RENEWED + 1)
        _numbers([direction], 0, 2)
        _numbers([offset, length], 0, _FAR)
        _numbers([time], -_INT64, _INT64)
        _place(one, packet)


def _waiting(one: Carried, row: tuple[int, ...]) -> None:
    kind, response, offset, size, first_ns, last_ns, packet, losses, place, *missing = row
    _need(kind in (FrameKind.FRAME, FrameKind.TOKEN))
    _numbers([response], 0, 2)
    _numbers([offset, losses], 0, _FAR)
    _numbers([size], 0, MAX_FRAME_BYTES + 1)
    _need(len(missing) <= 1)
    _numbers(missing, 1, MAX_FRAME_BYTES + 1 - size)
    _numbers([first_ns, last_ns], -_INT64, _INT64)
    _place(one, packet)
    _place(one, place)


def _place(one: Carried, place: Any) -> None:
    _numbers([place], NOWHERE, len(one.files) << PACKET_BITS)


def _numbers(values: Iterable[Any], low: int, behind: int) -> None:
    """All are whole numbers from `low` until before `behind`."""
    for value in values:
        _need(_is_number(value, low, behind))


def _is_number(value: Any, low: int, behind: int) -> bool:
    return type(value) is int and low <= value < behind


def _flags(*values: Any) -> None:
    _need(all(type(value) is bool for value in values))


def _need(holds: bool) -> None:
    if not holds:
        raise ValueError
