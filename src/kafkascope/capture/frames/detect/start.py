"""Judges the start of a connection in a kernel: whether its first pieces are Kafka or TLS without doubt.

Two requests with a client id are without doubt, or one with its response, if the catalog knows them and the scan reads
them to their last byte. `detection` judges all others, and comes to the same verdict at the same piece."""

from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from kafkascope.capture.base.checked import copy, place, read_i16, read_i32
from kafkascope.capture.base.flow import Bytes, Int64s, PieceKind, Uint8s
from kafkascope.capture.base.numbers import Number, Numbers
from kafkascope.capture.frames.body_scan import KEEP_NONE, ScanResult, make_stack, scan
from kafkascope.capture.frames.detect.grade import (
    CLIENT_HELLO,
    CONTROLLED_SHUTDOWN,
    MOST_CLIENT_ID,
    MOST_KEYS,
    MOST_TLS_RECORD,
    MOST_VERSIONS,
    SERVER_HELLO,
    SMALLEST_REQUEST,
    SMALLEST_RESPONSE,
    TLS_HANDSHAKE,
    TLS_MAJOR,
    TLS_MINOR,
)
from kafkascope.capture.frames.headers import API_VERSIONS, NEVER, flexible_from
from kafkascope.capture.frames.scan_program import NOT_COMPILED, Fact, ScanPrograms
from kafkascope.columnar.compiling.jit import jit
from kafkascope.limits import MAX_FRAME_BYTES


class Opening(IntEnum):
    """The columns of `first`, a row per connection; zeros where no piece waits."""

    PIECES = 0  # how many wait
    HEAD = 1  # first and last of them
    TAIL = 2
    CLIENT = 3  # the direction that requests come from
    HAVE = 4  # bytes of either direction
    HAVE_OTHER = 5
    AT = 6  # where the next request begins
    ASKED = 7  # requests that are without doubt; key, version and correlation id of the first one
    KEY = 8
    VERSION = 9
    IDENTITY = 10
    ENDED = 11  # a bit per direction
    SURE = 12  # the verdict, IS_KAFKA or IS_TLS


IS_KAFKA, IS_TLS = 1, 2

# `starters` of a connection: UNKNOWN, or the direction that opened it, plus HINTED where one request is enough.
UNKNOWN, HINTED = -1, 2

# The longest frame that is judged here, and the most pieces: first frames are short.
_MOST_BYTES = 65_536
MOST_PIECES = 64


class StartVerdict(IntEnum):
    """What the first pieces of a connection show."""

    WAIT = 0  # nothing yet
    KAFKA = 1
    UNSURE = 2  # `detection` decides
    COMPILE = 3  # a scan program is missing
    TLS = 4


class Scanning(NamedTuple):
    """What judging a body needs: the programs of `ScanPrograms`, the versions with tagged headers, and scratch room."""

    entry: Int64s
    operations: Int64s
    tags: Int64s
    request_tags: Int64s  # API key to the first version with tags in its header
    response_tags: Int64s
    facts: Int64s
    seen: Uint8s
    names: Int64s
    scratch: Bytes
    stack: Int64s
    wanted: Int64s  # (API key, version) that is to be compiled


def make_scanning(programs: ScanPrograms) -> Scanning:
    return Scanning(
        programs.entry,
        programs.operations,
        programs.tags,
        flexible_from(),
        response_tags(),
        np.zeros(len(Fact), np.int64),
        np.zeros(len(Fact), np.uint8),
        np.zeros((0, 4), np.int64),
        np.empty(_MOST_BYTES, np.uint8),
        make_stack(),
        np.zeros(2, np.int64),
    )


@cache
def response_tags() -> Int64s:
    tags = flexible_from().copy()
    tags[API_VERSIONS] = NEVER
    return tags


@jit
def queue_piece(first: Any, links: Any, piece: Number, kind: Number, direction: Number, length: Number) -> None:
    """Appends the piece to those that wait."""
    if first[Opening.PIECES] == 0:
        first[Opening.HEAD] = piece
    else:
        links[first[Opening.TAIL]] = piece
    links[piece] = -1
    first[Opening.TAIL] = piece
    first[Opening.PIECES] += 1
    if kind == PieceKind.BYTES:
        first[Opening.HAVE + direction] += length
    elif kind in (PieceKind.CLOSE, PieceKind.RESET):
        first[Opening.ENDED] |= 1 << direction


@jit
def stream_bytes(
    p: Any, first: Any, links: Any, direction: Number, start: Number, end: Number, scratch: Any
) -> Numbers:
    """(array, place in it) of these bytes of a stream: in the last piece, or copied together to `scratch`."""
    last = first[Opening.TAIL]
    before = first[Opening.HAVE + direction] - p.length[last]
    if p.kind[last] == PieceKind.BYTES and (p.stream[last] & 1) == direction and start >= before:
        return place(p.data, p.waited, p.start[last] + start - before)
    passed = np.int64(0)
    filled = np.int64(0)
    piece = first[Opening.HEAD]
    while filled < end - start:
        if p.kind[piece] == PieceKind.BYTES and (p.stream[piece] & 1) == direction:
            low = max(start - passed, 0)
            high = min(end - passed, p.length[piece])
            if low < high:
                data, at = place(p.data, p.waited, p.start[piece])
                copy(scratch, filled, data, at + low, high - low)
                filled += high - low
            passed += p.length[piece]
        piece = links[piece]
    return scratch, np.int64(0)


@jit
def reads_exactly(s: Scanning, program: Number, data: Any, position: Number, end: Number) -> Number:
    s.facts[:] = 0
    result, _ = scan(
        s.operations, s.tags, program, data, np.int64(0), position, end, s.facts, s.seen, np.int64(0), s.names,
        np.int64(0), KEEP_NONE, s.stack,
    )  # fmt: skip
    return result == ScanResult.READ


@jit
def check_request(s: Scanning, data: Any, body: Number, end: Number) -> Number:
    """WAIT if it's a request without doubt. There are bytes for a header at least."""
    key = read_i16(data, body)
    version = read_i16(data, body + 2)
    if not (0 <= key < MOST_KEYS and 0 <= version < MOST_VERSIONS) or (key == CONTROLLED_SHUTDOWN and version == 0):
        return StartVerdict.UNSURE
    program = s.entry[0, key, version]
    if program == NOT_COMPILED:
        s.wanted[0] = key
        s.wanted[1] = version
        return StartVerdict.COMPILE
    size = read_i16(data, body + 8)
    position = body + 10
    if program < 0 or not 0 < size <= min(MOST_CLIENT_ID, end - position):
        return StartVerdict.UNSURE
    for at in range(position, position + size):
        if not 0x20 <= data[at] < 0x7F:
            return StartVerdict.UNSURE
    position += size
    if version >= s.request_tags[key]:
        if position >= end or data[position] != 0:
            return StartVerdict.UNSURE
        position += 1
    return StartVerdict.WAIT if reads_exactly(s, program, data, position, end) else StartVerdict.UNSURE


@jit
def add_request(s: Scanning, first: Any, data: Any, body: Number, end: Number) -> Number:
    verdict = check_request(s, data, body, end)
    if verdict == StartVerdict.WAIT:
        first[Opening.ASKED] += 1
        if first[Opening.ASKED] == 1:
            first[Opening.KEY] = read_i16(data, body)
            first[Opening.VERSION] = read_i16(data, body + 2)
            first[Opening.IDENTITY] = read_i32(data, body + 4)
    return verdict


@jit
def check_response(s: Scanning, first: Any, data: Any, body: Number, end: Number) -> Number:
    if read_i32(data, body) != first[Opening.IDENTITY]:
        return StartVerdict.UNSURE
    position = body + 4
    if first[Opening.VERSION] >= s.response_tags[first[Opening.KEY]]:
        if position >= end or data[position] != 0:
            return StartVerdict.UNSURE
        position += 1
    program = s.entry[1, first[Opening.KEY], first[Opening.VERSION]]
    if program >= 0 and reads_exactly(s, program, data, position, end):
        return StartVerdict.KAFKA
    return StartVerdict.UNSURE


@jit
def is_tls(data: Any, at: Number, length: Number) -> Number:
    """Whether these are the first bytes of a TLS stream, as in `other_protocol`."""
    if length < 6 or data[at] != TLS_HANDSHAKE or data[at + 1] != TLS_MAJOR or data[at + 2] > TLS_MINOR:
        return False
    if not 0 < (np.int64(data[at + 3]) << 8 | np.int64(data[at + 4])) <= MOST_TLS_RECORD:
        return False
    return data[at + 5] == CLIENT_HELLO or data[at + 5] == SERVER_HELLO


@jit
def judge_start(s: Scanning, p: Any, first: Any, links: Any, hinted: bool) -> Number:
    """The verdict on all pieces of the connection together, after one more was queued."""
    if first[Opening.PIECES] > MOST_PIECES or first[Opening.ENDED] == 3:
        return StartVerdict.UNSURE
    only = first[Opening.HEAD]
    if first[Opening.PIECES] == 1 and p.kind[only] == PieceKind.BYTES and p.offset[only] == 0:
        data, at = place(p.data, p.waited, p.start[only])
        if is_tls(data, at, p.length[only]):
            return StartVerdict.TLS
    scratch = s.scratch
    client = first[Opening.CLIENT]
    other = first[Opening.HAVE + 1 - client]
    while first[Opening.HAVE + client] - first[Opening.AT] >= 4:
        start = first[Opening.AT]
        data, at = stream_bytes(p, first, links, client, start, start + 4, scratch)
        length = np.int64(read_i32(data, at))
        if not SMALLEST_REQUEST + 2 <= length <= _MOST_BYTES:
            return StartVerdict.UNSURE
        end = start + 4 + length
        if first[Opening.HAVE + client] < end:
            break
        data, body = stream_bytes(p, first, links, client, start + 4, end, scratch)
        verdict = add_request(s, first, data, body, body + length)
        if verdict != StartVerdict.WAIT:
            return verdict
        first[Opening.AT] = end
        if first[Opening.ASKED] == 2 or hinted:
            break
    length = np.int64(0)
    if other:
        data, at = stream_bytes(p, first, links, 1 - client, np.int64(0), min(other, 4), scratch)
        # Not the length of a frame: other protocols show here.
        if data[at] > MAX_FRAME_BYTES >> 24:
            return StartVerdict.UNSURE
        if other >= 4:
            length = np.int64(read_i32(data, at))
    if first[Opening.ASKED] == 0:
        return StartVerdict.WAIT
    if first[Opening.ASKED] == 2 or hinted:
        return StartVerdict.KAFKA
    if other < 4:
        return StartVerdict.WAIT
    if not SMALLEST_RESPONSE <= length <= _MOST_BYTES:
        return StartVerdict.UNSURE
    if other < 4 + length:
        return StartVerdict.WAIT
    data, body = stream_bytes(p, first, links, 1 - client, np.int64(4), 4 + length, scratch)
    return check_response(s, first, data, body, body + length)
