"""Parses the headers of a batch of frames, in one kernel, to one row of numbers per frame. Bytes that can't be a header
are marked, never raised."""

from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.checked import place, read_i16, read_i32, writable
from kafkascope.capture.base.flow import Bytes, FrameKind, Frames, plain
from kafkascope.capture.base.memory_view import NO_BYTES, Content
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.codec.frame import header_version
from kafkascope.columnar.compiling.jit import jit
from kafkascope.schema.catalog import apis, message


class Frame(IntEnum):
    """The columns of `FrameRows`; all int64, so that a batch is one array."""

    KIND = 0
    CONNECTION = 1
    RESPONSE = 2
    OFFSET = 3
    FIRST_NS = 4
    LAST_NS = 5
    PACKET = 6
    FRAME_AT = 7  # the place of its first byte in the content of the batch
    SIZE = 8
    API_KEY = 9
    VERSION = 10
    CORRELATION = 11
    CLIENT_AT = 12  # from FRAME_AT on; -1 if the client id is null or the header has none
    CLIENT_SIZE = 13
    BODY_AT = 14  # from FRAME_AT on; -1 if the header can't be parsed, or the frame isn't complete
    NO_ANSWER = 15  # a Produce with acks 0
    AFTER_LOSS = 16  # bytes of the responses' stream were lost while it waited
    MISSING = 17  # bytes at the frame's end that weren't recorded; SIZE is without them


FrameRows = npt.NDArray[np.int64]

PRODUCE, API_VERSIONS, CONTROLLED_SHUTDOWN = 0, 18, 7
FIRST_FLEXIBLE_PRODUCE, FIRST_TRANSACTIONAL_PRODUCE = 9, 3
# The catalog has no API keys and versions beyond these.
MOST_KEYS, MOST_VERSIONS = 256, 64
NEVER = 1 << 20
NO_ROWS: FrameRows = np.empty((0, len(Frame)), dtype=np.int64)


@cache
def flexible_from() -> npt.NDArray[np.int64]:
    """API key to the first version with request header v2, `NEVER` if there is none: no API ever went back."""
    first = np.full(MOST_KEYS, NEVER, dtype=np.int64)
    for key, api in apis().items():
        name = f"{api}Request"
        first[key] = next((v for v in message(name).all_versions() if header_version(name, v) == 2), NEVER)
    return first


def read_headers(frames: Frames, before: FrameRows = NO_ROWS, waited: Bytes = NO_BYTES) -> tuple[FrameRows, Content]:
    """(the rows `before`, whose bytes are `waited`, and after them one row per frame; the bytes of all of them)"""
    content = Content(waited, writable(frames.body))
    rows = np.empty((len(before) + len(frames.kind), len(Frame)), dtype=np.int64)
    rows[: len(before)] = before
    _make_rows(
        rows, len(before), *content, plain(frames.ends, np.int64), plain(frames.kind, np.uint8),
        plain(frames.connection, np.int32), plain(frames.is_response, np.uint8), plain(frames.offset, np.int64),
        plain(frames.first_ns, np.int64), plain(frames.time_ns, np.int64), plain(frames.packet, np.int64),
        plain(frames.lost, np.int64), flexible_from(),
    )  # fmt: skip
    return rows, content


@jit
def uvarint(data: Any, position: Number, end: Number) -> Numbers:
    """(value, next position), minimal or not, as Java reads it; a value below 0 is cut off or too long."""
    value = np.int64(0)
    for index in range(5):
        if position >= end:
            return np.int64(-1), position
        byte = np.int64(data[position])
        position += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return (value if value <= 0x7FFFFFFF else np.int64(-1)), position
    return np.int64(-1), position


@jit
def varint(data: Any, position: Number, end: Number) -> Numbers:
    """The same for the shortest form alone, as Kafka writes it."""
    first = position
    value, position = uvarint(data, position, end)
    if value >= 0 and position - first > 1 and data[position - 1] == 0:
        return np.int64(-1), position
    return value, position


@jit
def skip_tags(data: Any, position: Number, end: Number) -> Number:
    """The position after a tag section, -1 if it isn't one."""
    number, position = uvarint(data, position, end)
    if number < 0:
        return np.int64(-1)
    for _ in range(number):
        tag, position = uvarint(data, position, end)
        size, position = uvarint(data, position, end)
        if tag < 0 or size < 0 or size > end - position:
            return np.int64(-1)
        position += size
    return position


@jit
def acks_are_zero(data: Any, position: Number, end: Number, version: Number) -> Number:
    """Whether a Produce body has acks 0; they follow a transactional id that may be null (v3+)."""
    if version >= FIRST_FLEXIBLE_PRODUCE:
        length, position = uvarint(data, position, end)
        position += max(length - 1, 0)
    elif version >= FIRST_TRANSACTIONAL_PRODUCE:
        if end - position < 2:
            return False
        position += 2 + max(read_i16(data, position), 0)
    return end - position >= 2 and read_i16(data, position) == 0


@jit
def parse_headers(waited: Any, body: Any, rows: Any, first: Number, first_flexible: Any) -> None:
    """Fills in the columns of the header, from row `first` on."""
    for index in range(first, len(rows)):
        row = rows[index]
        row[Frame.CLIENT_AT] = -1
        row[Frame.BODY_AT] = -1
        row[Frame.API_KEY] = -1
        row[Frame.VERSION] = -1
        if row[Frame.KIND] != FrameKind.FRAME:
            continue
        data, start = place(waited, body, row[Frame.FRAME_AT])
        end = start + row[Frame.SIZE]
        if row[Frame.RESPONSE]:
            if row[Frame.SIZE] >= 4:
                row[Frame.CORRELATION] = read_i32(data, start)
                # Whether tags follow is known when its request is.
                row[Frame.BODY_AT] = 4 if row[Frame.MISSING] == 0 else -1
            continue
        if row[Frame.SIZE] < 8:
            continue
        key = np.int64(read_i16(data, start))
        version = np.int64(read_i16(data, start + 2))
        row[Frame.API_KEY] = key
        row[Frame.VERSION] = version
        row[Frame.CORRELATION] = read_i32(data, start + 4)
        position = start + 8
        if not (key == CONTROLLED_SHUTDOWN and version == 0):
            if end - position < 2:
                continue
            length = read_i16(data, position)
            position += 2
            if length > end - position:
                continue
            if length >= 0:
                row[Frame.CLIENT_AT] = position - start
                row[Frame.CLIENT_SIZE] = length
                position += length
        if 0 <= key < MOST_KEYS and version >= first_flexible[key]:
            position = skip_tags(data, position, end)
            if position < 0:
                continue
        row[Frame.BODY_AT] = position - start if row[Frame.MISSING] == 0 else -1
        if key == PRODUCE and acks_are_zero(data, position, end, version):
            row[Frame.NO_ANSWER] = 1


@jit
def _make_rows(
    rows: Any, first: Number, waited: Any, body: Any, ends: Any, kind: Any, connection: Any, is_response: Any,
    offset: Any, first_ns: Any, last_ns: Any, packet: Any, lost: Any, first_flexible: Any,
) -> None:  # fmt: skip
    for index in range(len(kind)):
        row = rows[first + index]
        row[:] = 0
        row[Frame.KIND] = kind[index]
        row[Frame.CONNECTION] = connection[index]
        row[Frame.RESPONSE] = is_response[index]
        row[Frame.OFFSET] = offset[index]
        row[Frame.FIRST_NS] = first_ns[index]
        row[Frame.LAST_NS] = last_ns[index]
        row[Frame.PACKET] = packet[index]
        row[Frame.FRAME_AT] = len(waited) + ends[index]
        row[Frame.SIZE] = ends[index + 1] - ends[index]
        row[Frame.MISSING] = lost[index]
    parse_headers(waited, body, rows, first, first_flexible)
