"""Validates the state that an earlier run left. The state comes from a lake, so it is untrusted input, and its numbers
become rows, places and sizes in the kernels' tables: only numbers that a run can leave are accepted."""

from collections.abc import Iterable
from typing import Any

from kafkascope.capture.base.flow import FrameKind, PieceKind
from kafkascope.capture.frames import frame_table as frames
from kafkascope.capture.frames.detect.start import HINTED, UNKNOWN
from kafkascope.capture.resume.state import NOWHERE, PACKET_BITS, Carried, CarriedPieces, CarriedSearch, CarriedStream
from kafkascope.capture.tcp import stream_table as streams
from kafkascope.limits import MAX_EARLY_SEGMENTS, MAX_FRAME_BYTES, MAX_SEARCHED_BYTES, MAX_UNDECIDED_PIECES

# Offsets and counts stay far below the end of int64, so that sums of some of them fit too.
_FAR = 1 << 60
_WORD = 1 << 32
_INT64, _INT32 = 1 << 63, 1 << 31
# More files than one connection runs through, with all their packets below `_FAR`.
_MOST_FILES = 1 << 16
# A stream whose next frame is being searched briefly holds a piece more than its limit.
_MOST_SEARCHED = 2 * MAX_SEARCHED_BYTES
# `CarriedStream.framing`: split, searched, or one of the values below 0.
_FRAMED, _SEARCHED = 0, 1


def check(carried: Carried) -> None:
    """Raises `ValueError` if no run can have left this."""
    _files(carried)
    for address in (carried.address_a, carried.address_b):
        _need(isinstance(address, str) and len(bytes.fromhex(address)) == 16)
    _numbers([carried.port_a, carried.port_b], 0, 1 << 16)
    _numbers(
        [
            carried.number,
            carried.segments,
            carried.conflict_bytes,
            carried.retransmitted_bytes,
            carried.duplicated_bytes,
        ],
        0,
        _FAR,
    )
    _numbers([carried.previous], -1, _FAR)
    _numbers([carried.first_ns, carried.last_ns, carried.closed_ns], -_INT64, _INT64)
    _numbers([carried.software_from], 0, _FAR)
    _numbers([carried.ended], 0, streams.Ended.REUSED + 1)
    _numbers([carried.starter], UNKNOWN, 2 * HINTED)
    _flags(carried.current, carried.opened, carried.reset_seen)
    for side in (carried.opener, carried.client):
        _need(side is None or _is_number(side, 0, 2))
    _need(carried.protocol in streams.PROTOCOLS)
    _need(carried.client_software is None or _is_text(carried.client_software))
    if carried.connection_id is not None:
        _need(isinstance(carried.connection_id, str) and len(carried.connection_id) == 16)
        int(carried.connection_id, 16)
    _need(len(carried.streams) == 2)
    for stream in carried.streams:
        _stream(carried, stream)
    _slot(carried)
    if carried.pieces is not None:
        _pieces(carried, carried.pieces)
    for row in carried.waiting:
        _waiting(carried, row)
    _place(carried, carried.place)


def _is_text(value: Any) -> bool:
    """If a column can hold the text: a lone surrogate raises a `ValueError` of its own."""
    return isinstance(value, str) and value.encode() is not None


def _files(carried: Carried) -> None:
    _need(len(carried.files) <= _MOST_FILES)
    for order, uri in carried.files:
        _numbers([order], 0, _FAR)
        _need(_is_text(uri) and uri != "")


def _stream(carried: Carried, stream: CarriedStream) -> None:
    row = stream.row
    _need(len(row) == len(streams.Stream) and len(stream.state) in (0, len(frames.Partial)))
    _numbers(row, -_INT64, _INT64)
    # The lists in the tables are rebuilt.
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
        _place(carried, packet)
        at = high
    _flags(stream.opened)
    _numbers([stream.framing], frames.FRESH, _SEARCHED + 1)
    _need((stream.framing == _SEARCHED) == (stream.search is not None))
    _need((stream.framing >= _FRAMED) == bool(stream.state) and (not stream.state or carried.slot is not None))
    _place(carried, stream.place)
    if stream.state:
        _state(carried, stream)
    else:
        _need(stream.place == NOWHERE)
    if stream.search is not None:
        _search(carried, stream.search)


def _state(carried: Carried, stream: CarriedStream) -> None:
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
    _place(carried, state[frames.Partial.PACKET])
    # The bytes that had come are read again, or the frame is lost.
    held = frames.held_of(state) > 0
    _need(held == (stream.place != NOWHERE) and not (held and stream.search is not None))


def _search(carried: Carried, search: CarriedSearch) -> None:
    _numbers([search.offset, search.run_offset, search.skipped], 0, _FAR)
    _numbers([search.first_ns, search.time_ns], -_INT64, _INT64)
    _numbers([search.run_bytes], 0, _MOST_SEARCHED)
    _numbers([search.scanned, *search.candidates], 0, search.run_bytes + 1)
    _need(search.skipped <= search.run_bytes)
    before = 0
    for at, time, packet in search.marks:
        _numbers([at], before, search.run_bytes + 1)
        _numbers([time], -_INT64, _INT64)
        _place(carried, packet)
        before = at
    _place(carried, search.packet)
    _place(carried, search.place)
    if search.end:
        kind, offset, time, packet = search.end
        _need(kind in (PieceKind.CLOSE, PieceKind.RESET))
        _numbers([offset], 0, _FAR)
        _numbers([time], -_INT64, _INT64)
        _place(carried, packet)


def _slot(carried: Carried) -> None:
    _need(len(carried.asked) <= frames.REMEMBERED)
    for row in carried.asked:
        _need(len(row) == 3)
        _numbers(row, -_INT32, _INT32)
    if carried.slot is None:
        _need(not carried.asked)
        return
    handshake, identity, request_count = carried.slot
    _numbers([handshake], 0, 2)
    _numbers([identity], -_INT32, _INT32)
    _numbers([request_count], len(carried.asked), _FAR)
    _need(carried.client is not None)


def _pieces(carried: Carried, pieces: CarriedPieces) -> None:
    _need(pieces.client is None or _is_number(pieces.client, 0, 2))
    _need(len(pieces.opened) == 2 and len(pieces.named) == 2 and len(pieces.entries) <= 2 * MAX_UNDECIDED_PIECES)
    _flags(*pieces.opened, pieces.hinted)
    _numbers([pieces.looked, *pieces.named], 0, _FAR)
    for kind, direction, offset, length, time, packet in pieces.entries:
        _numbers([kind], PieceKind.BYTES, PieceKind.RENEWED + 1)
        _numbers([direction], 0, 2)
        _numbers([offset, length], 0, _FAR)
        _numbers([time], -_INT64, _INT64)
        _place(carried, packet)


def _waiting(carried: Carried, row: tuple[int, ...]) -> None:
    kind, response, offset, size, first_ns, last_ns, packet, losses, place, *missing = row
    _need(kind in (FrameKind.FRAME, FrameKind.TOKEN))
    _numbers([response], 0, 2)
    _numbers([offset, losses], 0, _FAR)
    _numbers([size], 0, MAX_FRAME_BYTES + 1)
    _need(len(missing) <= 1)
    _numbers(missing, 1, MAX_FRAME_BYTES + 1 - size)
    _numbers([first_ns, last_ns], -_INT64, _INT64)
    _place(carried, packet)
    _place(carried, place)


def _place(carried: Carried, place: Any) -> None:
    _numbers([place], NOWHERE, len(carried.files) << PACKET_BITS)


def _numbers(values: Iterable[Any], low: int, behind: int) -> None:
    """All are integers from `low` to `behind` - 1."""
    for value in values:
        _need(_is_number(value, low, behind))


def _is_number(value: Any, low: int, behind: int) -> bool:
    return type(value) is int and low <= value < behind


def _flags(*values: Any) -> None:
    _need(all(type(value) is bool for value in values))


def _need(holds: bool) -> None:
    if not holds:
        raise ValueError
