"""Finds the next true batch after damaged bytes: one whose header is possible and whose checksum is right. Hostile
bytes cost linear time."""

import re
from struct import Struct
from zlib import crc32

from crc32c import crc32c

from kafkascope.limits import MAX_FRAME_BYTES, MAX_SEARCH_RATIO
from kafkascope.logs.window import WINDOW_BYTES, Window

# A positive offset and length, and a magic: seventeen bytes of which a plain search can tell most.
_CANDIDATE = re.compile(rb"(?=[\x00-\x7f].{7}(?!\x00\x00\x00\x00)[\x00-\x06].{7}[\x00-\x02])", re.DOTALL)
_START_BYTES = 17
_HEADER = Struct(">qiibIhiqqqhii")
_MESSAGE = Struct(">qiIbb")
_USED_ATTRIBUTES = 0x7F
_CRC_START = {0: 16, 1: 16, 2: 21}
_LEAST = {0: 26, 1: 34, 2: 61}
# A segment's offsets are within int32 of its base offset.
_FAR = 1 << 31


def next_batch(window: Window, start: int, previous: int, end: int | None = None) -> int | None:
    """The position of the first batch from `start` on, before `end` if there is one. `previous` is the last offset of
    the batch before the damage, −1 if there is none."""
    stop = window.size if end is None else min(end, window.size)
    credit = 2 * MAX_FRAME_BYTES
    position = start
    while position < stop:
        piece = window.read(position, min(WINDOW_BYTES, window.size - position))
        if len(piece) < _START_BYTES:
            return None
        for match in _CANDIDATE.finditer(piece):
            at = position + match.start()
            if at >= stop:
                return None
            head = piece[match.start() : match.start() + _HEADER.size]
            size = _possible_size(head, window.size - at, previous)
            if size is None or size > credit:
                continue
            credit -= size
            if _is_sound(window.read(at, size), head[16]):
                return at
        step = max(1, len(piece) - _START_BYTES + 1)
        position += step
        credit += step * MAX_SEARCH_RATIO
    return None


def _possible_size(head: bytes, left: int, previous: int) -> int | None:
    """What a header says of its batch's size; None if no batch has such a header."""
    if len(head) < _MESSAGE.size:
        return None
    magic = head[16]
    offset, length = _MESSAGE.unpack_from(head)[:2]
    size = int(length) + 12
    if not _LEAST[magic] <= size <= min(left, MAX_FRAME_BYTES):
        return None
    if previous >= 0 and not previous < offset < previous + _FAR:
        return None
    if magic < 2:
        return size if head[17] & ~0x0F == 0 and head[17] & 7 <= 4 else None
    if len(head) < _HEADER.size:
        return None
    _, _, epoch, _, _, attributes, last_delta, _, _, producer, _, sequence, count = _HEADER.unpack(head)
    fits = attributes & ~_USED_ATTRIBUTES == 0 and attributes & 7 <= 4
    return (
        size if fits and last_delta >= 0 and count >= 0 and epoch >= -1 and producer >= -1 and sequence >= -1 else None
    )


def _is_sound(data: bytes, magic: int) -> bool:
    stored = int.from_bytes(data[17:21] if magic == 2 else data[12:16], "big")
    return stored == (crc32c if magic == 2 else crc32)(memoryview(data)[_CRC_START[magic] :])
